//go:build !race

package accesslog

import (
	"bytes"
	"testing"
)

// TestAllocations: a line costs no memory of its own, in any format.
func TestAllocations(t *testing.T) {
	for format, line := range map[string]string{
		"combined":                            `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /a\x22b HTTP/1.1" 200 512 "-" "curl/8.5.0"`,
		"json":                                `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request":"GET /\x22a HTTP/1.1","upstream_status":502, 200,"http":{"referer":"x"}}`,
		inOrder[:6] + "$remote_addr|$request": `1796094245.250|192.0.2.7|GET /a HTTP/1.1`,
	} {
		f, err := ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Repeat([]byte(line+"\n"), 100)
		b := &batch{layout: newLayout(f, NewVars(), testNow), line: 1}
		b.text = append(b.text, lines...)
		b.parseAll()
		if len(b.entries) != 100 {
			t.Fatalf("%s: %+v", format, b.problems)
		}
		layout := b.layout
		if n := testing.AllocsPerRun(20, func() {
			b.reset()
			b.layout, b.line = layout, 1
			b.text = append(b.text, lines...)
			b.parseAll()
		}); n > 0 {
			t.Errorf("%s: %v allocations for 100 lines", format, n)
		}
	}
}
