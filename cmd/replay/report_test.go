package replay

import (
	"fmt"
	"strings"
	"testing"

	"sluice/cmd/accesslog"
)

// TestUnsaid: what the policy looks at and no line says is told, with who looks.
func TestUnsaid(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, "common", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /v1 HTTP/1.1" 200 1`)
	all := strings.Join(r.Notes, "\n")
	for _, want := range []string{
		"whole seconds", // C116: the resolution
		"no line says $http_x_api_key, which identity.sources[0] looks at: taken as absent",
		"no line says $http_user_agent, which edge.access.bots looks at",
		"no line says $http_x_forwarded_for: $remote_addr is taken for the client",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("notes lack %q:\n%s", want, all)
		}
	}
}

// TestRefusedThen: what had been refused already is told: clients come again.
func TestRefusedThen(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full, strings.Replace(hit(0, "192.0.2.1", "GET /v1/a", "-", "-"), " 200 ", " 429 ", 1))
	if !strings.Contains(strings.Join(r.Notes, "\n"), "1 request had been answered 429 when they were logged") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestSoftQuota is C100: the report says what may pass beyond a soft quota.
func TestSoftQuota(t *testing.T) {
	c := compiled(t, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {monthly: {per: ip, quota: 1/month, accounting: soft}}}}
`)
	r := run(t, Options{Policy: c}, full, hit(0, "192.0.2.1", "GET /", "-", "-"), hit(1, "192.0.2.1", "GET /", "-", "-"))
	wantDenials(t, r.Denials, "1 of 1: monthly (plan free), since 03:04:06 at 2, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "plans.free.limits.monthly is counted softly") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestSuggestions: what is suggested would have let everybody pass, and not much more.
func TestSuggestions(t *testing.T) {
	const policy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {speed: {per: ip, rate: %s, burst: %d}}}}
routes: [{name: all, match: {prefix: /}, cost: 3}]
`
	var lines []string
	for minute := range 30 {
		for i := range 10 + minute%3 { // a second apart, at the beginning of a minute
			lines = append(lines, hit(float64(60*minute+i), "192.0.2.1", "GET /", "-", "-"))
		}
	}
	r := run(t, Options{Policy: compiled(t, fmt.Sprintf(policy, "1/m", 3))}, full, lines...)
	var s *Suggestion
	for i := range r.Suggestions {
		if r.Suggestions[i].Route == "all" {
			s = &r.Suggestions[i]
		}
	}
	if s == nil || s.Whom() != "each client, plan free" || s.Demand.P999 != 36 || s.Rate != "44/m" || s.Burst != 36 {
		t.Fatalf("suggestions: %+v", r.Suggestions)
	}
	r = run(t, Options{Policy: compiled(t, fmt.Sprintf(policy, s.Rate, s.Burst))}, full, lines...)
	if len(r.Denials) > 0 {
		t.Errorf("what is suggested denies %+v", r.Denials)
	}
}

// TestBounded is C120: shapes of paths are few, whatever clients send.
func TestBounded(t *testing.T) {
	var p paths
	for i := range 3 * maxPaths {
		p.add(fmt.Sprintf("/x%c%c%c%c/%d?%d", 'g'+i%10, 'g'+i/10%10, 'g'+i/100%10, 'g'+i/1000, i, i))
	}
	if len(p.count) != maxPaths || p.rest == 0 {
		t.Errorf("%d shapes, %d beyond", len(p.count), p.rest)
	}
	r := &runner{tally: newTally(compiled(t, twoFloors), false)}
	r.tally.paths = p
	n := notes{runner: r}
	if n.bounds(); len(n.list) != 1 || !strings.Contains(n.list[0], "20,000 requests fit no route and none of the 10,000 shapes") {
		t.Errorf("notes: %q", n.list)
	}
	for path, want := range map[string]string{
		"/": "/", "/a/b?x#y": "/a/b", "/v1/items/4711": "/v1/items/*", "http://x.example/a/b": "/a/b", "http://x.example": "/",
		"/a/b/c/d/e/f": "/a/b/c/d/...", "/u/anna@example.com": "/u/*", "/x/<script>": "/x/*", "/%41": "/*", "/k/deadbeef": "/k/*", "/k/cafe": "/k/cafe",
		"/a//b/": "/a//b/", "/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9": "/t/*",
	} {
		if got := p.shapeOf(path); got != want {
			t.Errorf("%s is shown as %s; want %s", path, got, want)
		}
	}
}

// TestTimeline: buckets grow with the log and lose nothing.
func TestTimeline(t *testing.T) {
	tl := timeline{}
	total := int64(0)
	r := &runner{}
	for at := int64(1796094245); at < 1796094245+9*86400; at += 61 {
		tl.add(&item{runner: r, at: at * micros})
		total++
	}
	sum := int64(0)
	for _, b := range tl.buckets {
		sum += b.Requests
	}
	if sum != total || len(tl.buckets) > maxBuckets || tl.step() != 3600 {
		t.Errorf("%d of %d in %d buckets of %d s", sum, total, len(tl.buckets), tl.step())
	}
}

// TestHistogram: percentiles are exact below 16 and an eighth too large at most.
func TestHistogram(t *testing.T) {
	var h histogram
	for v := range int64(10_000) {
		h.add(v + 1)
	}
	for perMille, want := range map[int64]int64{500: 5000, 990: 9900, 999: 9990, 1: 10} {
		if got := h.at(perMille); got < want || got > want+want/8+1 {
			t.Errorf("p%d is %d; want %d", perMille, got, want)
		}
	}
	for v := int64(1); v < 1<<40; v = v*3/2 + 1 {
		if i := slotOf(v); top(i) < v || i > 0 && top(i-1) >= v {
			t.Errorf("%d is in slot %d, up to %d", v, i, top(i))
		}
	}
}

func TestEmpty(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, "combined")
	var out strings.Builder
	if err := r.WriteText(&out, Style{Width: 80}); err != nil || !strings.Contains(out.String(), "no request was replayed") {
		t.Errorf("%v %s", err, out.String())
	}
	if err := r.WritePage(&out); err != nil {
		t.Error(err)
	}
	_, err := Run(Options{Policy: compiled(t, twoFloors), Format: format(t, "combined"), Sources: []accesslog.Source{{Name: "x", Reader: strings.NewReader("nonsense\n")}}})
	if err == nil || !strings.Contains(err.Error(), "cannot read any of 1 lines; x:1 not written as the log format says") {
		t.Errorf("nonsense: %v", err)
	}
}
