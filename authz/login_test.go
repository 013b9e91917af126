package authz

import (
	"strings"
	"testing"
)

const loginShop = `
identity:
  sources:
    - api_key: {header: X-API-Key}
    - auth_request: {location: /auth, user_header: X-User, tenant_header: X-Org}
  missing: {plan: nobody}
  unlisted: {plan: member}
plans:
  nobody: {limits: {speed: {per: ip, rate: 1/h, burst: 1}}}
  member: {limits: {speed: {per: user, rate: 1/h, burst: 2}}}
  paid: {limits: {each: {per: user, rate: 1/h, burst: 3}, all: {per: tenant, rate: 1/h, burst: 5}, keys: {per: key, rate: 1/h, burst: 100}}}
tenants:
  - {id: acme, plan: paid, keys: [{id: web, sha256: hash(sk_web)}]}
  - {id: globex, plan: paid, claim: org-42}
  - {id: gone, plan: paid, disabled: true}
  - {id: home, plan: paid, cidrs: [192.0.2.0/24]}
`

// login is what a rendered server says of a client whom the site's authenticator
// let pass.
func login(user, tenant string) []string {
	headers := []string{"X-Sluice-Login: 1"}
	if user != "" {
		headers = append(headers, "X-Sluice-Login-User: "+user)
	}
	if tenant != "" {
		headers = append(headers, "X-Sluice-Login-Tenant: "+tenant)
	}
	return headers
}

func TestLogin(t *testing.T) {
	s := newSite(t, loginShop)
	s.ask("all", login("ann", "acme")...).want(t, "a listed tenant", 204, "X-Sluice-Tenant: acme", "X-Sluice-Plan: paid")
	s.ask("all", login("ann", "org-42")...).want(t, "by claim", 204, "X-Sluice-Tenant: globex")
	s.ask("all", login("ann", "globex")...).want(t, "an id is no claim", 204, "X-Sluice-Tenant: globex", "X-Sluice-Plan: member")
	s.ask("all", login("ann", "gone")...).want(t, "disabled", 403, "X-Sluice-Status: 403", "X-Sluice-Reason: disabled")
	s.ask("all", append(login("ann", "home"), ip("198.51.100.1"))...).want(t, "from elsewhere", 403, "X-Sluice-Reason: address")
	s.ask("all", append(login("ann", "home"), ip("192.0.2.9"))...).want(t, "from home", 204)
	s.ask("all", append(login("ann", "globex"), key("sk_web"))...).want(t, "a key is the first source", 204, "X-Sluice-Tenant: acme")
	s.ask("all", "X-Sluice-Login-User: ann").want(t, "a name without a login is nobody", 204, "X-Sluice-Plan: nobody")
	s.swap(strings.Replace(loginShop, "unlisted: {plan: member}", "unlisted: {deny: 403}", 1))
	s.ask("all", login("ann", "globex")...).want(t, "unlisted is refused", 403, "X-Sluice-Status: 403", "X-Sluice-Reason: credential")
}

// TestLoginCounters: whose counter it is, for users within tenants and without.
func TestLoginCounters(t *testing.T) {
	f := func(what string, want int, headers ...string) {
		t.Helper()
		s := newSite(t, loginShop)
		// Everybody else has used up what is his.
		for _, other := range [][]string{login("bob", "acme"), login("bob", ""), login("ann", "other"), {}} {
			s.passes(2, "all", other...)
		}
		got := s.passes(4, "all", append(headers, ip("192.0.2.1"))...) + s.passes(4, "all", append(headers, ip("198.51.100.7"))...)
		if got != want {
			t.Errorf("%s: %d passed, want %d", what, got, want)
		}
	}
	f("a user of a listed tenant, wherever he is", 3, login("ann", "acme")...)
	f("a user without a tenant, wherever he is", 2, login("ann", "")...)
	f("a user of an unlisted tenant", 2, login("ann", "elsewhere")...)
	f("a tenant that names nobody", 2, login("", "elsewhere")...)
	f("a login that names nobody: two addresses", 4, login("", "")...)
}

// TestLoginKeys: nobody's name makes somebody else's counter. C085
func TestLoginKeys(t *testing.T) {
	s := newSite(t, loginShop)
	seen := map[string]string{}
	for _, who := range [][2]string{{"ann", ""}, {"", "ann"}, {"ann", "ann"}, {"acme", ""}, {"", "acme"}, {"ann", "acme"}, {"ann,key=web", "acme"}, {"web", "acme"}, {"x", "globex"}, {"x", "org-42"}} {
		d := s.decide("all", login(who[0], who[1])...)
		name := ""
		for i, r := range d.rules {
			if n := r.limit.Name; n == "each" || n == "speed" { // those by user
				name = string(d.ops[i].Key)
			}
		}
		if before, ok := seen[name]; ok {
			t.Errorf("%q and %q share the counter %q", who, before, name)
		}
		seen[name] = who[0] + "/" + who[1]
		if strings.Contains(name, "ann") {
			t.Errorf("the counter %q names a user", name)
		}
	}
}
