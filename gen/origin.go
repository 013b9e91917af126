package gen

import (
	"bytes"

	"sluice/policies"
)

// Origins tell which place of the policy each rendered line comes from, so that
// what NGINX says of a file can be said of the policy.
type Origins map[string][]span

// span is a run of lines that one place of the policy gave.
type span struct {
	first, last int // lines, counted from 1
	path        string
}

// Path is the place that a line of a file comes from, as findings write it
// (edge.access[2]); the innermost of several, empty when the line is nobody's.
func (o Origins) Path(file string, line int) string {
	path := ""
	for _, r := range o[file] { // an outer run stands before those within it
		if r.first <= line && line <= r.last {
			path = r.path
		}
	}
	return path
}

// A mark is a path between two zero bytes in the text that templates write, and
// nothing between them ends it. No other token holds that byte, and no file: cut
// takes the marks out.
const markByte = "\x00"

// mark begins what comes from a place of the policy.
func mark(path string) Token { return Token{markByte + path + markByte} }

// End is the end of what a mark begins; nothing for no mark.
func (t Token) End() Token {
	if t.text == "" {
		return Token{}
	}
	return Token{markByte + markByte}
}

// cut takes the marks out of what a template wrote.
func cut(text []byte) ([]byte, []span) {
	at := bytes.IndexByte(text, 0)
	if at < 0 {
		return text, nil
	}
	var origins []span
	var open []int // indexes of origins whose end is not there yet
	clean := make([]byte, 0, len(text))
	line := 1
	for at >= 0 {
		clean = append(clean, text[:at]...)
		line += bytes.Count(text[:at], []byte("\n"))
		length := bytes.IndexByte(text[at+1:], 0)
		if path := text[at+1 : at+1+length]; length > 0 {
			open = append(open, len(origins))
			origins = append(origins, span{first: line, path: string(path)})
		} else {
			last := line
			if len(clean) > 0 && clean[len(clean)-1] == '\n' {
				last-- // the mark stands at the beginning of the next line
			}
			origins[open[len(open)-1]].last = last
			open = open[:len(open)-1]
		}
		text = text[at+length+2:]
		at = bytes.IndexByte(text, 0)
	}
	return append(clean, text...), origins
}

// from marks blocks that have no place yet.
func from(path string, blocks []block) {
	for i := range blocks {
		if blocks[i].From.text == "" {
			blocks[i].From = mark(path)
		}
	}
}

// The places of the policy that gave what is compiled.
func accessPath(r *policies.AccessRule) string { return policies.ElemPath("edge.access", r.Index) }

func limitPath(name string) string { return policies.FieldPath("edge.limits", name) }

func routePath(r *policies.Route) string { return policies.ElemPath("routes", r.Index) }
