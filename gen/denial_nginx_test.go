package gen

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

const keyedPolicy = `version: 1
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 2/s, burst: 10}}}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: rest, match: {prefix: /}}
responses:
  headers: [ratelimit, x-ratelimit]
  messages:
    en: 'Costs $5? Try again in {retry_after} s, "friend".'
    de: "Zu viel: in {retry_after} s wieder."
  support_url: "https://example.com/limits?a=1&b=$x"
`

// TestDenials: each denial of the service has its true status at the client,
// headers and a body (C001, C009), and the application's own errors are its own.
func TestDenials(t *testing.T) {
	t.Parallel()
	s := start(t, keyedPolicy)
	deny := gentest.Answer{}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return deny })
	for _, status := range []int{402, 403, 429, 451, 503} {
		deny = gentest.Deny(status, "Retry-After", "7", "X-Sluice-Limit", "speed", "X-Sluice-Reason", "rate",
			"RateLimit", `"speed";r=0;t=7`, "X-RateLimit-Limit", "10")
		got := s.get("/file.gif", "Accept", "*/*")
		if got.status != status {
			t.Fatalf("a denial with %d is %d at the client", status, got.status)
		}
		for name, want := range map[string]string{
			"Retry-After": "7", "X-Sluice-Limit": "speed", "X-Sluice-Reason": "rate", "RateLimit": `"speed";r=0;t=7`,
			"X-Ratelimit-Limit": "10", "Content-Type": "application/problem+json", "Cache-Control": "no-store", "Vary": "Accept, Accept-Language, Origin",
		} {
			if v := got.header.Values(name); len(v) != 1 || v[0] != want {
				t.Errorf("%d: header %s is %q; want %q once", status, name, v, want)
			}
		}
		var body struct {
			Type, Title, Detail, Limit, Reason, Support string
			Status                                      int
			RetryAfter                                  int `json:"retry_after"`
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Fatalf("%d: the body is no JSON: %v\n%s", status, err, got.body)
		}
		if body.Status != status || body.RetryAfter != 7 || body.Detail != `Costs $5? Try again in 7 s, "friend".` ||
			body.Limit != "speed" || body.Support != "https://example.com/limits?a=1&b=$x" {
			t.Errorf("%d: the body says %+v", status, body)
		}
	}
	if n := len(s.app.Requests()); n != 0 {
		t.Errorf("the application saw %d denied requests (C019)", n)
	}

	html := s.get("/", "Accept", "text/html,*/*;q=0.8", "Accept-Language", "fr, de;q=0.8, en;q=0.5")
	if !strings.Contains(html.body, "Zu viel: in 7 s wieder.") || html.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("a browser got %+v", html)
	}
	if head := s.do("HEAD", "/", nil); head.status != 503 || head.body != "" || head.header.Get("Retry-After") != "7" {
		t.Errorf("HEAD got %+v", head)
	}

	// Without a time to wait nothing speaks of waiting.
	deny = gentest.Deny(403, "X-Sluice-Reason", "plan")
	if got := s.get("/"); got.header.Get("Retry-After") != "" || strings.Contains(got.body, "again") || !json.Valid([]byte(got.body)) {
		t.Errorf("a denial without waiting got %+v", got)
	}
	deny = gentest.Answer{Code: 401, Headers: map[string]string{"WWW-Authenticate": `Bearer realm="x"`}}
	if got := s.get("/"); got.status != 401 || !slices.Equal(got.header.Values("WWW-Authenticate"), []string{`Bearer realm="x"`}) ||
		!strings.Contains(got.body, `"detail":"A valid credential is needed."`) || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a 401 of the service got %+v (C009)", got)
	}
	s.noWarnings()
}

// TestAllowed: what the service says of limits is on every answer of the
// application, in place of the application's own (C009, C106), and its errors
// pass untouched.
func TestAllowed(t *testing.T) {
	t.Parallel()
	s := start(t, keyedPolicy)
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Answer{Headers: map[string]string{"RateLimit": `"speed";r=2;t=1`, "X-Sluice-Tenant": "acme", "X-Sluice-Plan": "pro", "X-Sluice-Priority": "high"}}
	})
	for _, status := range []string{"200", "403", "404", "429", "500", "503"} {
		got := s.get("/x?status=" + status)
		if got.body != "app GET /x?status="+status+" body=0\n" || http.StatusText(got.status) == "" {
			t.Errorf("the application's own %s got %+v", status, got)
		}
		if v := got.header.Values("RateLimit"); !slices.Equal(v, []string{`"speed";r=2;t=1`}) {
			t.Errorf("with %s RateLimit is %q (C106)", status, v)
		}
		if got.header.Get("Retry-After") != "" || got.header.Get("Cache-Control") != "" {
			t.Errorf("with %s the answer looks like a denial: %v", status, got.header)
		}
	}
	s.app.Requests()
	s.get("/x", "X-Sluice-Tenant", "evil", "X-Sluice-Plan", "evil", "X-API-Key", "k1", "X-API-Key", "k2", "X-Sluice-Exempt", "1", "X-Sluice-Ip", "6.6.6.6")
	h := s.app.Requests()[0]
	if h.Get("X-Sluice-Tenant") != "acme" || h.Get("X-Sluice-Plan") != "pro" || h.Get("X-Sluice-Priority") != "high" {
		t.Errorf("the application was told %v", h)
	}
	_, asked := s.authz.Asked()
	q := asked[len(asked)-1]
	if got := h.Values("X-Api-Key"); len(got) != 1 || (got[0] != q.Get("X-Api-Key") && q.Get("X-Api-Key") != "!") {
		t.Errorf("the application saw the keys %q, the service %q", got, q.Get("X-Api-Key"))
	}
	if q.Get("X-Sluice-Ip") != "127.0.0.1" || q.Get("X-Sluice-Exempt") != "" || q.Get("X-Sluice-Tenant") != "" {
		t.Errorf("a client's own headers arrived: %v", q)
	}
	for _, path := range []string{"/_sluice/open/rest", "/_sluice/closed/pay", "/%5fsluice/open/rest", "//_sluice/open/x"} {
		if got := s.get(path); got.status != 404 {
			t.Errorf("%s from outside is %d; want 404", path, got.status)
		}
	}
	s.noWarnings()
}
