package authz

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// The types of events.
const (
	EventThreshold = "quota.threshold" // a step of `notify` is reached
	EventExhausted = "quota.exhausted" // a quota has refused somebody
	EventSpike     = "denials.spike"   // a tenant is refused far more often than before
)

// Event is what a webhook gets as its body.
type Event struct {
	Type string    `json:"type"`
	Time time.Time `json:"timestamp"`
	Data EventData `json:"data"`
}

// EventData says what has happened to whom.
type EventData struct {
	Tenant string `json:"tenant"`
	Plan   string `json:"plan,omitempty"`
	// Of a quota: the limit, the id of the API key that it counts if it counts one, the
	// step in percent, and what is used of Max, grants included, in the period.
	Limit   string     `json:"limit,omitempty"`
	Key     string     `json:"key,omitempty"`
	Percent int        `json:"percent,omitempty"`
	Used    int64      `json:"used,omitempty"`
	Max     int64      `json:"max,omitempty"`
	Start   *time.Time `json:"period_start,omitempty"`
	End     *time.Time `json:"period_end,omitempty"`
	// Of a spike: refused requests in the last minute, and in one before on average.
	Denied int64 `json:"denied,omitempty"`
	Usual  int64 `json:"usual,omitempty"`
}

// happening is an event with its name: the same in every instance, so that it is
// told once.
type happening struct {
	ID    string    `json:"id"`
	Event Event     `json:"event"`
	Until time.Time `json:"until"` // how long it must be remembered that it was told
}

// name makes an id of what tells an event from others.
func name(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%#v", parts)))
	return "evt_" + hex.EncodeToString(sum[:16])
}

// happening is what a notice tells.
func (n *notice) happening(now time.Time) happening {
	data := EventData{Tenant: n.tenant, Plan: n.plan, Limit: n.limit, Percent: n.percent, Used: n.used, Max: n.max, Start: moment(n.start), End: moment(n.end)}
	if n.key != "" && strings.Contains(n.counter, "key="+string(appendName(nil, []byte(n.key)))) {
		data.Key = n.key
	}
	kind := EventThreshold
	if n.percent == exhausted {
		kind, data.Percent = EventExhausted, 100
	}
	return happening{
		ID:    name(kind, n.counter, n.start.Unix(), n.percent),
		Event: Event{Type: kind, Time: now.UTC(), Data: data},
		Until: n.end.Add(time.Hour),
	}
}
