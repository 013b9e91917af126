package policies

import (
	"regexp"
	"slices"
	"strings"
)

// maxJitter is the most of a waiting time that may be added to it, in percent.
const maxJitter = 50

var braces = regexp.MustCompile(`\{[^{}]*\}`)

func checkResponses(p *Policy, f *findings) {
	r := p.Responses
	if r == nil {
		return
	}
	for i, d := range r.Headers {
		path := elem("responses.headers", i)
		if slices.Contains(r.Headers[:i], d) {
			f.warnf(path, ruleEntryTwice, "%s is here already; want it once", d)
			continue
		}
		for _, before := range r.Headers[:i] {
			if before != d && structured(before) && structured(d) {
				f.errorf(path, ruleHeaderClash, "%s and %s both write RateLimit and RateLimit-Policy, each in its own way; want one of them", before, d)
				break
			}
		}
	}
	if j := r.RetryAfterJitter; j != nil && *j > maxJitter {
		f.errorf("responses.retry_after_jitter", ruleJitter, "%s would make clients wait far longer than they must; want at most %d%%", *j, maxJitter)
	}
	for _, lang := range sortedKeys(r.Messages) {
		for _, word := range braces.FindAllString(string(r.Messages[lang]), -1) {
			if word != "{retry_after}" {
				f.errorf(field("responses.messages", string(lang)), rulePlaceholder, "%s stands for nothing; want {retry_after}, the seconds to wait, or no braces", word)
				break
			}
		}
	}
	f.overHTTPS("responses.support_url", r.SupportURL)
}

// structured tells of dialects that write the header RateLimit.
func structured(d Dialect) bool { return d == DialectRateLimit || d == DialectRateLimit12 }

func (f *findings) overHTTPS(path string, url URL) {
	if strings.HasPrefix(strings.ToLower(string(url)), "http://") {
		f.warnf(path, rulePlainHTTP, "%s goes over the wire for anybody to read and change; want https", url.Shown())
	}
}

func checkNotifications(p *Policy, f *findings) {
	for i := range p.Notifications {
		n, path := &p.Notifications[i], elem("notifications", i)
		f.need(path, key{"webhook", n.Webhook != ""}, key{"secret_env", n.SecretEnv != ""})
		f.overHTTPS(field(path, "webhook"), n.Webhook)
	}
}
