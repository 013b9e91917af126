package authz

import (
	"strings"
	"testing"

	"sluice/policies"
)

func TestIdentity(t *testing.T) {
	f := func(what string, want string, headers ...string) {
		t.Helper()
		d := newSite(t, shop).decide("rest", headers...)
		got := d.Verdict.String() + " " + d.Reason.String() + " " + d.Tenant + "/" + d.Key + " " + d.Plan
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	const web, anonymous = "allow  acme/acme-web pro", "allow  / anonymous"
	f("no credential", anonymous)
	f("a key", web, key("sk_web"))
	f("a bearer", web, "Authorization: Bearer sk_web")
	f("a scheme in another case, more spaces", web, "Authorization: bEARER   sk_web")
	f("the query", web, "X-Sluice-Query-Api_key: sk_web")
	f("the cookie", web, "X-Sluice-Cookie-Session: sk_web")
	f("a key with a plan of its own", "allow  acme/acme-batch free", key("sk_batch"))

	f("another scheme is nobody's", anonymous, "Authorization: Basic sk_web")
	f("no scheme is nobody's", anonymous, "Authorization: sk_web")
	f("a scheme glued on is nobody's", anonymous, "Authorization: Bearersk_web")
	f("only a scheme is nobody's", anonymous, "Authorization: Bearer")
	f("another prefix is nobody's", anonymous, "Authorization: Bearer eyJ")
	f("not ours, and then the query", web, "Authorization: Bearer eyJ", "X-Sluice-Query-Api_key: sk_web")
	f("a client's own header", anonymous, "X-Tenant: acme", "X-Sluice-Tenant: acme", "X-Sluice-Plan: pro")

	const invalid = "deny credential / "
	f("a key nobody has", invalid, key("sk_nobody"))
	f("the first that is present decides", invalid, key("sk_nobody"), "Authorization: Bearer sk_web")
	f("the mark for an unfit one", invalid, key("!"), "Authorization: Bearer sk_web")
	f("the mark where a scheme is wanted", invalid, "Authorization: !")
	f("too long", invalid, key("sk_"+strings.Repeat("x", policies.MaxCredential)))
	f("a key with something behind", invalid, key("sk_web "+"x"))

	f("a disabled key", "deny disabled acme/acme-old pro", key("sk_old"))
	f("a disabled tenant", "deny disabled initech/ini free", key("sk_ini"))
	f("a key away from home", "deny address acme/acme-home pro", key("sk_home"))
	f("a key at home", "allow  acme/acme-home pro", key("sk_home"), ip("198.51.100.9"))
	f("a tenant away from home", "deny address hooli/hooli-a free", key("sk_hooli"))
	f("a tenant at home", "allow  hooli/hooli-a free", key("sk_hooli"), ip("203.0.113.200"))
	f("at home by IPv6", "allow  hooli/hooli-a free", key("sk_hooli"), ip("2001:db8:77:1::5"))
	f("at home, IPv4 in IPv6", "allow  hooli/hooli-a free", key("sk_hooli"), ip("::ffff:203.0.113.200"))
	f("at home behind NAT64", "allow  hooli/hooli-a free", key("sk_hooli"), ip("64:ff9b::203.0.113.200"))
	f("no address is not at home", "deny address hooli/hooli-a free", key("sk_hooli"), ip("unix:"))
}

func TestOutcomes(t *testing.T) {
	f := func(identity, headers, want string) {
		t.Helper()
		policy := "identity: {sources: [{api_key: {header: X-API-Key}}], " + identity + "}\n" +
			"plans: {p: {limits: {l: {per: ip, rate: 1/s, burst: 1}}}}\n"
		s := newSite(t, policy)
		a := s.ask("all", headers)
		got := a.header["X-Sluice-Decision"] + " " + a.header["X-Sluice-Status"] + " " + a.header["X-Sluice-Plan"] + " " + a.header["Www-Authenticate"] + a.header["WWW-Authenticate"]
		if got != want {
			t.Errorf("%s with %q: %q, want %q", identity, headers, got, want)
		}
	}
	f("missing: {plan: p}", "", "allow  p ")
	f("missing: {deny: 401}", "", `deny   ApiKey realm="sluice"`)
	f("missing: {deny: 403}", "", "deny 403  ")
	f("missing: {plan: p}, invalid: {deny: 401}", key("x"), `deny   ApiKey realm="sluice"`)
	f("missing: {plan: p}, invalid: {deny: 403}", key("x"), "deny 403  ")
	f("missing: {deny: 401}, invalid: {plan: p}", key("x"), "allow  p ")
}

// A route for some plans refuses others, and asks those for a credential who
// showed none: they may have one.
func TestRouteForPlans(t *testing.T) {
	s := newSite(t, strings.Replace(shop, "plans: [free, pro]", "plans: [pro]", 1))
	s.ask("reports", key("sk_web")).want(t, "its plan", 204)
	s.ask("reports", key("sk_a")).want(t, "another plan", 403, "X-Sluice-Status: 403", "X-Sluice-Reason: plan", "Retry-After: ")
	s.ask("reports").want(t, "nobody", 401, "X-Sluice-Reason: plan", "X-Sluice-Status: ",
		`WWW-Authenticate: ApiKey realm="sluice", Bearer realm="sluice"`)
}

func TestNoIdentity(t *testing.T) {
	s := newSite(t, "limits: {all: {per: ip, rate: 1/s, burst: 2}}\n")
	if got := s.passes(5, "all", key("whatever")); got != 2 {
		t.Errorf("%d requests passed, want 2", got)
	}
	s.ask("all", ip("192.0.2.99")).want(t, "another client", 204, "X-Sluice-Tenant: ", "X-Sluice-Plan: ", "X-Sluice-Priority: ")
}
