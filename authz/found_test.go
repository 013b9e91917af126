package authz

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
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
	d, err := directory.Open("redis://"+server.Addr, directory.Options{Deadline: 2 * time.Second, Log: slog.New(slog.NewTextHandler(s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s.engine = New(s.store, Options{Now: s.clock.Now, Log: s.engine.log, Directory: d})
	s.handler.engine = s.engine
	s.swap(policy)
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return s, func(name string, fields ...string) {
		t.Helper()
		if err := c.HSet(context.Background(), "sluice:"+name, fields).Err(); err != nil {
			t.Fatal(err)
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
