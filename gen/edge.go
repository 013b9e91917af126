package gen

import (
	"fmt"
	"strings"
	"time"

	"sluice/policies"
	"sluice/policies/edge"
)

// edgeLimit is one edge limit as routes refer to it.
type edgeLimit struct {
	zone   Token
	burst  Token
	delay  Token
	number int64 // connections, 0 for a rate
	shadow bool
	route  bool // its key holds the route
}

// defaultExpect is how many clients a zone holds when the policy does not say.
const defaultExpect = 30_000

// edgeLimits defines keys and zones.
func (b *builder) edgeLimits(exempting bool) {
	for i := range b.c.Edge {
		b.limits = append(b.limits, b.edgeLimit(&b.c.Edge[i], exempting))
	}
}

func (b *builder) edgeLimit(l *policies.EdgeLimit, exempting bool) edgeLimit {
	name := "sluice_limit_" + ident(l.Name)
	at, values := len(b.keys), len(b.values)
	key := b.limitKey(name, l)
	flags := b.limitFlags(name, l)
	e := edgeLimit{number: l.Connections, shadow: l.Shadow || b.c.Mode == policies.ModeShadow, route: key.route}

	text := join(key.text.parts...)
	meaning := text.text + fmt.Sprint(l.Connections > 0)
	if len(flags) > 0 || exempting {
		text = b.conditionalKey(name, text, flags, exempting)
		meaning += text.text
	}
	if at < len(b.keys) {
		b.keys[at].Comments = commentLines([]string{l.Name + ": " + limitTitle(l)})
	}
	from(limitPath(l.Name), b.keys[at:])
	from(limitPath(l.Name), b.values[values:])
	e.zone = word("sluice_" + ident(l.Name) + "_" + digest(meaning, 8))
	z := zone{From: mark(limitPath(l.Name)), Key: text, Name: e.zone, Comments: commentLines([]string{l.Name + ": " + limitTitle(l)})}
	size := zoneSize(l, key.slot)
	z.Size = sizeToken(size)
	b.zoneKilobytes += size
	if l.Connections == 0 {
		z.Rate = b.take(rateToken(l))
		e.burst, e.delay = burst(l)
	}
	b.zones = append(b.zones, z)
	return e
}

// wanted is a flag and the digit it must have for a request to be counted.
type wanted struct {
	condition
	digit string
}

// limitFlags are the conditions under which a request is counted at all.
func (b *builder) limitFlags(name string, l *policies.EdgeLimit) []wanted {
	var flags []wanted
	if l.Only != nil {
		flags = append(flags, wanted{b.clients(&b.keys, name+"__only", l.Only), "1"})
	}
	if l.Except != nil {
		flags = append(flags, wanted{b.clients(&b.keys, name+"__not", l.Except), "0"})
	}
	for _, f := range b.when(&b.keys, name, l.When) {
		flags = append(flags, wanted{f, "1"})
	}
	return flags
}

// conditionalKey is the key of a limit that does not count every request: an
// empty key is not limited.
func (b *builder) conditionalKey(name string, key Token, flags []wanted, exempting bool) Token {
	var source []part
	want := ""
	if exempting {
		source, want = append(source, isSet("sluice_exempt"), part{lit: ":"}), ":"
	}
	for _, f := range flags {
		source = append(source, f.condition)
		want += f.digit
	}
	m := newMap(b.concatenated(&b.keys, name+"__part", source), name)
	m.otherwise(none())
	m.line(flagsKey(want), key)
	b.keys = append(b.keys, m)
	return variable(name)
}

// zoneSize is the size of a zone in kilobytes.
func zoneSize(l *policies.EdgeLimit, slot int64) int64 {
	clients := l.Expect
	if clients == 0 {
		clients = defaultExpect
	}
	if len(l.Per) == 1 && l.Per[0].Kind == policies.DimGlobal {
		clients = 1
	}
	if len(l.Per) == 1 && l.Per[0].Kind == policies.DimCountry {
		clients = min(clients, 300)
	}
	kilobytes := 32 + (clients*slot+1023)/1024
	if kilobytes > 1024 {
		kilobytes = (kilobytes + 1023) / 1024 * 1024
	}
	return kilobytes
}

// sizeToken is a size as NGINX writes it: whole kilobytes or megabytes.
func sizeToken(kilobytes int64) Token {
	if kilobytes%1024 == 0 {
		return word(fmt.Sprintf("%dm", kilobytes/1024))
	}
	return word(fmt.Sprintf("%dk", kilobytes))
}

// rateToken is a rate as limit_req_zone has it.
func rateToken(l *policies.EdgeLimit) (Token, error) {
	b, ok := edge.BucketOf(l)
	switch {
	case !ok:
		return Token{}, fmt.Errorf("cannot render a rate of %d micro-units in %s: NGINX knows whole requests per second or minute", l.Rate.Micro, l.Rate.Per)
	case b.Minute:
		return word(fmt.Sprintf("%dr/m", b.Requests)), nil
	}
	return word(fmt.Sprintf("%dr/s", b.Requests)), nil
}

// burst is a limit's burst and delay: ours is how many fit at once, NGINX's
// how many fit besides the one that is always served.
func burst(l *policies.EdgeLimit) (burst, delay Token) {
	b, _ := edge.BucketOf(l)
	if b.Burst == 0 {
		return Token{}, Token{}
	}
	burst = word(fmt.Sprintf("burst=%d", b.Burst))
	switch {
	case b.NoDelay:
		return burst, word("nodelay")
	case b.Delay > 0:
		return burst, word(fmt.Sprintf("delay=%d", b.Delay))
	}
	return burst, Token{}
}

// limitTitle says what a limit allows.
func limitTitle(l *policies.EdgeLimit) string {
	per := make([]string, len(l.Per))
	for i, d := range l.Per {
		per[i] = strings.TrimSpace(string(d.Kind) + " " + d.Name)
	}
	by := " for each " + strings.Join(per, " and ")
	if l.Connections > 0 {
		return fmt.Sprintf("%d requests at a time", l.Connections) + by + ". On HTTP/2 every open stream counts"
	}
	unit := "second"
	if l.Rate.Per == time.Minute {
		unit = "minute"
	}
	return fmt.Sprintf("%d requests each %s and %d at once", l.Rate.Micro/1e6, unit, max(l.Burst, 1)) + by
}
