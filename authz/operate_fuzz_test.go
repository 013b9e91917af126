package authz

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// FuzzOperations: whatever a writer sends about a tenant, the answer is no panic and
// no 500, and what is refused has changed nothing.
func FuzzOperations(f *testing.F) {
	f.Add("POST", "acme", "reset", `{"reason":"r"}`, "reason=r")
	f.Add("POST", "acme", "grants", `{"limit":"daily","add":9223372036854775807,"from":"2026-02-03","until":"2026-02-04","reason":"r"}`, "unlisted=1")
	f.Add("PUT", "%2e%2e", "block", `{"until":"2026-02-03T13:00:00Z","reason":"r"}`, "")
	f.Add("DELETE", "acme", "grants/x", "", "reason=%00")
	f.Add("GET", "acme", "usage", "", "ip=::ffff:192.0.2.1&user=\xff&key=acme-a&limit=each")
	f.Fuzz(func(t *testing.T, method, tenant, what, body, query string) {
		s := newSite(t, sold)
		admin := NewAdmin(AdminOptions{Engine: s.engine, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		path := "/v1/tenants/" + tenant + "/" + what
		u, err := url.Parse(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		u.RawQuery = query
		r := (&http.Request{Method: method, URL: u, Host: "localhost", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), RemoteAddr: "127.0.0.1:1"}).WithContext(t.Context())
		w := httptest.NewRecorder()
		problems(admin.mux).ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
		}
		terms := s.engine.ledger.of([]byte("acme"))
		if w.Code >= 400 && terms != nil {
			t.Errorf("refused with %d, and yet: %+v", w.Code, terms)
		}
		if terms.granted(s.engine.state.Load().tenants[0].rules[1].limit, time.Time{}) != 0 {
			t.Error("a grant in the year 1")
		}
	})
}
