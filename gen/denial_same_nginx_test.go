package gen

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"sluice/gen/gentest"
	"sluice/policies/denial"
)

// TestDenialsAlike: NGINX, by what is rendered, and the service, which answers other
// proxies itself, say the same to the byte of a denial, whatever the client accepts.
func TestDenialsAlike(t *testing.T) {
	t.Parallel()
	const messages = `messages: {en: 'Wait {retry_after} s, "friend": <$5>', de: "Zu viel.", pt-BR: "br {retry_after}", zh: "zh {retry_after}", zh-TW: "tw {retry_after} {retry_after}"}, `
	denials := []denial.Denial{
		{Status: 429, Reason: "rate", Limit: "speed", Retry: 3},
		{Status: 429, Reason: "quota", Limit: "daily"},
		{Status: 402, Reason: "quota", Limit: "monthly", Retry: 86400},
		{Status: 403, Reason: "concurrency", Limit: "jobs", Retry: 1},
		{Status: 403, Reason: "plan"}, {Status: 403, Reason: "disabled"}, {Status: 403, Reason: "address"},
		{Status: 403, Reason: "too_large", Limit: "speed"}, {Status: 403},
		{Status: 429, Retry: 2}, {Status: 402}, {Status: 451, Reason: "access"},
		{Status: 503, Reason: "store_down", Retry: 1}, {Status: 503, Reason: "overload", Limit: "speed", Retry: 1},
		{Status: 429, Reason: "simulate", Limit: "speed", Retry: 9},
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	list := func(element func() string) string {
		parts := make([]string, random.IntN(5))
		for i := range parts {
			parts[i] = pick("", " ", "  ") + element() + pick("", "", " ")
		}
		return strings.Join(parts, ",")
	}
	quality := func() string {
		return pick("", "", ";q=1", ";q=1.0", ";q=1.5", "; q=0.9", ";q=0.85", " ; q=.3", ";Q=0.05", ";q=0", ";q=0.0", ";q=0.", ";q=x", ";q=0.1.2", ";level=1", ";q=0.7;x=1", ";q=")
	}
	for _, policy := range []string{
		"responses: {" + messages + "body: problem+json}", "responses: {" + messages + "body: json, support_url: 'https://a.example/?b=1&c=2%22'}",
		"responses: {" + messages + "body: text, support_url: 'https://a.example/?b=1'}", "responses: {support_url: 'https://a.example/?b=1&c=2'}",
	} {
		policy = keyedPolicy[:strings.Index(keyedPolicy, "responses:")] + policy + "\n"
		s, w := start(t, policy), denial.NewWriter(&compiled(t, policy).Responses)
		for i := range 300 {
			d := denials[i%len(denials)]
			accept := list(func() string {
				return pick("text/html", "TEXT/html", "*/*", "application/json", "application/problem+JSON", "image/avif", "text/htmlx", "x/y") + quality()
			})
			language := list(func() string {
				return pick("en", "de", "DE-at", "pt", "pt-br", "pt-PT", "zh", "zh-tw", "zh-TW-x", "zh-CN", "fr", "*", "den") + quality()
			})
			fields := []string{"X-Sluice-Reason", d.Reason, "X-Sluice-Limit", d.Limit}
			if d.Retry > 0 {
				fields = append(fields, "Retry-After", strconv.FormatInt(d.Retry, 10))
			}
			s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(d.Status, fields...) })
			got, want := s.get("/", "Accept", accept, "Accept-Language", language), w.Write(d, accept, language)
			if got.status != d.Status || got.body != string(want.Text) || got.header.Get("Content-Type") != want.Type || got.header.Get("Content-Language") != string(want.Language) {
				t.Fatalf("%+v to Accept %q, Accept-Language %q:\nNGINX   %d %s %s %q\nservice %d %s %s %q", d, accept, language,
					got.status, got.header.Get("Content-Type"), got.header.Get("Content-Language"), got.body,
					d.Status, want.Type, want.Language, want.Text)
			}
		}
		s.nginx.Stop()
	}
}
