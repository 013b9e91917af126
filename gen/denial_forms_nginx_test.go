package gen

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// TestWords: a message of the policy speaks of limits; all else that is refused
// says what it is (C001).
func TestWords(t *testing.T) {
	t.Parallel()
	s := start(t, keyedPolicy+"edge: {access: [{name: law, deny: all, status: 451, when: {query: {q: '^law$'}}}, {name: no, deny: all, when: {query: {q: '^no$'}}}], limits: {one: {per: ip, rate: 1/m, burst: 1, when: {query: {q: '^edge$'}}}}}\n")
	deny := gentest.Answer{}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return deny })
	for _, f := range []struct {
		path   string
		answer gentest.Answer
		detail string
		limit  string
	}{
		{"/", gentest.Deny(429, "Retry-After", "3", "X-Sluice-Reason", "rate", "X-Sluice-Limit", "speed"), `Costs $5? Try again in 3 s, "friend".`, "speed"},
		{"/", gentest.Deny(403, "Retry-After", "3", "X-Sluice-Reason", "quota", "X-Sluice-Limit", "daily"), `Costs $5? Try again in 3 s, "friend".`, "daily"},
		{"/", gentest.Deny(429, "X-Sluice-Reason", "rate", "X-Sluice-Limit", "speed"), "There were too many requests.", "speed"},
		{"/", gentest.Deny(402, "X-Sluice-Reason", "quota", "X-Sluice-Limit", "monthly"), "The quota is used up.", "monthly"},
		{"/", gentest.Deny(403, "X-Sluice-Reason", "plan"), "Your plan does not include this.", ""},
		{"/", gentest.Deny(403, "X-Sluice-Reason", "disabled"), "This account is disabled.", ""},
		{"/", gentest.Deny(403, "X-Sluice-Reason", "address"), "This credential may not be used from your address.", ""},
		{"/", gentest.Deny(403, "X-Sluice-Reason", "credential"), "This credential is not accepted here.", ""},
		{"/", gentest.Deny(403, "X-Sluice-Reason", "too_large"), "This request costs more than its limit can ever hold.", ""},
		{"/", gentest.Deny(503, "Retry-After", "1", "X-Sluice-Reason", "store_down"), "The service cannot answer at the moment. Please try again.", ""},
		{"/", gentest.Deny(429, "Retry-After", "1", "X-Sluice-Reason", "overload"), "There were too many requests.", ""},
		{"/pay", gentest.Answer{Code: 500, Bare: true}, "The service cannot answer at the moment. Please try again.", ""},
		{"/?q=law", gentest.Answer{}, "This is not available where you are, for legal reasons.", ""},
		{"/?q=no", gentest.Answer{}, "Your network or client is not allowed here.", ""},
		{"/?q=edge", gentest.Answer{}, "", ""},
		{"/?q=edge", gentest.Answer{}, `Costs $5? Try again in 60 s, "friend".`, "one"},
	} {
		deny = f.answer
		got := s.get(f.path)
		if f.detail == "" {
			continue
		}
		var body struct {
			Type, Detail, Limit string
			Violated            []string `json:"violated-policies"`
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Errorf("%s: %v: %s", f.path, err, got.body)
		}
		want := []string{f.limit}
		if f.limit == "" {
			want = nil
		}
		if body.Detail != f.detail || body.Limit != f.limit || !slices.Equal(body.Violated, want) || got.header.Get("X-Sluice-Limit") != f.limit {
			t.Errorf("%s with %v says %s", f.path, f.answer, got.body)
		}
		if quota := got.status == 429 || got.status == 402; quota != strings.HasSuffix(body.Type, "#quota-exceeded") {
			t.Errorf("%d has the type %s", got.status, body.Type)
		}
	}
	s.noWarnings()
}

// TestLanguages: by what the client likes best, not by what he says first.
func TestLanguages(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
edge: {limits: {one: {per: global, rate: 1/m, burst: 1, expect: 1}}}
responses: {body: text, messages: {en: "en {retry_after}", de: "de {retry_after}", pt-BR: "br {retry_after}", zh: "zh {retry_after}", zh-TW: "tw {retry_after}"}}
`)
	s.get("/")
	for accept, want := range map[string]string{
		"":                                 "en",
		"de":                               "de",
		"DE-at":                            "de",
		"den":                              "en",
		"fr, de":                           "de",
		"en;q=0.1, de":                     "de",
		"en;q=0.1,de;q=0.9":                "de",
		"de;q=0.5, en;q=0.7":               "en",
		"de; q=0.8 , en ; q=0.8":           "de",
		"en, de":                           "en",
		"fr;q=1.0, de;q=0.01, en;q=0":      "de",
		"de;q=0":                           "en",
		"pt":                               "br",
		"pt-br":                            "br",
		"pt-PT":                            "en",
		"zh-tw":                            "tw",
		"zh-TW, zh;q=0.9":                  "tw",
		"zh-CN, zh-TW;q=0.9":               "zh",
		"*":                                "en",
		"de;q=0.3, *;q=0.2":                "de",
		"de;q=0.3, *":                      "en",
		strings.Repeat("fr,", 2000) + "de": "de",
		"de;q=x":                           "en",
	} {
		got := s.get("/", "Accept-Language", accept)
		tag := map[string]string{"br": "pt-BR", "tw": "zh-TW"}[want]
		if tag == "" {
			tag = want
		}
		if got.status != 429 || !strings.Contains(got.body, want+" 60\n") || got.header.Get("Content-Language") != tag {
			t.Errorf("%.60q is %d and told %q in %s; want %s", accept, got.status, got.body, got.header.Get("Content-Language"), tag)
		}
	}
	s.noWarnings()
}

// TestPage: who asks for HTML is given a page, who asks for JSON is not.
func TestPage(t *testing.T) {
	t.Parallel()
	s := start(t, keyedPolicy)
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, "Retry-After", "3", "X-Sluice-Reason", "rate")
	})
	for accept, page := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"TEXT/HTML":                           true,
		"image/avif, text/html":               true,
		"text/html;q=0.9":                     true,
		"text/html, application/json;q=0.5":   true,
		"":                                    false,
		"*/*":                                 false,
		"application/json, text/plain, */*":   false,
		"application/problem+json, text/html": false,
		"application/json, text/html;q=0.5":   false,
		"text/html;q=0":                       false,
		"text/html;q=0.0, */*":                false,
		strings.Repeat("a/b,", 1500) + "text/html": true,
	} {
		got := s.get("/x.json", "Accept", accept, "Accept-Language", "de")
		if got.status != 429 || (got.header.Get("Content-Type") == "text/html; charset=utf-8") != page {
			t.Errorf("%.60q is given %q", accept, got.header.Get("Content-Type"))
		}
		if page && (!strings.Contains(got.body, `<html lang="de">`) || !strings.Contains(got.body, `<p lang="de">Zu viel: in 3 s wieder.</p>`) ||
			!strings.Contains(got.body, `<a href="https://example.com/limits?a=1&amp;b=$x">`) || !strings.Contains(got.body, "prefers-color-scheme:dark")) {
			t.Errorf("the page is %s", got.body)
		}
	}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(403, "X-Sluice-Reason", "plan") })
	if got := s.get("/", "Accept", "text/html", "Accept-Language", "de"); !strings.Contains(got.body, `<html lang="en">`) || !strings.Contains(got.body, `<p lang="en">Your plan does not include this.</p>`) {
		t.Errorf("a sentence of ours is %s", got.body)
	}
}

// TestLongTexts: messages and links that are longer than NGINX's longest
// argument, with everything in them that wants escaping.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`ж"$<&%`, 560)
	link := "https://example.com/?" + strings.Repeat("a=1&", 500)
	for _, body := range []string{"problem+json", "json", "text"} {
		s := start(t, "version: 1\nedge: {limits: {one: {per: global, rate: 1/m, burst: 1, expect: 1}}}\nresponses: {body: "+body+", support_url: '"+link+"', messages: {ru: '"+long+"', en: short}}\n")
		s.get("/")
		got := s.get("/")
		if body == "text" {
			if want := "Too Many Requests\n" + long + "\n" + link + "\n"; got.body != want {
				t.Errorf("text is %.200q", got.body)
			}
		} else {
			var m map[string]any
			if err := json.Unmarshal([]byte(got.body), &m); err != nil {
				t.Fatal(err)
			}
			if text := m[map[string]string{"json": "message", "problem+json": "detail"}[body]]; text != long || m["support"] != link {
				t.Errorf("%s is %.300q", body, got.body)
			}
		}
		if got := s.get("/", "Accept", "text/html"); strings.Count(got.body, `ж&#34;$&lt;&amp;%`) != 560 || strings.Count(got.body, "a=1&amp;") != 1000 {
			t.Errorf("the page is %.200q", got.body)
		}
		if got := s.do("HEAD", "/", nil); got.status != 429 || got.body != "" {
			t.Errorf("HEAD is %+v", got)
		}
		s.noWarnings()
		s.nginx.Stop()
	}
}

// TestGRPC: clients of gRPC read the status that they know, from headers alone,
// over HTTP/2.
func TestGRPC(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	call := func(method, path, kind string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+s.h2+path, strings.NewReader("\x00\x00\x00\x00\x00"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Header.Set("TE", "trailers")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if text, err := io.ReadAll(resp.Body); err != nil || (resp.Header.Get("Grpc-Status") != "" && len(text) > 0) {
			t.Errorf("%s with %s has the body %q, %v", path, kind, text, err)
		}
		return resp
	}
	for _, f := range []struct {
		answer  gentest.Answer
		path    string
		status  string
		message string
	}{
		{gentest.Deny(429, "Retry-After", "3", "X-Sluice-Reason", "rate"), "/api/x", "8", "Noch 3 s: 100 % zu früh…\nbitte"},
		{gentest.Deny(402, "X-Sluice-Reason", "quota"), "/api/x", "8", "The quota is used up."},
		{gentest.Deny(403, "X-Sluice-Reason", "plan"), "/api/x", "7", "Your plan does not include this."},
		{gentest.Answer{Code: 401, Headers: map[string]string{"WWW-Authenticate": "Bearer"}}, "/api/x", "16", "A valid credential is needed."},
		{gentest.Answer{Code: 500, Bare: true}, "/pay/x", "14", "The service cannot answer at the moment. Please try again."},
	} {
		s.authz.Answers(func(string, http.Header) gentest.Answer { return f.answer })
		for _, kind := range []string{"application/grpc", "application/grpc+proto", "application/grpc-web+proto", "application/grpc-web-text", "Application/GRPC"} {
			resp := call("POST", f.path, kind)
			message, err := url.PathUnescape(resp.Header.Get("Grpc-Message"))
			if resp.ProtoMajor != 2 || resp.StatusCode != 200 || resp.Header.Get("Grpc-Status") != f.status || err != nil || message != f.message ||
				!slices.Equal(resp.Header.Values("Content-Type"), []string{kind}) || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%v with %s gave %d %v", f.answer, kind, resp.StatusCode, resp.Header)
			}
		}
		if n := len(s.app.Requests()); n != 0 {
			t.Fatalf("the application saw %d denied requests", n)
		}
		for _, other := range [][2]string{{"POST", "application/json"}, {"GET", "application/grpc"}, {"POST", "application/grpcx"}, {"POST", "text/application/grpc"}} {
			if resp := call(other[0], f.path, other[1]); resp.StatusCode < 400 || resp.Header.Get("Grpc-Status") != "" {
				t.Errorf("%v gave %d %v", other, resp.StatusCode, resp.Header)
			}
		}
	}
	s.authz.Answers(nil)
	if resp := call("POST", "/api/x", "application/grpc"); resp.StatusCode != 200 || resp.Header.Get("Grpc-Status") != "" {
		t.Errorf("an allowed call gave %d %v", resp.StatusCode, resp.Header)
	}
	s.noWarnings()
}

// TestCrossOrigin: scripts of another origin can read a denial, once and where
// the site does not say itself who may; the site's own answers are as they were.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	const site = `
server {
  listen LISTEN; server_name plain;
  include sluice/server.conf;
  location / { include sluice/routes/all.conf; proxy_pass http://APP; }
}
server {
  listen LISTEN; server_name cors;
  add_header Access-Control-Allow-Origin https://only.example always;
  add_header Access-Control-Expose-Headers X-Mine always;
  include sluice/server.conf;
  location / { include sluice/routes/all.conf; proxy_pass http://APP; }
}`
	s := startOwn(t, strings.Replace(keyedPolicy, "  - {name: rest, match: {prefix: /}}", "  - {name: all, match: {prefix: /}}", 1), site, nil)
	check := func(host, origin, allow, expose string, denied bool) {
		t.Helper()
		got := s.get("/x?status=403", "Host", host, "Origin", origin)
		h := got.header
		if !slices.Equal(h.Values("Access-Control-Allow-Origin"), nonempty(allow)) {
			t.Errorf("%s from %.40q: Access-Control-Allow-Origin is %q; want %q", host, origin, h.Values("Access-Control-Allow-Origin"), allow)
		}
		if e := h.Values("Access-Control-Expose-Headers"); len(e) > 1 || !strings.HasPrefix(h.Get("Access-Control-Expose-Headers"), expose) || (expose == "" && len(e) > 0) {
			t.Errorf("%s from %.40q: Access-Control-Expose-Headers is %q; want %q", host, origin, e, expose)
		}
		if vary := strings.Contains(h.Get("Vary"), "Origin"); vary != denied {
			t.Errorf("%s from %.40q: Vary is %q", host, origin, h.Get("Vary"))
		}
	}
	const exposed = "Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit"
	check("plain", "https://a.example", "", "", false)
	check("cors", "https://a.example", "https://only.example", "X-Mine", false)
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(429, "Retry-After", "3") })
	for _, origin := range []string{"https://a.example", "http://localhost:3000", "http://[::1]:80", "null", "capacitor://localhost"} {
		check("plain", origin, origin, exposed, true)
		check("cors", origin, "https://only.example", "X-Mine", true)
	}
	for _, origin := range []string{"", "x", "https://a b", `https://a"b`, "https://a/b", "https://" + strings.Repeat("a", 300)} {
		check("plain", origin, "", "", true)
	}
	s.noWarnings()
}

func nonempty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// TestChallenge: a 401 of the service has our look and its challenge; a 401 of
// the site, of its pages and its application stays what it was.
func TestChallenge(t *testing.T) {
	t.Parallel()
	s := startOwn(t, sitePolicy, `
server {
  listen LISTEN;
  proxy_intercept_errors on; recursive_error_pages on;
  include sluice/server.conf;
  error_page 401 /login.html;
  location = /login.html { internal; add_header X-Page login always; return 401 "please log in\n"; }
  location /api/ { include sluice/routes/api.conf; proxy_pass http://APP; }
  location /pay/ { include sluice/routes/pay.conf; proxy_pass http://APP; }
  location /basic/ { include sluice/routes/docs.conf; auth_basic site; auth_basic_user_file nobody; proxy_pass http://APP; }
}`, map[string]string{"nobody": "x:{PLAIN}y\n"})
	challenge := gentest.Answer{Code: 401, Headers: map[string]string{"WWW-Authenticate": `ApiKey realm="sluice", Bearer realm="sluice"`}}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return challenge })
	if got := s.get("/pay/x"); got.status != 401 || got.header.Get("X-Sluice-Degraded") != "" || !strings.Contains(got.body, `"status":401`) {
		t.Errorf("a 401 of the service, where it fails closed, is %+v", got)
	}
	got := s.get("/api/x")
	if got.status != 401 || !slices.Equal(got.header.Values("WWW-Authenticate"), []string{challenge.Headers["WWW-Authenticate"]}) ||
		got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, `"status":401`) || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a 401 of the service is %+v", got)
	}
	if got := s.get("/api/x", "Accept", "text/html"); got.status != 401 || !strings.Contains(got.body, "<h1>Unauthorized</h1>") {
		t.Errorf("a 401 of the service is for browsers %+v", got)
	}
	s.authz.Answers(nil)
	for _, path := range []string{"/basic/x", "/api/x?status=401"} {
		got = s.get(path)
		if got.status != 401 || got.body != "please log in\n" || got.header.Get("Cache-Control") != "" || (path == "/basic/x") != (got.header.Get("WWW-Authenticate") == `Basic realm="site"`) {
			t.Errorf("the site's own 401 at %s is %+v", path, got)
		}
	}
	// What speaks in the place of the service, as a login chained behind it, keeps its 401.
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Answer{Code: 401, Bare: true, Headers: map[string]string{"WWW-Authenticate": "Login"}}
	})
	for _, path := range []string{"/api/x", "/pay/x"} {
		if got = s.get(path); got.status != 401 || got.body != "please log in\n" || got.header.Get("WWW-Authenticate") != "Login" {
			t.Errorf("a 401 at %s that is not the service's is %+v", path, got)
		}
	}
	s.noWarnings()
}

// TestOwnRefusals: what the site refuses itself has its own status and page.
func TestOwnRefusals(t *testing.T) {
	t.Parallel()
	s := startOwn(t, sitePolicy, `
limit_req_zone $host zone=own:1m rate=1r/m;
server {
  listen LISTEN;
  recursive_error_pages on;
  include sluice/server.conf;
  location /busy/ { limit_req zone=own; limit_req_status 429; proxy_pass http://APP; }
  location /never/ { deny all; }
}`, nil)
	s.get("/busy/")
	for path, want := range map[string]int{"/busy/": 429, "/never/": 403} {
		got := s.get(path, "Origin", "https://a.example")
		if got.status != want || !strings.Contains(got.body, "<center>nginx") || got.header.Get("Cache-Control") != "" || got.header.Get("X-Sluice-Reason") != "" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the site's own refusal at %s is %+v", path, got)
		}
	}
	s.noWarnings()
}
