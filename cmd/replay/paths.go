package replay

import (
	"crypto/sha256"
	"slices"
	"strings"

	"sluice/policies"
)

// paths counts what no route names, by shape: numbers and tokens replaced, so that
// no line of the log is kept.
type paths struct {
	count  map[string]int64
	rest   int64             // of shapes that are too many
	secret func(string) bool // tells of credentials; nil: there are none
}

func (p *paths) add(target string) {
	shape := p.shapeOf(target)
	if p.count == nil {
		p.count = map[string]int64{}
	}
	if n, known := p.count[shape]; known || len(p.count) < maxPaths {
		p.count[shape] = n + 1
		return
	}
	p.rest++
}

const (
	shapeSegments = 4
	longSegment   = 24
)

// shapeOf is a target's path with a * for each segment that may say whom or what it
// is about: numbers, long ones, those with anything but plain characters, credentials.
func (p *paths) shapeOf(target string) string {
	if _, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") {
		target = "/"
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			target = rest[i:]
		}
	}
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	var out strings.Builder
	rest, n := strings.TrimPrefix(target, "/"), 0
	for more := true; more; n++ {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		out.WriteByte('/')
		switch {
		case n == shapeSegments:
			out.WriteString("...")
			return out.String()
		case plainSegment(segment) && (p.secret == nil || !p.secret(segment)):
			out.WriteString(segment)
		default:
			out.WriteByte('*')
		}
	}
	return out.String()
}

// secretOf tells of what a client shows to be known by the policy.
func secretOf(c *policies.Compiled) func(string) bool {
	return func(s string) bool {
		if _, key := c.KeyByHash(sha256.Sum256([]byte(s))); key {
			return true
		}
		return c.Identity != nil && slices.ContainsFunc(c.Identity.Sources, func(x policies.Source) bool {
			return x.Prefix != "" && strings.HasPrefix(s, x.Prefix)
		})
	}
}

// plainSegment tells of a word that is the site's own rather than a client's.
func plainSegment(s string) bool {
	digits, hex := 0, 0
	for _, c := range []byte(s) {
		switch {
		case '0' <= c && c <= '9':
			digits++
			hex++
		case 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F':
			hex++
		case 'g' <= c && c <= 'z' || 'G' <= c && c <= 'Z' || c == '-' || c == '_' || c == '.':
		default:
			return false
		}
	}
	return s == "" || len(s) <= longSegment && digits <= 4 && digits < len(s) && (hex < len(s) || len(s) < 8)
}
