package policies

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// LoadTests reads a file of policy tests and checks it as far as that goes
// without its policy. The findings are sorted; with an error among them the file
// is good for nothing.
func LoadTests(path string) (*TestFile, Diagnostics) {
	text, err := readFile(path)
	if err != nil {
		return &TestFile{name: path}, Diagnostics{{Pos: Pos{File: path}, Message: readProblem(err), Rule: ruleRead}}
	}
	return ParseTests(path, text)
}

// ParseTests is LoadTests for a file in memory.
func ParseTests(name string, text []byte) (*TestFile, Diagnostics) {
	f := &TestFile{name: name}
	src, bad := readTree(name, text, "tests of a policy that begin with policy: policy.yaml")
	f.sources = sources{dir: filepath.Dir(name), main: src}
	// Findings are looked up in the tree of the tests.
	d := &decoder{policy: &Policy{sources: f.sources}, src: src, list: bad, fields: map[reflect.Type][]fieldSpec{}, budget: expansion}
	if len(bad) > 0 || !d.value(src.root, reflect.ValueOf(f).Elem(), "") {
		return f, tidy(d.list)
	}
	found := f.findings()
	found.list = d.list
	f.validate(found)
	return f, tidy(found.list)
}

func (f *TestFile) findings() *findings { return &findings{policy: &Policy{sources: f.sources}} }

// placed notes where parts of a test stand, for what is said of them later.
func (d *decoder) placed(n *yaml.Node, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *TestSpec:
		x.Pos = d.src.at(n)
	case *TestRequest:
		x.Pos = d.src.at(n)
	case *ExpectSpec:
		x.Pos = d.src.at(n)
	}
}

// validate looks at each test as a whole.
func (f *TestFile) validate(out *findings) {
	if len(f.Tests) == 0 {
		out.errorf("tests", ruleTest, "there is no test; want at least one")
	}
	seen := map[Text]int{}
	for i := range f.Tests {
		t, at := &f.Tests[i], elem("tests", i)
		first, twice := seen[t.Name]
		switch {
		case t.Name == "":
			out.errorf(at, ruleTest, "the test has no name; want name: what holds")
		case twice:
			out.errorf(field(at, "name"), ruleTest, "%s is the name of test %d already; want another", show(string(t.Name)), first+1)
		default:
			seen[t.Name] = i
		}
		if len(t.Requests) == 0 {
			out.errorf(at, ruleTest, "the test has no requests; want at least one")
		}
		for j := range t.Requests {
			t.Requests[j].validate(out, elem(field(at, "requests"), j))
		}
	}
}

func (r *TestRequest) validate(out *findings, at string) {
	var who []string
	for _, w := range []struct {
		key  string
		said bool
	}{{"key", r.Key != ""}, {"tenant", r.Tenant != ""}, {"jwt", r.JWT != nil}} {
		if w.said {
			who = append(who, w.key)
		}
	}
	if r.URL == "" && !out.failed(field(at, "url")) {
		out.errorf(at, ruleTest, "the request has no url; want one such as /v1/search")
	}
	if len(who) > 1 {
		out.errorf(field(at, who[1]), ruleTest, "%s and %s stand together; want one of them", who[0], who[1])
	}
	if r.User != "" && r.Tenant == "" {
		out.errorf(field(at, "user"), ruleTest, "a user belongs to a tenant here; want tenant beside it, or jwt")
	}
	for _, n := range []struct {
		key   string
		value *Count
	}{{"times", r.Times}, {"clients", r.Clients}} {
		if n.value != nil && (*n.value < 1 || *n.value > MaxTestRequests) {
			out.errorf(field(at, n.key), ruleTest, "%d is not possible; want 1 to %d", *n.value, MaxTestRequests)
		}
	}
	if r.Requests() > MaxTestRequests {
		out.errorf(at, ruleTest, "these are %d requests; want at most %d", r.Requests(), MaxTestRequests)
	}
	if r.Every != nil && r.Times == nil {
		out.errorf(field(at, "every"), ruleTest, "one request does not repeat; want times beside it")
	}
	if host, _ := r.URL.Split(); host != "" && r.Host != "" {
		out.errorf(field(at, "host"), ruleTest, "the url names the host %s already; want one of them", host)
	}
	if e := r.Expect; e != nil && e.Allowed != nil && int64(*e.Allowed) > r.Requests() {
		out.errorf(field(field(at, "expect"), "allowed"), ruleTest, "of %d requests %d cannot pass; want at most %d", r.Requests(), *e.Allowed, r.Requests())
	}
}

// failed tells whether there is an error about exactly this place.
func (f *findings) failed(path string) bool {
	return slices.ContainsFunc(f.list, func(d Diagnostic) bool { return d.Path == path })
}

// MaxTestRequests is how many requests one entry of a test may stand for.
const MaxTestRequests = 1_000_000

// Requests is how many requests the entry stands for.
func (r *TestRequest) Requests() int64 {
	n := int64(1)
	for _, c := range []*Count{r.Times, r.Clients} {
		if c != nil && *c > 0 && *c <= MaxTestRequests {
			n *= int64(*c)
		}
	}
	return n
}

// Check holds the file against its policy: names that are none of the policy's,
// and identities that it does not know.
func (f *TestFile) Check(c *Compiled) Diagnostics {
	known := testNames(c)
	out := f.findings()
	for i := range f.Tests {
		for j := range f.Tests[i].Requests {
			r, at := &f.Tests[i].Requests[j], elem(field(elem("tests", i), "requests"), j)
			known.check(out, field(at, "key"), "key", string(r.Key), known.keys)
			known.check(out, field(at, "tenant"), "tenant", string(r.Tenant), known.tenants)
			if r.Expect != nil {
				known.expect(out, field(at, "expect"), r.Expect)
			}
		}
	}
	return tidy(out.list)
}

// names are those that tests may mention.
type names struct{ keys, tenants, routes, plans, limits map[string]bool }

func testNames(c *Compiled) *names {
	k := &names{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range c.Tenants {
		k.tenants[c.Tenants[i].ID] = true
		for j := range c.Tenants[i].Keys {
			k.keys[c.Tenants[i].Keys[j].ID] = true
		}
	}
	for i := range c.Routes {
		k.routes[c.Routes[i].Name] = true
	}
	for i := range c.Plans {
		k.plans[c.Plans[i].Name] = true
	}
	for l := range c.limits() {
		k.limits[l.Name] = true
	}
	for i := range c.Edge {
		k.limits[c.Edge[i].Name] = true
	}
	return k
}

func (k *names) expect(out *findings, at string, e *ExpectSpec) {
	k.check(out, field(at, "route"), "route", string(e.Route), k.routes)
	k.check(out, field(at, "plan"), "plan", string(e.Plan), k.plans)
	for _, name := range sortedKeys(e.Remaining) {
		k.check(out, field(field(at, "remaining"), string(name)), "limit", string(name), k.limits)
	}
	if e.Limit != "" && e.By != "access" && e.Reason != "access" {
		k.check(out, field(at, "limit"), "limit", string(e.Limit), k.limits)
	}
}

// check wants a name of the policy, or none.
func (k *names) check(out *findings, at, what, name string, known map[string]bool) {
	if name == "" || known[name] {
		return
	}
	list := make([]string, 0, len(known))
	for n := range known {
		list = append(list, n)
	}
	slices.SortFunc(list, CompareNatural)
	hint := didYouMean(name, list)
	if hint == "" && len(list) > 0 && len(list) <= 8 {
		hint = fmt.Sprintf("; want %s", either(list))
	}
	out.errorf(at, ruleTest, "the policy has no %s %s%s", what, show(name), hint)
}
