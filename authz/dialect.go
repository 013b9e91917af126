package authz

import (
	"strconv"

	"sluice/policies"
)

// The dialects in which clients are told their limits.
//
//	ratelimit     draft-ietf-httpapi-ratelimit-headers-11
//	              RateLimit-Policy: "speed";q=50;w=5, "org";q=100;w=5
//	              RateLimit: "speed";r=49;t=1
//	ratelimit-12  the same after the working group's changes of 2026: in RateLimit
//	              r became a (available quota), t became w (effective window), and c
//	              is what this request cost. RateLimit-Policy kept q and w.
//	              RateLimit: "speed";a=45;w=1;c=5
//	ratelimit-3   RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset (seconds from now)
//	x-ratelimit   X-RateLimit-Limit, -Remaining, -Reset (seconds since 1970)
//
// RateLimit-Policy lists all limits of the request in the order of enforcement.
// All other headers tell of one: of those that let pass the one with the smallest
// share left, on a denial the one that refused. A reset that no waiting brings is
// left out.

func (d *Decision) writeLimits(w *writer) {
	if d.told < 0 {
		return
	}
	for _, dialect := range d.bound.policy.Responses.Dialects {
		switch dialect {
		case policies.DialectRateLimit:
			d.writePolicy(w)
			d.writeItem(w, ";r=", ";t=", "")
		case policies.DialectRateLimit12:
			d.writePolicy(w)
			d.writeItem(w, ";a=", ";w=", ";c=")
		case policies.DialectRateLimit3:
			d.writeThree(w)
		case policies.DialectXRateLimit:
			d.writeEpoch(w)
		}
	}
}

func (d *Decision) writePolicy(w *writer) {
	w.value = w.value[:0]
	for i, r := range d.rules {
		if !d.shows(i) {
			continue
		}
		if len(w.value) > 0 {
			w.value = append(w.value, ", "...)
		}
		w.value = r.appendItem(w.value, d.ops[i].Limit(), d.now)
	}
	w.flush("RateLimit-Policy")
}

// writeItem writes RateLimit; a parameter without a name is not written.
func (d *Decision) writeItem(w *writer, remaining, reset, cost string) {
	w.value = append(w.value[:0], d.rules[d.told].name...)
	w.value = strconv.AppendInt(append(w.value, remaining...), d.states[d.told].Remaining, 10)
	if seconds, ok := d.resetSeconds(); ok {
		w.value = strconv.AppendInt(append(w.value, reset...), seconds, 10)
	}
	if cost != "" {
		w.value = strconv.AppendInt(append(w.value, cost...), d.spent(), 10)
	}
	w.flush("RateLimit")
}

// spent is what the request took from the limit that is told of.
func (d *Decision) spent() int64 {
	if d.Limit != "" || !d.states[d.told].Fits {
		return 0
	}
	return d.ops[d.told].Cost
}

func (d *Decision) writeThree(w *writer) {
	w.number("RateLimit-Limit", d.ops[d.told].Limit())
	w.number("RateLimit-Remaining", d.states[d.told].Remaining)
	if seconds, ok := d.resetSeconds(); ok {
		w.number("RateLimit-Reset", seconds)
	}
}

func (d *Decision) writeEpoch(w *writer) {
	w.number("X-RateLimit-Limit", d.ops[d.told].Limit())
	w.number("X-RateLimit-Remaining", d.states[d.told].Remaining)
	if reset, ok := d.resetOf(d.told); ok {
		at := d.now.Add(reset)
		seconds := at.Unix()
		if at.Nanosecond() > 0 {
			seconds++
		}
		w.number("X-RateLimit-Reset", seconds)
	}
}

// resetSeconds is the reset in whole seconds, rounded up; on a denial it is
// Retry-After before jitter.
func (d *Decision) resetSeconds() (int64, bool) {
	reset, ok := d.resetOf(d.told)
	if !ok {
		return 0, false
	}
	if d.Limit != "" {
		return d.RetryAfter(), true
	}
	return wholeSeconds(reset), true
}
