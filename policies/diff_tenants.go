package policies

import (
	"slices"
	"strings"
)

// tenants compares tenants and their keys. Who only shares what his plan changed
// is counted there; what is a tenant's own is a change of its own, and those of
// many tenants that change alike are one.
func (d *differ) tenants() {
	d.touched = make([]bool, len(d.to.Tenants))
	was := make(map[string]int, len(d.from.Tenants))
	for i := range d.from.Tenants {
		was[d.from.Tenants[i].ID] = i
	}
	for i := range d.to.Tenants {
		n := &d.to.Tenants[i]
		j, ok := was[n.ID]
		if !ok {
			plan := diffFields{{Name: "plan", New: d.to.Plans[n.Plan].Name}}
			d.count(d.note(ScopeTenant, n.ID, "", elem("tenants", i), plan, EffectLoosened, EffectAdded), i, len(n.Keys))
			continue
		}
		delete(was, n.ID)
		d.tenant(i, j)
	}
	gone := 0
	for i := range d.from.Tenants {
		o := &d.from.Tenants[i]
		if j, ok := was[o.ID]; ok && j == i {
			gone++
			plan := diffFields{{Name: "plan", Old: d.from.Plans[o.Plan].Name}}
			c := d.note(ScopeTenant, o.ID, "", elem("tenants", i), plan, EffectTightened, EffectRemoved)
			c.Tenants++
			c.Keys += len(o.Keys)
			d.keys += len(o.Keys)
		}
	}
	d.touched = append(d.touched, slices.Repeat([]bool{true}, gone)...)
}

// count counts a tenant and keys of his for a change.
func (d *differ) count(c *Change, tenant, keys int) {
	if d.last[c] != tenant+1 {
		d.last[c] = tenant + 1
		c.Tenants++
	}
	c.Keys += keys
	d.touched[tenant] = true
}

// tenant compares a tenant of both policies.
func (d *differ) tenant(i, j int) {
	o, n := &d.from.Tenants[j], &d.to.Tenants[i]
	before, after := &d.old.Tenants[j], &d.new.Tenants[i]
	touched := make([]bool, len(n.Keys)) // keys
	f := tenantFields(o, n, before, after)
	from, to := d.from.Plans[o.Plan], d.to.Plans[n.Plan]
	moved := from.Name != to.Name
	if moved {
		f.add("plan", from.Name, to.Name, EffectMoved)
	}
	switch plain := same(o.Limits, from.Limits) && same(n.Limits, to.Limits); {
	case moved && plain:
		f = append(f, d.moving(o.Plan, n.Plan)...)
	case moved:
		f = append(f, allLimits(o.Limits, n.Limits)...)
	case plain:
		for _, p := range d.plan[to.Name] {
			d.share(p, i, after, touched)
		}
	default:
		if p, ok := d.plan[to.Name][""]; ok {
			d.share(p, i, after, touched)
		}
		limitChanges(o.Limits, n.Limits, func(limit string, own diffFields, effects ...Effect) {
			if p, ok := d.plan[to.Name][limit]; ok && p.fields.equal(own) {
				d.share(p, i, after, touched)
				return
			}
			f = append(f, own.within(limit)...)
		})
	}
	if len(f) > 0 {
		d.count(d.note(ScopeTenant, n.ID, "", elem("tenants", i), f), i, len(n.Keys))
		for k := range touched {
			touched[k] = true
		}
	}
	d.tenantKeys(i, j, touched)
	for _, t := range touched {
		if t {
			d.keys++
		}
	}
}

// same tells whether a list of limits is that of the plan itself.
func same(limits, plan []Limit) bool {
	return len(limits) == len(plan) && (len(plan) == 0 || &limits[0] == &plan[0])
}

// share counts a tenant for what his plan changed, and those of his keys that
// the limit counts.
func (d *differ) share(p planChange, tenant int, spec *TenantSpec, touched []bool) {
	keys := 0
	for k := range spec.Keys {
		if !p.perKey || spec.Keys[k].Plan == "" || spec.Keys[k].Plan == spec.Plan {
			keys++
			touched[k] = true
		}
	}
	d.count(p.change, tenant, keys)
}

// tenantFields are the values of a tenant that changed, but for his plan and limits.
func tenantFields(o, n *Tenant, before, after *TenantSpec) diffFields {
	var f diffFields
	f.value("name", string(before.Name), string(after.Name), EffectChanged)
	f.toggle("disabled", o.Disabled, n.Disabled, EffectTightened)
	f.value("claim", string(orDefault(before.Claim, Text(before.ID))), string(orDefault(after.Claim, Text(after.ID))), EffectChanged)
	f.entries("cidrs", words(o.Networks), words(n.Networks), "anywhere", EffectLoosened)
	f.value("grant reasons", grantReasons(before.Grants), grantReasons(after.Grants), EffectChanged)
	f.entries("cert_sha256", certWords(before.CertSHA256), certWords(after.CertSHA256), "", EffectLoosened)
	return f
}

// grantReasons are the reasons for grants, in the order of the file.
func grantReasons(grants []GrantSpec) string {
	var out []string
	for _, g := range grants {
		if g.Reason != "" {
			out = append(out, string(g.Reason))
		}
	}
	return strings.Join(out, "; ")
}

// certWords are the beginnings of hashes; never nil, for nil would be all.
func certWords(hashes []SHA256) []string {
	out := []string{}
	for _, h := range hashes {
		out = append(out, shortHash(h))
	}
	return out
}

// shortHash is enough of a hash to tell it from others.
func shortHash(h SHA256) string { return h.String()[:12] + "…" }

// tenantKeys compares the keys of a tenant of both policies.
func (d *differ) tenantKeys(i, j int, touched []bool) {
	o, n := &d.from.Tenants[j], &d.to.Tenants[i]
	before, after := d.old.Tenants[j].Keys, d.new.Tenants[i].Keys
	find := func(keys []KeySpec, id Name, likely int) int {
		if likely < len(keys) && keys[likely].ID == id {
			return likely
		}
		return slices.IndexFunc(keys, func(k KeySpec) bool { return k.ID == id })
	}
	path := field(elem("tenants", i), "keys")
	for k := range after {
		name := n.ID + "/" + n.Keys[k].ID
		was := find(before, after[k].ID, k)
		if was < 0 {
			d.count(d.note(ScopeKey, name, "", elem(path, k), nil, EffectLoosened, EffectAdded), i, 1)
			touched[k] = true
			continue
		}
		if f := d.key(&o.Keys[was], &n.Keys[k], &before[was], &after[k]); len(f) > 0 {
			d.count(d.note(ScopeKey, name, "", elem(path, k), f), i, 1)
			touched[k] = true
		}
		if own := after[k].Plan; own != "" && own == before[was].Plan && own != d.new.Tenants[i].Plan {
			for _, p := range d.plan[string(own)] {
				if p.perKey {
					d.count(p.change, i, 1)
					touched[k] = true
				}
			}
		}
	}
	for k := range before {
		if find(after, before[k].ID, k) < 0 {
			c := d.note(ScopeKey, o.ID+"/"+o.Keys[k].ID, "", elem(field(elem("tenants", j), "keys"), k), nil, EffectTightened, EffectRemoved)
			d.count(c, i, 1)
			d.keys++
		}
	}
}

// key are the values of a key that changed. Without a plan of its own a key goes
// with its tenant, and its tenant says so.
func (d *differ) key(o, n *Key, before, after *KeySpec) diffFields {
	var f diffFields
	if before.SHA256 != after.SHA256 { // the one stops, the other starts
		f.add("credential", "", "another", EffectTightened, EffectLoosened)
	}
	f.toggle("disabled", o.Disabled, n.Disabled, EffectTightened)
	f.entries("cidrs", words(o.Networks), words(n.Networks), "anywhere", EffectLoosened)
	switch {
	case before.Simulate == "" && after.Simulate != "":
		f.add("simulate", "", string(after.Simulate), EffectTightened)
	case before.Simulate != "" && after.Simulate == "":
		f.add("simulate", string(before.Simulate), "", EffectLoosened)
	default:
		f.value("simulate", string(before.Simulate), string(after.Simulate), EffectChanged)
	}
	from, to := d.from.Plans[o.Plan], d.to.Plans[n.Plan]
	if before.Plan != after.Plan && from.Name != to.Name {
		f.add("plan", from.Name, to.Name, EffectMoved)
		f = append(f, allLimits(narrow(o.Limits), narrow(n.Limits))...)
		f.word("priority", string(from.Priority), string(to.Priority), EffectLoosened, string(PriorityLow), string(PriorityNormal), string(PriorityHigh))
	}
	return f
}

// narrow are the limits that a key's own plan gives.
func narrow(limits []Limit) []Limit {
	var out []Limit
	for _, l := range limits {
		if l.perKey() {
			out = append(out, l)
		}
	}
	return out
}
