package limit

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestClientLogIsQuiet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &clientLog{log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 1000 {
		l.Printf(context.Background(), "redis: connection pool: failed to dial %s", "h1")
	}
	if n := strings.Count(out.String(), "\n"); n < 1 || n > 3 {
		t.Errorf("%d lines were written:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), `level=WARN msg="redis client: connection pool: failed to dial h1"`) {
		t.Errorf("it says %s", out.String())
	}
}
