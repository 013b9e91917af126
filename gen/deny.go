package gen

import (
	"regexp"
	"strings"

	"sluice/policies"
)

// denyCache is where NGINX keeps denials for a moment, so that a storm of
// refused requests costs the service a call each second and not one for each.
// Allowed answers are never kept.
//
// The service says which denials may be kept (X-Accel-Expires: 1, from two
// seconds to wait on); NGINX keeps them one to two seconds. A Retry-After that
// comes from here is up to two seconds too long, and never too short.
type denyCache struct {
	Dir    Token   // of the files, which hold the keys, credentials among them: tmpfs, and the workers' alone
	Key    Token   // all that the decision depends on
	Blocks []block // what the key is made of
}

// separator stands between the parts of a key. No part but the last may hold it:
// credentials and values are bounded by maps, and a header holds it nowhere else.
const separator = "\t"

// denyCache makes the key of what the service is told: everything but the
// request's own id, and with the client as he is counted in the place of his
// address. The client is binary, and so the last.
func (b *builder) denyCache(a asking) denyCache {
	if b.opt.NoDenyCache {
		return denyCache{}
	}
	c := denyCache{Dir: b.take(Quote(b.opt.CacheDir))}
	key := new(text).v("uri")
	for _, h := range a.headers {
		switch h.Name.String() {
		case policies.HeaderRequest, policies.HeaderIP:
		case policies.HeaderURI:
			if m, ok := b.fallbackURI(); ok {
				c.Blocks = append(c.Blocks, m)
				key.lit(separator).v(m.name())
			}
		default:
			key.lit(separator)
			if name, ok := strings.CutPrefix(h.Value.String(), "$"); ok {
				key.v(name)
			} else {
				key.lit(strings.Trim(h.Value.String(), `"`))
			}
		}
	}
	c.Key = b.take(key.lit(separator).v("sluice_ip").token())

	skip := newMap(answered(policies.HeaderDecision), "sluice_keep_out", "Only a denial is kept.")
	skip.Volatile = true
	skip.otherwise(word("1"))
	skip.line(word("deny"), none())
	c.Blocks = append(c.Blocks, skip)
	return c
}

// fallbackURI is the map that makes the client's own URI a part of the key where
// it decides: when no route of the location takes the method, the service
// matches it.
func (b *builder) fallbackURI() (block, bool) {
	m := newMap(own("$uri:$request_method"), "sluice_deny_uri",
		"Where no route of the location takes the method, the client's own URI decides.")
	m.Volatile = true
	m.otherwise(none())
	found := false
	for i := range b.c.Routes {
		r := &b.c.Routes[i]
		if methods := b.methodsAt(r); r.Asked && methods != nil {
			found = true
			m.line(b.take(Literal("~^/_sluice/[a-z]+/"+regexp.QuoteMeta(r.Name)+":(?!(?:"+strings.Join(methods, "|")+`)\z)`)), word("$request_uri"))
		}
	}
	return m, found
}

// methodsAt are the methods that the location named by a route takes whatever
// the host; nil when it takes all.
func (b *builder) methodsAt(r *policies.Route) []string {
	methods := r.Methods
	for i := range b.c.Routes {
		o := &b.c.Routes[i]
		if len(o.Hosts) > 0 || !r.SameMatch(o) {
			continue
		}
		if len(o.Methods) == 0 {
			return nil
		}
		methods = append(methods[:len(methods):len(methods)], o.Methods...)
	}
	return methods
}

// name is the variable of a block without the dollar.
func (m *block) name() string { return strings.TrimPrefix(m.Variable.String(), "$") }
