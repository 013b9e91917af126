package directory

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.tenant("acme", "plan", "pro", "name", "Acme GmbH", "cidrs", "192.0.2.0/24, 2001:db8::/32")
	s.put("sk_1", "tenant", "acme", "id", "acme-web")
	s.put("sk_2", "tenant", "acme", "id", "acme-home", "cidrs", "192.0.2.7", "disabled", "1")
	s.tenant("gone", "plan", "free", "disabled", "1")
	s.put("sk_3", "tenant", "gone", "id", "gone-1", "disabled", "0")
	s.put("sk_4", "tenant", "nowhere", "id", "lost")
	s.tenant("gold", "plan", "gold")
	s.put("sk_5", "tenant", "gold", "id", "gold-1")
	s.want("a key", "sk_1", "acme/acme-web pro 192.0.2.0/24 2001:db8::/32")
	s.want("one with more", "sk_2", "acme/acme-home pro key off 192.0.2.0/24 2001:db8::/32 192.0.2.7/32")
	s.want("a disabled tenant's", "sk_3", "gone/gone-1 free tenant off")
	s.want("nobody's", "sk_0", "nobody")
	s.want("a tenant's that is not there", "sk_4", "nobody")
	s.want("a plan's that is not there", "sk_5", "gold/gold-1 gold")
	for _, want := range []string{"a key of a tenant that is not there", "tenant=nowhere"} {
		if !strings.Contains(s.logged(), want) {
			t.Errorf("the log has no %q:\n%s", want, s.logged())
		}
	}
	if strings.Contains(s.logged(), "sk_") {
		t.Error("a key is in the log")
	}
}

// A record that is not right lets nobody in, and is told of once, without what it holds of the key.
func TestBrokenRecords(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.tenant("acme", "plan", "pro")
	for i, fields := range [][]string{
		{"tenant", "acme"}, {"id", "x"}, {"tenant", "acme", "id", "a b"}, {"tenant", "acme", "id", strings.Repeat("x", 65)},
		{"tenant", "acme", "id", "x", "disable", "1"}, {"tenant", "acme", "id", "x", "disabled", "yes"},
		{"tenant", "acme", "id", "x", "cidrs", ""}, {"tenant", "acme", "id", "x", "cidrs", "192.0.2.1/24"},
		{"tenant", "acme", "id", "x", "cidrs", "everywhere"}, {"tenant", "acme", "id", "x", "cidrs", "fe80::1%eth0"},
		{"tenant", "acme}:x", "id", "x"}, {"tenant", "acme", "id", "x", "plan", ""}, {"tenant", "acme", "id", "x", "simulate", "a b"},
		{"tenant", "acme", "id", "x", "override:speed:burst", "9"}, {"tenant", "acme", "id", "x", "Plan", "pro"}, {"tenant", "acme", "id", "x", "sk_live_4242", "1"},
	} {
		key := "sk_" + strings.Repeat("x", i+1)
		s.put(key, fields...)
		for range 2 {
			s.want(strings.Join(fields, " "), key, "broken")
		}
		s.now = s.now.Add(time.Minute)
		s.want("a minute later", key, "broken")
		if n := strings.Count(s.logged(), digits(key)[:12]); n != 1 {
			t.Errorf("%v: the log tells of it %d times", fields, n)
		}
	}
	s.c.Set(context.Background(), "sluice:key:"+digits("sk_text"), "acme", 0)
	s.want("no hash", "sk_text", "broken")
	if strings.Contains(s.logged(), "4242") {
		t.Error("the log shows what may be a credential")
	}
	for i, fields := range [][]string{
		{"name", "Acme"}, {"plan", ""}, {"plan", "pro", "disable", "1"}, {"plan", "pro", "cidrs", "x"}, {"plan", "pro", "id", "x"},
		{"plan", "pro", "override:speed", "9"}, {"plan", "pro", "override:speed:limit", "9"}, {"plan", "pro", "override:speed:burst", "many"},
		{"plan", "pro", "override:a b:burst", "9"}, {"plan", "pro", "override:speed:burst:x", "9"}, {"plan", "pro", "override:speed:rate", "9"},
		{"plan", "pro", "grant:monthly", "9"}, {"plan", "pro", "grant:monthly:2026-12-01:2026-12-32", "9"}, {"plan", "pro", "grant:monthly:2026-12-01:2026-12-31", "x y"},
		{"plan", "pro", "grant:monthly:2026-12-01:2026-12-31", "-9"}, {"plan", "pro", "grant:monthly:2026-12-01:2026-12-31:x", "9"},
	} {
		id := "t" + string(rune('a'+i))
		s.tenant(id, fields...)
		s.put("sk_"+id, "tenant", id, "id", id)
		if got := s.who("sk_" + id); !strings.Contains(got, "broken") {
			t.Errorf("a tenant with %v: %q", fields, got)
		}
	}
	if s.d.Refused() < 30 {
		t.Errorf("%d were counted", s.d.Refused())
	}
}

// Claims and certificates have records of their own; a tenant without a claim is
// named by his id.
func TestLinks(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.tenant("acme", "plan", "pro")
	s.tenant("globex", "plan", "free", "claim", "org 42")
	s.write("claim:org 42", []string{"tenant", "globex"})
	s.write("claim:org 43", []string{"tenant", "globex"})
	s.write("claim:acme2", []string{"tenant", "acme"})
	s.write("claim:lost", []string{"tenant", "nowhere"})
	s.write("claim:odd", []string{"tenant", "acme", "plan", "pro"})
	s.write("claim:empty", []string{"tenant", ""})
	s.tenant("noclaim", "plan", "free", "claim", "")
	s.tenant("longclaim", "plan", "free", "claim", strings.Repeat("x", maxClaim+1))
	s.write("cert:"+digits("der 1"), []string{"tenant", "acme"})
	s.write("cert:"+digits("der 2"), []string{"tenants", "acme"})
	s.write("cert:"+digits("der 3"), []string{"tenant", "nowhere"})
	for range 2 {
		for claim, want := range map[string]string{
			"acme": "acme pro", "org 42": "globex free", "globex": "nobody", "org 43": "broken", "acme2": "broken", "lost": "nobody",
			"odd": "broken", "empty": "broken", "": "nobody", "a b": "nobody", "noclaim": "broken", "longclaim": "broken",
			strings.Repeat("x", maxClaim+1): "nobody", "\x00\r\n*": "nobody",
		} {
			if got := s.named(claim); got != want {
				t.Errorf("the claim %.20q names %q, want %q", claim, got, want)
			}
		}
		for der, want := range map[string]string{"der 1": "acme pro", "der 2": "broken", "der 3": "nobody", "der 4": "nobody"} {
			if got := s.certified(der); got != want {
				t.Errorf("the certificate %s is of %q, want %q", der, got, want)
			}
		}
	}
	s.d.Forget()
	s.c.Set(context.Background(), "sluice:claim:text", "acme", 0)
	if got := s.named("text"); got != "broken" {
		t.Errorf("no hash: %q", got)
	}
}

// A change is felt as soon as it is told, whatever was known.
func TestLinksChange(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.run()
	want := func(what, claim, want string) {
		t.Helper()
		s.await(what, func() bool { return s.named(claim) == want })
	}
	want("before he is there", "acme", "nobody")
	s.tenant("acme", "plan", "free")
	want("a new tenant", "acme", "acme free")
	s.tenant("acme", "plan", "pro", "claim", "org")
	want("a claim takes the place of the id", "acme", "nobody")
	want("before the claim is there", "org", "nobody")
	s.write("claim:org", []string{"tenant", "acme"})
	want("a claim", "org", "acme pro")
	s.tenant("acme", "plan", "pro")
	want("by his id again", "acme", "acme pro")
	want("and by nothing else", "org", "broken")
	s.write("claim:org", nil)
	want("a claim that is gone", "org", "nobody")
	s.write("cert:"+digits("der"), []string{"tenant", "acme"})
	s.await("a certificate", func() bool { return s.certified("der") == "acme pro" })
	s.write("cert:"+digits("der"), nil)
	s.await("one that is gone", func() bool { return s.certified("der") == "nobody" })
	s.await("all is known", func() bool {
		before := s.reads()
		for range 100 {
			s.named("acme")
			s.certified("der")
			s.named("org")
		}
		return s.reads() == before
	})
}

// What was read is believed for its time, and a change that is told of at once.
func TestChanges(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.run()
	s.want("before it is there", "sk_1", "nobody")
	before := s.reads()
	s.want("and again", "sk_1", "nobody")
	if s.reads() != before {
		t.Error("what is nobody's is read each time")
	}
	s.tenant("acme", "plan", "free")
	s.put("sk_1", "tenant", "acme", "id", "web")
	s.await("a new key", func() bool { return s.who("sk_1") == "acme/web free" })
	before = s.reads()
	for range 100 {
		s.want("a known key", "sk_1", "acme/web free")
	}
	if s.reads() != before {
		t.Error("a known key is read again")
	}
	s.tenant("acme", "plan", "pro")
	s.await("another plan", func() bool { return s.who("sk_1") == "acme/web pro" })
	s.put("sk_1")
	s.await("a key that is gone", func() bool { return s.who("sk_1") == "nobody" })

	// Written without a word: a minute for what was there, seconds for what was not.
	ctx := context.Background()
	s.c.HSet(ctx, "sluice:key:"+digits("sk_1"), "tenant", "acme", "id", "web")
	s.want("untold", "sk_1", "nobody")
	s.now = s.now.Add(nobodyFor)
	s.want("untold, later", "sk_1", "acme/web pro")
	s.c.HSet(ctx, "sluice:tenant:acme", "plan", "free")
	s.now = s.now.Add(knownFor - nobodyFor - time.Second)
	s.want("untold", "sk_1", "acme/web pro")
	s.now = s.now.Add(time.Second)
	s.want("untold, later", "sk_1", "acme/web free")
	// Whatever else is told forgets everything.
	for i, word := range []string{"*", "", "key:xyz", "tenant:a b", "key:00", "cert:00", "claim:", "plans"} {
		plan := []string{"pro", "free"}[i%2]
		s.c.HSet(ctx, "sluice:tenant:acme", "plan", plan)
		s.c.Publish(ctx, Channel, word)
		s.await("a change told as "+word, func() bool { return s.who("sk_1") == "acme/web "+plan })
	}
}

// While nobody listens nothing is believed for long.
func TestUnheard(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.tenant("acme", "plan", "pro")
	s.want("before it is there", "sk_1", "nobody")
	s.put("sk_1", "tenant", "acme", "id", "web")
	s.want("within the second", "sk_1", "nobody")
	s.now = s.now.Add(unheardFor)
	s.want("after it", "sk_1", "acme/web pro")
}

// With Redis away those whom it had known are known on, for others it is an
// error, and soon without waiting. When it is back, so is everybody.
func TestAway(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	s := start(t, server.Addr, server.Addr)
	s.tenant("acme", "plan", "pro")
	s.put("sk_1", "tenant", "acme", "id", "web")
	s.run()
	s.want("known", "sk_1", "acme/web pro")
	s.want("nobody's", "sk_0", "nobody")
	s.write("cert:"+digits("der"), []string{"tenant", "acme"})
	s.await("a claim and a certificate that are known", func() bool {
		before := s.reads()
		return s.named("acme")+s.certified("der") == "acme proacme pro" && s.reads() == before
	})
	server.Kill()
	s.now = s.now.Add(time.Hour)
	for range 20 {
		if got := s.named("acme") + ", " + s.certified("der") + ", " + s.named("org") + ", " + s.certified("other"); got != "acme pro, acme pro, away, away" {
			t.Errorf("claims and certificates: %s", got)
		}
		s.want("known before", "sk_1", "acme/web pro")
		s.want("nobody's before", "sk_0", "away")
		s.want("never asked for", "sk_2", "away")
	}
	if s.d.breaker.State() == limit.BreakerClosed {
		t.Error("it is asked on and on")
	}
	s.now = s.now.Add(staleFor)
	s.want("known a day ago", "sk_1", "away")
	server.Restart()
	s.tenant("acme", "plan", "free")
	s.put("sk_2", "tenant", "acme", "id", "new")
	s.await("it is back", func() bool { return s.who("sk_2") == "acme/new free" })
}

// A Redis that accepts and never answers costs a decision its deadline, and soon
// not even that.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	proxy := limittest.StartProxy(t, addr)
	s := start(t, addr, proxy.Addr)
	s.d.Deadline = 50 * time.Millisecond
	s.want("before", "sk_1", "nobody")
	proxy.Replies(limittest.Hold)
	for i := range 10 {
		s.want("in it", "sk_"+strings.Repeat("y", i+1), "away")
	}
	if s.d.breaker.State() == limit.BreakerClosed {
		t.Error("it is asked on and on")
	}
}

// What is known costs no allocation.
func TestFindAllocatesNothing(t *testing.T) {
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.tenant("acme", "plan", "pro")
	s.put("sk_1", "tenant", "acme", "id", "web")
	s.want("at first", "sk_1", "acme/web pro")
	s.want("nobody's", "sk_0", "nobody")
	s.write("cert:"+digits("der"), []string{"tenant", "acme"})
	known, nobody, claim, stranger, cert := hashOf("sk_1"), hashOf("sk_0"), []byte("acme"), []byte("org"), hashOf("der")
	if n := testing.AllocsPerRun(100, func() {
		_, _, err := s.d.Find(known, s.now)
		_, _, err2 := s.d.Find(nobody, s.now)
		_, err3 := s.d.Claimed(claim, s.now)
		_, err4 := s.d.Claimed(stranger, s.now)
		_, err5 := s.d.Certified(cert, s.now)
		if err := errors.Join(err, err2, err3, err4, err5); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// Many at once, while records change: nobody is taken for somebody else.
func TestTogether(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	s := start(t, addr, addr)
	s.run()
	for _, id := range []string{"a", "b", "c", "d"} {
		s.tenant(id, "plan", "pro")
		s.put("sk_"+id, "tenant", id, "id", "key-"+id)
	}
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 500 {
				if got := s.who("sk_" + id); got != id+"/key-"+id+" pro" {
					t.Errorf("%s is %q", id, got)
				}
			}
		})
	}
	for range 200 {
		s.c.Publish(context.Background(), Channel, "*")
	}
	wg.Wait()
}
