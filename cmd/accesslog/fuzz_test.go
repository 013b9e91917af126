package accesslog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// FuzzLine: no line makes a parser fail or reach beyond the line, whatever the format.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 512 "-" "\x22"`,
		`<190>Dec  1 03:04:05 sluice: {"id":"a","path":"/_sluice/open/x","status":"000","time":0.1,"upstream_time":"-"}`,
		`{"time":1796094245.1,"remote_addr":"::1","request":"GET / HTTP/1.1","a":502, 200,"b":"\u00e9\ud800"}`,
		`{"a":{"b":{"c":[1,{"d":"]"}]}}, "request`, "\x16\x03\x01\n\n{\n\"", `{"":"","":,"a":"\`,
	} {
		f.Add(s)
	}
	formats := named()
	for _, s := range []string{keyed, inOrder[:5] + "|$request|$remote_addr", proxied, asObject, raw} {
		format, err := ParseFormat(s)
		if err != nil {
			f.Fatal(err)
		}
		formats = append(formats, format)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > MaxLine {
			return
		}
		for _, format := range formats {
			b := batch{layout: newLayout(format, NewVars(), testNow), text: []byte(text + "\nguard"), line: 1}
			b.parseAll()
			if !strings.HasSuffix(string(b.text), "\nguard") {
				t.Fatalf("%s: the next line was written to", format.Name)
			}
			for i := range b.entries {
				e := &b.entries[i]
				for v := range coreVars {
					if bytes.IndexByte(e.Value(v), '\n') >= 0 && format.escape == escapeNone && !format.json {
						t.Fatalf("%s: %q holds a line end", format.Name, e.Value(v))
					}
				}
				e.AppendTarget(nil)
				e.Method()
				e.Host()
				e.HasRequest()
				e.Status()
			}
		}
	})
}

// FuzzJSON: what a JSON library writes, we read as it was, and do not repair.
func FuzzJSON(f *testing.F) {
	f.Add("curl/8.5.0", "/a?b=c", "x")
	f.Add("\x00\"\\\u2028", "/\"", "}")
	f.Fuzz(func(t *testing.T, agent, target, other string) {
		values := map[string]string{"time": "2026-12-01T03:04:05Z", "http_user_agent": strings.ToValidUTF8(agent, "?"), "request_uri": strings.ToValidUTF8(target, "?"), "zz": other}
		line, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		b := batch{layout: newLayout(named()[0], NewVars(), testNow), text: line, line: 1}
		b.parseAll()
		if len(b.entries) != 1 || b.repaired.Lines > 0 {
			t.Fatalf("%s: %d entries, %+v", line, len(b.entries), b)
		}
		for v, want := range map[Var]string{VarUserAgent: values["http_user_agent"], VarRequestURI: values["request_uri"]} {
			if want == "-" {
				want = ""
			}
			if got := string(b.entries[0].Value(v)); got != want {
				t.Fatalf("%s: %q; want %q", line, got, want)
			}
		}
	})
}

// FuzzTime: what the time package writes, we read as the same moment.
func FuzzTime(f *testing.F) {
	f.Add(int64(1796094245), 3600)
	f.Add(int64(951782400), -16200) // 29 February 2000
	f.Fuzz(func(t *testing.T, seconds int64, offset int) {
		if seconds < 0 || seconds > 200_000_000_000 || offset < -12*3600 || offset > 14*3600 {
			return
		}
		at := time.Unix(seconds, 0).In(time.FixedZone("", offset/60*60))
		if at.Year() > 9999 {
			return
		}
		for _, layout := range []string{"02/Jan/2006:15:04:05 -0700", "2006-01-02T15:04:05-07:00", time.RFC3339, "2006-01-02T15:04:05.000Z07:00"} {
			text := at.Format(layout)
			got, _, ok := readTime([]byte(text))
			if !ok || got != seconds*second {
				t.Fatalf("%s: %d; want %d", text, got/second, seconds)
			}
		}
	})
}

// FuzzFormat: a format that is taken reads any line or says why not, and one that
// is not is refused with a reason.
func FuzzFormat(f *testing.F) {
	f.Add(keyed, `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 5 "-" "-" "-" 0.1 "-"`)
	f.Add("log_format x escape=json '$remote_addr\\t' \"$msec $request\";", "a b c")
	f.Add("${remote_addr}$$x", "")
	f.Fuzz(func(t *testing.T, text, line string) {
		format, err := ParseFormat(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("no reason")
			}
			return
		}
		b := batch{layout: newLayout(format, NewVars(), testNow), text: []byte(line), line: 1}
		b.parseAll()
		for i := range b.entries {
			b.entries[i].AppendTarget(nil)
		}
	})
}
