package cmd

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sluice/policies"
)

func TestCode(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		if got := code(text); got != want {
			t.Errorf("code(%q) = %s, want %s", text, got, want)
		}
	}
	f("10/s", "`10/s`")
	f("", "(empty)")
	f(" \n", "(empty)")
	f("a|b", "`a\\|b`")
	f("a`b", "`` a`b ``")
	f("```", "```` ``` ````")
	f("a\nb\x1b[31m", "`a b [31m`")
	f("@team #1 <b>[x](y)", "`@team #1 <b>[x](y)`")
}

// TestWrap: no word is lost, and no line is too long that could be shorter.
func TestWrap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a-zé]{0,12}`)).Draw(t, "words"), " ")
		most := rapid.IntRange(1, 40).Draw(t, "most")
		lines := wrap(text, most)
		if got := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); got != strings.Join(strings.Fields(text), " ") {
			t.Fatalf("%q becomes %q", text, got)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > most && strings.Contains(strings.TrimSpace(line), " ") {
				t.Fatalf("%q is longer than %d", line, most)
			}
		}
	})
}

func TestGroup(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567"} {
		if got := group(n); got != want {
			t.Errorf("group(%d) = %s", n, got)
		}
	}
}

// TestDiffTellsNoSecret: no form of a difference holds the hash of a key (C119),
// and ids that look like numbers stay as they are written (C107).
func TestDiffTellsNoSecret(t *testing.T) {
	t.Parallel()
	policy := func(hash, plan string) *policies.Policy {
		p, ds := policies.Parse("policy.yaml", []byte("version: 1\nidentity: {sources: [{api_key: {header: X-Key}}]}\n"+
			"plans: {a: {limits: {x: {per: key, rate: 1/s, burst: 1}}}, b: {extends: a}}\n"+
			"tenants: [{id: 00123, plan: "+plan+", keys: [{id: 0x10, sha256: "+strings.Repeat(hash, 16)+"}]}, {id: 1e3, plan: a}]\n"), nil)
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		return p
	}
	d := difference{Difference: policies.Diff(policy("aff8", "a"), policy("27e9", "b"))}
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error {
			return writeDiffText(w, screen{width: width}, diffOptions{Old: "o", New: "n"}, d)
		},
		"json":     func(w io.Writer) error { return writeDiffJSON(w, diffOptions{}, d) },
		"markdown": func(w io.Writer) error { return writeDiffMarkdown(w, diffOptions{}, d) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"aff8", "27e9"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s holds a hash:\n%s", name, out.String())
			}
		}
		for _, want := range []string{"00123", "00123/0x10", "credential"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not hold %s:\n%s", name, want, out.String())
			}
		}
	}
}

// TestDiffTextFits: lines fit the terminal, whatever policies are compared.
func TestDiffTextFits(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../policies/testdata/sites/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	var all []*policies.Policy
	for _, file := range files {
		p, ds := policies.Load(file)
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		all = append(all, p)
	}
	for i, from := range all {
		d := difference{Difference: policies.Diff(from, all[(i+5)%len(all)])}
		for _, columns := range []int{60, 80, 120} {
			var out bytes.Buffer
			if err := writeDiffText(&out, screen{width: columns}, diffOptions{Old: files[i], New: "policy.yaml"}, d); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimRight(line, "\n")
				if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") && len(strings.Fields(line)) > 2 {
					t.Errorf("%s in %d columns: %s", files[i], columns, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s: spaces at the end of %q", files[i], line)
				}
			}
		}
	}
}
