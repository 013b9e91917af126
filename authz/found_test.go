package authz

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/directory"
	"sluice/authz/limit/limittest"
)

// foundSite is a site with a directory beside its policy, and who writes into it.
func foundSite(t *testing.T, server *limittest.Server, policy string) (*site, func(name string, fields ...string)) {
	t.Helper()
	s := newSite(t, "")
	put := s.direct(server)
	s.swap(policy)
	return s, put
}

// direct gives a site a directory, and returns who writes into it. The site has no
// policy then.
func (s *site) direct(server *limittest.Server) (put func(name string, fields ...string)) {
	s.t.Helper()
	d, err := directory.Open("redis://"+server.Addr, directory.Options{Deadline: 2 * time.Second, Log: slog.New(slog.NewTextHandler(s.log, nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = d.Close() })
	s.engine = New(s.store, Options{Now: s.clock.Now, Log: s.engine.log, Directory: d})
	s.handler.engine = s.engine
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	s.t.Cleanup(func() { _ = c.Close() })
	return func(name string, fields ...string) {
		s.t.Helper()
		if err := c.HSet(context.Background(), "sluice:"+name, fields).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func keyName(k string) string {
	sum := sha256.Sum256([]byte(k))
	return "key:" + hex.EncodeToString(sum[:])
}

// A key that the policy does not know may be a tenant's of the directory; one
// that it knows is never looked for there.
func TestFoundTenants(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	put("tenant:umbrella", "plan", "pro")
	put(keyName("sk_umbrella"), "tenant", "umbrella", "id", "umbrella-web")
	put(keyName("sk_off"), "tenant", "umbrella", "id", "off", "disabled", "1")
	put(keyName("sk_there"), "tenant", "umbrella", "id", "there", "cidrs", "198.51.100.0/24")
	put(keyName("sk_typo"), "tenant", "umbrella", "id", "typo", "disable", "1")
	put("tenant:gold", "plan", "gold")
	put(keyName("sk_gold"), "tenant", "gold", "id", "gold-1")
	put("tenant:gone", "plan", "free", "disabled", "1")
	put(keyName("sk_gone"), "tenant", "gone", "id", "gone-1")
	// Whoever can write there cannot take a key of the policy.
	put(keyName("sk_web"), "tenant", "umbrella", "id", "stolen")
	f := func(what, want string, headers ...string) {
		t.Helper()
		d := s.decide("rest", headers...)
		got := d.Verdict.String() + " " + d.Reason.String() + " " + d.Tenant + "/" + d.Key + " " + d.Plan
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f("a key of the directory", "allow  umbrella/umbrella-web pro", key("sk_umbrella"))
	f("in another place", "allow  umbrella/umbrella-web pro", "Authorization: Bearer sk_umbrella")
	f("a key of the policy", "allow  acme/acme-web pro", key("sk_web"))
	f("nobody's", "deny credential / ", key("sk_nobody"))
	f("unfit", "deny credential / ", key("!"))
	f("a disabled key", "deny disabled umbrella/off pro", key("sk_off"))
	f("a disabled tenant's", "deny disabled gone/gone-1 free", key("sk_gone"))
	f("away from home", "deny address umbrella/there pro", key("sk_there"))
	f("at home", "allow  umbrella/there pro", key("sk_there"), ip("198.51.100.9"))
	f("a record that is not right", "deny credential / ", key("sk_typo"))
	f("a plan that is none", "deny credential gold/gold-1 ", key("sk_gold"))
	if got, want := keysOf(s, "rest", key("sk_umbrella")), "sluice:{umbrella}:org: sluice:{umbrella}:speed:key=umbrella-web"; got != want {
		t.Errorf("its counters are %s, want %s", got, want)
	}
	// A reload may bring the plan.
	s.swap(shop + "  - {name: none, match: {exact: /none}}\n")
	f("after a reload", "allow  umbrella/umbrella-web pro", key("sk_umbrella"))

	// Redis away: who is known is known on, for others the route decides.
	server.Kill()
	s.clock.Advance(time.Hour)
	f("known before", "allow  umbrella/umbrella-web pro", key("sk_umbrella"))
	f("a key of the policy", "allow  acme/acme-web pro", key("sk_web"))
	f("no key", "allow  / anonymous")
	s.ask("rest", key("sk_new")).want(t, "never seen, open", 204, "X-Sluice-Degraded: 1", "X-Sluice-Tenant: ")
	s.ask("closed", key("sk_new")).want(t, "never seen, closed", 403, "X-Sluice-Status: 503", "X-Sluice-Reason: store_down", "Retry-After: 1")
	if d := s.decide("rest", key("sk_new")); d.Err == nil {
		t.Error("the decision does not tell why")
	}
	s.quiet()
}

// Tokens find their tenants in the directory as API keys do.
func TestFoundByToken(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s := newTokenSite(t, tokenShop)
	put := s.direct(server)
	s.use(strings.Replace(tokenShop, "burst: 3}", "burst: 30}", 1)+"routes: [{name: all, match: {prefix: /}}, {name: closed, match: {prefix: /closed}, on_store_down: closed}]\n", s.issuer.set(allKeys()...))
	put("tenant:umbrella", "plan", "paid")
	put("tenant:globex", "plan", "paid", "claim", "org-42")
	put("claim:org-42", "tenant", "globex")
	put("claim:org-lost", "tenant", "nowhere")
	put("claim:org-43", "tenant", "globex")
	put("claim:org-bad", "tenant", "umbrella", "disabled", "1")
	put("tenant:off", "plan", "paid", "disabled", "1")
	put("tenant:far", "plan", "paid", "cidrs", "198.51.100.0/24")
	put("tenant:typo", "plan", "paid", "disable", "1")
	put("tenant:gold", "plan", "gold")
	put("claim:org-1", "tenant", "umbrella") // a tenant of the policy has it
	f := func(what, want string, org any, more ...string) {
		t.Helper()
		if got := s.who(append(more, bearer(s.token("org", org)))...); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f("by its id", "allow  umbrella/ paid", "umbrella")
	f("by its claim", "allow  globex/ paid", "org-42")
	f("an id is no claim", "allow  globex/ free", "globex")
	f("a claim that the tenant does not know", "deny credential globex/ ", "org-43")
	f("a claim of nobody", "allow  org-lost/ free", "org-lost")
	f("a claim's record that is not right", "deny credential / ", "org-bad")
	f("disabled", "deny disabled off/ paid", "off")
	f("away from home", "deny address far/ paid", "far")
	f("at home", "allow  far/ paid", "far", ip("198.51.100.7"))
	f("a record that is not right", "deny credential typo/ ", "typo")
	f("a plan that is none", "deny credential gold/ ", "gold")
	f("the policy comes first", acmePaid, "org-1")
	f("unknown is unlisted", "allow  initech/ free", "initech")
	f("no name", "allow  a b/ free", "a b")
	f("nobody at all", "allow  / free", nil)
	if got := s.who(bearer(s.token("org", "umbrella", "plan", "free"))); got != "allow  umbrella/ paid" {
		t.Errorf("its plan is in its record, not in the token: %q", got)
	}
	got := keysOf(s.site, "all", bearer(s.token("org", "umbrella", "scope", "read")))
	if want := "sluice:{umbrella}:all: sluice:{umbrella}:each:user=" + string(appendHash(nil, []byte("ann"))) +
		" sluice:{umbrella}:words:scope=" + string(appendHash(nil, []byte("read"))); got != want {
		t.Errorf("its counters are %s, want %s", got, want)
	}
	// What is unlisted is looked for again in a moment.
	put("tenant:initech", "plan", "paid")
	s.clock.Advance(10 * time.Second)
	f("new", "allow  initech/ paid", "initech")

	server.Kill()
	f("known before", "allow  umbrella/ paid", "umbrella")
	f("the policy's", acmePaid, "org-1")
	fresh := bearer(s.token("org", "fresh"))
	s.ask("all", fresh).want(t, "never seen, open", 204, "X-Sluice-Degraded: 1", "X-Sluice-Tenant: ")
	s.ask("closed", fresh).want(t, "never seen, closed", 403, "X-Sluice-Status: 503", "X-Sluice-Reason: store_down")
}

// So do the site's own authenticator and applications that ask for a tenant.
func TestFoundByLogin(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, loginShop)
	put("tenant:umbrella", "plan", "paid")
	put("tenant:off", "plan", "paid", "disabled", "1")
	s.ask("all", login("ann", "umbrella")...).want(t, "a tenant of the directory", 204, "X-Sluice-Tenant: umbrella", "X-Sluice-Plan: paid")
	s.ask("all", login("ann", "acme")...).want(t, "one of the policy", 204, "X-Sluice-Tenant: acme")
	s.ask("all", login("ann", "off")...).want(t, "disabled", 403, "X-Sluice-Reason: disabled")
	s.ask("all", login("ann", "other")...).want(t, "unknown", 204, "X-Sluice-Tenant: other", "X-Sluice-Plan: member")
	s.ask("all", login("ann", "")...).want(t, "on his own", 204, "X-Sluice-Tenant: ", "X-Sluice-Plan: member")
	if n := s.passes(10, "all", login("bob", "umbrella")...); n != 3 {
		t.Errorf("%d of a user's requests pass, want the 3 of his plan", n)
	}
	server.Kill()
	s.ask("all", login("ann", "fresh")...).want(t, "Redis is away", 204, "X-Sluice-Degraded: 1")
}

// So do certificates.
func TestFoundByCertificate(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	bank, bankHash := newCert(t, "bank")
	broker, brokerHash := newCert(t, "broker")
	lost, lostHash := newCert(t, "lost")
	bad, badHash := newCert(t, "bad")
	other, _ := newCert(t, "other")
	s, put := foundSite(t, server, strings.Replace(certShop, "CERT", bankHash, 1))
	put("tenant:broker", "plan", "partner", "cidrs", "192.0.2.0/24")
	put("cert:"+brokerHash, "tenant", "broker")
	put("cert:"+bankHash, "tenant", "broker")
	put("cert:"+lostHash, "tenant", "nowhere")
	put("cert:"+badHash, "tenant", "broker", "plan", "partner")
	f := func(what, want string, headers ...string) {
		t.Helper()
		d := s.decide("all", headers...)
		if got := d.Verdict.String() + " " + d.Reason.String() + " " + d.Tenant + " " + d.Plan; got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f("a tenant's of the directory", "allow  broker partner", cert(broker))
	f("away from home", "deny address broker partner", cert(broker), ip("198.51.100.1"))
	f("the policy's", "allow  bank partner", cert(bank))
	f("of a tenant that is not there", "allow   guest", cert(lost))
	f("a record that is not right", "deny credential  ", cert(bad))
	f("nobody's", "allow   guest", cert(other))
	if got, want := keysOf(s, "all", cert(broker)), "sluice:{broker}:speed:"; got != want {
		t.Errorf("its counters are %s, want %s", got, want)
	}
	server.Kill()
	fresh, _ := newCert(t, "fresh")
	f("Redis is away", "degraded store_down  ", cert(fresh))
	f("known before", "allow  broker partner", cert(broker))
}

// Operators see what a tenant of the directory has used, as far as they can name it.
func TestFoundUsage(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	put("tenant:umbrella", "plan", "pro")
	put("tenant:gold", "plan", "gold")
	put(keyName("sk_umbrella"), "tenant", "umbrella", "id", "umbrella-web")
	s.passes(3, "rest", key("sk_umbrella"))
	ask := func(id string, who Who) (Usage, bool, error) {
		return s.engine.Usage(context.Background(), TenantRef{ID: id}, who)
	}
	u, known, err := ask("umbrella", Who{})
	if !known || err != nil || u.Plan != "pro" || len(u.Unseen) != 1 || u.Unseen[0] != "speed" {
		t.Errorf("%+v, %t, %v", u, known, err)
	}
	if c := u.counter(t, "org", ""); *c.Remaining != 97 {
		t.Errorf("of the tenant: %+v", c)
	}
	u, _, err = ask("umbrella", Who{Key: "umbrella-web"})
	if err != nil {
		t.Fatal(err)
	}
	if c := u.counter(t, "speed", "umbrella-web"); *c.Remaining != 37 || c.Name != "sluice:{umbrella}:"+c.rule.limit.ID+":key=umbrella-web" {
		t.Errorf("of a key: %+v", c)
	}
	for _, id := range []string{"nowhere", "gold", "a b", ""} {
		if _, known, err := ask(id, Who{}); known || err != nil {
			t.Errorf("%q: known %t, error %v", id, known, err)
		}
	}
	server.Kill()
	if _, known, err := ask("another", Who{}); known || err == nil {
		t.Errorf("with Redis away: known %t, error %v", known, err)
	}
}
