package cmd

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
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
