package importer

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/cmd/lint"
	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// words are arguments that sites have, and some that nobody should.
func words() []string {
	return []string{
		"$binary_remote_addr", "$remote_addr", "$http_x_api_key", "$http_x_forwarded_for", "$arg_a-b", "$arg_token", "$cookie_s", "$server_name", "$host",
		"$a", "$b", "$c", "$a$b", "$uri", "$args", "$http_cookie", "$http_connection", "$http_x_sluice_tenant", "$request_method", "$http_user_agent", "$geoip_country_code",
		"zone=a:10m", "zone=b:1m", "zone=true:32k", "zone=x y", "zone=a", "zone=b", "zone=\u00e9:1m", "rate=5r/s", "rate=90r/m", "rate=0r/s", "burst=5", "burst=0", "burst=-1", "burst=99999999999", "nodelay", "delay=2", "delay=9",
		"a", "b", "1", "0", "10", "on", "off", "any", "all", "", "default", "10.0.0.0/8", "10.0.0.7/8", "10.0.0.1", "192.0.2.0/24", "2001:db8::/32", "::1", "unix:", "0.0.0.0/0", "::ffff:10.0.0.0/104",
		"/", "/a", "/a/", "/a//b", "/a/../b", "/%41", "/b?c", "=", "~", "~*", "^~", "@x", "^/a", `\.php$`, "^/(?<n>[a-z]+)/x{1,2}$", "(?!x)", "(", "[z-a]", "/_sluice/x", "~^a", "~*b|c", "POST", "get", "(GET|POST)", "DE", "XX",
		"example.com", "*.example.com", ".example.org", "www.example.*", "~^x$", "_", "xn--", "h\u00f6st", "'", `"`, "a: b", "# c", "{", "x}y", "\x01", "\xff", "- 1", "&a", "*a", "!x", "a\tb",
		"403", "429", "444", "451", "200", "301", "499", "X-Forwarded-For", "proxy_protocol", "X Y", "/oauth2/auth", "$upstream_http_x_user", "$upstream_http_x_org_id", "($a)", "($a", "= 1)", "!~", "-f", "POST)",
	}
}

func names() []string {
	return []string{"limit_req", "limit_req", "limit_conn", "limit_req_status", "limit_req_dry_run", "allow", "deny", "allow", "deny", "satisfy", "auth_request", "auth_request_set",
		"set_real_ip_from", "real_ip_header", "return", "rewrite", "set", "try_files", "error_page", "internal", "proxy_pass", "add_header", "include", "server_name", "listen", "access_log", "log_format",
		"limit_req_zone", "limit_conn_zone", "default", "10.0.0.0/8", "10.1.0.0/16", "a", "~x", "", "POST", "underscores_in_headers", "proxy_set_header"}
}

func blocks() []string {
	return []string{"http", "server", "server", "location", "location", "location", "if", "map", "geo", "limit_except", "upstream"}
}

// quote writes a word as NGINX reads it back.
func quote(w string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
}

func drawBlock(t *rapid.T, b *strings.Builder, depth int) {
	for range rapid.IntRange(0, 6).Draw(t, "directives") {
		block := depth < 5 && rapid.IntRange(0, 2).Draw(t, "block") > 0
		name := rapid.SampledFrom(names()).Draw(t, "name")
		if block {
			name = rapid.SampledFrom(blocks()).Draw(t, "name")
		}
		b.WriteString(quote(name))
		for range rapid.IntRange(0, 4).Draw(t, "args") {
			b.WriteString(" " + quote(rapid.SampledFrom(words()).Draw(t, "word")))
		}
		if !block {
			b.WriteString(";\n")
			continue
		}
		b.WriteString(" {\n")
		drawBlock(t, b, depth+1)
		b.WriteString("}\n")
	}
}

// TestRandomSites: from whatever stands in a site comes a good policy, and lint
// ends. Zones and tables are there, so that limits get somewhere.
func TestRandomSites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("http {\n")
		for _, v := range []string{"$a", "$b", "$c"} {
			word := func(label string) string { return quote(rapid.SampledFrom(words()).Draw(t, label)) }
			if rapid.Bool().Draw(t, "geo") {
				b.WriteString("geo " + v + " {\n")
			} else {
				b.WriteString("map " + word("source") + " " + v + " {\n")
			}
			for range rapid.IntRange(0, 4).Draw(t, "entries") {
				b.WriteString(word("key") + " " + word("value") + ";\n")
			}
			b.WriteString("}\n")
		}
		for _, zone := range []string{"limit_req_zone", "limit_conn_zone"} {
			for _, name := range []string{"a", "b"} {
				b.WriteString(zone + " " + quote(rapid.SampledFrom(words()).Draw(t, "key")) + " zone=" + name + zone[5:8] + ":1m rate=5r/s;\n")
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "servers") {
			b.WriteString("server {\nlimit_req zone=a_re burst=5;\nlimit_conn b_co 5;\n")
			drawBlock(t, &b, 1)
			b.WriteString("}\n")
		}
		b.WriteString("}\n")
		site, err := nginxconf.Read("nginx.conf", b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		lint.Run(site, lint.Options{})
		r := Import(site)
		_, ds := policies.Parse("policy.yaml", r.Policy, func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
		if ds.HasErrors() {
			t.Errorf("%v\n%s\nof\n%s", ds, r.Policy, b.String())
		}
	})
}
