package authz

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"

	"sluice/policies"
)

// shownFindings is how many findings of a broken policy a log line names.
const shownFindings = 3

// Reloader keeps an engine on the newest policy that is good.
type Reloader struct {
	engine *Engine
	load   func() (*policies.Compiled, policies.Diagnostics)
	log    *slog.Logger

	turn sync.Mutex // one reload at a time

	mu     sync.Mutex // of status, which must not wait for a reload
	status ReloadStatus
}

// ReloadStatus tells how reloading goes.
type ReloadStatus struct {
	Loads, Failures int
	// At is when the policy was last read; the zero time: never.
	At time.Time
	// Findings are what was found in it, warnings included.
	Findings policies.Diagnostics
	// Err is why the newest policy is not in force; nil when it is.
	Err error
}

// NewReloader makes a reloader. load reads the policy anew: a nil policy, or a
// finding that is an error, means that it is not good. log nil: slog.Default.
func NewReloader(e *Engine, load func() (*policies.Compiled, policies.Diagnostics), log *slog.Logger) *Reloader {
	if log == nil {
		log = slog.Default()
	}
	return &Reloader{engine: e, load: load, log: log}
}

// Reload reads the policy and puts it in force if it is good; otherwise the old
// one stays, and the error says why. Counters live in the store and go on.
func (r *Reloader) Reload() error {
	r.turn.Lock()
	defer r.turn.Unlock()
	c, found := r.load()
	err := r.use(c, found)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Loads++
	r.status.At, r.status.Err, r.status.Findings = time.Now(), err, found
	if err != nil {
		r.status.Failures++
	}
	return err
}

func (r *Reloader) use(c *policies.Compiled, found policies.Diagnostics) error {
	if c == nil || found.HasErrors() {
		return r.keep(found, fmt.Errorf("cannot use the policy: %s", summary(found)))
	}
	old := r.engine.Policy()
	if old != nil && sameMeaning(old, c) {
		r.log.Info("policy unchanged", "policy", c.Hash)
		return nil
	}
	if err := r.engine.Swap(c); err != nil {
		return r.keep(found, err)
	}
	r.log.Info("policy loaded", "policy", c.Hash, "mode", string(c.Mode), "routes", len(c.Routes),
		"plans", len(c.Plans), "tenants", len(c.Tenants), "warnings", len(found))
	return nil
}

// keep says that the old policy stays in force, if there is one.
func (r *Reloader) keep(found policies.Diagnostics, err error) error {
	attrs := []any{"error", err.Error(), "findings", len(found)}
	for i, d := range found[:min(len(found), shownFindings)] {
		attrs = append(attrs, fmt.Sprintf("finding_%d", i+1), d.String())
	}
	if old := r.engine.Policy(); old != nil {
		attrs = append(attrs, "serving", old.Hash)
	}
	r.log.Error("policy not loaded: the last good one serves", attrs...)
	return err
}

// summary is the first error among findings, and how many there are.
func summary(found policies.Diagnostics) string {
	for _, d := range found {
		switch {
		case d.Warning:
		case len(found) == 1:
			return d.String()
		default:
			return fmt.Sprintf("%s (and %d more)", d, len(found)-1)
		}
	}
	return "it could not be read"
}

// sameMeaning tells whether two policies say the same. The hash speaks for
// everything but tenants, and the keys of issuers, which are in other files.
func sameMeaning(a, b *policies.Compiled) bool {
	return a.Hash == b.Hash && reflect.DeepEqual(a.Tenants, b.Tenants) && reflect.DeepEqual(a.Identity, b.Identity)
}

// Run reloads at every signal until ctx ends or the channel closes. Register the
// channel before the first Reload, so that no signal is lost.
func (r *Reloader) Run(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case sig, ok := <-signals:
			if !ok {
				return
			}
			r.log.Info("reloading", "signal", sig.String())
			// What went wrong is in the log and in Status.
			_ = r.Reload()
		}
	}
}

// Status tells how reloading goes.
func (r *Reloader) Status() ReloadStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}
