package authz

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// linger is how long connections are answered once more when the service ends. NGINX
// keeps them open between questions; one that is closed while a question is on its
// way is a failure to NGINX, and a few of them a service that is away. Those that are
// busy are told with an answer that it is their last, and those that are not used for
// so long hardly are in just this moment. Whoever restarts the service has questions
// waiting meanwhile, and NGINX waits 200 ms for each.
const linger = 50 * time.Millisecond

// farewell ends the server within the grace period. accepted tells when it accepts no
// more.
func (h *handler) farewell(server *fasthttp.Server, ln net.Listener, accepted <-chan error, grace time.Duration, log *slog.Logger) error {
	if grace <= 0 {
		grace = defaultGrace
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	h.leaving.Store(true)
	_ = ln.Close()
	<-accepted
	if !h.alone(ctx, min(linger, grace/2)) {
		if err := h.shutdown(ctx, server); err != nil {
			log.Info("stopped", "cut_off", h.conns.Load(), "decisions", h.engine.Counters())
			return fmt.Errorf("cannot answer everything within %s: %w", grace, err)
		}
	}
	log.Info("stopped", "cut_off", 0, "decisions", h.engine.Counters())
	return nil
}

// shutdown waits until everything is answered. The server itself looks every 100 ms
// only.
func (h *handler) shutdown(ctx context.Context, server *fasthttp.Server) error {
	ended := make(chan error, 1)
	go func() { ended <- server.ShutdownWithContext(ctx) }()
	if h.alone(ctx, defaultGrace) {
		return nil
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) { // its listener is closed already
		return err
	}
	return nil
}

// alone waits until nobody is connected, for so long at most.
func (h *handler) alone(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for h.conns.Load() > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}
