package lint

import (
	"testing"

	"sluice/cmd/nginxconf"
)

// TestOverlap: which expressions may take requests of a prefix. C008
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		expression, prefix string
		want               bool
	}{
		{`\.php$`, "/api/", true},
		{`^/api/v[0-9]+`, "/api/", true},
		{`^/other/`, "/api/", false},
		{`^/`, "/api/", true},
		{`^/api\.v1/`, "/api.v1/", true},
		{`^/apis?/`, "/api/", true},
		{`^/(a|b)/`, "/c/", true}, // not looked into: it may
	} {
		if got := overlap(c.expression, c.prefix); got != c.want {
			t.Errorf("%s and %s: %t; want %t", c.expression, c.prefix, got, c.want)
		}
	}
}

// TestHoldsInAsk: which conditions hold in the subrequest. C017
func TestHoldsInAsk(t *testing.T) {
	for condition, want := range map[string]bool{
		`(!-e $request_filename)`: true,
		`(-f $request_filename)`:  false,
		`($args)`:                 false,
		`($args = "")`:            true,
		`($args ~* "a b(c|d)")`:   false,
		`($query_string != "")`:   false,
		`($arg_x !~ ^1$)`:         true,
		`($uri ~ ^/old)`:          false,
		`($uri ~ "^/_sluice")`:    true,
		`($uri !~ ^/static)`:      true,
		`( $uri = /x )`:           false,
		`($document_uri ~ (`:      true, // not read: it may
		`($http_x_debug)`:         true,
	} {
		list, err := nginxconf.Parse("f", "if "+condition+" { }")
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		if got := holdsInAsk(list[0]); got != want {
			t.Errorf("%s: %t; want %t", condition, got, want)
		}
	}
}

func TestVersions(t *testing.T) {
	for v, want := range map[string]bool{"1.21.6": true, "1.22": false, "1.22.0": false, "1.9.15": true, "1.31.5": false, "2.0.0": false} {
		if err := CheckVersion(v); err != nil {
			t.Error(err)
		}
		if got := older(v, oldest); got != want {
			t.Errorf("%s is too old: %t; want %t", v, got, want)
		}
	}
	for _, v := range []string{"", "1", "1.x", "1.2.3.4", "-1.2"} {
		if CheckVersion(v) == nil {
			t.Errorf("%q passes", v)
		}
	}
}
