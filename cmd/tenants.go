package cmd

import (
	"context"
	"log/slog"

	"sluice/authz"
	"sluice/authz/directory"
)

// openDirectory opens the Redis in which tenants live besides those of the
// policy; nil when there is none. The engine that it is for comes later.
func openDirectory(url string, o storeOptions, engine **authz.Engine, log *slog.Logger) (*directory.Directory, error) {
	if url == "" {
		return nil, nil
	}
	d, err := directory.Open(url, directory.Options{
		Deadline: o.Deadline,
		Log:      log,
		Plan: func(name string) bool {
			if *engine == nil || (*engine).Policy() == nil {
				return true
			}
			_, known := (*engine).Policy().PlanNamed(name)
			return known
		},
	})
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
