package authz

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
	"sluice/authz/memo"
)

// limited is how often metrics say that a tenant was refused.
func limited(t *testing.T, e *Engine, tenant string) (n float64) {
	t.Helper()
	series, _ := scrape(t, NewRegistry(e, nil, ""))
	for name, count := range series {
		if strings.HasPrefix(name, "sluice_rate_limited_total{") && strings.Contains(name, `tenant="`+tenant+`"`) {
			n += count
		}
	}
	return n
}

// Busy tenants of the directory have names in metrics, too, and keep them when the
// policy changes; their number is bounded with that of the others.
func TestFoundTenantsInMetrics(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	put("tenant:umbrella", "plan", "free")
	put(keyName("sk_umbrella"), "tenant", "umbrella", "id", "web")
	ask := func(n int) { t.Helper(); s.passes(n, "rest", key("sk_umbrella")) }
	ask(15) // 10 pass
	if n := limited(t, s.engine, "other"); n != 5 {
		t.Errorf("%v refused among others, want 5", n)
	}
	ask(3)
	if n := limited(t, s.engine, "umbrella"); n != 3 {
		t.Errorf("%v refused by name, want 3", n)
	}
	s.swap(shop + "  - {name: none, match: {exact: /none}}\n")
	ask(4)
	if n := limited(t, s.engine, "umbrella"); n != 7 {
		t.Errorf("%v refused by name after a reload, want 7", n)
	}
	if series, _ := scrape(t, NewRegistry(s.engine, nil, "")); series[`sluice_remaining_tokens{limit="speed",tenant="umbrella"}`] != 0 {
		t.Error("what is left is not told")
	}

	// His meter loses its place: the next one finds his account.
	b := s.engine.state.Load()
	for e := range b.found.All() {
		b.found.Drop(&e.Key)
	}
	ask(2)
	limited(t, s.engine, "umbrella")
	ask(1)
	if n := limited(t, s.engine, "umbrella"); n != 8 {
		t.Errorf("%v refused by name with another meter, want 8", n)
	}

	// He moves into the policy, and out of it.
	s.swap(strings.Replace(shop, "  - id: acme\n", "  - {id: umbrella, plan: free, keys: [{id: web, sha256: hash(sk_umbrella)}]}\n  - id: acme\n", 1))
	ask(1)
	s.swap(shop)
	ask(1)
	limited(t, s.engine, "umbrella")
	ask(1)
	if n := limited(t, s.engine, "umbrella"); n < 10 {
		t.Errorf("%v refused by name after moves, want 10 or more", n)
	}
	for i := range 3 * maxAccounts {
		id := fmt.Sprintf("t%d", i)
		put("tenant:"+id, "plan", "free")
		put(keyName("sk_"+id), "tenant", id, "id", id)
		s.passes(20, "rest", key("sk_"+id))
	}
	limited(t, s.engine, "umbrella")
	if n := len(s.engine.metrics.accounts.named); n > maxAccounts {
		t.Errorf("%d accounts, want at most %d", n, maxAccounts)
	}
}

// A tenant of the directory who is refused far more than before is told of.
func TestFoundSpikes(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop)
	put("tenant:umbrella", "plan", "free")
	put(keyName("sk_umbrella"), "tenant", "umbrella", "id", "web")
	b := s.engine.state.Load()
	var x spikes
	now := s.clock.Now()
	look := func(requests int) []happening {
		s.passes(requests, "rest", key("sk_umbrella"))
		now = now.Add(time.Minute)
		return x.look(b, now)
	}
	if found := look(12); len(found) != 0 {
		t.Errorf("few denials: %+v", found)
	}
	found := look(2 * spikeLeast)
	if len(found) != 1 || found[0].Event.Data.Tenant != "umbrella" || found[0].Event.Data.Plan != "free" || found[0].Event.Data.Denied != 2*spikeLeast {
		t.Errorf("a spike: %+v", found)
	}
	// Another policy does not begin his count anew, and who has no meter is forgotten.
	s.swap(shop)
	b = s.engine.state.Load()
	if now = now.Add(time.Hour); len(look(1)) != 0 || x.past[metered{"umbrella", true}].total != 2*spikeLeast+3 {
		t.Errorf("after a reload: %+v", x.past)
	}
	var hash memo.Key
	for e := range b.found.All() {
		hash = e.Key
	}
	b.found.Drop(&hash)
	if x.look(b, now); len(x.past) != 0 {
		t.Errorf("without a meter: %+v", x.past)
	}
}
