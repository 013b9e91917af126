package authz

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/authz/directory"
	"sluice/authz/limit/limittest"
	"sluice/authz/memo"
)

// A tenant of the directory may have numbers of his own, and his keys plans of their
// own and limits that they always meet, as in the policy.
func TestAdmittedTenants(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	put("tenant:umbrella", "plan", "pro", "override:speed:rate", "1/h", "override:speed:burst", "60")
	put(keyName("sk_web"), "tenant", "umbrella", "id", "stolen", "plan", "free") // a key of the policy stays what it is
	put(keyName("sk_1"), "tenant", "umbrella", "id", "one")
	put(keyName("sk_2"), "tenant", "umbrella", "id", "two", "plan", "free")
	put(keyName("sk_3"), "tenant", "umbrella", "id", "three", "simulate", "speed")
	f := func(what string, passes int, plan string, headers ...string) {
		t.Helper()
		if n := s.passes(100, "rest", headers...); n != passes {
			t.Errorf("%s: %d pass, want %d", what, n, passes)
		}
		if d := s.decide("rest", headers...); d.Plan != plan || d.Tenant != "umbrella" {
			t.Errorf("%s: %s on the plan %s, want %s", what, d.Tenant, d.Plan, plan)
		}
	}
	f("the tenant's own number", 60, "pro", key("sk_1"))
	f("another plan's number by key", 10, "free", key("sk_2"))
	f("a key for trying", 0, "pro", key("sk_3"))
	d := s.decide("rest", key("sk_3"))
	if d.Reason != ReasonSimulate || d.Limit != "speed" || d.Status != 429 {
		t.Errorf("a key for trying: %s of %s, %d", d.Reason, d.Limit, d.Status)
	}
	if d = s.decide("rest", key("sk_2")); d.Limit != "speed" || d.Priority != "normal" {
		t.Errorf("the key's own plan: %s, priority %s", d.Limit, d.Priority)
	}
	s.ask("reports", key("sk_3")).want(t, "its numbers are the tenant's", 403, "X-Sluice-Reason: simulate", "X-Sluice-Limit: speed", `RateLimit-Policy: "org";q=100;w=5, "speed";q=60;w=216000, "reports";q=2;w=720`)
	// Usage tells the tenant's own numbers, and metrics the limit's name.
	u, _, err := s.engine.Usage(t.Context(), TenantRef{ID: "umbrella"}, Who{Key: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if c := u.counter(t, "speed", "one"); *c.Max != 60 || *c.Remaining != 0 {
		t.Errorf("usage: %+v", c)
	}
	if _, text := scrape(t, NewRegistry(s.engine, nil, "v1")); !strings.Contains(text, `sluice_rate_limited_total{limit="speed",reason="rate",route="rest",tenant="other"}`) {
		t.Errorf("metrics do not name the limit:\n%s", text)
	}
}

// Grants of a record add to a quota, on their days.
func TestAdmittedGrants(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {deny: 401}}
plans: {free: {limits: {daily: {per: tenant, quota: 3/day}}}}
`)
	today, later := s.clock.Now().UTC(), s.clock.Now().UTC().AddDate(0, 0, 1)
	put("tenant:umbrella", "plan", "free", "grant:daily:"+today.Format(time.DateOnly)+":"+today.Format(time.DateOnly), "4 launch",
		"grant:daily:"+later.Format(time.DateOnly)+":"+later.Format(time.DateOnly), "1")
	put(keyName("sk_1"), "tenant", "umbrella", "id", "one")
	if n := s.passes(20, "all", key("sk_1")); n != 7 {
		t.Errorf("%d pass today, want 7", n)
	}
	s.clock.Advance(24 * time.Hour)
	if n := s.passes(20, "all", key("sk_1")); n != 4 {
		t.Errorf("%d pass tomorrow, want 4", n)
	}
}

// What the policy lacks lets nobody in, is told once without anything secret, and is
// looked at again when there is another policy.
func TestAdmittedByAnotherPolicy(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	for id, fields := range map[string][]string{
		"limit": {"override:nothing:burst", "5"}, "kind": {"override:speed:quota", "5/day"}, "zero": {"override:speed:burst", "0"},
		"grant": {"grant:speed:2026-12-01:2026-12-31", "5"}, "wait": {"override:speed:wait", "2s"},
	} {
		put("tenant:"+id, append([]string{"plan", "pro"}, fields...)...)
		put(keyName("sk_"+id), "tenant", id, "id", id)
	}
	put("tenant:good", "plan", "pro")
	put("tenant:gold", "plan", "gold")
	put(keyName("sk_gold"), "tenant", "gold", "id", "gold")
	put(keyName("sk_plan"), "tenant", "good", "id", "plan", "plan", "gold")
	put(keyName("sk_try"), "tenant", "good", "id", "try", "simulate", "nothing")
	put(keyName("sk_well"), "tenant", "good", "id", "well", "plan", "free")
	all := []string{"limit", "kind", "zero", "grant", "wait", "gold", "plan", "try"}
	for range 3 {
		for _, name := range all {
			if d := s.decide("rest", key("sk_"+name)); d.Verdict != Deny || d.Reason != ReasonCredential || d.Status != 403 {
				t.Errorf("%s: %s %s %d", name, d.Verdict, d.Reason, d.Status)
			}
		}
	}
	log := s.logged()
	if n := strings.Count(log, "the policy cannot use a record"); n != len(all) {
		t.Errorf("the log tells of it %d times, want %d:\n%s", n, len(all), log)
	}
	if strings.Contains(log, "sk_") {
		t.Error("a key is in the log")
	}
	if n := s.engine.directory.Refused(); n != uint64(len(all)) {
		t.Errorf("%d were counted, want %d", n, len(all))
	}
	if _, known, err := s.engine.Usage(t.Context(), TenantRef{ID: "limit"}, Who{}); known || err != nil {
		t.Errorf("usage of who cannot be used: %t, %v", known, err)
	}
	s.swap(strings.Replace(shop, "  pro:\n", "  gold: {limits: {gilded: {per: key, rate: 1/h, burst: 20}}}\n  pro:\n", 1))
	if d := s.decide("rest", key("sk_gold")); d.Verdict != Allow || d.Plan != "gold" {
		t.Errorf("a plan that has come: %s %s on %s", d.Verdict, d.Reason, d.Plan)
	}
	if n := s.passes(30, "rest", key("sk_plan")); n != 20 {
		t.Errorf("a key's plan that has come: %d pass, want 20", n)
	}
	if d := s.decide("rest", key("sk_limit")); d.Verdict != Deny {
		t.Error("a limit that has not come")
	}
}

// FuzzAdmitted writes anything into records. Nobody passes whose records a careful
// reader would not have let in.
func FuzzAdmitted(f *testing.F) {
	s := newSite(f, "")
	d, err := directory.Open("redis://127.0.0.1:1", directory.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = d.Close() })
	s.engine = New(s.store, Options{Now: s.clock.Now, Log: s.engine.log, Directory: d})
	s.swap(shop)
	b := s.engine.state.Load()
	f.Add("plan\x00pro", "tenant\x00umbrella\x00id\x00web")
	f.Add("plan\x00pro\x00disabled\x000\x00override:speed:burst\x005\x00override:speed:rate\x005/s", "tenant\x00umbrella\x00id\x00web\x00plan\x00free\x00simulate\x00speed")
	f.Add("plan\x00gold\x00cidrs\x00192.0.2.0/24", "tenant\x00umbrella\x00id\x00web\x00cidrs\x00198.51.100.0/24\x00disabled\x001")
	f.Add("plan\x00pro\x00override:org:wait\x001s", "tenant\x00umbrella\x00id\x00web\x00plan\x00anonymous")
	f.Add("plan\x00free\x00grant:speed:2026-12-01:2026-12-02\x005", "tenant\x00umbrella\x00id\x00web\x00simulate\x00org")
	read := func(text string) map[string]string {
		fields, words := map[string]string{}, strings.Split(text, "\x00")
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		return fields
	}
	plans := []string{"anonymous", "free", "pro"}
	limits := map[string][]string{"anonymous": {"speed"}, "free": {"speed", "org"}, "pro": {"speed", "org"}}
	f.Fuzz(func(t *testing.T, ofTenant, ofKey string) {
		tenantFields, keyFields := read(ofTenant), read(ofKey)
		tenant, _ := directory.ReadTenant("umbrella", tenantFields)
		k, _ := directory.ReadKey(memo.Key(sha256.Sum256([]byte(ofKey))), keyFields)
		c := newClient([]byte("192.0.2.1"), 64)
		for _, key := range []*directory.Key{nil, &k} {
			if key != nil && key.Broken {
				continue // identifyFound refuses it
			}
			d := &Decision{bound: b, now: s.clock.Now()}
			id, ok := b.foundTenant(&tenant, key, c, d)
			if ok == (d.Verdict == Deny) {
				t.Fatalf("ok is %t and the verdict %s", ok, d.Verdict)
			}
			if !ok {
				continue
			}
			plan := tenantFields["plan"]
			good := tenantFields["disabled"] != "1" && slices.Contains(plans, plan)
			for name := range maps.Keys(tenantFields) {
				part := strings.Split(name, ":")
				good = good && (slices.Contains([]string{"plan", "claim", "disabled", "cidrs", "name"}, name) ||
					part[0] == "override" && len(part) == 3 && slices.Contains(limits[plan], part[1]) && (part[2] == "rate" || part[2] == "burst"))
			}
			own := plan
			if key != nil {
				if keyFields["plan"] != "" {
					own = keyFields["plan"]
				}
				tried := keyFields["simulate"]
				good = good && keyFields["disabled"] != "1" && slices.Contains(plans, own) && id.simulate == tried &&
					(tried == "" || slices.Contains(limits[own], tried) || slices.Contains(limits[plan], tried))
			}
			if !good || id.plan < 0 || b.policy.Plans[id.plan].Name != own || len(id.rules) == 0 || string(id.tenant) != "umbrella" {
				t.Errorf("%q, %q are let in on plan %d", tenantFields, keyFields, id.plan)
			}
		}
	})
}
