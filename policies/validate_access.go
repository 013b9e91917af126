package policies

import "encoding/json"

// verdict is what a rule says, and of whom; nobody when it says nothing.
func (a *AccessSpec) verdict() (AccessVerdict, *Clients) {
	switch {
	case a.Exempt != nil:
		return AccessExempt, a.Exempt
	case a.Allow != nil:
		return AccessAllow, a.Allow
	}
	return AccessDeny, a.Deny
}

// key is the key of the file that gives a verdict.
func (v AccessVerdict) key() string {
	switch v {
	case AccessAllow:
		return "allow"
	case AccessExempt:
		return "exempt"
	}
	return "deny"
}

func checkAccess(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	names := firsts[Name]{}
	for i := range p.Edge.Access {
		a, path := &p.Edge.Access[i], elem("edge.access", i)
		f.need(path, key{"name", a.Name != ""})
		f.one(path, key{"exempt", a.Exempt != nil}, key{"allow", a.Allow != nil}, key{"deny", a.Deny != nil})
		if first, taken := names.taken(a.Name, place{path: field(path, "name")}); taken && a.Name != "" {
			f.errorf(field(path, "name"), ruleTwice, "the name %s is taken by %s; want another, for logs and metrics tell rules apart by it", a.Name, f.where(first))
		}
		f.wantRoutes(field(path, "routes"), a.Routes)
		if verdict, clients := a.verdict(); clients != nil {
			f.clients(field(path, verdict.key()), clients)
		}
		if a.Deny == nil {
			f.only(path, "deny", key{"status", a.Status != nil}, key{"mode", a.Mode == LimitShadow})
		} else if a.Status != nil && *a.Status > 499 {
			f.errorf(field(path, "status"), ruleStatus, "%d says that the server is at fault; want 400 to 499, such as 403", *a.Status)
		}
	}
}

// clients checks the lists that name clients.
func (f *findings) clients(path string, c *Clients) {
	repeats(f, field(path, "cidrs"), c.CIDRs)
	repeats(f, field(path, "countries"), c.Countries)
	repeats(f, field(path, "continents"), c.Continents)
	repeats(f, field(path, "groups"), c.Groups)
	repeats(f, field(path, "asns"), c.ASNs)
}

// accessOrder answers which access rules leave nothing to which later ones.
type accessOrder struct {
	rules  []AccessSpec
	whens  []string
	routes []map[Name]bool // nil: every route
}

func newAccessOrder(rules []AccessSpec) *accessOrder {
	o := &accessOrder{rules: rules}
	for i := range rules {
		o.whens = append(o.whens, conditionKey(rules[i].When))
		var routes map[Name]bool
		if rules[i].Routes != nil {
			routes = asSet(rules[i].Routes)
		}
		o.routes = append(o.routes, routes)
	}
	return o
}

// conditionKey is the same for conditions that are written alike, empty for none.
func conditionKey(w *WhenSpec) string {
	if w == nil {
		return ""
	}
	data, err := json.Marshal(w)
	if err != nil {
		panic("BUG: cannot write condition: " + err.Error())
	}
	return string(data)
}

// decides tells whether rule i is asked before rule j wherever j is, so that
// whoever fits i never gets to j.
func (o *accessOrder) decides(i, j int) bool {
	if i >= j || o.rules[i].Mode == LimitShadow || o.whens[i] != "" && o.whens[i] != o.whens[j] {
		return false
	}
	if o.routes[i] == nil {
		return true
	}
	for name := range o.routes[j] {
		if !o.routes[i][name] {
			return false
		}
	}
	return o.routes[j] != nil
}

// meet tells whether two rules have a route in common.
func (o *accessOrder) meet(i, j int) bool {
	if o.routes[i] == nil || o.routes[j] == nil {
		return true
	}
	for name := range o.routes[i] {
		if o.routes[j][name] {
			return true
		}
	}
	return false
}

// checkAccessEffect finds rules that nobody gets to, and those that change nothing.
func checkAccessEffect(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	o := newAccessOrder(p.Edge.Access)
	var everybody []int // rules for all
	last := lastOther(o)
	for j := range o.rules {
		path := elem("edge.access", j)
		verdict, clients := o.rules[j].verdict()
		if clients == nil {
			continue
		}
		if i := firstDeciding(o, everybody, j); i >= 0 {
			f.warnf(path, ruleUnreachable, "nobody gets to this rule: %s is for all, and comes first; want it before that one, or left out", f.at(elem("edge.access", i)))
			continue
		}
		if verdict == AccessAllow && !last[j] && o.rules[j].Deny == nil {
			f.warnf(path, ruleAllowAlone, "this allows who is allowed anyway: no later rule denies or exempts anybody on its routes; want a deny rule after it, or exempt in place of allow")
		}
		if clients.All {
			everybody = append(everybody, j)
		}
	}
}

func firstDeciding(o *accessOrder, rules []int, j int) int {
	for _, i := range rules {
		if o.decides(i, j) {
			return i
		}
	}
	return -1
}

// lastOther tells of each rule whether a later one on its routes has another
// verdict than allow. It walks backwards; one rule for all routes settles it.
func lastOther(o *accessOrder) []bool {
	found := make([]bool, len(o.rules))
	var others []int
	for i := len(o.rules) - 1; i >= 0; i-- {
		for _, j := range others {
			if o.meet(i, j) {
				found[i] = true
				break
			}
		}
		if verdict, _ := o.rules[i].verdict(); verdict != AccessAllow {
			others = append(others, i)
		}
	}
	return found
}
