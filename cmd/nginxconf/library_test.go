package nginxconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tufanbarisyildirim/gonginx/config"
	"github.com/tufanbarisyildirim/gonginx/parser"
)

// byLibrary reads text with the library: names and arguments, unescaped by us,
// which it does not do.
func byLibrary(t *testing.T, src string) string {
	t.Helper()
	c, err := parser.NewStringParser(src, parser.WithSkipValidDirectivesErr(), parser.WithSkipComments()).Parse()
	if err != nil {
		return err.Error()
	}
	bare := func(s string) string {
		if s != "" && (s[0] == '"' || s[0] == '\'') {
			s = s[1 : len(s)-1]
		}
		return unescape(s)
	}
	var b strings.Builder
	var write func([]config.IDirective, string)
	write = func(list []config.IDirective, indent string) {
		for _, d := range list {
			words := []string{bare(d.GetName())}
			for _, p := range d.GetParameters() {
				words = append(words, bare(p.Value))
			}
			b.WriteString(indent + strings.Join(words, "|") + "\n")
			if d.GetBlock() != nil {
				write(d.GetBlock().GetDirectives(), indent+"  ")
			}
		}
	}
	write(c.GetDirectives(), "")
	return b.String()
}

// words is flat without the places.
func words(list []*Directive) string {
	var b strings.Builder
	for line := range strings.Lines(flat(list)) {
		trimmed := strings.TrimLeft(line, " ")
		_, rest, _ := strings.Cut(trimmed, " ")
		b.WriteString(line[:len(line)-len(trimmed)] + rest)
	}
	return b.String()
}

// TestLibraryAgrees: where the library reads what NGINX does, so do we.
func TestLibraryAgrees(t *testing.T) {
	src := `
user www-data;   # who
http {
    map $http_upgrade $connection { default upgrade; '' close; }
    log_format main '$remote_addr "$request"'
                    '$status';
    geo $office { default 0; 192.0.2.0/24 1; }
    server {
        listen 443 ssl;
        server_name a.example "b.example";
        location ~* \.(css|js)$ { expires 30d; add_header X-A "b \"c\""; }
        location / { try_files $uri ${uri}/ @app; if ($request_method = POST) { return 405; } }
    }
}
`
	list, err := Parse("f", src)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byLibrary(t, src), words(list)); diff != "" {
		t.Error(diff)
	}
}

// TestLibraryErrs is why the reader is ours: what the library reads otherwise
// than NGINX does. If it ceases to, this test says so.
func TestLibraryErrs(t *testing.T) {
	for name, src := range map[string]string{
		"an escaped backslash at the end of a quote": `map $x $y { "a\\" 1; "b" 2; }`,
		"an escaped semicolon":                       `map $x $y { ~^a\;b 1; default 2; }`,
		"a backquote":                                "return 200 `x;",
		"a brace within a word":                      "a b}c d;",
	} {
		list, err := Parse("f", src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if byLibrary(t, src) == words(list) {
			t.Errorf("%s: the library reads it now", name)
		}
	}
	if got := byLibrary(t, "http { }\n}\nserver { }"); got != "http\n" {
		t.Errorf("the library does not stop in silence at a stray brace any more: %q", got)
	}
	c, err := parser.NewStringParser("http {\n server {\n }\n}\n", parser.WithSkipValidDirectivesErr()).Parse()
	if err != nil || c.GetDirectives()[0].GetLine() != 4 {
		t.Errorf("the library does not give a block the line of its end any more: %v", err)
	}
}
