package gen

import (
	"regexp"
	"strconv"

	"sluice/policies"
)

// value is the variable, without the dollar, that holds one value of a
// request as it was sent, empty when it is absent. Of several values the first
// counts. Query parameters are cut out of $request_uri: $arg_ and $args are
// another thing in the subrequest that asks the service, and there empty.
func (b *builder) value(from policies.Carrier, name string) string {
	switch from {
	case policies.CarrierQuery:
		v := "sluice_query_" + ident(name)
		b.define(v, "$request_uri", `^[^?#]*\?(?:[^&#]*&)*?`+regexp.QuoteMeta(name)+`=(?<CAPTURE>[^&#]*)`)
		return v
	case policies.CarrierCookie:
		v := "sluice_cookie_" + ident(name)
		b.define(v, "$http_cookie", `(?:^|;) *`+regexp.QuoteMeta(name)+`=(?<CAPTURE>[^;]*)`)
		return v
	}
	return headerVariable("http_", name).text[1:]
}

// define adds the map of a value once.
func (b *builder) define(name, source, pattern string) {
	if b.named[name] {
		return
	}
	b.named[name] = true
	capture := "sluice_value" + strconv.Itoa(len(b.values)+1) // PCRE allows names of 32 bytes
	m := newMap(word(source), name)
	m.otherwise(none())
	m.line(ownRegex(replaceOnce(pattern, "CAPTURE", capture)), variable(capture))
	b.values = append(b.values, m)
}

// captured is the variable that holds the part of a query parameter that the
// first group of an expression takes; empty when it does not fit.
func (b *builder) captured(name string, re *policies.Regex) string {
	if re == nil {
		return b.value(policies.CarrierQuery, name)
	}
	source := b.value(policies.CarrierQuery, name)
	v := "sluice_part_" + ident(name) + "_" + digest(re.Source, 6)
	if !b.named[v] {
		b.named[v] = true
		m := newMap(variable(source), v)
		m.otherwise(none())
		m.line(b.take(mapRegex(re)), word("$1"))
		b.values = append(b.values, m)
	}
	return v
}

// carried is the value that a dimension of a limit counts by: its variable,
// and whether the dimension is such a value at all.
func (b *builder) carried(d policies.Dim) (string, bool) {
	switch d.Kind {
	case policies.DimHeader:
		return b.value(policies.CarrierHeader, d.Name), true
	case policies.DimCookie:
		return b.value(policies.CarrierCookie, d.Name), true
	case policies.DimQuery:
		return b.captured(d.Name, d.Capture), true
	}
	return "", false
}
