package accesslog

import "bytes"

// Entry is one request as its line tells it. Its text is borrowed from the batch
// that it was read in, and holds until the next call of Log.Next.
type Entry struct {
	// Start is when the request began, and End when its line was written: both in
	// microseconds since 1970 UTC. They are equal where the log says no $request_time.
	Start, End int64
	// Line is the line's number in its source, from 1.
	Line int64

	batch *batch
	first int // of its spans in the batch
}

// span is a piece of a batch's text; empty when the value is absent.
type span struct{ from, to uint32 }

// Value is what the line says of the variable, without escapes; nil when it says
// nothing, or "-".
func (e *Entry) Value(v Var) []byte {
	slot := e.batch.layout.slots[v]
	if slot < 0 {
		return nil
	}
	s := e.batch.spans[e.first+int(slot)]
	if s.from == s.to {
		return nil
	}
	return e.batch.text[s.from:s.to:s.to]
}

// Source is the name of the file that the line is in.
func (e *Entry) Source() string { return e.batch.source }

// Method is the request's method, nil when the line has none.
func (e *Entry) Method() []byte {
	if m := e.Value(VarMethod); m != nil {
		return m
	}
	method, _, _ := splitRequest(e.Value(VarRequest))
	return method
}

// Protocol is such as HTTP/1.1, nil when the line does not say.
func (e *Entry) Protocol() []byte {
	if p := e.Value(VarProtocol); p != nil {
		return p
	}
	_, _, protocol := splitRequest(e.Value(VarRequest))
	return protocol
}

// AppendTarget appends the request's target as the client sent it. Where the log
// has only the decoded $uri, it is encoded again, so that reading it gives $uri.
func (e *Entry) AppendTarget(dst []byte) []byte {
	if _, target, _ := splitRequest(e.Value(VarRequest)); target != nil {
		return append(dst, target...)
	}
	if target := e.Value(VarRequestURI); target != nil {
		return e.appendArgs(append(dst, target...))
	}
	for _, c := range e.Value(VarURI) {
		if c <= ' ' || c == '%' || c == '?' || c == '#' || c == 0x7f {
			const digits = "0123456789ABCDEF"
			dst = append(dst, '%', digits[c>>4], digits[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return e.appendArgs(dst)
}

func (e *Entry) appendArgs(dst []byte) []byte {
	args := e.Value(VarArgs)
	if args == nil || bytes.IndexByte(dst, '?') >= 0 {
		return dst
	}
	return append(append(dst, '?'), args...)
}

// Host is the host that the client named, or the server's name.
func (e *Entry) Host() []byte {
	if h := e.Value(VarHost); h != nil {
		return h
	}
	return e.Value(VarServerName)
}

// Status is the answer's, 0 when the line does not say.
func (e *Entry) Status() int {
	n, ok := 0, false
	for _, c := range e.Value(VarStatus) {
		if c < '0' || c > '9' || n > 999 {
			return 0
		}
		n, ok = n*10+int(c-'0'), true
	}
	if !ok {
		return 0
	}
	return n
}

// HasRequest tells whether there was a request at all: not when NGINX answered
// 400 to what it could not read, or the client left before it had sent one.
func (e *Entry) HasRequest() bool {
	if method, target, _ := splitRequest(e.Value(VarRequest)); target != nil {
		return isMethod(method)
	}
	return isMethod(e.Value(VarMethod)) && (e.Value(VarRequestURI) != nil || e.Value(VarURI) != nil)
}

// isMethod tells of what NGINX takes for a method: capitals, _ and -.
func isMethod(m []byte) bool {
	for _, c := range m {
		if (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return len(m) > 0
}

// splitRequest takes a request line apart. The target may hold spaces, which old
// NGINX lets pass; HTTP/0.9 has no protocol.
func splitRequest(line []byte) (method, target, protocol []byte) {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 {
		return nil, nil, nil
	}
	method, target = line[:i], line[i+1:]
	if j := bytes.LastIndexByte(target, ' '); j >= 0 && bytes.HasPrefix(target[j+1:], []byte("HTTP/")) {
		target, protocol = target[:j], target[j+1:]
	}
	if len(target) == 0 {
		return nil, nil, nil
	}
	return method, target, protocol
}
