package policies

import (
	"reflect"
	"slices"
)

// Origin tells where a key of a limit was said: in a plan, in a plan that it
// extends, or in a tenant's overrides.
type Origin struct {
	Key string // of the language: rate, burst
	// Plan is the plan that says it; empty when an override does.
	Plan     string
	Override bool
	Pos      Pos
}

// Origins tells where each key of a limit of a plan was said that is said at all,
// in the order of the language: the nearest plan decides, and the override of the
// tenant at that index over all plans; -1: no tenant.
func (p *Policy) Origins(plan, limit string, tenant int) []Origin {
	var out []Origin
	line := lineage(p, Name(plan))
	t := reflect.TypeFor[LimitSpec]()
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("yaml")
		if o, said := p.override(tenant, Name(limit), key); said {
			out = append(out, o)
			continue
		}
		at := slices.IndexFunc(line, func(n Name) bool {
			return !reflect.ValueOf(p.Plans[n].Limits[Name(limit)]).Field(i).IsZero()
		})
		if at >= 0 {
			path := field(field(field(field("plans", string(line[at])), "limits"), limit), key)
			out = append(out, Origin{Key: key, Plan: string(line[at]), Pos: p.pos(path)})
		}
	}
	return out
}

// override is what a tenant's override says of a key.
func (p *Policy) override(tenant int, limit Name, key string) (Origin, bool) {
	if tenant < 0 {
		return Origin{}, false
	}
	v := reflect.ValueOf(p.Tenants[tenant].Overrides[limit])
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == key && !v.Field(i).IsZero() {
			path := field(field(field(elem("tenants", tenant), "overrides"), string(limit)), key)
			return Origin{Key: key, Override: true, Pos: p.pos(path)}, true
		}
	}
	return Origin{}, false
}
