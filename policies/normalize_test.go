package policies

import (
	"testing"
)

// The differential test against a real nginx is gen's TestMatchAsNGINX; this
// table says what the rules are.
func TestNormalizePath(t *testing.T) {
	for _, tc := range []struct{ name, target, want string }{
		{"plain", "/v1/x", "/v1/x"},
		{"query is cut", "/v1/x?a=/../b", "/v1/x"},
		{"fragment is cut", "/v1/x#/y", "/v1/x"},
		{"double slashes merge", "//v1///x//", "/v1/x/"},
		{"dot segments", "/./v1/./x/.", "/v1/x/"},
		{"parent segments", "/a/../v1/b/..", "/v1/"},
		{"dots in names stay", "/a.b/..c/d../...", "/a.b/..c/d../..."},
		{"encoded letters", "/%76%31/x", "/v1/x"},
		{"encoded slash is a slash", "/v1%2Fx%2f%2Fy", "/v1/x/y"},
		{"encoded dots are dots", "/v1/%2e%2E/x", "/x"},
		{"C048: a way around an exact path", "/healthz/../v1/x", "/v1/x"},
		{"decoded once", "/%2561", "/%61"},
		{"encoded question mark and hash are literal", "/a%3Fb%23c", "/a?b#c"},
		{"encoded percent before dots", "/%25/..", "/"},
		{"parameters stay", "/v1;x=1/y", "/v1;x=1/y"},
		{"semicolon is no dot segment", "/v1/..;/x", "/v1/..;/x"},
		{"backslash stays", `/v1\..\x`, `/v1\..\x`},
		{"case stays", "/V1", "/V1"},
		{"newline may come encoded", "/re/12%0A", "/re/12\n"},
		{"high bytes", "/\xc3\xa9%C3%A9", "/\xc3\xa9\xc3\xa9"},
		{"absolute form", "http://h.example/v1/x?y", "/v1/x"},
		{"absolute form without a path", "http://h.example?y", "/"},
		{"root", "/", "/"},
	} {
		got, ok := NormalizePath(nil, []byte(tc.target))
		if !ok || string(got) != tc.want {
			t.Errorf("%s: %q gives %q, %t; want %q", tc.name, tc.target, got, ok, tc.want)
		}
	}
}

func TestNormalizePathRefusesWhatNGINXAnswers400(t *testing.T) {
	for _, target := range []string{"", "*", "v1", "/%00", "/a%0", "/a%", "/%zz", "/..", "/a/../..", "/%2e%2e/x", "/a\x01b", "/a\x7fb", "a:b"} {
		dst := []byte("kept")
		got, ok := NormalizePath(dst, []byte(target))
		if ok || string(got) != "kept" {
			t.Errorf("%q gives %q, %t; want a refusal", target, got, ok)
		}
	}
}

// FuzzNormalizePath: what comes out is normal already, and stands behind what was there.
func FuzzNormalizePath(f *testing.F) {
	for _, seed := range []string{"/a/../b", "/%2e%2e", "//", "/a/./b/..?x", "http://h/x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		got, ok := NormalizePath([]byte("x"), target)
		if !ok {
			return
		}
		if got[0] != 'x' || got[1] != '/' {
			t.Fatalf("%q gives %q", target, got)
		}
		for i := 2; i < len(got); i++ {
			if got[i] == '/' && got[i-1] == '/' {
				t.Fatalf("%q gives %q with a double slash", target, got)
			}
		}
	})
}

func TestCompareNatural(t *testing.T) {
	sorted := []string{"a", "a01", "a1", "a2", "a10", "a10b", "b", "p2.v9", "p2.v10", "p10"}
	for i, a := range sorted {
		for j, b := range sorted {
			got := CompareNatural(a, b)
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("CompareNatural(%q, %q) = %d", a, b, got)
			}
		}
	}
}
