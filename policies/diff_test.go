package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// told is a difference as lines: effects, scope, names, limit, fields, and whom
// it concerns.
func told(d Difference) string {
	var b strings.Builder
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "%v %s %v", c.Effects, c.Scope, c.Names)
		if c.Limit != "" {
			b.WriteString(" " + c.Limit)
		}
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "; %s %q -> %q", f.Name, f.Old, f.New)
		}
		fmt.Fprintf(&b, "; %d tenants, %d keys", c.Tenants, c.Keys)
		if c.Everybody {
			b.WriteString(", everybody")
		}
		if c.Anonymous {
			b.WriteString(", anonymous")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d tenants, %d keys, everybody %t\n", d.Tenants, d.Keys, d.Everybody)
	return b.String()
}

func good(t testing.TB, text string) *Policy {
	t.Helper()
	p, ds := Parse("policy.yaml", []byte(text), nil)
	if ds.HasErrors() {
		t.Fatalf("%v\n%s", ds, text)
	}
	return p
}

// TestDiffOfNothing: a policy does not differ from itself, nor from one that only
// looks different.
func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"testdata/example/*.yaml", "testdata/sites/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		a, ds := Load(file)
		if ds.HasErrors() {
			t.Errorf("%s: %v", file, ds)
			continue
		}
		b, _ := Load(file)
		if d := Diff(a, b); len(d.Changes) > 0 || d.Tenants > 0 || d.Keys > 0 || d.Everybody {
			t.Errorf("%s differs from itself:\n%s", file, told(d))
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		form, _ := Format(file, text)
		c, _ := ParseIn(filepath.Dir(file), file, form)
		if d := Diff(a, c); len(d.Changes) > 0 {
			t.Errorf("%s differs from its usual form:\n%s", file, told(d))
		}
	}
	f := func(a, b string) {
		t.Helper()
		for _, d := range []Difference{Diff(good(t, a), good(t, b)), Diff(good(t, b), good(t, a))} {
			if len(d.Changes) > 0 {
				t.Errorf("%s\nand\n%s\ndiffer:\n%s", a, b, told(d))
			}
		}
	}
	f("version: 1\nedge: {limits: {a: {per: ip, rate: 60/m, burst: 2}}}\n", "# a comment\nversion: 1\nedge:\n  limits:\n    a: {rate: 1/s, burst: 2, per: [ip], mode: enforce, delay: none}\n  nodes: 1\n")
	f("version: 1\nmode: enforce\n", "version: 1\nx-a: &a {b: c}\n")
	f("version: 1\nroutes: [{name: a, match: {prefix: /a}}, {name: b, match: {exact: /b}}, {name: r, match: {prefix: /}}]\n",
		"version: 1\nroutes: [{name: r, match: {prefix: /}, cost: 1, on_store_down: open, service: true}, {name: b, match: {exact: /b}}, {name: a, match: {prefix: /a}}]\n")
	f("version: 1\nedge: {access: [{name: a, deny: {cidrs: [10.0.0.0/8, 11.0.0.0/8], groups: [eu_members]}}]}\n",
		"version: 1\nedge: {access: [{name: a, deny: {groups: [eu_members], cidrs: [11.0.0.0/8, 10.0.0.0/8]}, status: 403}]}\n")
	const plans = "version: 1\nidentity: {sources: [{client_cert: {}}], missing: {plan: a}}\nplans:\n"
	f(plans+"  a: {limits: {x: {per: ip, rate: 2/s, burst: 2, wait: 1s}}}\n  b: {extends: a}\ntenants: [{id: one, plan: b}, {id: two, plan: a}]\n",
		plans+"  b: {limits: {x: {per: ip, rate: 120/m, burst: 2, wait: 1000ms}}}\n  a: {extends: b, priority: normal}\ntenants: [{id: two, plan: a}, {id: one, plan: b}]\n")
}

const crowd = `version: 1
identity: {sources: [{api_key: {header: X-Key}}], missing: {plan: free}}
limits: {backend: {per: global, rate: 9000/s, burst: 9000}}
plans:
  free: {limits: {speed: {per: key, rate: 10/s, burst: 50}, org: {per: tenant, rate: 20/s, burst: 100}}}
  pro: {extends: free, priority: high, limits: {speed: {rate: 50/s}}}
tenants:
  - {id: t1, plan: free, keys: [{id: a, sha256: 0000000000000000000000000000000000000000000000000000000000000001}]}
  - {id: t2, plan: free, keys: [{id: d, sha256: 0000000000000000000000000000000000000000000000000000000000000002}, {id: b, plan: pro, sha256: 0000000000000000000000000000000000000000000000000000000000000003}]}
  - {id: t3, plan: free, overrides: {speed: {rate: 99/s}}}
  - {id: t4, plan: pro}
  - {id: t10, plan: pro, keys: [{id: e, plan: free, sha256: 0000000000000000000000000000000000000000000000000000000000000004}]}
routes:
  - {name: one, match: {regex: '^/one'}}
  - {name: two, match: {regex: '^/t'}, plans: [pro]}
  - {name: rest, match: {prefix: /}}
`

// TestDiffCounts: who is touched, after extends, overrides and keys with plans of
// their own; what many share is one change.
func TestDiffCounts(t *testing.T) {
	t.Parallel()
	f := func(want string, edits ...string) {
		t.Helper()
		text := crowd
		for i := 0; i < len(edits); i += 2 {
			if !strings.Contains(text, edits[i]) {
				t.Fatalf("no %q", edits[i])
			}
			text = strings.Replace(text, edits[i], edits[i+1], 1)
		}
		if diff := cmp.Diff(want, told(Diff(good(t, crowd), good(t, text)))); diff != "" {
			t.Errorf("%q: %s", edits, diff)
		}
	}
	// The rate of free: pro has its own, t3 an override; t2's second key is pro, t10's is free.
	f("[tightened] plan [free] speed; rate \"10/s\" -> \"5/s\"; 3 tenants, 3 keys, anonymous\n3 tenants, 3 keys, everybody false\n", "10/s", "5/s")
	// The burst is inherited by pro and by the override: all tenants and keys.
	f("[loosened] plan [free pro] speed; burst \"50\" -> \"60\"; 5 tenants, 4 keys, anonymous\n5 tenants, 4 keys, everybody false\n", "burst: 50", "burst: 60")
	// The limit of the organisation is the tenant's plan's, whatever plan its keys have.
	f("[tightened] plan [free pro] org; rate \"20/s\" -> \"19/s\"; 5 tenants, 4 keys, anonymous\n5 tenants, 4 keys, everybody false\n", "rate: 20/s", "rate: 19/s")
	// An override that says what held anyway changes nothing; another one is the tenant's alone.
	f("[tightened] tenant [t3]; speed.rate \"99/s\" -> \"10/s\"; 1 tenants, 0 keys\n1 tenants, 0 keys, everybody false\n", ", overrides: {speed: {rate: 99/s}}", "")
	f("0 tenants, 0 keys, everybody false\n", "{id: t4, plan: pro}", "{id: t4, plan: pro, overrides: {speed: {rate: 50/s}}}")
	// Two move alike; one change, people's order.
	f("[loosened moved] tenant [t1 t2]; plan \"free\" -> \"pro\"; speed.rate \"10/s\" -> \"50/s\"; priority \"normal\" -> \"high\"; 2 tenants, 3 keys\n2 tenants, 3 keys, everybody false\n",
		"{id: t1, plan: free", "{id: t1, plan: pro", "{id: t2, plan: free", "{id: t2, plan: pro")
	// A plan by another name: who is on it moves, no number changes, no counter restarts.
	f("[moved] tenant [t4]; plan \"pro\" -> \"gold\"; 1 tenants, 0 keys\n[added] plan [gold]; limits \"\" -> \"org, speed\"; 0 tenants, 0 keys\n1 tenants, 0 keys, everybody false\n",
		"tenants:\n", "  gold: {extends: pro}\ntenants:\n", "{id: t4, plan: pro", "{id: t4, plan: gold")
	// Keys.
	f("[tightened removed] key [t1/a]; 1 tenants, 1 keys\n[loosened added] key [t1/c]; 1 tenants, 1 keys\n1 tenants, 2 keys, everybody false\n", "keys: [{id: a", "keys: [{id: c")
	f("[tightened moved] key [t2/b]; plan \"pro\" -> \"free\"; speed.rate \"50/s\" -> \"10/s\"; priority \"high\" -> \"normal\"; 1 tenants, 1 keys\n1 tenants, 1 keys, everybody false\n", "{id: b, plan: pro", "{id: b, plan: free")
	// Tenants.
	f("[tightened removed] tenant [t4]; plan \"pro\" -> \"\"; 1 tenants, 0 keys\n[loosened added] tenant [t5]; plan \"\" -> \"pro\"; 1 tenants, 0 keys\n2 tenants, 0 keys, everybody false\n", "id: t4", "id: t5")
	// Order where it decides, and what concerns everybody.
	f("[moved] route [two]; order \"\" -> \"another\"; 2 tenants, 1 keys\n0 tenants, 0 keys, everybody false\n",
		"  - {name: one, match: {regex: '^/one'}}\n  - {name: two, match: {regex: '^/t'}, plans: [pro]}\n", "  - {name: two, match: {regex: '^/t'}, plans: [pro]}\n  - {name: one, match: {regex: '^/one'}}\n")
	f("[tightened] limit [] backend; rate \"9000/s\" -> \"1/s\"; 0 tenants, 0 keys, everybody\n0 tenants, 0 keys, everybody true\n", "9000/s", "1/s")
}

// TestDiffOfLongLists: of a long list the first entries that changed are shown, all
// are there, and two that only look alike are two changes.
func TestDiffOfLongLists(t *testing.T) {
	t.Parallel()
	policy := func(last string) *Policy {
		var list []string
		for i := range 20 {
			list = append(list, fmt.Sprintf("10.0.%d.0/24", i))
		}
		same := strings.Join(list, ", ")
		return good(t, "version: 1\nedge:\n  access:\n    - {name: a, deny: {cidrs: ["+same+last+"10.2.1.0/24"+"]}}\n    - {name: b, deny: {cidrs: ["+same+last+"10.2.2.0/24]}, status: 451}\n")
	}
	few := ", 10.1.0.0/24, 10.1.1.0/24, 10.1.2.0/24, 10.1.3.0/24, "
	d := Diff(policy(", 10.1.0.0/24, "), policy(few))
	want := `[tightened] access rule [a b]; clients "22 entries" -> "25 entries: +10.1.1.0/24 +10.1.2.0/24 +10.1.3.0/24"; 0 tenants, 0 keys, everybody
0 tenants, 0 keys, everybody true
`
	if diff := cmp.Diff(want, told(d)); diff != "" {
		t.Error(diff)
	}
	d = Diff(policy(", "), policy(few[:len(few)-1]+" 10.1.4.0/24, "))
	if len(d.Changes) != 1 || len(d.Changes[0].Fields[0].Come) != 5 || !strings.HasSuffix(d.Changes[0].Fields[0].New, "+(1 more)") {
		t.Errorf("%s\n%v", told(d), d.Changes)
	}
	other := good(t, strings.Replace("version: 1\nedge: {access: [{name: a, deny: {cidrs: [L, 10.8.0.0/16]}}, {name: b, deny: {cidrs: [L, 10.9.0.0/16]}, status: 451}]}\n", "L", "10.1.0.0/24, 10.1.1.0/24, 10.1.2.0/24, 10.1.3.0/24", 2))
	bare := good(t, "version: 1\nedge: {access: [{name: a, deny: {cidrs: [192.0.2.0/24]}}, {name: b, deny: {cidrs: [192.0.2.0/24]}, status: 451}]}\n")
	if d := Diff(bare, other); len(d.Changes) != 2 {
		t.Errorf("two changes became one:\n%s", told(d))
	}
}

// TestDisplaced: as few as possible move, and without them both orders agree.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	f := func(old, new, want string) {
		t.Helper()
		if got := strings.Join(displaced(strings.Fields(old), strings.Fields(new)), " "); got != want {
			t.Errorf("%s to %s moves %q, want %q", old, new, got, want)
		}
	}
	f("", "", "")
	f("a b c", "a b c", "")
	f("a b c d", "d a b c", "d")
	f("a b c d", "b c d a", "a")
	f("a x b", "a y b", "")
	f("a b", "b a", "b")
	rapid.Check(t, func(t *rapid.T) {
		names := strings.Split("abcdefghijkl", "")
		old, new := rapid.Permutation(names).Draw(t, "old"), rapid.Permutation(names).Draw(t, "new")
		moved := displaced(old, new)
		rest := func(list []string) []string { return missingFrom(list, moved) }
		if !slices.Equal(rest(old), rest(new)) {
			t.Fatalf("%v to %v moves %v", old, new, moved)
		}
	})
}

// TestDiffSorted: the worst comes first, then what concerns everybody, then many.
func TestDiffSorted(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("9000/s", "9001/s", "burst: 50", "burst: 40", "{id: t4, plan: pro}", "{id: t4, plan: pro, disabled: true}", "'^/one'", "'^/o'").Replace(crowd)
	want := `[tightened] plan [free pro] speed; burst "50" -> "40"; 5 tenants, 4 keys, anonymous
[tightened] tenant [t4]; disabled "false" -> "true"; 1 tenants, 0 keys
[loosened] limit [] backend; rate "9000/s" -> "9001/s"; 0 tenants, 0 keys, everybody
[changed] route [one]; match "regex ^/one" -> "regex ^/o"; 0 tenants, 0 keys, everybody
5 tenants, 4 keys, everybody true
`
	d := Diff(good(t, crowd), good(t, text))
	if diff := cmp.Diff(want, told(d)); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(d.Changes[0].Pos, d.Changes[1].Path); got != "{policy.yaml 5 26}tenants[3]" {
		t.Errorf("the places are %s", got)
	}
}

// TestDiffOfKeySets: keys that verify tokens come, go and are replaced; none of
// them is shown (C119).
func TestDiffOfKeySets(t *testing.T) {
	t.Parallel()
	const text = "version: 1\nidentity: {sources: [{jwt: {header: X-T, jwks_file: k.json, issuer: \"https://id.example\", audience: a, tenant_claim: t}}], unlisted: {plan: p}}\nplans: {p: {limits: {x: {per: ip, rate: 1/s, burst: 1}}}}\n"
	secrets := map[string]string{"a": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LWFhYWFhYQ", "b": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LWJiYmJiYg"}
	load := func(keys string) *Policy {
		var list []string
		for _, k := range strings.Fields(keys) {
			id, secret, _ := strings.Cut(k, "=")
			list = append(list, fmt.Sprintf(`{"kty":"oct","kid":%q,"k":%q}`, id, secrets[secret]))
		}
		p, ds := Parse("policy.yaml", []byte(text), func(FileName) ([]byte, error) { return []byte(`{"keys":[` + strings.Join(list, ",") + `]}`), nil })
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		return p
	}
	f := func(old, new, want string) {
		t.Helper()
		got := told(Diff(load(old), load(new)))
		if !strings.HasPrefix(got, want) || strings.Contains(got, "c2Vj") || strings.Contains(got, "secret") {
			t.Errorf("%s to %s: %s", old, new, got)
		}
	}
	f("1=a", "1=a", "0 tenants")
	f("1=a", "1=a 2=b", `[loosened] identity []; jwt in header X-T of https://id.example keys "key 1" -> "key 1, key 2";`)
	f("1=a 2=b", "2=b", `[tightened] identity []; jwt in header X-T of https://id.example keys "key 1, key 2" -> "key 2";`)
	f("1=a", "1=b", `[tightened loosened] identity []; jwt in header X-T of https://id.example key 1 "" -> "another";`)
}

// FuzzDiff: no policy differs from itself, and what one has and an empty policy
// has not is told, whatever it is.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(crowd))
	f.Add([]byte(everyField))
	for _, pattern := range []string{"testdata/sites/*.yaml", "testdata/example/*.yaml"} {
		seeds, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, seed := range seeds {
			text, err := os.ReadFile(seed)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	keys, err := os.ReadFile("testdata/example/jwks.json")
	if err != nil {
		f.Fatal(err)
	}
	empty := good(f, "version: 1\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		p, found := Parse("policy.yaml", text, func(name FileName) ([]byte, error) {
			if strings.HasSuffix(string(name), ".json") {
				return keys, nil
			}
			return []byte("[]\n"), nil
		})
		if found.HasErrors() {
			return
		}
		if d := Diff(p, p); len(d.Changes) > 0 || d.Everybody || d.Tenants+d.Keys > 0 {
			t.Errorf("%q differs from itself:\n%s", text, told(d))
		}
		forth, back := Diff(empty, p), Diff(p, empty)
		if a, b := opposites(effectsOf(forth)), effectsOf(back); !slices.Equal(a, b) {
			t.Errorf("%q comes as\n%s and goes as\n%s", text, told(forth), told(back))
		}
		said := len(p.Limits)+len(p.Plans)+len(p.Tenants) > 0 || p.Identity != nil || p.Edge != nil && len(p.Edge.Access)+len(p.Edge.Limits) > 0
		if said && len(forth.Changes) == 0 {
			t.Errorf("%q is told as nothing", text)
		}
	})
}
