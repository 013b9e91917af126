package cmd

import (
	"context"
	"log/slog"
	"net"

	"sluice/authz"
)

// adminOptions are the flags of the admin port.
type adminOptions struct {
	Listen    string // empty: there is none
	Tokens    string // a file with tokens; empty: serve makes one
	TokenFile string // where it then writes it
}

// admin is the admin port of a running service.
type admin struct {
	*authz.Admin
	tokens *authz.Tokens
	issued string // the token file that was written
	done   chan struct{}
}

// startAdmin opens the admin port, before decisions are answered, so that two
// services with one port are seen at once. The reloader of o is used.
func startAdmin(ctx context.Context, o adminOptions, with authz.AdminOptions, log *slog.Logger) (*admin, error) {
	if o.Listen == "" {
		return nil, nil
	}
	ln, err := authz.Listen(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	a := &admin{tokens: new(authz.Tokens), done: make(chan struct{})}
	if err := a.authorise(o); err != nil {
		ln.Close()
		return nil, err
	}
	with.Tokens, with.Log = a.tokens, log
	with.Registry = authz.NewRegistry(with.Engine, with.Reloader, with.Version)
	a.Admin = authz.NewAdmin(with)
	a.Listening("admin", ln.Addr())
	go func() {
		defer close(a.done)
		// Decisions go on without it.
		if err := a.Serve(ctx, ln); err != nil {
			log.Error("admin", "error", err.Error())
		}
	}()
	log.Info("admin", "listen", ln.Addr().String())
	return a, nil
}

// authorise reads the tokens, or makes one for the verbs on this machine.
func (a *admin) authorise(o adminOptions) error {
	if o.Tokens != "" {
		return a.tokens.Load(o.Tokens)
	}
	a.issued = o.TokenFile
	return a.tokens.Issue(o.TokenFile)
}

// serving says where decisions are answered; without an admin port nobody asks.
func (a *admin) serving(addr net.Addr) {
	if a != nil {
		a.Serving(addr)
	}
}

// close waits until the port is closed, and takes back the token that was issued.
func (a *admin) close() {
	if a == nil {
		return
	}
	<-a.done
	if a.issued != "" {
		a.tokens.Withdraw(a.issued)
	}
}
