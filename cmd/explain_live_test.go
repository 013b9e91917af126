package cmd

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
)

// explain --live tells what the running service would say, with its counters and what
// operators changed, and changes nothing.
func TestExplainLive(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) string{
		"embedded": func(*testing.T) string { return "embedded:sluice.db" },
		"redis":    func(t *testing.T) string { return "redis://" + limittest.StartServer(t).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := operatedSite(t)
			s := serveIn(t, dir, "--store", store(t))
			wants := func(when string, parts ...string) {
				t.Helper()
				out := s.must(t, dir, "explain", "--live", "--key", "acme-web", "/v1/x")
				for _, part := range parts {
					if !strings.Contains(out, part) {
						t.Errorf("%s: no %q in\n%s", when, part, out)
					}
				}
			}
			wants("untouched", "+ daily  3/month: takes 1 unit, 2 left", "the application's")
			if got := s.asks(t); got != "allow" {
				t.Fatal(got)
			}
			for range 3 { // it charges nothing
				wants("after one request", "takes 1 unit, 1 left")
			}
			s.asks(t)
			s.asks(t)
			wants("used up", "x daily  3/month: has no room for 1 unit, 0 left", "402")
			until := time.Now().UTC().AddDate(0, 0, 3).Format(time.DateOnly)
			s.must(t, dir, "grant", "acme", "daily", "--add", "5", "--until", until, "--reason", "launch")
			wants("after a grant", "takes 1 unit, 4 left")
			s.must(t, dir, "block", "acme", "--until", "1h", "--reason", "abuse")
			wants("blocked", "403", "disabled")
			s.must(t, dir, "unblock", "acme", "--reason", "sorry")
			if out := s.must(t, dir, "usage", "acme"); !strings.Contains(out, "3     8   5") {
				t.Errorf("usage:\n%s", out)
			}
			if metrics := ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body; !strings.Contains(metrics, `sluice_requests_total{plan="free",route="rest",verdict="allow"} 3`) {
				t.Errorf("explaining is counted:\n%s", metrics)
			}

			out := s.must(t, dir, "explain", "--live", "-H", "X-API-Key: sk_demo_acme_web", "/v1/x?a=b", "--format", "json")
			if !strings.Contains(out, `"text": "is key acme-web of tenant acme"`) || strings.Contains(out, "sk_demo_acme_web") {
				t.Errorf("with a credential:\n%s", out)
			}
			for _, c := range []struct{ want, args string }{
				{`the policy has no key "nobody"`, "--key nobody /"},
				{"ip \"x\"; want an address", "--ip x /"},
				{"--live wants the URL of a request", "--tenant acme"},
				{"--times is not for --live", "--times 3 /"},
				{"want a URL alone", filepath.Join(dir, "policy.yaml") + " /"},
			} {
				if out, code := s.verb(t, dir, append([]string{"explain", "--live"}, strings.Fields(c.args)...)...); code == exitOK || !strings.Contains(out, c.want) {
					t.Errorf("%s: status %d\n%s", c.args, code, out)
				}
			}
		})
	}
}
