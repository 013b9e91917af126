package accesslog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSONRepaired: what people's log_format makes of JSON is read all the same.
func TestJSONRepaired(t *testing.T) {
	const head = `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/a",`
	tests := []struct{ name, line, agent string }{
		{"a list without quotes", head + `"upstream_status":502, 200,"status":200,"http_user_agent":"x"}`, "x"},
		{"a dash for a number", head + `"upstream_response_time":-,"status":200,"http_user_agent":"x"}`, "x"},
		{"nothing for a number", head + `"upstream_response_time":,"status":200,"http_user_agent":"x"}`, "x"},
		{"a list at the end", head + `"status":200,"http_user_agent":"x","upstream_status":502, 200 : 200}`, "x"},
		{"escape=default inside", head + `"status":200,"http_user_agent":"say \x22hi\x22"}`, `say "hi"`},
		{"a quote inside, escape=none", head + `"status":200,"http_user_agent":"say "hi" to, you","x":1}`, `say "hi" to, you`},
		{"a control character", head + `"status":200,"http_user_agent":"a` + "\x01" + `b"}`, "a\x01b"},
		{"an escape that JSON lacks", head + `"status":200,"http_user_agent":"a\qb"}`, `a\qb`},
		{"more behind its end", head + `"status":200,"http_user_agent":"x"} trailing`, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := said{Start: "2026-12-01T03:04:05", Client: "192.0.2.7", Method: "GET", Target: "/a", Agent: tt.agent, Status: 200}
			got, counts := read(t, named()[0], tt.line+"\n")
			if diff := cmp.Diff([]said{want}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if counts.Repaired.Lines != 1 || counts.Repaired.Line != 1 {
				t.Errorf("repaired: %+v", counts.Repaired)
			}
		})
	}
}

// TestJSONGood: what is JSON is not called repaired.
func TestJSONGood(t *testing.T) {
	_, counts := read(t, nil, `{"time":"2026-12-01T03:04:05Z", "remote_addr" : "192.0.2.7", "request":"GET / HTTP/1.1","x":[1,{"a":"]"}],"n":-1.5e+3,"b":true,"z":null,"o":{"request":"nested","p":{}},"u":"\ud83d\ude00\/\"\\"}`+"\n")
	if counts.Entries != 1 || counts.Repaired.Lines != 0 {
		t.Errorf("counts: %+v", counts)
	}
}

// TestJSONFirstCounts: a key that a client smuggled in behind does not replace
// what NGINX wrote before.
func TestJSONFirstCounts(t *testing.T) {
	got, _ := read(t, named()[0], `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","http_user_agent":"x","remote_addr":"127.0.0.1","q":"y"}`+"\n")
	if len(got) != 1 || got[0].Client != "192.0.2.7" {
		t.Errorf("got %+v", got)
	}
}

// TestBad: what cannot be read is counted, with its reason and the place of the first.
func TestBad(t *testing.T) {
	_, counts := read(t, named()[0], `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1"}
nonsense

{"time":"yesterday","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1"}
{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","requ
{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7"
`)
	want := Counts{Lines: 5, Entries: 1, Whole: 1}
	want.Bad[Unlike] = Tally{1, "access.log", 2}
	want.Bad[NoTime] = Tally{1, "access.log", 4}
	want.Bad[CutShort] = Tally{2, "access.log", 5}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
