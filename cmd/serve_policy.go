package cmd

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"

	"sluice/authz"
	"sluice/policies"
)

// policySource is what a running service reads again: its policy, who may use
// the admin port, and where clients are.
type policySource struct {
	path   string
	tokens *adminTokens
	places placeFiles
	engine *authz.Engine // which looks clients up; set before load
	log    *slog.Logger
	latest atomic.Pointer[policies.Policy] // read last, good or not
	good   atomic.Pointer[policies.Policy] // the last without errors
}

// first reads the policy for the first time. Its findings are printed.
func (s *policySource) first(e *env) (*policies.Compiled, error) {
	p, ds, err := loadPolicy(e, s.path)
	if err != nil {
		return nil, err
	}
	s.latest.Store(p)
	return compileLoaded(e, p, ds)
}

// load reads everything anew. Tokens that are not good leave the old ones, and
// the policy is read all the same: neither waits for the other to be repaired.
func (s *policySource) load() (*policies.Compiled, policies.Diagnostics) {
	if err := s.tokens.reload(); err != nil {
		s.log.Error("tokens not loaded: the last good ones hold", "error", err.Error())
	}
	s.places.reload(s.engine)
	p, ds := policies.Load(s.path)
	s.latest.Store(p)
	if !ds.HasErrors() {
		s.good.Store(p)
	}
	return ready(p, ds)
}

// files are what to watch. A policy that is broken may not name all its files
// any more: those of the good one before are watched, too.
func (s *policySource) files() (names, patterns []string) {
	names = append(names, s.path)
	if s.tokens.file != "" {
		names = append(names, s.tokens.file)
	}
	names = append(names, s.places.files()...)
	for _, p := range []*policies.Policy{s.latest.Load(), s.good.Load()} {
		if p != nil {
			n, g := p.Files()
			names, patterns = append(names, n...), append(patterns, g...)
		}
	}
	return names, patterns
}

// keepFresh reloads at every signal, and when a file changes.
func (s *policySource) keepFresh(ctx context.Context, r *authz.Reloader, signals <-chan os.Signal) {
	go r.Run(ctx, signals)
	go authz.Watch(ctx, authz.WatchOptions{
		Files:   s.files,
		Changed: func() { _ = r.Reload() }, // what went wrong is in the log and in its status
		Log:     s.log,
	})
}
