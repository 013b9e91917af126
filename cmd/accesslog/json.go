package accesslog

import "bytes"

const (
	maxKey   = 128 // bytes of a key with those around it; longer ones are nobody's
	maxDepth = 8
)

// parseJSON reads a line of JSON, and what people's log_format makes of it: NGINX's
// \xHH in strings, values without quotes that are no JSON (-, 502, 200 or nothing),
// quotes inside of strings, control characters. Then repaired is true. Of two keys
// that say the same the first counts: what a client can smuggle in comes later
// than the line's address and time in most logs, and is then not believed.
func (b *batch) parseJSON(spans []span, from, to int) (p Problem, repaired bool) {
	if from == to || b.text[from] != '{' {
		return Unlike, false
	}
	j := jsonLine{b: b, spans: spans, s: b.text[:to], i: from}
	p = j.object(0)
	if p == Fine && len(bytes.TrimSpace(j.s[j.i:])) > 0 {
		j.repaired = true
	}
	return p, j.repaired
}

type jsonLine struct {
	b        *batch
	spans    []span
	s        []byte
	i        int
	key      [maxKey]byte
	repaired bool
}

func (j *jsonLine) blanks() {
	for j.i < len(j.s) && (j.s[j.i] == ' ' || j.s[j.i] == '\t') {
		j.i++
	}
}

// object reads an object whose keys follow the first prefix bytes of j.key.
func (j *jsonLine) object(prefix int) Problem {
	j.i++ // the brace
	for {
		j.blanks()
		if j.i >= len(j.s) {
			return CutShort
		}
		switch j.s[j.i] {
		case '}':
			j.i++
			return Fine
		case ',':
			j.i++
			continue
		case '"':
		default:
			return Unlike
		}
		if p := j.member(prefix); p != Fine {
			return p
		}
	}
}

func (j *jsonLine) member(prefix int) Problem {
	j.i++
	n := bytes.IndexByte(j.s[j.i:], '"')
	if n < 0 {
		return CutShort
	}
	length := j.setKey(prefix, j.s[j.i:j.i+n])
	j.i += n + 1
	j.blanks()
	if j.i >= len(j.s) {
		return CutShort
	}
	if j.s[j.i] != ':' {
		return Unlike
	}
	j.i++
	j.blanks()
	if j.i >= len(j.s) {
		return CutShort
	}
	switch j.s[j.i] {
	case '{':
		if length <= 0 || length == maxKey || bytes.Count(j.key[:length], []byte(".")) >= maxDepth {
			return j.skip()
		}
		j.key[length] = '.'
		return j.object(length + 1)
	case '[':
		return j.skip()
	case '"':
		return j.text(length)
	}
	return j.bare(length)
}

// setKey puts a key behind what is there, in lower case; -1 when it is too long.
func (j *jsonLine) setKey(prefix int, key []byte) int {
	if prefix < 0 || prefix+len(key) > maxKey {
		return -1
	}
	for i, c := range key {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		j.key[prefix+i] = c
	}
	return prefix + len(key)
}

// text reads a string. A quote ends it when what follows could follow a string.
func (j *jsonLine) text(key int) Problem {
	j.i++
	start, escaped := j.i, false
	for closed := false; !closed; {
		if j.i >= len(j.s) {
			return CutShort
		}
		c := j.s[j.i]
		j.i++
		switch {
		case c == '"':
			closed = j.ends()
			j.repaired = j.repaired || !closed
		case c == '\\':
			escaped = true
			j.i++ // what follows ends nothing
		case c < ' ':
			j.repaired = true
		}
	}
	value := j.s[start : j.i-1]
	if escaped {
		var repaired bool
		value, repaired = unescape(value, escapeJSON)
		j.repaired = j.repaired || repaired
	}
	j.set(key, value, start)
	return Fine
}

// ends tells whether a string may end here: behind it stand a closing bracket, or
// a comma and another key.
func (j *jsonLine) ends() bool {
	k := j.i
	for k < len(j.s) && (j.s[k] == ' ' || j.s[k] == '\t') {
		k++
	}
	if k == len(j.s) || j.s[k] == '}' {
		return true
	}
	if j.s[k] != ',' {
		return false
	}
	for k++; k < len(j.s) && (j.s[k] == ' ' || j.s[k] == '\t'); k++ {
	}
	return k < len(j.s) && (j.s[k] == '"' || j.s[k] == '}')
}

// bare reads a value without quotes: up to a brace, or a comma and another key.
func (j *jsonLine) bare(key int) Problem {
	start := j.i
	for ; j.i < len(j.s); j.i++ {
		if c := j.s[j.i]; (c == ',' || c == '}') && j.ends() {
			break
		}
	}
	if j.i == len(j.s) {
		return CutShort
	}
	value := bytes.TrimRight(j.s[start:j.i], " \t")
	if !isJSONScalar(value) {
		j.repaired = true
	}
	if string(value) != "null" {
		j.set(key, value, start)
	}
	return Fine
}

func isJSONScalar(s []byte) bool {
	switch string(s) {
	case "null", "true", "false":
		return true
	case "", "-":
		return false
	}
	for i, c := range s {
		switch {
		case '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+':
		case c == '-' && (i == 0 || s[i-1]|0x20 == 'e'):
		default:
			return false
		}
	}
	return true
}

// skip passes over an array, or an object that lies too deep.
func (j *jsonLine) skip() Problem {
	depth, quoted := 0, false
	for ; j.i < len(j.s); j.i++ {
		switch c := j.s[j.i]; {
		case c == '\\' && quoted:
			j.i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				j.i++
				return Fine
			}
		}
	}
	return CutShort
}

// set keeps a value that somebody wants.
func (j *jsonLine) set(key int, value []byte, at int) {
	if key < 0 || absent(value) {
		return
	}
	v, wanted := j.b.layout.vars.names[string(j.key[:key])]
	if wanted && j.spans[v].from == j.spans[v].to {
		j.spans[v] = span{uint32(at), uint32(at + len(value))}
	}
}
