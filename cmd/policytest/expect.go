package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/cmd/trial"
	"sluice/policies"
)

// Mismatch is one thing that came otherwise than expected.
type Mismatch struct {
	What     string `json:"what"`
	Expected string `json:"expected"`
	Came     string `json:"came"`
}

// compare holds an outcome against what is expected of it.
func compare(e *policies.ExpectSpec, o *trial.Outcome) []Mismatch {
	c := comparison{}
	if e.Status != 0 {
		c.word("status", strconv.Itoa(int(e.Status)), strconv.Itoa(o.Status))
	}
	c.optional("by", string(e.By), o.By.String())
	c.optional("reason", string(e.Reason), o.Reason)
	c.optional("limit", string(e.Limit), o.Limit)
	c.optional("shadow", string(e.Shadow), o.Would)
	route := o.Route
	if route == "" && o.Location != nil {
		route = o.Location.Name
	}
	c.optional("route", string(e.Route), route)
	c.optional("plan", string(e.Plan), o.Plan)
	c.optional("tenant", string(e.Tenant), o.Tenant)
	if e.RetryAfter != nil {
		c.word("retry_after", strconv.FormatInt(int64(*e.RetryAfter), 10), strconv.FormatInt(o.RetryAfter, 10))
	}
	if e.Delay != nil {
		c.word("delay", time.Duration(*e.Delay).String(), o.Delay().Round(time.Millisecond).String())
	}
	if len(e.Remaining) > 0 {
		c.remaining(e.Remaining, o)
	}
	if len(e.Headers) > 0 {
		c.headers(e.Headers, o)
	}
	return c.list
}

type comparison struct{ list []Mismatch }

func (c *comparison) word(what, expected, came string) {
	if expected != came {
		if came == "" {
			came = "none"
		}
		c.list = append(c.list, Mismatch{what, expected, came})
	}
}

// optional compares only what is expected.
func (c *comparison) optional(what, expected, came string) {
	if expected != "" {
		c.word(what, expected, came)
	}
}

func (c *comparison) remaining(want map[policies.Name]policies.Count, o *trial.Outcome) {
	left := map[string]int64{}
	for _, charge := range o.Charges(nil) {
		left[charge.Limit.Name] = charge.State.Remaining
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		what, expected := "remaining "+string(name), strconv.FormatInt(int64(want[name]), 10)
		if n, counted := left[string(name)]; counted {
			c.word(what, expected, strconv.FormatInt(n, 10))
		} else {
			c.word(what, expected, "not counted")
		}
	}
}

func (c *comparison) headers(want map[policies.HeaderName]policies.Text, o *trial.Outcome) {
	header := o.Header()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, there := "", false
		for _, f := range header {
			if strings.EqualFold(f.Name, string(name)) {
				value, there = f.Value, true
			}
		}
		what := "header " + string(name)
		switch expected := string(want[name]); expected {
		case "present":
			if !there {
				c.word(what, expected, "absent")
			}
		case "absent":
			if there {
				c.word(what, expected, value)
			}
		default:
			c.word(what, expected, value)
		}
	}
}

// allowed holds how many requests of an entry passed against what was expected.
func allowed(e *policies.ExpectSpec, passed, of int64) []Mismatch {
	if e.Allowed == nil || int64(*e.Allowed) == passed {
		return nil
	}
	return []Mismatch{{"allowed", fmt.Sprintf("%d of %d", *e.Allowed, of), strconv.FormatInt(passed, 10)}}
}
