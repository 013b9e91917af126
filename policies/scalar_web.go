package policies

import (
	"encoding/hex"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // so that a time zone is good or bad on every machine alike
	"unicode/utf8"
)

// UnmarshalText reads a hash. What it refuses is not shown: it may be a key.
func (h *SHA256) UnmarshalText(text []byte) error {
	const digits = 2 * len(h)
	s := string(text)
	_, err := hex.DecodeString(s)
	switch {
	case strings.HasPrefix(s, "sha256:") || strings.HasPrefix(s, "SHA256:"):
		return wrongf(ruleHash, "the hash has its algorithm in front; want the %d digits alone", digits)
	case len(s) != digits || err != nil:
		return wrongf(ruleHash, "this is no SHA-256 (%d characters); want its %d hexadecimal digits, never the key itself", utf8.RuneCount(text), digits)
	}
	_, _ = hex.Decode(h[:], text)
	return nil
}

func (h SHA256) String() string { return hex.EncodeToString(h[:]) }

var hostShape = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// UnmarshalText reads a host name.
func (h *Host) UnmarshalText(text []byte) error {
	s := strings.ToLower(string(text))
	if len(s) > 253 || !hostShape.MatchString(s) {
		return wrongf(ruleHost, "%s is no host%s", show(string(text)), hostHint(s))
	}
	*h = Host(s)
	return nil
}

// hostHint says what is odd about a text that is no host name.
func hostHint(s string) string {
	const want = "; want a name such as www.example.com or *.example.com"
	name, port, colon := strings.Cut(s, ":")
	_, err := netip.ParseAddr(strings.Trim(s, "[]"))
	switch {
	case strings.Contains(s, "://"):
		return " but a URL" + want
	case err == nil:
		return " name but an IPv6 address, which NGINX has in brackets" + want
	case colon && port != "" && only(port, digit) && hostShape.MatchString(name):
		return ": it has a port, which takes no part in matching; want " + name
	case strings.HasSuffix(s, ".") && hostShape.MatchString(strings.TrimSuffix(s, ".")):
		return ": it ends with a dot, which NGINX cuts off; want " + strings.TrimSuffix(s, ".")
	case strings.HasPrefix(s, ".") && hostShape.MatchString(s[1:]):
		return ": it begins with a dot; want *" + s + " for the names below, and " + s[1:] + " for itself"
	case s == "*":
		return "; leave hosts out where every host is meant"
	case strings.Contains(s, "*"):
		return ": a wildcard is the whole first label" + want
	case strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0:
		return ": browsers send such a name in its xn-- form" + want
	case strings.Contains(s, "/"):
		return ": it has a path" + want
	}
	return want
}

func (h Host) String() string { return string(h) }

var languageShape = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$`)

// UnmarshalText reads a language tag and gives it its usual capitals.
func (l *Language) UnmarshalText(text []byte) error {
	s := string(text)
	if !languageShape.MatchString(s) {
		if hyphens := strings.ReplaceAll(s, "_", "-"); languageShape.MatchString(hyphens) {
			return wrongf(ruleLanguage, "%s has an underscore; want %s", show(s), hyphens)
		}
		return wrongf(ruleLanguage, "%s is no language tag; want one such as en or pt-BR", show(s))
	}
	parts := strings.Split(strings.ToLower(s), "-")
	for i, p := range parts[1:] {
		switch {
		case len(parts[i]) == 1: // after a singleton nothing has capitals
		case len(p) == 2:
			parts[i+1] = strings.ToUpper(p)
		case len(p) == 4 && only(p, letter):
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	*l = Language(strings.Join(parts, "-"))
	return nil
}

func (l Language) String() string { return string(l) }

// UnmarshalText reads a URL. What it refuses is not shown: it may hold a password.
func (u *URL) UnmarshalText(text []byte) error {
	const most = 2048
	s := string(text)
	kind := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune("\"<>\\^`{|}", r) }
	parsed, err := url.Parse(s)
	switch {
	case len(s) > most || !only(s, kind):
		return wrongf(ruleURL, "this is no URL%s; want an address such as https://example.com/limits", because(s, kind, most))
	case err != nil || parsed.Host == "" || parsed.Hostname() == "" || parsed.Opaque != "":
		return wrongf(ruleURL, "this is no absolute URL; want an address such as https://example.com/limits")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return wrongf(ruleURL, "this URL begins with %s; want http:// or https://", show(parsed.Scheme+":"))
	case parsed.User != nil:
		return wrongf(ruleURL, "this URL holds a user name or password, which do not belong into a policy; want it without them")
	}
	*u = URL(s)
	return nil
}

func (u URL) String() string { return string(u) }

// Shown is the URL for people to see: whoever knows the path of a webhook may often
// post to it, so there is only the host of it.
func (u URL) Shown() string {
	scheme, rest, _ := strings.Cut(string(u), "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 || rest[end:] == "/" {
		return string(u)
	}
	return scheme + "://" + rest[:end] + "/…"
}

// UnmarshalText reads a time zone.
func (z *Timezone) UnmarshalText(text []byte) error {
	s := string(text)
	if _, err := time.LoadLocation(s); err != nil || s == "" || s == "Local" || strings.ContainsAny(s, " \\") {
		return wrongf(ruleTimezone, "%s is no time zone; want a name of the IANA database, such as Europe/Berlin or UTC", show(s))
	}
	*z = Timezone(s)
	return nil
}

func (z Timezone) String() string { return string(z) }
