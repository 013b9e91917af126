package accesslog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/templates"
)

// said is what a line says, as far as a test asks.
type said struct {
	Start, Client, Method, Target, Host, Agent, Key, Forwarded string
	Status                                                     int
}

var testNow = time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)

// read reads a whole log.
func read(t testing.TB, format *Format, text string) ([]said, Counts) {
	t.Helper()
	vars := NewVars()
	key := vars.Want("http_x_api_key")
	l := Open([]Source{{Name: "access.log", Reader: strings.NewReader(text)}},
		Options{Format: format, Vars: vars, Workers: 2, Now: func() time.Time { return testNow }})
	defer l.Close()
	var out []said
	for e := l.Next(); e != nil; e = l.Next() {
		out = append(out, said{
			Start:  time.UnixMicro(e.Start).UTC().Format("2006-01-02T15:04:05.999999"),
			Client: string(e.Value(VarRemoteAddr)), Method: string(e.Method()), Target: string(e.AppendTarget(nil)),
			Host: string(e.Host()), Agent: string(e.Value(VarUserAgent)), Key: string(e.Value(key)),
			Forwarded: string(e.Value(VarForwardedFor)), Status: e.Status(),
		})
	}
	if l.Err() != nil {
		t.Fatalf("reading: %v", l.Err())
	}
	return out, l.Counts()
}

// The formats of C117: custom orders, lists, what was decoded, and quotes.
const (
	keyed    = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for" $request_time "$http_x_api_key"`
	inOrder  = `$msec|$status|$request_method|$host$request_uri|$http_x_forwarded_for|$remote_addr`
	proxied  = `[$time_local] $upstream_status $upstream_addr $remote_addr $http_x_forwarded_for - "$request_method $uri $server_protocol" $status`
	asObject = `escape=json {"t":"$time_iso8601","a":"$remote_addr","r":"$request","s":$status,"ua":"$http_user_agent","us":"$upstream_status"}`
	raw      = `escape=none $time_iso8601 $remote_addr $request_method "$request_uri" "$http_user_agent"`
)

func TestFormats(t *testing.T) {
	const ua = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36`
	tests := []struct {
		name, format, line string
		want               said
	}{
		{"combined", "combined", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /v1/search?q=x HTTP/1.1" 200 512 "-" "` + ua + `"`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: "/v1/search?q=x", Agent: ua, Status: 200}},
		{"combined with a user and more behind it", "combined", `2001:db8::7 - anna b [01/Dec/2026:03:04:05 +0000] "POST /v1/pay HTTP/2.0" 201 0 "https://example.com/" "curl/8.5.0" rt=0.003 more`,
			said{Start: "2026-12-01T03:04:05", Client: "2001:db8::7", Method: "POST", Target: "/v1/pay", Agent: "curl/8.5.0", Status: 201}},
		{"main", "main", `10.0.0.2 - - [01/Dec/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 512 "-" "-" "203.0.113.9, 198.51.100.7"`,
			said{Start: "2026-12-01T03:04:05", Client: "10.0.0.2", Method: "GET", Target: "/", Forwarded: "203.0.113.9, 198.51.100.7", Status: 200}},
		{"common", "common", `192.0.2.7 - - [01/Dec/2026:03:04:05 -0330] "HEAD /x HTTP/1.0" 304 -`,
			said{Start: "2026-12-01T06:34:05", Client: "192.0.2.7", Method: "HEAD", Target: "/x", Status: 304}},
		{"ingress", "ingress", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" 80 1.500 [web-80] [] 10.1.2.3:80, 10.1.2.4:80 0, 5 0.5, 1.0 502, 200 6c4f`,
			said{Start: "2026-12-01T03:04:03.5", Client: "192.0.2.7", Method: "GET", Target: "/a", Agent: "curl", Status: 200}},
		{"C117 escaped quotes", "combined", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /\x22a\x5C HTTP/1.1" 200 5 "-" "say \x22hi\x22 \xD0\xBF"`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: `/"a\`, Agent: `say "hi" п`, Status: 200}},
		{"C117 custom order", keyed, `10.0.0.2 - - [01/Dec/2026:03:04:05 +0000] "GET /v1 HTTP/1.1" 429 5 "-" "ua" "198.51.100.7" 0.250 "sk_demo"`,
			said{Start: "2026-12-01T03:04:04.75", Client: "10.0.0.2", Method: "GET", Target: "/v1", Agent: "ua", Key: "sk_demo", Forwarded: "198.51.100.7", Status: 429}},
		{"C117 bars and msec", `$msec|$status|$request_method|$host|$request_uri|$http_x_forwarded_for|$remote_addr`, `1796094245.250|200|GET|Example.com|/a?b|-|2001:db8::1`,
			said{Start: "2026-12-01T03:04:05.25", Client: "2001:db8::1", Method: "GET", Target: "/a?b", Host: "Example.com", Status: 200}},
		{"C117 lists without quotes, a decoded path with blanks", proxied, `[01/Dec/2026:03:04:05 +0000] 502, 200 : 200 10.1.1.1:80, 10.1.1.2:80 : 10.1.1.3:80 10.0.0.2 203.0.113.9, 198.51.100.7 - "GET /my file 100%.txt HTTP/1.1" 200`,
			said{Start: "2026-12-01T03:04:05", Client: "10.0.0.2", Method: "GET", Target: "/my%20file%20100%25.txt", Forwarded: "203.0.113.9, 198.51.100.7", Status: 200}},
		{"a request line with blanks", "combined", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /a b c HTTP/1.1" 200 5 "-" "-"`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: "/a b c", Status: 200}},
		{"escape=json", asObject, `{"t":"2026-12-01T04:04:05+01:00","a":"192.0.2.7","r":"GET /\"a\" HTTP/1.1","s":200,"ua":"a\\b\u0001","us":"502, 200"}`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: `/"a"`, Agent: "a\\b\x01", Status: 200}},
		{"escape=json, quotes at the end of values", `escape=json "$remote_addr" "$time_iso8601" "$request" "$http_user_agent" $status`, `"192.0.2.7" "2026-12-01T03:04:05Z" "GET /\"" "a\\" 200`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: `/"`, Agent: `a\`, Status: 200}},
		{"escape=none", raw, `2026-12-01T03:04:05+00:00 192.0.2.7 GET "/a\x22" "x"`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: `/a\x22`, Agent: "x"}},
		{"the whole directive", "log_format main escape=default '$remote_addr [$time_local] '\n    '\"$request\" ${status}';", `192.0.2.7 [01/Dec/2026:03:04:05 +0000] "GET / HTTP/1.1" 200`,
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: "/", Status: 200}},
		{"tabs, as in nginx.conf", `$remote_addr\t$time_iso8601\t\"$request\"`, "192.0.2.7\t2026-12-01T03:04:05+00:00\t\"GET / HTTP/1.1\"",
			said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: "/"}},
		{"through syslog", "combined", `<190>Dec  1 03:04:05 web1 nginx: 192.0.2.7 - - [01/Dec/2026:03:04:06 +0000] "GET / HTTP/1.1" 200 5 "-" "-"`,
			said{Start: "2026-12-01T03:04:06", Client: "192.0.2.7", Method: "GET", Target: "/", Status: 200}},
		{"kept by a container's runtime", "combined", `2026-12-01T03:04:07.123456789Z stdout F 192.0.2.7 - - [01/Dec/2026:03:04:06 +0000] "GET / HTTP/1.1" 200 5 "-" "-"`,
			said{Start: "2026-12-01T03:04:06", Client: "192.0.2.7", Method: "GET", Target: "/", Status: 200}},
		{"JSON", "json", `{"@timestamp":"2026-12-01T03:04:05.250Z","client":{"ip":"192.0.2.7"},"http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"original":"/a?b=1"},"user_agent":{"original":"x"},"X-API-Key":"sk_demo"}`,
			said{Start: "2026-12-01T03:04:05.25", Client: "192.0.2.7", Method: "GET", Target: "/a?b=1", Agent: "x", Key: "sk_demo", Status: 200}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := ParseFormat(tt.format)
			if err != nil {
				t.Fatal(err)
			}
			got, counts := read(t, f, tt.line+"\n")
			if diff := cmp.Diff([]said{tt.want}, got); diff != "" {
				t.Errorf("-want +got:\n%s%+v", diff, counts)
			}
		})
	}
}

func TestFormatMistakes(t *testing.T) {
	for format, want := range map[string]string{
		"apache":                                    `log format "apache"; want combined, main`,
		"$remote_addr $request":                     "says no time",
		"$remote_addr $time_local":                  "says no request",
		"$time_local $request":                      "says no client",
		"$remote_addr$time_local $request":          "nothing stands between $remote_addr and $time_local",
		"$remote_addr $ $request":                   "a $ without a name",
		"escape=html $remote_addr":                  "want escape=default",
		"log_format x '$remote_addr [$time_local] ": "a quote is open",
	} {
		if _, err := ParseFormat(format); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", format, err, want)
		}
	}
}

// TestDetect: the first lines tell which of the formats with a word it is.
func TestDetect(t *testing.T) {
	const base = `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 512`
	for want, line := range map[string]string{
		"common":   base,
		"combined": base + ` "-" "curl"`,
		"main":     base + ` "-" "curl" "198.51.100.7"`,
		"json":     `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1"}`,
		"sluice": `192.0.2.7 [2026-12-01T03:04:05+00:00] "GET / HTTP/1.1" 200 5 time=0.001 id=ab asked="search" decision="allow" ` +
			`tenant="acme" plan="pro" limit="" reason="" degraded="" edge="PASSED/-" denied="" cache="-" rule="" refused="" shadowed=""`,
	} {
		f, err := detect([]byte("\n"+line+"\nnonsense\n"+line+"\n"), testNow)
		if err != nil || f.Name != want {
			t.Errorf("%s was taken for %+v, %v", want, f, err)
		}
	}
	if _, err := detect([]byte("a b c\nd e f\n"), testNow); err == nil {
		t.Error("nonsense was taken for a format")
	}
}

// TestSluiceFormat: the word sluice means what render writes.
func TestSluiceFormat(t *testing.T) {
	text, err := templates.FS.ReadFile("http.conf.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, directive, found := strings.Cut(string(text), "log_format sluice_access ")
	directive, _, _ = strings.Cut(directive, ";")
	written, err := ParseFormat("log_format sluice_access " + directive + ";")
	if !found || err != nil {
		t.Fatalf("http.conf.tmpl: %v", err)
	}
	f, err := ParseFormat("sluice")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range f.parts {
		last := i == len(f.parts)-1
		if w := written.parts[i]; w.name != p.name || w.end != p.end && !(last && strings.HasPrefix(w.end, p.end)) {
			t.Errorf("part %d is $%s%s; rendered is $%s%s", i, p.name, p.end, w.name, w.end)
		}
	}
}
