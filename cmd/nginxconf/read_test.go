package nginxconf

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// flat writes directives one a line, with place, depth and words.
func flat(list []*Directive) string {
	var b strings.Builder
	var write func([]*Directive, string)
	write = func(list []*Directive, indent string) {
		for _, d := range list {
			b.WriteString(indent + d.Place.String() + " " + strings.Join(append([]string{d.Name}, d.Texts()...), "|") + "\n")
			write(d.Included, indent+"> ")
			write(d.Block, indent+"  ")
		}
	}
	write(list, "")
	return b.String()
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"blocks keep the line they begin in": {"http {\n server {\n }\n}\n", "f:1 http\n  f:2 server\n"},
		"quotes and escapes":                 {`map $x $y { "a\\" 1; 'b;}' "2\"3"; }`, "f:1 map|$x|$y\n  f:1 a\\|1\n  f:1 b;}|2\"3\n"},
		"escapes outside of quotes":          {`location ~ ^/a\;b\.c$ { }`, "f:1 location|~|^/a\\;b\\.c$\n"},
		"braces of variables":                {`set $a x${b}y; x;`, "f:1 set|$a|x${b}y\nf:1 x\n"},
		"a backquote is a letter":            {"return 200 `x;", "f:1 return|200|`x\n"},
		"comments and continued lines":       {"log_format x '$a' # c;\n '$b';", "f:1 log_format|x|$a|$b\n"},
		"a # within a word":                  {"rewrite ^ /x#y;", "f:1 rewrite|^|/x#y\n"},
		"Lua is not read":                    {"access_by_lua_block { if x { a; } }\nb;", "f:1 access_by_lua_block\nf:2 b\n"},
		"Windows lines and a mark":           {"\ufeffa;\r\nb;\r\n", "f:1 a\nf:2 b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Parse("f", c.src)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, flat(list)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for src, want := range map[string]string{
		"http { }\n}\nserver { }":      "f:2:1: unexpected }; no block is open",
		"http {\n server {\n }\n":      "f:1:1: the block of http is not closed; want a }",
		"a b":                          `f:1:1: "a" is not ended; want ; or a block`,
		"a \"b":                        `f:1:3: a quote is not closed; want " at the end`,
		"a 'b'c;":                      `f:1:6: 'c' follows a closed quote; want a space or ; between`,
		";":                            `f:1:1: unexpected ';'; want a directive before it`,
		strings.Repeat("a {", 100):     "f:1:181: blocks stand 61 deep in each other; want fewer",
		"content_by_lua_block { a { }": "f:1:1: the block is not closed; want a }",
	} {
		if _, err := Parse("f", src); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", src, err, want)
		}
	}
}

func TestDump(t *testing.T) {
	site, err := Read("-", `nginx version: nginx/1.22.1
# configuration file /etc/nginx/nginx.conf:
http {
    include conf.d/*.conf;
    include gone.conf;
}
# configuration file /etc/nginx/conf.d/a.conf:
server { listen 80; }
# configuration file /etc/nginx/conf.d/b.conf:

server { include snippets/x; }
# configuration file /etc/nginx/snippets/x:
root /x;
`)
	if err != nil {
		t.Fatal(err)
	}
	want := `/etc/nginx/nginx.conf:1 http
  /etc/nginx/nginx.conf:2 include|conf.d/*.conf
  > /etc/nginx/conf.d/a.conf:1 server
  >   /etc/nginx/conf.d/a.conf:1 listen|80
  > /etc/nginx/conf.d/b.conf:2 server
  >   /etc/nginx/conf.d/b.conf:2 include|snippets/x
  >   > /etc/nginx/snippets/x:1 root|/x
  /etc/nginx/nginx.conf:3 include|gone.conf
`
	if diff := cmp.Diff(want, flat(site.Root.Block)); diff != "" {
		t.Error(diff)
	}
	if len(site.Missing) != 1 || site.Version != "1.22.1" || len(site.Servers()) != 2 {
		t.Errorf("missing %v, version %q, %d servers", site.Missing, site.Version, len(site.Servers()))
	}
	root := site.Servers()[1].First("root")
	if root == nil || root.In("server") != site.Servers()[1] || root.In("http") == nil {
		t.Errorf("root stands in %v", root)
	}
}

func TestIncludeItself(t *testing.T) {
	_, err := Read("-", "# configuration file /a:\ninclude b;\n# configuration file /b:\ninclude a;\n")
	if err == nil || !strings.Contains(err.Error(), "/b:1:1: /a includes itself") {
		t.Errorf("%v", err)
	}
}

// TestRealDump reads what a real nginx -T prints of a site in several files,
// and the same site from the disk: both give the same tree.
func TestRealDump(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("nginx is not installed")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nginx.conf":    "pid x.pid; error_log stderr;\nevents {}\nhttp {\n  access_log off;\n  include conf.d/*.conf;\n}\n",
		"conf.d/a.conf": "map $uri $x {\n  default \"\";\n  \"~^/a;b\" \"c\\\\\";\n}\nserver { listen unix:a.sock; }\n",
		"conf.d/b.conf": "server {\n  listen unix:b.sock;\n  location ~ \"^/x{2}$\" { return 200 'a${uri}b'; }\n}",
		"conf.d/unused": "nothing",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(dir, "nginx.conf")
	out, err := exec.Command(nginx, "-T", "-p", dir, "-c", conf, "-e", "stderr").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dump, err := Read("-", string(out))
	if err != nil {
		t.Fatal(err)
	}
	disk, err := ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flat(disk.Root.Block), flat(dump.Root.Block)); diff != "" || !strings.Contains(flat(dump.Root.Block), `c\`) {
		t.Errorf("%s\n%s", diff, flat(dump.Root.Block))
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# configuration file /a:\ninclude b;\n# configuration file /b:\nmap $a ${b} { default 1; }\n")
	f.Add("geo $x { ranges; 1.2.3.4-1.2.3.5 \"a\\\\\"; }\nserver { location ~ \\{ { } }")
	f.Fuzz(func(t *testing.T, text string) {
		site, err := Read("-", text)
		if err != nil {
			return
		}
		site.Tables()
		site.Root.Walk(func(d *Directive) {
			if d.Line < 1 || d.Col < 1 || d.Parent == nil {
				t.Errorf("%s has no place", d)
			}
		})
	})
}
