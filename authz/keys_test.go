package authz

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/authz/limit"
	"sluice/policies"
)

// keysOf are the names of the counters that a question touches.
func keysOf(s *site, route string, headers ...string) string {
	s.t.Helper()
	var names []string
	for _, c := range s.decide(route, headers...).Charges(nil) {
		name := strings.Replace(c.Key, c.Limit.ID, c.Limit.Name, 2)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

const hashOfValue = "~2bd806c97f0e00af1a1fc3328fa763a9" // of "alice"

func TestKeys(t *testing.T) {
	f := func(per, want string, headers ...string) {
		t.Helper()
		policy := strings.Replace(shop, "org: {per: tenant, rate: 4/s, burst: 15}", "org: {per: "+per+", rate: 4/s, burst: 15}", 1)
		got := strings.Fields(keysOf(newSite(t, policy), "rest", headers...))[0]
		if got != want {
			t.Errorf("in a plan, per %s with %v: %s, want %s", per, headers, got, want)
		}
	}
	a := key("sk_a")
	f("tenant", "sluice:{globex}:org:", a)
	f("key", "sluice:{globex}:org:key=globex-a", a)
	f("user", "sluice:{globex}:org:key=globex-a", a)
	f("scope", "sluice:{globex}:org:key=globex-a", a)
	f("ip", "sluice:{globex}:org:ip=192.0.2.1", a)
	f("route", "sluice:{globex}:org:route=rest", a)
	f("[key, route]", "sluice:{globex}:org:key=globex-a,route=rest", a)
	f("[tenant, ip]", "sluice:{globex}:org:ip=2001:db8:1:2::/64", a, ip("2001:DB8:1:2:3::4"))
	f("server", "sluice:{globex}:org:server=api.example", a, "X-Sluice-Server: api.example")
	f("{header: X-User}", "sluice:{globex}:org:value="+hashOfValue, a, "X-Sluice-Header-X-User: alice")
	f("{cookie: user}", "sluice:{globex}:org:value="+hashOfValue, a, "X-Sluice-Cookie-User: alice")
	f("{query: user}", "sluice:{globex}:org:value="+hashOfValue, a, "X-Sluice-Query-User: alice")
	f("{query: user, capture: 'u-([a-z]+)'}", "sluice:{globex}:org:value="+hashOfValue, a, "X-Sluice-Query-User: u-alice")
	f("{query: user, capture: 'u-([a-z]+)'}", "sluice:{globex}:org:ip=192.0.2.1", a, "X-Sluice-Query-User: alice")
	f("{query: user, capture: '^..-([a-z]+)'}", "sluice:{globex}:org:value="+hashOfValue, a, "X-Sluice-Query-User: é-alice")
	f("{header: X-User}", "sluice:{globex}:org:ip=192.0.2.1", a)
	f("{header: X-User}", "sluice:{globex}:org:ip=192.0.2.1", a, "X-Sluice-Header-X-User: "+strings.Repeat("a", policies.MaxValue+1))
	f("{header: X-User}", "sluice:{globex}:org:ip=192.0.2.1", a, "X-Sluice-Header-X-User: !")
}

func TestKeysOfTheAnonymous(t *testing.T) {
	f := func(per, want string, headers ...string) {
		t.Helper()
		policy := strings.Replace(shop, "speed: {per: ip, rate: 1/s", "speed: {per: "+per+", rate: 1/s", 1)
		if got := keysOf(newSite(t, policy), "rest", headers...); got != want {
			t.Errorf("per %s with %v: %s, want %s", per, headers, got, want)
		}
	}
	f("ip", "sluice:{ip=192.0.2.1}:speed:ip=192.0.2.1")
	f("key", "sluice:{ip=192.0.2.1}:speed:")
	f("tenant", "sluice:{ip=192.0.2.1}:speed:")
	f("user", "sluice:{ip=2001:db8::/64}:speed:", ip("2001:db8::1"))
	f("ip", "sluice:{ip=192.0.2.1}:speed:ip=192.0.2.1", ip("::ffff:192.0.2.1"))
	f("ip", "sluice:{ip=192.0.2.1}:speed:ip=192.0.2.1", ip("64:ff9b::c000:201"))
	f("ip", "sluice:{ip=none}:speed:ip=none", ip("unix:"))
	f("ip", "sluice:{ip=none}:speed:ip=none", ip("1.2.3.4.5"))
}

func TestKeysOutsideOfPlans(t *testing.T) {
	f := func(per, want string, headers ...string) {
		t.Helper()
		s := newSite(t, shop+"limits: {top: {per: "+per+", rate: 1/s, burst: 5}}\n")
		keys := strings.Fields(keysOf(s, "rest", headers...))
		if got := keys[len(keys)-1]; got != want {
			t.Errorf("at the top, per %s with %v: %s, want %s", per, headers, got, want)
		}
	}
	a := key("sk_a")
	f("global", "sluice:{top}:top:", a)
	f("ip", "sluice:{ip=192.0.2.1}:top:ip=192.0.2.1", a)
	f("route", "sluice:{route=rest}:top:route=rest", a)
	f("[ip, route]", "sluice:{ip=192.0.2.1,route=rest}:top:ip=192.0.2.1,route=rest", a)
	f("{header: X-User}", "sluice:{value="+hashOfValue+"}:top:value="+hashOfValue, a, "X-Sluice-Header-X-User: alice")
	f("tenant", "sluice:{globex}:top:", a)
	f("tenant", "sluice:{ip=192.0.2.1}:top:")
	f("[key, route]", "sluice:{globex}:top:key=globex-a,route=rest", a)
	f("[key, route]", "sluice:{ip=192.0.2.1}:top:route=rest")
}

// tuple is all that a counter is for.
type tuple struct {
	tenant, key, route, server, value, limit string
	ip                                       string
	dims                                     string
}

// No two tuples give one name: not with separators in names, not with names that
// look like hashes or addresses, not across tags.
func TestKeysNeverMeet(t *testing.T) {
	name := rapid.SampledFrom([]string{
		"a", "b", "a:b", "b:a", "a,b", "ip=192.0.2.1", "192.0.2.1", "none", "key=a", "{a}", "a}", "}:a:", "~00", "", "A", "a\x00", "é",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66), "~2bd806c97f0e00af1a1fc3328fa763a9", "alice",
	})
	limits := rapid.SampledFrom([]string{"a-00000001", "b-00000002", "ip-00000003"})
	dimSets := rapid.SampledFrom([]string{"", "key", "ip", "route", "server", "header", "key,ip", "ip,key", "route,server", "header,route", "key,header"})
	addresses := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1", "unix:"})
	draw := func(t *rapid.T, label string) tuple {
		return tuple{
			tenant: name.Draw(t, label+" tenant"), key: name.Draw(t, label+" key"), route: name.Draw(t, label+" route"),
			server: name.Draw(t, label+" server"), value: name.Draw(t, label+" value"),
			limit: limits.Draw(t, label+" limit"), ip: addresses.Draw(t, label+" ip"), dims: dimSets.Draw(t, label+" dims"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := draw(t, "x"), draw(t, "y")
		// A limit's ID has its dimensions in its hash.
		owned := rapid.Bool().Draw(t, "owned")
		if x.limit == y.limit {
			y.dims = x.dims
		}
		kx, mx := x.name(owned)
		ky, my := y.name(owned)
		if (kx == ky) != (mx == my) {
			t.Fatalf("%q and %q are named %q and %q", mx, my, kx, ky)
		}
	})
}

// name is the counter's name, and what it means, spelled without any cleverness.
func (x tuple) name(owned bool) (key, meaning string) {
	r := rule{id: []byte(x.limit), owned: owned, limit: &policies.Limit{}}
	req := &Request{}
	req.Set([]byte("X-Sluice-Server"), []byte(x.server))
	req.Set([]byte("X-Value"), []byte(x.value))
	c := newClient([]byte(x.ip), 64)
	s := subject{client: c, route: appendName(nil, []byte(x.route)), req: req}
	if x.tenant != "" {
		s.tenant = appendName(nil, []byte(x.tenant))
		if x.key != "" {
			s.key = appendName(nil, []byte(x.key))
		}
	}
	parts := []string{fmt.Sprintf("limit %q", x.limit)}
	if owned && x.tenant != "" {
		parts = append(parts, fmt.Sprintf("tenant %q", x.tenant))
	} else if owned {
		parts = append(parts, "client "+c.String())
	}
	for _, kind := range strings.Split(x.dims, ",") {
		d := dim{kind: policies.DimKind(kind)}
		switch d.kind {
		case "":
			continue
		case policies.DimKey:
			if s.key == nil {
				break
			}
			parts = append(parts, fmt.Sprintf("key %q", x.key))
		case policies.DimIP:
			parts = append(parts, "ip "+c.String())
		case policies.DimRoute:
			parts = append(parts, fmt.Sprintf("route %q", x.route))
		case policies.DimServer:
			d.field = []byte("X-Sluice-Server")
			parts = append(parts, fmt.Sprintf("server %q", x.server))
		case policies.DimHeader:
			d.field = []byte("X-Value")
			if x.value == "" {
				parts = append(parts, "ip "+c.String())
			} else {
				parts = append(parts, fmt.Sprintf("value %q", x.value))
			}
		}
		r.dims = append(r.dims, d)
	}
	out, tag := r.appendKey(nil, &s)
	if !bytes.HasPrefix(out, []byte("sluice:{"+string(tag)+"}:")) || bytes.IndexByte(tag, '}') >= 0 || len(tag) == 0 {
		panic(fmt.Sprintf("tag %q of %q", tag, out))
	}
	if len(out) > 600 {
		panic(fmt.Sprintf("a name of %d bytes", len(out)))
	}
	return string(out), strings.Join(parts, "; ")
}

// Tenants that nobody knows, and identity headers of the client's own, change
// nothing: one address is one subject, and one counter.
func TestIdentityHeadersMakeNoCounters(t *testing.T) {
	s := newSite(t, strings.Replace(shop, "burst: 3}", "burst: 120}", 1))
	passed := 0
	for i := range 150 {
		n := fmt.Sprint(i)
		passed += s.passes(1, "rest", "X-Tenant: t"+n, "X-Sluice-Tenant: t"+n, "X-Sluice-Key: k"+n, "X-User: u"+n)
	}
	if passed != 120 {
		t.Errorf("%d passed, want 120", passed)
	}
	if n := s.store.(*limit.Memory).Len(); n != 1 {
		t.Errorf("%d counters, want 1", n)
	}
}

// A counter by a credential is for credentials that are good: made-up keys have
// one counter, their client's.
func TestBadCredentialsMakeNoCounters(t *testing.T) {
	f := func(what, want string, headers ...string) {
		t.Helper()
		policy := strings.Replace(shop, "invalid: {deny: 401}", "invalid: {plan: anonymous}", 1) +
			"limits: {top: {per: {header: X-API-Key}, rate: 1/s, burst: 5}}\n"
		keys := strings.Fields(keysOf(newSite(t, policy), "rest", headers...))
		if got := keys[len(keys)-1]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	f("a good key", "sluice:{value=~", key("sk_a"), "X-Sluice-Header-X-Api-Key: sk_a")
	f("a made-up key", "sluice:{ip=192.0.2.1}", key("sk_1"), "X-Sluice-Header-X-Api-Key: sk_1")
	f("no key that was looked at", "sluice:{ip=192.0.2.1}", "X-Sluice-Header-X-Api-Key: sk_1")
	f("a good key elsewhere", "sluice:{ip=192.0.2.1}", "X-Sluice-Query-Api_key: sk_a", "X-Sluice-Header-X-Api-Key: sk_1")
}

// Two addresses of one /64 are one client, and the next /64 is another.
func TestIPv6Prefix(t *testing.T) {
	f := func(prefix, a, b string, same bool) {
		t.Helper()
		s := newSite(t, "client_ip: {ipv6_prefix: "+prefix+"}\nlimits: {l: {per: ip, rate: 1/h, burst: 1}}\n")
		s.passes(1, "all", ip(a))
		if got := s.passes(1, "all", ip(b)) == 0; got != same {
			t.Errorf("/%s: %s and %s are one client: %t, want %t", prefix, a, b, got, same)
		}
	}
	f("64", "2001:db8::1", "2001:db8::ffff:1", true)
	f("64", "2001:db8::1", "2001:DB8:0:0:1:2:3:4", true)
	f("64", "2001:db8::1", "2001:db8:0:1::1", false)
	f("56", "2001:db8::1", "2001:db8:0:ff::1", true)
	f("56", "2001:db8::1", "2001:db8:0:100::1", false)
	f("128", "2001:db8::1", "2001:db8::2", false)
	f("64", "192.0.2.1", "::ffff:192.0.2.1", true)
	f("64", "192.0.2.1", "64:ff9b::192.0.2.1", true)
	f("64", "192.0.2.1", "192.0.2.2", false)
	f("64", "unix:", "garbage", true)
}

// No secret is in a counter's name, an answer or a log line.
func TestSecretsStayInside(t *testing.T) {
	const secret = "sk_very_secret_0123"
	policy := strings.ReplaceAll(shop, "hash(sk_a)", "hash("+secret+")") +
		"limits: {by_key: {per: {header: X-API-Key}, rate: 1/h, burst: 2, count: requests}, by_query: {per: {query: api_key}, rate: 1/h, burst: 100}}\n"
	s := newSite(t, policy)
	var out strings.Builder
	for _, route := range []string{"rest", "search", "reports", "/_sluice/closed/gone"} {
		for _, shown := range []string{
			key(secret), key(secret + "x"), "Authorization: Bearer " + secret, "X-Sluice-Query-Api_key: " + secret,
			"X-Sluice-Cookie-Session: " + secret, "X-Sluice-Header-X-Api-Key: " + secret, "Authorization: Basic " + secret,
		} {
			u := uri("/rest?api_key=" + secret + "&k%65y=" + secret)
			for range 4 {
				out.WriteString(s.ask(route, shown, u, "X-Sluice-Header-X-Api-Key: "+secret).raw)
			}
			d := s.decide(route, shown, u, "X-Sluice-Header-X-Api-Key: "+secret, "X-Sluice-Query-Api_key: "+secret)
			for _, c := range d.Charges(nil) {
				out.WriteString(c.Key + "\n")
			}
		}
	}
	log := s.logged()
	if !strings.Contains(log, `"limit":"by_key"`) || !strings.Contains(log, `"key":"globex-a"`) {
		t.Errorf("the log does not tell who was denied by what:\n%s", log)
	}
	for what, text := range map[string]string{"an answer or a counter's name": out.String(), "the log": log} {
		if i := strings.Index(text, "very_secret"); i >= 0 {
			t.Errorf("the secret is in %s: …%s…", what, text[max(0, i-100):min(len(text), i+40)])
		}
	}
}
