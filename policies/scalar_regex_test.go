package policies

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// subjects are what expressions are tried on: odd bytes, other capitals,
// characters of several bytes, the beginning and the end.
func subjects() []string {
	out := []string{
		"", "a", "A", "b", "ab", "abc", "a b", "a\x0bb", "a\tb", "a\rb", "/v1/", "/v1/files/0123abcd", "/v1/files/0123abcdx",
		"é", "É", "/é/", "éé", "\xe9", "\xc3", "\xa9", "\x80", "\xff", "a\xffb", "k", "K", "\u212a", "s", "ſ", "ÿ", "Ÿ", "µ", "μ",
		"[a]", "]", "[", "}", "-", "z", "_", "x]", "bot", "a bot b", "robot", "robots", "Mozilla/5.0 zgrab/0.x", "MASSCAN", "\u0085", "\u00a0",
		"repository:openshift-release-dev/x", "a$", "x$", "(a)", "aa", "aaa", "a.b", "a/b", "\xc3\x28", "ab\xc3",
	}
	for c := 1; c < 256; c++ {
		if c != '\n' {
			out = append(out, string([]byte{byte(c)}))
		}
	}
	return out
}

// patterns are expressions that are taken.
func patterns() []string {
	return []string{
		`^/v1/files/[0-9a-f]{8}$`, `(?i)masscan`, `(?i)k`, `(?i)s`, `(?i)[^k]`, `\bbot\b`, `\Bbot`, `a\sb`, `a[\s]b`, `a\Sb`, `^[\S]$`, `^\S$`, `^.$`, `^..$`,
		`(?s)^.$`, `^[^a]$`, `^é$`, `^/é/`, `(?:é)+$`, `\xe9`, `^[\x80-\xff]$`, `^\W$`, `^\w$`, `^\D$`, `\d`, `[]a]`, `^[^]a]$`, `[[a]`, `x]`, `}`, `[[:alpha:]-]`,
		`^[[:punct:]]$`, `^[[:space:]]$`, `^[[:^space:]]$`, `^[[:print:]]$`, `^[[:graph:]]$`, `^[[:cntrl:]]$`, `^[[:word:]]$`, `^[[:upper:]]$`, `(?i)^[[:upper:]]$`, `^[[:ascii:]]$`, `^[[:blank:]]$`, `^[[:xdigit:]]$`,
		`(a$|b$)`, `[$]x?\$?`, `a*?b`, `a{2}`, `a{2,}`, `a{1,2}$`, `(?i:A)b`, `a|b`, `^(a|b)+$`, `\x2f\x{76}`, `[a-c-e]`, `[a\-z]`, `\-`, `\/`, `\<`, `a\ b`, `\t`, `\r`, `[\t ]b`,
		`^(?:)$`, `(|a)b`, `^repository:(openshift-release-dev|redhat)/`, `(?i)(a)(?:b)`, `[^\w]`, `[\W]`, `[^\d\s]`, `\f`, `()a`, `(?i)^[a-z]+$`, `(?i)^[_-z]$`, `(?i)a(?s:.)b`,
	}
}

// TestRegexLikePCRE compares Match with PCRE, which GNU grep has, in its
// byte-wise mode as NGINX uses it.
func TestRegexLikePCRE(t *testing.T) {
	t.Parallel()
	check := exec.Command("grep", "-P", `\z`)
	check.Stdin = strings.NewReader("a\n")
	if check.Run() != nil {
		t.Skip("no grep with PCRE here")
	}
	all := subjects()
	for _, p := range patterns() {
		var r Regex
		if err := r.UnmarshalText([]byte(p)); err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		found := grep(t, r.NGINX(), all)
		for i, s := range all {
			if got := r.Match([]byte(s)); got != found[i] {
				t.Errorf("%s on %q: Match says %v, PCRE %v", p, s, got, found[i])
			}
		}
	}
}

// grep tells which lines PCRE finds an expression in.
func grep(t *testing.T, pattern string, lines []string) map[int]bool {
	t.Helper()
	cmd := exec.Command("grep", "-a", "-n", "-P", "-e", pattern)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && errs.Len() > 0 {
		t.Errorf("grep does not read %s: %s", pattern, errs.String())
	}
	found := map[int]bool{}
	for line := range strings.SplitSeq(string(out), "\n") {
		number, _, _ := strings.Cut(line, ":")
		if n, err := strconv.Atoi(number); err == nil {
			found[n-1] = true
		}
	}
	return found
}

func TestRegexCapture(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, subject, want string
		ok                     bool
	}{
		{`^repository:([^/]+)/`, "repository:redhat/ubi", "redhat", true},
		{`^repository:([^/]+)/`, "other", "", false},
		{`a(b)?c`, "ac", "", false},
		{`a(b*)c`, "ac", "", true},
		{`a(.+)b`, "a\xff\xc3b", "\xff\xc3", true},
		{`a(.+)b`, "aéb", "é", true},
		{`é(.)`, "éx", "x", true},
		{`a`, "a", "", false},
	}
	for _, tt := range tests {
		var r Regex
		if err := r.UnmarshalText([]byte(tt.pattern)); err != nil {
			t.Fatal(err)
		}
		if got, ok := r.Capture([]byte(tt.subject)); got != tt.want || ok != tt.ok {
			t.Errorf("%s on %q: got %q, %v; want %q, %v", tt.pattern, tt.subject, got, ok, tt.want, tt.ok)
		}
	}
}

// TestRegexAllocations keeps Match free of garbage: it runs for every request.
func TestRegexAllocations(t *testing.T) {
	var r Regex
	if err := r.UnmarshalText([]byte(`^/v1/files/[0-9a-f]{8}$`)); err != nil {
		t.Fatal(err)
	}
	subject := []byte("/v1/files/0123abcd")
	if n := testing.AllocsPerRun(100, func() { r.Match(subject) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
