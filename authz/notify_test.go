package authz

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
)

const hookSecret = "hook-secret-5f2c"

// receiver is a webhook that checks what it gets as README says.
type receiver struct {
	*httptest.Server
	t      testing.TB
	mu     sync.Mutex
	status int
	events map[string][]Event // by id
	order  []string           // TYPE PERCENT
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t, status: 204, events: map[string][]Event{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 204 {
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(r.status)
		return
	}
	id, stamp := q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > time.Minute {
		r.t.Errorf("timestamp %q", stamp)
	}
	if got, want := q.Header.Get("webhook-signature"), Sign([]byte(hookSecret), id, stamp, body); got != want || q.URL.Path != "/hook" {
		r.t.Errorf("%s: signature %q, want %q", q.URL.Path, got, want)
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		r.t.Errorf("%v in %s", err, body)
	}
	r.events[id] = append(r.events[id], e)
	r.order = append(r.order, fmt.Sprint(e.Type, " ", e.Data.Percent))
	w.WriteHeader(204)
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.order, ", ")
}

func (r *receiver) await(want string) {
	r.t.Helper()
	for range 200 {
		if r.got() == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("the webhook got %q, want %q", r.got(), want)
}

// told is a site that tells a receiver.
func told(t testing.TB, to *receiver, notes limit.Notes, spool string) (s *site, end func()) {
	t.Helper()
	s = newSite(t, "")
	n := NewNotifier(NotifierOptions{
		Notes: notes, Spool: spool, Log: slog.New(slog.NewJSONHandler(s.log, nil)), SpikeEvery: 100 * time.Millisecond,
		LookupEnv: func(name string) (string, bool) { return hookSecret, name == "HOOK_SECRET" },
	})
	s.engine.notifier = n
	s.swap(`
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: nobody}}
plans:
  nobody: {limits: {few: {per: ip, quota: 1/day, notify: [50, 100]}}}
  free: {limits: {daily: {per: tenant, quota: 10/day, notify: [80, 90, 100]}}}
  keyed: {limits: {each: {per: key, quota: 2/day, notify: [100]}}}
tenants:
  - {id: acme, plan: free, keys: [{id: acme-a, sha256: hash(sk_a)}]}
  - {id: globex, plan: keyed, keys: [{id: globex-a, sha256: hash(sk_g)}, {id: globex-b, sha256: hash(sk_h)}]}
routes: [{name: rest, match: {prefix: /}}]
notifications: [{webhook: "` + to.URL + `/hook", secret_env: HOOK_SECRET}]
`)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx, s.engine) }()
	end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(end)
	return s, end
}

// Every step is told once in its period, signed, and the end of the quota too.
func TestNotifications(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	s, _ := told(t, to, &limit.MemoryNotes{}, t.TempDir())
	s.passes(7, "rest", key("sk_a"))
	s.passes(5, "rest") // nobody's tenant
	s.passes(1, "rest", key("sk_a"))
	to.await("quota.threshold 80")
	s.passes(1, "rest", key("sk_a"))
	to.await("quota.threshold 80, quota.threshold 90")
	s.passes(1, "rest", key("sk_a"))
	all := "quota.threshold 80, quota.threshold 90, quota.threshold 100"
	to.await(all)
	s.passes(9, "rest", key("sk_a"))
	to.await(all + ", quota.exhausted 100")
	s.passes(2, "rest", key("sk_g"))
	to.await(all + ", quota.exhausted 100, quota.threshold 100")
	s.clock.Advance(24 * time.Hour)
	s.passes(8, "rest", key("sk_a"))
	to.await(all + ", quota.exhausted 100, quota.threshold 100, quota.threshold 80")

	day := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	for id, events := range to.events {
		e := events[0]
		if len(events) != 1 || !strings.HasPrefix(id, "evt_") {
			t.Errorf("%s is told %d times", id, len(events))
		}
		switch {
		case e.Data.Tenant == "globex" && (e.Data.Key != "globex-a" || e.Data.Limit != "each" || e.Data.Used != 2 || e.Data.Max != 2):
			t.Errorf("a key's quota: %+v", e.Data)
		case e.Data.Tenant == "acme" && e.Data.Percent == 90 && (e.Data.Key != "" || e.Data.Used != 9 || e.Data.Max != 10 || e.Data.Plan != "free" || !e.Data.Start.Equal(day) || !e.Data.End.Equal(day.AddDate(0, 0, 1))):
			t.Errorf("a tenant's quota: %+v", e.Data)
		case e.Data.Tenant != "acme" && e.Data.Tenant != "globex":
			t.Errorf("of whom? %+v", e.Data)
		}
	}
	if strings.Contains(s.logged(), hookSecret) {
		t.Error("the secret is in the log")
	}
}

// A receiver that is away, or refuses, gets it later; what is not told when the
// service ends is told by the next; nothing is told twice.
func TestNotificationsSpool(t *testing.T) {
	t.Parallel()
	to, notes, spool := newReceiver(t), &limit.MemoryNotes{}, t.TempDir()
	to.answers(302) // a redirect is not followed
	s, end := told(t, to, notes, spool)
	s.passes(8, "rest", key("sk_a"))
	waitFor(t, "a file in the spool", func() bool { list, _ := os.ReadDir(spool); return len(list) == 1 })
	s.passes(1, "rest", key("sk_a"))
	end()
	list, err := os.ReadDir(spool)
	if err != nil || len(list) != 2 {
		t.Fatalf("the spool has %v, %v; want two files", list, err)
	}
	for _, f := range list {
		data, err := os.ReadFile(spool + "/" + f.Name())
		if err != nil || strings.Contains(string(data), hookSecret) || strings.Contains(string(data), to.URL) {
			t.Errorf("%s: %v, %s", f.Name(), err, data)
		}
	}
	if err := os.WriteFile(spool+"/broken.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := to.got(); got != "" {
		t.Errorf("told %q to a receiver that refuses", got)
	}
	to.answers(204)
	next, _ := told(t, to, &limit.MemoryNotes{}, spool) // the claims of the first are over by then
	to.await("quota.threshold 80, quota.threshold 90")
	waitFor(t, "an empty spool", func() bool { list, _ := os.ReadDir(spool); return len(list) == 1 })
	if next.engine.notifier.waiting.Load() != 0 {
		t.Error("something still waits")
	}
}

// Two instances that see the same tell it once.
func TestNotificationsOnce(t *testing.T) {
	t.Parallel()
	to, notes := newReceiver(t), &limit.MemoryNotes{}
	one, _ := told(t, to, notes, t.TempDir())
	other, _ := told(t, to, notes, t.TempDir())
	for _, s := range []*site{one, other} {
		s.passes(8, "rest", key("sk_a"))
	}
	to.await("quota.threshold 80")
	waitFor(t, "both to be done", func() bool {
		return one.engine.notifier.waiting.Load()+other.engine.notifier.waiting.Load() == 0
	})
	if got := to.got(); got != "quota.threshold 80" {
		t.Errorf("told %q", got)
	}
}

func TestNotificationsOfSpikes(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	s, _ := told(t, to, &limit.MemoryNotes{}, t.TempDir())
	s.passes(spikeLeast+20, "rest", key("sk_g")) // 2 pass
	waitFor(t, "a spike", func() bool { return strings.Contains(to.got(), EventSpike) })
	s.passes(spikeLeast+20, "rest", key("sk_g"))
	time.Sleep(300 * time.Millisecond)
	if n := strings.Count(to.got(), EventSpike); n != 1 {
		t.Errorf("told %d times in an hour", n)
	}
}

// What is usual is no spike, nor a little more of it.
func TestSpikes(t *testing.T) {
	t.Parallel()
	s := newSite(t, sold)
	b := s.engine.state.Load()
	var x spikes
	now := s.clock.Now()
	look := func(denied uint64) int {
		t.Helper()
		b.meters[0].denied.Add(denied)
		now = now.Add(time.Minute)
		return len(x.look(b, now))
	}
	for range 60 {
		if look(spikeLeast-1) != 0 {
			t.Fatal("few denials are a spike")
		}
	}
	if look(5*spikeLeast) != 0 {
		t.Error("five times as many are a spike")
	}
	if look(20*spikeLeast) != 1 {
		t.Error("twenty times as many are none")
	}
	if look(200*spikeLeast) != 0 {
		t.Error("told twice in an hour")
	}
	s.swap(sold)
	b = s.engine.state.Load()
	if look(1) != 0 || x.past[metered{id: "acme"}].total != 1 {
		t.Errorf("after a reload: %+v", x.past[metered{id: "acme"}])
	}
}

// A secret that is not there stops the policy, not the service.
func TestNotificationsWithoutSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t, sold)
	s.engine.notifier = NewNotifier(NotifierOptions{Notes: &limit.MemoryNotes{}, LookupEnv: func(string) (string, bool) { return "", false }})
	before := s.engine.Policy()
	err := s.engine.Swap(compile(t, sold+"notifications: [{webhook: \"https://hooks.example/x\", secret_env: NOT_SET}]\n"))
	if err == nil || !strings.Contains(err.Error(), "$NOT_SET is not set") || s.engine.Policy() != before {
		t.Errorf("error %v", err)
	}
}

// Notices that find no room come again; they cost no memory while nothing is new.
func TestNotices(t *testing.T) {
	t.Parallel()
	n := newNotices()
	start := time.Now()
	slot, old, fresh := n.claim([]byte("a"), start, 80)
	if !fresh {
		t.Fatal("nothing is new")
	}
	slot.Store(old)
	if _, _, fresh := n.claim([]byte("a"), start, 80); !fresh {
		t.Error("what was given back is not new")
	}
	for _, step := range []int{80, 50} {
		if _, _, fresh := n.claim([]byte("a"), start, step); fresh {
			t.Errorf("step %d is new", step)
		}
	}
	for i := range 3 {
		if _, _, fresh := n.claim([]byte("a"), start, exhausted); fresh != (i == 0) {
			t.Errorf("exhausted, time %d: new %t", i, fresh)
		}
	}
	if _, _, fresh := n.claim([]byte("a"), start.Add(time.Hour), 80); !fresh {
		t.Error("the next period is not new")
	}
	for i := range 4 * noticeSets * noticeWays { // more than there is room for
		n.claim([]byte(strconv.Itoa(i)), start, 80)
	}
	if _, _, fresh := n.claim([]byte("one more"), start, 80); !fresh {
		t.Error("a full table knows what it never saw")
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}
