package authz

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
)

// Questions over HTTP, one at a time on each connection, beside a server that
// always says 204: what deciding adds to the wire.
func BenchmarkServe(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	e := New(limit.NewMemory(limit.MemoryOptions{}), Options{Log: log})
	if err := e.Swap(compile(b, timed)); err != nil {
		b.Fatal(err)
	}
	denials := newDenialLog(log, 1)
	b.Cleanup(denials.close)
	b.Run("constant", func(b *testing.B) {
		server := newServer(newHandler(e, denials), log)
		server.Handler = func(ctx *fasthttp.RequestCtx) {
			for _, name := range []string{"X-A", "X-B", "X-C", "X-D", "X-E", "X-F"} {
				ctx.Response.Header.Set(name, "some value")
			}
			ctx.SetStatusCode(fasthttp.StatusNoContent)
		}
		benchmarkServer(b, server)
	})
	b.Run("decisions", func(b *testing.B) { benchmarkServer(b, newServer(newHandler(e, denials), log)) })
}

func benchmarkServer(b *testing.B, server *fasthttp.Server) {
	path := filepath.Join(b.TempDir(), "s")
	ln, err := Listen(context.Background(), "unix:"+path)
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Shutdown() })
	question := []byte("GET /_sluice/open/rest HTTP/1.1\r\nHost: sluice\r\nX-Sluice-Method: GET\r\nX-Sluice-Uri: /v1/items?q=1\r\n" +
		"X-Sluice-Host: api.example\r\nX-Sluice-Ip: 192.0.2.1\r\nX-Sluice-Request: 0123456789abcdef0123456789abcdef\r\n" +
		"X-Sluice-Policy: 0123456789abcdef\r\nX-API-Key: sk_web\r\n\r\n")
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		var resp fasthttp.Response
		for pb.Next() {
			if _, err := conn.Write(question); err != nil {
				b.Error(err)
				return
			}
			if err := resp.Read(reader); err != nil && err != io.EOF {
				b.Error(err)
				return
			}
		}
	})
}
