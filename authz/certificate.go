package authz

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"sluice/policies"
)

// The frame of a certificate in PEM.
const (
	pemBegin = "-----BEGIN CERTIFICATE-----"
	pemEnd   = "-----END CERTIFICATE-----"
)

// identifyCert is the tenant of a certificate that NGINX has verified. One that
// no tenant has is genuine all the same: it is unlisted, and a tenant of its own.
func (b *bound) identifyCert(value []byte, c client, d *Decision) (identity, bool) {
	var der []byte
	var ok bool
	if d.scratch, der, ok = derOf(d.scratch[:0], value); !ok {
		return b.outcome(b.policy.Identity.Invalid, true, d)
	}
	sum := policies.SHA256(sha256.Sum256(der))
	p := person{listed: -1, plan: -1, certified: true, cert: sum}
	if i, known := b.policy.TenantByCert(sum); known {
		p.listed = i
	}
	return b.identifyPerson(&p, c, d)
}

// derOf takes a certificate out of PEM that was escaped as a part of a URI. It
// works in buf, which it returns for the next one.
func derOf(buf, escaped []byte) (again, der []byte, ok bool) {
	buf, ok = appendUnescaped(buf, escaped)
	if !ok {
		return buf, nil, false
	}
	text, framed := bytes.CutPrefix(bytes.TrimRight(buf, "\r\n"), []byte(pemBegin))
	text, ended := bytes.CutSuffix(text, []byte(pemEnd))
	if !framed || !ended {
		return buf, nil, false
	}
	start := len(buf)
	buf = slices.Grow(buf, base64.StdEncoding.DecodedLen(len(text)))
	der = buf[start:cap(buf)]
	n, err := base64.StdEncoding.Decode(der, text) // which skips line breaks
	return buf, der[:n], err == nil && n > 0
}

// appendUnescaped undoes %XX.
func appendUnescaped(dst, value []byte) ([]byte, bool) {
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '%' {
			if i+2 >= len(value) {
				return dst, false
			}
			high, low := digit(value[i+1]), digit(value[i+2])
			if high > 15 || low > 15 {
				return dst, false
			}
			c, i = high<<4|low, i+2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// digit is the value of a hexadecimal digit; 255 when it is none.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
