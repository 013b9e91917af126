package accesslog

import (
	"strings"
	"testing"
)

// BenchmarkRead reads a log of 200,000 lines of each format.
func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]string{
		"combined": `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /v1/search?q=x HTTP/1.1" 200 512 "https://example.com/" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36"`,
		"json":     `{"time":"2026-12-01T03:04:05Z","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/v1/search?q=x","status":200,"upstream_status":502, 200,"http_user_agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36"}`,
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line+"\n", 200_000)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				l := Open([]Source{{Name: "x", Reader: strings.NewReader(text)}}, Options{})
				for l.Next() != nil {
				}
				if l.Close(); l.Counts().Entries != 200_000 {
					b.Fatal(l.Counts())
				}
			}
		})
	}
}
