package policies

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Reasons are all words for why a request is refused: those of the service, then
// those of the edge.
func Reasons() []string {
	return []string{
		"rate", "window", "quota", "concurrency", "retries", "too_large", "plan", "credential", "address", "disabled",
		"simulate", "store_down", "overload", "access", "edge_rate", "edge_conn",
	}
}

// Deciders are all words for who refuses a request.
func Deciders() []string { return []string{"nginx", "access", "edge", "service", "login"} }

// UnmarshalText reads 0s or a duration.
func (o *Offset) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "0s", "0ms", "0m":
		*o = 0
		return nil
	case "0":
		return wrongf(ruleDuration, "0 has no unit; want 0s")
	}
	var d Duration
	if err := d.UnmarshalText(text); err != nil {
		return err
	}
	*o = Offset(d)
	return nil
}

// UnmarshalText reads a moment.
func (i *Instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return wrongf(ruleInstant, "%s is no moment; want one such as 2026-12-01T09:00:00Z", show(string(text)))
	}
	*i = Instant(t)
	return nil
}

// UnmarshalText reads an address.
func (a *Address) UnmarshalText(text []byte) error {
	addr, err := netip.ParseAddr(string(text))
	if err != nil || addr.Zone() != "" {
		return wrongf(ruleNetwork, "%s is no address; want one such as 192.0.2.7 or \"2001:db8::7\"", show(string(text)))
	}
	*a = Address(addr)
	return nil
}

// UnmarshalText reads a path or a URL.
func (t *Target) UnmarshalText(text []byte) error {
	s := string(text)
	if !only(s, func(r rune) bool { return r > ' ' && r != 0x7f }) {
		return wrongf(rulePath, "%s has a space or a control character; want them as %%20 and the like", show(s))
	}
	u, err := url.Parse(s)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if !strings.HasPrefix(s, "/") && !web {
		return wrongf(rulePath, "%s is no target of a request; want a path such as /v1/search?q=x, or a whole URL", show(s))
	}
	*t = Target(s)
	return nil
}

// Split is the host of a whole URL, empty when there is none, and the target as
// a client sends it.
func (t Target) Split() (host, target string) {
	s := string(t)
	if strings.HasPrefix(s, "/") {
		return "", s
	}
	_, rest, _ := strings.Cut(s, "://")
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		return rest, "/"
	}
	host, target = rest[:at], rest[at:]
	if target, _, _ = strings.Cut(target, "#"); !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	return host, target
}

// UnmarshalText reads a status.
func (s *TestStatus) UnmarshalText(text []byte) error {
	n, err := whole(ruleStatus, string(text), 599)
	if err != nil || n < 100 {
		return wrongf(ruleStatus, "%s is no status; want one such as 200 or 429", show(string(text)))
	}
	*s = TestStatus(n)
	return nil
}

// UnmarshalText reads a reason.
func (r *ReasonWord) UnmarshalText(text []byte) error {
	word, err := oneOf(string(text), Reasons())
	*r = ReasonWord(word)
	return err
}

// UnmarshalText reads who refuses.
func (w *DeciderWord) UnmarshalText(text []byte) error {
	word, err := oneOf(string(text), Deciders())
	*w = DeciderWord(word)
	return err
}

// oneOf wants one of a list of words.
func oneOf(text string, words []string) (string, error) {
	if slices.Contains(words, text) {
		return text, nil
	}
	return "", wrongf(ruleWord, "%s is none of the words here; want %s%s", show(text), either(words), didYouMean(text, words))
}
