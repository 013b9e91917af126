package policies

import "bytes"

// NormalizePath appends to dst the path that NGINX matches locations with: the
// request target without scheme, host, query and fragment, %XX decoded, double
// slashes merged, dot segments resolved. It follows ngx_http_parse_complex_uri
// of NGINX with merge_slashes on, the default, one state for each of its own.
// ok is false where NGINX answers 400 itself.
func NormalizePath(dst, target []byte) (path []byte, ok bool) {
	n := normalizer{out: dst, start: len(dst)}
	path, ok = n.run(pathOf(target))
	if !ok {
		return dst, false
	}
	return path, true
}

// pathOf cuts an absolute-form target down to its path.
func pathOf(target []byte) []byte {
	if len(target) == 0 || target[0] == '/' {
		return target
	}
	_, rest, found := bytes.Cut(target, []byte("://"))
	if !found {
		return nil
	}
	if i := bytes.IndexAny(rest, "/?#"); i >= 0 && rest[i] == '/' {
		return rest[i:]
	}
	return []byte("/")
}

// The states of the normaliser, by what stands just before.
const (
	inSegment  = iota
	afterSlash // at the beginning of a segment
	afterDot   // a segment that is "." so far
	afterDots  // a segment that is ".." so far
)

type normalizer struct {
	out   []byte
	start int
	state int
}

func (n *normalizer) run(target []byte) ([]byte, bool) {
	if len(target) == 0 || target[0] != '/' {
		return nil, false
	}
	n.out, n.state = append(n.out, '/'), afterSlash
	for i := 1; i < len(target); i++ {
		c, quoted := target[i], false
		switch {
		case c == '?' || c == '#':
			return n.finish()
		case c < ' ' || c == 0x7f:
			return nil, false
		case c == '%':
			if c, quoted = unhex(target[i+1:]); !quoted || c == 0 {
				return nil, false
			}
			i += 2
		}
		if quoted && (c == '%' || c == '#' || c == '?') {
			n.out, n.state = append(n.out, c), inSegment
			continue
		}
		if !n.put(c) {
			return nil, false
		}
	}
	return n.finish()
}

// put adds one decoded byte.
func (n *normalizer) put(c byte) bool {
	switch {
	case c == '/':
		return n.slash()
	case c == '.' && n.state == afterSlash:
		n.state = afterDot
	case c == '.' && n.state == afterDot:
		n.state = afterDots
	default:
		n.state = inSegment
	}
	n.out = append(n.out, c)
	return true
}

// slash ends a segment; a dot segment is taken back first.
func (n *normalizer) slash() bool {
	switch n.state {
	case inSegment:
		n.out = append(n.out, '/')
	case afterDot:
		n.out = n.out[:len(n.out)-1]
	case afterDots:
		if !n.up() {
			return false
		}
	}
	n.state = afterSlash
	return true
}

// up removes "/x/.." down to the slash in front of x; false above the root.
func (n *normalizer) up() bool {
	parent := n.out[n.start : len(n.out)-len("/..")]
	i := bytes.LastIndexByte(parent, '/')
	if i < 0 {
		return false
	}
	n.out = n.out[:n.start+i+1]
	return true
}

func (n *normalizer) finish() ([]byte, bool) {
	switch n.state {
	case afterDot:
		n.out = n.out[:len(n.out)-1]
	case afterDots:
		if !n.up() {
			return nil, false
		}
	}
	return n.out, true
}

func unhex(s []byte) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	hi, ok1 := nibble(s[0])
	lo, ok2 := nibble(s[1])
	return hi<<4 | lo, ok1 && ok2
}

func nibble(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
