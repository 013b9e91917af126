package authz

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// denyCacheWait is the wait from which NGINX may keep a denial for a second.
const denyCacheWait = 2 * time.Second

// Write puts the decision into an answer to NGINX: 204, 401 or 403, which is all
// that auth_request understands, and never a body, which would cost the
// kept-alive connection. What the client is to see is in headers.
func (d *Decision) Write(resp *fasthttp.Response) {
	resp.ResetBody()
	d.writer.header = &resp.Header
	w := &d.writer
	switch {
	case d.Verdict != Deny:
		resp.SetStatusCode(fasthttp.StatusNoContent)
		w.text(policies.HeaderDecision, "allow")
	case d.Status == 401:
		resp.SetStatusCode(fasthttp.StatusUnauthorized)
		w.text(policies.HeaderDecision, "deny")
	default:
		resp.SetStatusCode(fasthttp.StatusForbidden)
		w.text(policies.HeaderDecision, "deny")
		w.number(policies.HeaderStatus, int64(d.Status))
	}
	d.writeReason(w)
	d.writeIdentity(w)
	d.writeLimits(w)
	w.header = nil
}

func (d *Decision) writeReason(w *writer) {
	if d.FailMode {
		w.text(policies.HeaderDegraded, "1")
	}
	if d.Verdict == Deny || d.Reason == ReasonShadow {
		w.optional(policies.HeaderLimit, d.Limit)
		w.optional(policies.HeaderReason, d.Reason.String())
	}
	if d.challenge {
		w.text("WWW-Authenticate", d.bound.challenge)
	}
	if d.Verdict == Deny && d.Wait > 0 {
		w.number("Retry-After", d.retryAfter())
	}
	w.number("X-Accel-Expires", truth(d.kept()))
}

// kept tells whether NGINX may keep the denial for a moment. Under a name that is
// strange here it has no URI in its key, and the URI has chosen the route.
func (d *Decision) kept() bool {
	return d.Verdict == Deny && d.Reason.remembered() && d.Wait >= denyCacheWait && !d.strange
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// writeIdentity tells the upstream who asks. An empty value and none are the
// same to NGINX.
func (d *Decision) writeIdentity(w *writer) {
	w.optional(policies.HeaderTenant, d.Tenant)
	w.optional(policies.HeaderPlan, d.Plan)
	w.optional(policies.HeaderPriority, string(d.Priority))
}

// RetryAfter is the time to wait in whole seconds, rounded up, at least 1, as
// headers tell it, before jitter; 0 when waiting cannot help.
func (d *Decision) RetryAfter() int64 {
	if d.Wait <= 0 {
		return 0
	}
	return max(1, wholeSeconds(d.Wait))
}

// retryAfter is RetryAfter with jitter, which only ever adds: it spreads those
// who were refused together, and lets nobody come too early.
func (d *Decision) retryAfter() int64 {
	seconds := d.RetryAfter()
	if d.bound == nil || d.jitter <= 0 {
		return seconds
	}
	more := d.Wait.Seconds() * float64(d.bound.policy.Responses.Jitter) / 100 * d.jitter
	return max(seconds, wholeSeconds(time.Duration(min(d.Wait.Seconds()+more, 9e9)*float64(time.Second))))
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// resetOf is what headers tell as the reset of a limit: until this cost fits if
// it is the one that refused, else until it is full. false: waiting cannot help.
func (d *Decision) resetOf(op int) (time.Duration, bool) {
	if d.ops[op].Kind == limit.Concurrency {
		return 0, false // a lease comes free when somebody is done
	}
	if d.Limit == "" || op != d.told {
		return d.states[op].Reset, true
	}
	return max(d.Wait, 0), d.Wait != limit.Never
}

// writer writes headers through two buffers that are used again.
type writer struct {
	header     *fasthttp.ResponseHeader
	key, value []byte
}

func (w *writer) text(name, value string) {
	w.value = append(w.value[:0], value...)
	w.flush(name)
}

func (w *writer) optional(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *writer) number(name string, n int64) {
	w.value = strconv.AppendInt(w.value[:0], n, 10)
	w.flush(name)
}

// flush sets a header to what is in w.value, with its name spelled as it is here.
func (w *writer) flush(name string) {
	w.key = append(w.key[:0], name...)
	w.header.SetCanonical(w.key, w.value)
}
