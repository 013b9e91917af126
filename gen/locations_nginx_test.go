package gen

import (
	"fmt"
	"strings"
	"testing"
)

const routesPolicy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
routes:
  - {name: exact, match: {exact: /v1}}
  - {name: any_export, match: {regex: '/export$'}}
  - {name: export, match: {regex: '^/v1/projects/[0-9]+/export$'}}
  - {name: own_path, match: {regex: '^/own$'}}
  - {name: braces, match: {regex: '^/b/[0-9a-f]{2}"\\?;x'}}
  - {name: search_get, match: {prefix: /v1/search, methods: [GET]}}
  - {name: search_post, match: {prefix: /v1/search, methods: [POST]}}
  - {name: v1, match: {prefix: /v1}}
  - {name: own, match: {prefix: /own}}
  - {name: odd, match: {exact: '/a b;{}"$x'}}
  - {name: shop_api, match: {hosts: [shop.example], prefix: /api}}
  - {name: wild, match: {hosts: ["*.example"], prefix: /api}}
  - {name: deep, match: {hosts: ["*.cdn.example"], regex: '^/v1/x'}}
  - {name: api, match: {prefix: /api}}
  - {name: root, match: {prefix: /}}
`

// TestRoutes: NGINX chooses the route that the policy's own matcher chooses
// (C008, C038), with a site's own regular expressions kept out.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := startWith(t, routesPolicy, func(f Files, _ string) {
		conf := string(f["nginx.conf"])
		f["nginx.conf"] = []byte(strings.Replace(conf, "include sluice/server.conf;", "include sluice/server.conf;\n location ~ \\.php$ { return 200 opened; }", 1))
	})
	c := compiled(t, routesPolicy)
	paths := []string{
		"/", "/v1", "/v1/", "/v1x", "/v1/x", "/v1/export", "/v1/projects/7/export", "/v1/projects/x/export", "/v1/projects/7/export%0a",
		"/v1/search", "/v1/search/", "/v1/search/x/export", "/v1/searching", "/own", "/own/", "/own/x", "/owner", "/x.php", "/v1/x.php",
		"/api", "/api/", "/api/x", "/apix", "/b/0f%22%3f;x", "/a%20b;%7B%7D%22$x", "//v1//x", "/%76%31", "/v1/../own", "/export", "/v1/search/../x", "/a/./b",
	}
	for _, host := range []string{"", "other.test", "shop.example", "a.example", "SHOP.Example:80", "x.cdn.example", "example"} {
		for _, method := range []string{"GET", "POST"} {
			for _, path := range paths {
				s.authz.Asked()
				got := s.do(method, path, nil, hostHeader(host)...)
				asked, _ := s.authz.Asked()
				want := c.Match(normalHost(host), "", normalPath(t, path)).Name
				if len(asked) != 1 || asked[0] != "/_sluice/open/"+want {
					t.Errorf("%s %s on %q asked %v (%d); the policy says %s", method, path, host, asked, got.status, want)
				}
			}
		}
	}
}

func hostHeader(host string) []string {
	if host == "" {
		return nil
	}
	return []string{"Host", host}
}

func normalHost(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	return host
}

// TestNoRoot: without a route for / the regular expressions stand at the level
// of the server too, and what no route matches is the site's.
func TestNoRoot(t *testing.T) {
	t.Parallel()
	const policy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
routes:
  - {name: files, match: {regex: '\.pdf$'}}
  - {name: v1, match: {prefix: /v1}}
`
	s := startWith(t, policy, func(f Files, _ string) {
		conf := string(f["nginx.conf"])
		f["nginx.conf"] = []byte(strings.Replace(conf, "include sluice/server.conf;", "include sluice/server.conf;\n location / { return 200 site; }", 1))
	})
	for path, want := range map[string]string{"/x.pdf": "files", "/v1/x.pdf": "files", "/v1/x": "v1", "/x": ""} {
		s.authz.Asked()
		got := s.get(path)
		asked, _ := s.authz.Asked()
		if fmt.Sprint(asked) != fmt.Sprint(route(want)) || got.status != 200 {
			t.Errorf("%s asked %v; want %q", path, asked, want)
		}
	}
}

func route(name string) []string {
	if name == "" {
		return nil
	}
	return []string{"/_sluice/open/" + name}
}
