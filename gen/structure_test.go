package gen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/policies"
)

// outline is what a configuration does, whatever its arguments are: directives
// with the number of their arguments, and blocks.
func outline(conf string) (string, error) {
	var out strings.Builder
	args := 0
	for conf != "" {
		switch c := conf[0]; {
		case c == ' ' || c == '\n' || c == '\t':
			conf = conf[1:]
		case c == '#':
			_, conf, _ = strings.Cut(conf, "\n")
		case c == ';' || c == '{' || c == '}':
			fmt.Fprintf(&out, "%d%c\n", args, c)
			args, conf = 0, conf[1:]
		case c == '"' || c == '\'':
			_, rest, ok := scan(conf)
			if !ok || (rest != "" && strings.IndexByte(" ;\n{", rest[0]) < 0) {
				return "", fmt.Errorf("a quotation has no end: %.80s", conf)
			}
			args, conf = args+1, rest
		default:
			end := strings.IndexAny(conf, " ;\n")
			if end <= 0 {
				return "", fmt.Errorf("a word has no end: %.80s", conf)
			}
			if args == 0 {
				out.WriteString(conf[:end] + " ")
			}
			args, conf = args+1, conf[end:]
		}
	}
	return out.String(), nil
}

// withValue is a policy that has one free text in every place that takes one.
func withValue(v string) *policies.Compiled {
	return &policies.Compiled{
		Hash:   v,
		Client: policies.ClientRules{IPv6Prefix: 64},
		Mode:   policies.ModeEnforce,
		Routes: []policies.Route{{Name: "all", Kind: policies.MatchPrefix, Path: "/", Asked: true}, {Name: "x", Index: 1, Kind: policies.MatchExact, Path: "/" + v, Asked: true}},
		Responses: policies.Responses{
			Body: policies.BodyProblem, Languages: []policies.Language{"en"},
			Messages: map[policies.Language]string{"en": v + "{retry_after}" + v}, SupportURL: "https://example.com/" + v,
		},
	}
}

// FuzzRender: no text of a policy changes what the files do.
func FuzzRender(f *testing.F) {
	for _, v := range hostile {
		f.Add(v)
	}
	want := outlines(f, withValue("plain"))
	f.Fuzz(func(t *testing.T, v string) {
		if len(v) > 200 {
			return // pieces of a long message are another outline
		}
		c := withValue(v)
		if _, err := Quote(v); err != nil {
			c.Hash = "plain" // a hash with a dollar is refused
		}
		if strings.Contains(v, "\x00") {
			if _, err := Render(c, Options{}); err == nil {
				t.Fatalf("%q is not refused", v)
			}
			return
		}
		if diff := cmp.Diff(want, outlines(t, c)); diff != "" {
			t.Errorf("%q changes the files: %s", v, diff)
		}
	})
}

func outlines(t testing.TB, c *policies.Compiled) map[string]string {
	t.Helper()
	files, err := Render(c, Options{Version: c.Hash, Full: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, content := range files {
		if name == manifestName {
			continue
		}
		if out[name], err = outline(string(content)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}
