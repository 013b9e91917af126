package policies

import "testing"

const matchPolicy = `
version: 1
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: www, match: {hosts: [www.example.com, "*.cdn.example.com"], prefix: /assets}, service: false}
  - {name: assets, match: {prefix: /assets}, service: false}
  - {name: search, match: {prefix: /v1/search, methods: [GET, HEAD]}}
  - {name: search_write, match: {prefix: /v1/search, methods: [POST]}}
  - {name: file, match: {regex: '^/v1/files/[0-9a-f]{8}$'}}
  - {name: php, match: {regex: '(?i)\.php$'}}
  - {name: a, match: {prefix: /a}}
  - {name: v1, match: {prefix: /v1}}
  - {name: rest, match: {prefix: /}}
`

func TestMatch(t *testing.T) {
	c := compileText(t, matchPolicy)
	for _, tc := range []struct{ name, host, method, path, want string }{
		{"exact", "", "GET", "/healthz", "health"},
		{"C048: exact is not a prefix", "", "GET", "/healthzz", "rest"},
		{"C048: nor below it", "", "GET", "/healthz/x", "rest"},
		{"C008: whole segments", "", "GET", "/api/x", "rest"},
		{"C008: the prefix itself", "", "GET", "/a", "a"},
		{"C008: below it", "", "GET", "/a/b", "a"},
		{"longest prefix", "", "GET", "/v1/search/x", "search"},
		{"not a longer word", "", "GET", "/v1/searching", "v1"},
		{"method picks within one match", "", "POST", "/v1/search", "search_write"},
		{"a method nobody there takes: the next best", "", "DELETE", "/v1/search", "v1"},
		{"regex before prefix", "", "GET", "/v1/files/00c0ffee", "file"},
		{"a final $ is the very end", "", "GET", "/v1/files/00c0ffee\n", "v1"},
		{"regex without case", "", "GET", "/v1/X.PHP", "php"},
		{"case counts in paths", "", "GET", "/V1", "rest"},
		{"host", "www.example.com", "GET", "/assets/x", "www"},
		{"wildcard host", "img.cdn.example.com", "GET", "/assets/x", "www"},
		{"wildcard takes several labels", "a.b.cdn.example.com", "GET", "/assets", "www"},
		{"the bare domain is not in its wildcard", "cdn.example.com", "GET", "/assets", "assets"},
		{"another host", "example.org", "GET", "/assets", "assets"},
		{"root", "", "GET", "/", "rest"},
		{"no method asks for the location", "", "", "/v1/search", "search"},
	} {
		r := c.Match(tc.host, tc.method, []byte(tc.path))
		if r == nil || r.Name != tc.want {
			t.Errorf("%s: %s %s%s is %v, want %s", tc.name, tc.method, tc.host, tc.path, r, tc.want)
		}
	}
}

func TestMatchNothing(t *testing.T) {
	c := compileText(t, "version: 1\nroutes: [{name: v1, match: {prefix: /v1}}]\n")
	if r := c.Match("", "GET", []byte("/v2")); r != nil {
		t.Errorf("/v2 matches %s; want nothing", r.Name)
	}
}
