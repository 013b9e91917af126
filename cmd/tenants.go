package cmd

import (
	"context"
	"log/slog"

	"sluice/authz/directory"
)

// openDirectory opens the Redis in which tenants live besides those of the
// policy; nil when there is none.
func openDirectory(url string, o storeOptions, log *slog.Logger) (*directory.Directory, error) {
	if url == "" {
		return nil, nil
	}
	d, err := directory.Open(url, directory.Options{Deadline: o.Deadline, Log: log})
	if err != nil {
		return nil, usagef("--tenants: %w", err)
	}
	return d, nil
}

// followTenants hears of changes until ctx ends, and shows what is read.
func (a *admin) followTenants(ctx context.Context, d *directory.Directory) {
	if d == nil {
		return
	}
	go d.Run(ctx)
	if a != nil {
		a.Registry.MustRegister(d.Collector())
	}
}
