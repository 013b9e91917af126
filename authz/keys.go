package authz

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	"sluice/policies"
)

// The name of a counter is sluice:{TAG}:LIMIT:SUBJECT.
//
// TAG says whose counter it is and where Redis keeps it. A counter that belongs
// to a tenant (all in plans; elsewhere those whose `per` holds tenant, key, user
// or scope) has the tenant's id, or ip=CLIENT for who has none. A counter that
// is everybody's has its SUBJECT, or LIMIT when that is empty.
//
// LIMIT is Limit.ID. SUBJECT is one part for each dimension of `per` that TAG
// does not already say, joined by commas: ip=192.0.2.7, country=DE, asn=64500,
// key=ID, user=HASH, scope=HASH, route=NAME, server=HOST, value=HASH. What falls
// back to the address says ip=; what falls back to the tenant says nothing, since
// TAG does.
//
// No two tuples meet. TAG ends at the first }, LIMIT at the next colon; names are
// letters, digits, dots, dashes and underscores, and anything else is hashed and
// marked with ~, which no name holds. Values of headers, cookies and parameters
// are always hashed: they may be secrets, and are as long as people like.
const keyPrefix = "sluice:{"

// maxPart is the longest name that stands in a key as it is, in bytes.
const maxPart = 64

// subject is what the name of a counter is made from.
type subject struct {
	client client
	tenant []byte // encoded id; empty for who has no tenant
	key    []byte // encoded id; empty for who has no key
	user   []byte // his name, as it came; empty for who has none
	scope  []byte // of his token; empty for who has none
	route  []byte // encoded name
	places *Places
	proof  []byte // the field whose credential was found good; empty when none was
	shared bool   // other instances use the same store
	req    *Request
}

// appendKey appends the name of the rule's counter to dst. The tag is within it.
func (r *rule) appendKey(dst []byte, s *subject) (out, tag []byte) {
	dst = append(dst, keyPrefix...)
	start := len(dst)
	switch {
	case r.owned && len(s.tenant) > 0:
		dst = append(dst, s.tenant...)
	case r.owned:
		dst = appendClient(dst, s)
	default:
		if dst = r.appendSubject(dst, s); len(dst) == start {
			dst = append(dst, r.id...)
		}
	}
	end := len(dst)
	dst = append(dst, "}:"...)
	dst = append(dst, r.id...)
	dst = append(dst, ':')
	dst = r.appendSubject(dst, s)
	return dst, dst[start:end:end]
}

func (r *rule) appendSubject(dst []byte, s *subject) []byte {
	start := len(dst)
	for i := range r.dims {
		before := len(dst)
		if before > start {
			dst = append(dst, ',')
		}
		mark := len(dst)
		if dst = r.dims[i].appendPart(dst, s); len(dst) == mark {
			dst = dst[:before]
		}
	}
	return dst
}

// dim is one dimension of a counter.
type dim struct {
	kind    policies.DimKind
	field   []byte // the header that brings its value
	proof   []byte // the field that brings the same value as a credential, if one does
	capture *policies.Regex
}

// appendPart appends nothing when TAG says it all: a tenant, and a key that is
// missing.
func (d *dim) appendPart(dst []byte, s *subject) []byte {
	switch d.kind {
	case policies.DimIP:
		return appendClient(dst, s)
	case policies.DimCountry:
		return s.places.appendCountry(dst, s.client)
	case policies.DimASN:
		return s.places.appendASN(dst, s.client)
	case policies.DimKey, policies.DimUser, policies.DimScope:
		return appendPerson(dst, s, d.kind)
	case policies.DimRoute:
		return append(append(dst, "route="...), s.route...)
	case policies.DimServer:
		return appendName(append(dst, "server="...), s.req.value(d.field))
	case policies.DimHeader, policies.DimCookie, policies.DimQuery:
		return d.appendValue(dst, s)
	}
	return dst
}

// appendValue falls back to the address when the value is missing, too long or
// refused, and when it is a credential that nobody has found good: else whoever
// makes up keys has a new counter for each.
func (d *dim) appendValue(dst []byte, s *subject) []byte {
	if d.proof != nil && !bytes.Equal(d.proof, s.proof) {
		return appendClient(dst, s)
	}
	value := d.captured(s.req.value(d.field))
	if len(value) == 0 || len(value) > policies.MaxValue || string(value) == policies.InvalidCredential {
		return appendClient(dst, s)
	}
	return appendHash(append(dst, "value="...), value)
}

// captured is the part of the value that counts. It allocates when there is an
// expression.
func (d *dim) captured(value []byte) []byte {
	if d.capture == nil || len(value) == 0 || len(value) > policies.MaxValue {
		return value
	}
	return captured(d.capture, value)
}

func appendClient(dst []byte, s *subject) []byte {
	return s.client.appendTo(append(dst, "ip="...))
}

// appendName appends a name as it is when it is short and plain, else marked
// and hashed.
func appendName(dst, name []byte) []byte {
	if len(name) == 0 || len(name) > maxPart || bytes.IndexFunc(name, notPlain) >= 0 {
		return appendHash(dst, name)
	}
	return append(dst, name...)
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// appendHash appends ~ and 32 hexadecimal digits: half of a SHA-256, which no
// one makes collide.
func appendHash(dst, value []byte) []byte {
	sum := sha256.Sum256(value)
	return hex.AppendEncode(append(dst, '~'), sum[:16])
}

// captured is the first group of the expression in value; empty when it does
// not match.
func captured(re *policies.Regex, value []byte) []byte {
	if bytes.IndexFunc(value, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
		// The expression sees bytes, as NGINX's does: each is one character.
		wide := make([]byte, 0, 2*len(value))
		for _, c := range value {
			wide = utf8.AppendRune(wide, rune(c))
		}
		value = wide
	}
	m := re.Go.FindSubmatch(value)
	if len(m) < 2 {
		return nil
	}
	return m[1]
}
