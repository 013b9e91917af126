package gen

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/gen/gentest"
)

// hostile are values that try to leave the argument they stand in.
var hostile = []string{
	``, ` `, `a`, `a\`, `a\\`, `\`, `"`, `'`, `\"`, `\\"`, `'"`, `"; evil on; #`, `'; evil on; #`, "a\nb", "\n", "\r\n", "\t", `\n`, `\t`, `\\n`, `\r`,
	`{`, `}`, `{}`, `;`, `#`, `# x`, `a;b`, `a{b`, "a\x01b", "\x7f", "\xff\xfe", "é", "\u2028", `~`, `~*x`, `default`, `include`, `hostnames`, `volatile`,
	`*.example.com`, `\default`, `}} location / {}`, "${", "$", "$$", "$x", "${x}", "a$", "$1", "$5", "$sluice_denied", `\$x`, `$"`, `\'`, `%s`, `{{.}}`, "</p>",
}

// TestTokensInNGINX puts hostile and random values through a real NGINX, in
// every kind of place, and reads them back (C036, C038).
func TestTokensInNGINX(t *testing.T) {
	t.Parallel()
	gentest.Binary(t)
	values := append([]string{}, hostile...)
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte("\\\"'${};#~ \n\t\rtrnab\x01\x80\xff=*.")
	for range 2000 {
		b := make([]byte, 1+random.IntN(12))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		values = append(values, string(b))
	}
	addr := gentest.FreePort(t)
	mainConf, httpConf := gentest.Hermetic()
	var maps, locations strings.Builder
	maps.WriteString("geo $sluice_dollar { default \"$\"; }\n")
	for i, v := range values {
		interpolated, err := (&text{}).lit(v).v("sluice_dollar").lit(v).token()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&locations, "location = /text%d { return 200 %s; }\n", i, interpolated)
		literal, err := Literal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&maps, "geo $geo%d { default %s; }\n", i, literal)
		fmt.Fprintf(&locations, "location = /geo%d { return 200 \"[$geo%d]\"; }\n", i, i)
		key, err := mapKey(v)
		if err != nil {
			t.Fatal(err)
		}
		// The source is the same value, so the key must be found.
		fmt.Fprintf(&maps, "map %s $map%d { default lost; %s found; }\n", first(t, (&text{}).lit(v)), i, key)
		fmt.Fprintf(&locations, "location = /map%d { return 200 $map%d; }\n", i, i)
		if quoted, err := Quote(v); err == nil {
			fmt.Fprintf(&locations, "location = /quote%d { return 200 %s; }\n", i, quoted)
		} else if !strings.Contains(v, "$") {
			t.Errorf("%q is refused: %v", v, err)
		}
		fmt.Fprintf(&locations, "# %s\n", comment(v))
	}
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, map[string]string{"nginx.conf": fmt.Sprintf(
		"%sevents { }\nhttp {\n%saccess_log off; variables_hash_max_size 8192; map_hash_bucket_size 256;\n%sserver {\nlisten %s;\ndefault_type text/plain;\n%s}\n}\n",
		mainConf, httpConf, maps.String(), addr, locations.String())})
	gentest.Start(t, dir, "nginx.conf", addr)
	read := func(path string) string {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for i, v := range values {
		if got := read(fmt.Sprint("/text", i)); got != v+"$"+v {
			t.Errorf("text %q came back as %q", v, got)
		}
		if got := read(fmt.Sprint("/geo", i)); got != "["+v+"]" {
			t.Errorf("literal %q came back as %q", v, got)
		}
		if got := read(fmt.Sprint("/map", i)); got != "found" {
			t.Errorf("the map key %q is not found", v)
		}
		if !strings.Contains(v, "$") {
			if got := read(fmt.Sprint("/quote", i)); got != v {
				t.Errorf("quote %q came back as %q", v, got)
			}
		}
	}
}

func first(t *testing.T, x *text) Token {
	t.Helper()
	tok, err := x.token()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// scan reads one argument as NGINX's own reader does, and what is left.
func scan(conf string) (arg, rest string, ok bool) {
	if conf == "" || (conf[0] != '"' && conf[0] != '\'') {
		return "", "", false
	}
	mark := conf[0]
	var b bytes.Buffer
	for i := 1; i < len(conf); i++ {
		c := conf[i]
		if c == mark {
			return b.String(), conf[i+1:], true
		}
		if c == '\\' && i+1 < len(conf) {
			i++
			switch e := conf[i]; e {
			case '"', '\'', '\\':
				b.WriteByte(e)
			case 't':
				b.WriteByte('\t')
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			default:
				b.WriteByte('\\')
				b.WriteByte(e)
			}
			continue
		}
		b.WriteByte(c)
	}
	return "", "", false
}

// FuzzQuote: whatever the value, it is one argument that reads as the value, or
// it is refused.
func FuzzQuote(f *testing.F) {
	for _, v := range hostile {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		literal, err := Literal(v)
		if strings.Contains(v, "\x00") {
			if err == nil {
				t.Fatalf("%q is not refused", v)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, rest, ok := scan(literal.String()); !ok || rest != "" || got != v {
			t.Fatalf("%q reads as %q, then %q", v, got, rest)
		}
		tok, err := (&text{}).lit(v).v("x").lit(v).token()
		if err != nil {
			t.Fatal(err)
		}
		got, rest, ok := scan(tok.String())
		if got = strings.ReplaceAll(got, "${sluice_dollar}", "$"); !ok || rest != "" || got != v+"${x}"+v {
			t.Fatalf("text %q reads as %q, then %q", v, got, rest)
		}
		if c := comment(v).String(); strings.ContainsAny(c, "\n\r") {
			t.Fatalf("the comment %q has a line break", c)
		}
		for _, piece := range (&text{}).lit(v).v("x").lit(v).split(50) {
			if tok := first(t, piece); len(tok.String()) > 60 {
				t.Fatalf("a piece has %d bytes: %s", len(tok.String()), tok)
			}
		}
	})
}

// TestIdent: no two names have one identifier, also not for NGINX, which knows
// no case in variables (C034).
func TestIdent(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"acme", "acme-corp", "acme_corp", "acme.corp", "Acme", "ACME", "acme__corp", "acme_-corp", "acme-_corp", "acme_", "acme_d", "acme__d", "acme__dcorp",
		strings.Repeat("a", 64), strings.Repeat("a", 63) + "b"} {
		id := ident(name)
		if other, ok := seen[strings.ToLower(id)]; ok {
			t.Errorf("%s and %s are both %s", name, other, id)
		}
		seen[strings.ToLower(id)] = name
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[A-Da-d0-9][A-Da-dsuph0-1._-]{0,10}`), 2, 2).Draw(t, "names")
		a, b := ident(names[0]), ident(names[1])
		if names[0] != names[1] && strings.EqualFold(a, b) {
			t.Fatalf("%s and %s are both %s", names[0], names[1], a)
		}
		if len(a) > 20 || strings.Trim(a, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Fatalf("%s is no identifier", a)
		}
	})
}

// TestViews: the views hold tokens, booleans and numbers, and no strings.
func TestViews(t *testing.T) {
	t.Parallel()
	token := reflect.TypeFor[Token]()
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		switch {
		case typ == token:
		case typ.Kind() == reflect.Bool, typ.Kind() == reflect.Int, typ.Kind() == reflect.Int64:
		case typ.Kind() == reflect.Slice:
			walk(path+"[]", typ.Elem())
		case typ.Kind() == reflect.Struct:
			for i := range typ.NumField() {
				if f := typ.Field(i); f.Type != typ && !(f.Type.Kind() == reflect.Slice && f.Type.Elem() == typ) {
					walk(path+"."+f.Name, f.Type)
				}
			}
		default:
			t.Errorf("%s is a %s; templates may see tokens, booleans and numbers only", path, typ)
		}
	}
	for _, view := range []any{clientView{}, httpView{}, varsView{}, askView{}, cacheView{}, serverView{}, loginView{}, appView{}, headersView{}, geoView{}, routeView{}, locationsView{}, logView{}, nginxView{}} {
		walk(reflect.TypeOf(view).Name(), reflect.TypeOf(view))
	}
}
