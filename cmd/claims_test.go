package cmd

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// claim is what lint says of a site, and how it shows: the service denies all
// but what is asked with X-Allow, so that 429 is the sound answer.
type claim struct {
	rule     string // empty: the site is sound
	http     string
	server   string
	location string // lines beside the route in location /api/
	request  string // path and headers
	status   int
	has      string // a line of the answer's head, in part
	hasNot   string
	app      string // a header that the application is sent, NAME: VALUE
}

func claims() map[string]claim {
	const allow = "\r\nX-API-Key: sk_good"
	return map[string]claim{
		"sound":                     {request: "/api/x", status: 429},
		"sound and allowed":         {request: "/api/x" + allow, status: 200, has: "X-Site: 1"},
		"a front controller":        {rule: "server-rewrite", server: "if (!-e $request_filename) { rewrite ^/.* /api/index.php last; }", request: "/api/x", status: 200},
		"a break in the server":     {rule: "server-rewrite", server: "rewrite ^/_sluice/|^/api/x$ /api/y break;", request: "/api/x", status: 200},
		"an answer by the path":     {rule: "server-rewrite", server: "if ($uri !~ ^/api/) { return 200; }", request: "/api/x", status: 200},
		"a redirect by the path":    {rule: "server-rewrite", server: "if ($uri !~ ^/api/) { return 301 /api/; }", request: "/api/x" + allow, status: 500},
		"a redirect by the host":    {server: "if ($host = old.example) { return 301 http://new.example; }", request: "/api/x", status: 429},
		"a variable set twice":      {rule: "server-set", server: "set $backend one;", location: "set $backend two; add_header X-Backend $backend; include sluice/headers.conf;", request: "/api/x" + allow, status: 200, has: "X-Backend: one"},
		"a variable by the query":   {rule: "server-set", server: "set $skip 0; if ($args) { set $skip 1; }", location: "add_header X-Skip $skip; include sluice/headers.conf;", request: "/api/x?a=1" + allow, status: 200, has: "X-Skip: 0"},
		"a variable by the request": {server: "set $skip 0; if ($request_uri ~ [?]) { set $skip 1; }", location: "add_header X-Skip $skip; include sluice/headers.conf;", request: "/api/x?a=1" + allow, status: 200, has: "X-Skip: 1"},
		"a return":                  {rule: "return-first", location: "return 200;", request: "/api/x", status: 200},
		"a return by condition":     {rule: "return-first", location: "if ($http_x_debug) { return 200; }", request: "/api/x\r\nX-Debug: 1", status: 200},
		"a rewrite that leaves":     {rule: "rewrite-away", server: "location /open/ { proxy_pass http://APP; }", location: "rewrite ^ /open/ last;", request: "/api/x", status: 200},
		"a rewrite that stays":      {location: "rewrite ^/api/(.*) /$1 break;", request: "/api/x", status: 429},
		"an expression":             {rule: "regex-shadows", server: `location ~ \.php$ { proxy_pass http://APP; }`, request: "/api/x.php", status: 200},
		"a second slash":            {rule: "merge-slashes", server: "merge_slashes off; location / { proxy_pass http://APP; }", request: "//api/x", status: 200},
		"an error page":             {rule: "error-page", location: "error_page 500 /500.html;", request: "/api/x", status: 403, hasNot: "Retry-After"},
		"a header":                  {rule: "headers-dropped", location: "add_header X-Own 1;", request: "/api/x" + allow, status: 200, has: "X-Own: 1", hasNot: "RateLimit:"},
		"headers of http":           {rule: "site-headers-dropped", http: "add_header X-Http 1;", server: "NOSITE", request: "/api/x" + allow, status: 200, hasNot: "X-Http"},
		"a client's own header":     {rule: "proxy-headers", location: "proxy_set_header X-Own 1;", request: "/api/x" + allow + "\r\nX-Sluice-Tenant: me", status: 200, app: "X-Sluice-Tenant: me"},
		"no client's own header":    {location: "proxy_set_header X-Own 1; include sluice/proxy_headers.conf;", request: "/api/x" + allow + "\r\nX-Sluice-Tenant: me", status: 200, app: "X-Sluice-Tenant: "},
		"no question within":        {rule: "nested-location", location: "location /api/open/ { auth_request off; proxy_pass http://APP; }", request: "/api/open/", status: 200},
		"no access rule within":     {rule: "nested-location", location: "location /api/in/ { proxy_pass http://APP; }", request: "/api/in/" + allow + "\r\nUser-Agent: bad", status: 200},
		"satisfy any within":        {rule: "satisfy-any", location: "location /api/any/ { satisfy any; allow 127.0.0.1; deny all; proxy_pass http://APP; }", request: "/api/any/", status: 200},
		"satisfy any around":        {rule: "satisfy-any", server: "satisfy any; allow 127.0.0.1; deny all;", request: "/api/x", status: 429},
		"the site's authenticator":  {rule: "auth-request-lost", server: "auth_request /auth; location = /auth { return 403; }", request: "/api/x" + allow, status: 200},
		"a header of the client's":  {rule: "uri-injection", server: "location /old/ { return 301 http://x$uri; }", request: "/old/%0d%0aX-Evil:%201", status: 301, has: "X-Evil: 1"},
		"underscores":               {rule: "underscores", http: "underscores_in_headers on;", request: "/api/x\r\nX_API_Key: sk_good", status: 200},
	}
}

const claimsPolicy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
edge: {access: [{name: bad, deny: {user_agents: ['bad']}}]}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 5}}}}
routes:
  - {name: api, match: {prefix: /api}}
  - {name: rest, match: {prefix: /}, service: false}
`

// TestClaims: what lint warns of happens on a real NGINX, and what it is silent
// about does not.
func TestClaims(t *testing.T) {
	for name, c := range claims() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authz, app := gentest.StartAuthz(t), gentest.StartApp(t)
			authz.Answers(func(_ string, h http.Header) gentest.Answer {
				if h.Get("X-API-Key") == "sk_good" {
					return gentest.Answer{Headers: map[string]string{"RateLimit": `"speed";r=1`}}
				}
				return gentest.Deny(429, "Retry-After", "7")
			})
			dir, listen := t.TempDir(), gentest.FreePort(t)
			gentest.WriteFiles(t, dir, map[string]string{"nginx.conf": c.site(listen, app.Addr), "policy.yaml": claimsPolicy})
			if _, errs, status := sluice("render", filepath.Join(dir, "policy.yaml"), "--out", dir, "--authz", authz.Addr); status != exitOK {
				t.Fatalf("%s", errs)
			}
			found, _, _ := sluice("lint-nginx", filepath.Join(dir, "nginx.conf"))
			if c.rule == "" && strings.Contains(string(found), "[") || c.rule != "" && !strings.Contains(string(found), c.rule+"]") {
				t.Errorf("lint: want %q\n%s", c.rule, found)
			}
			gentest.Start(t, dir, "nginx.conf", listen)
			head := askRaw(t, listen, c.request)
			if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(head, c.has) || c.hasNot != "" && strings.Contains(head, c.hasNot) {
				t.Errorf("want %d, %q, not %q:\n%s", c.status, c.has, c.hasNot, head)
			}
			if header, value, ok := strings.Cut(c.app, ": "); ok {
				if sent := app.Requests(); len(sent) != 1 || sent[0].Get(header) != value {
					t.Errorf("the application was sent %v; want %s", sent, c.app)
				}
			}
		})
	}
}

// site is the configuration of a claim.
func (c claim) site(listen, app string) string {
	main, http := gentest.Hermetic()
	own := "add_header X-Site 1;"
	if c.server == "NOSITE" {
		own, c.server = "", ""
	}
	pass := "proxy_pass http://APP;"
	if strings.HasPrefix(c.location, "return") {
		pass = ""
	}
	if !strings.Contains(c.location, "proxy_set_header") {
		pass += " include sluice/proxy_headers.conf;"
	}
	text := main + "events {}\nhttp {\n" + http + "access_log off;\n" + c.http + `
    include sluice/real_ip.conf;
    include sluice/http.conf;
    server {
        listen ` + listen + `;
        root html;
        ` + own + `
        ` + c.server + `
        include sluice/server.conf;
        location /api/ {
            include sluice/routes/api.conf;
            ` + c.location + `
            ` + pass + `
        }
    }
}
`
	return strings.ReplaceAll(text, "APP", app)
}

// askRaw sends a request as it is written and returns the head of the answer.
func askRaw(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	path, headers, more := strings.Cut(request, "\r\n")
	if more {
		headers += "\r\n"
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", path, headers)
	var head strings.Builder
	for scan := bufio.NewScanner(conn); scan.Scan() && scan.Text() != ""; {
		head.WriteString(scan.Text() + "\n")
	}
	return head.String()
}
