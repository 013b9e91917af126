package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/authz"
)

// adminOptions are the flags of the admin port.
type adminOptions struct {
	Listen    string       // empty: there is none
	Tokens    string       // a file with tokens; empty: serve makes one
	TokenFile string       // where it then writes it
	Audit     string       // a file that gets every change; empty: the log does
	Opened    net.Listener // instead of Listen; nil: none was handed over
}

func (o adminOptions) wanted() bool { return o.Listen != "" || o.Opened != nil }

// adminTokens are who may use the admin port.
type adminTokens struct {
	authz.Tokens
	file   string // with those that operators made; empty: there is none
	issued string // where one was written for this machine
}

// reload reads the operators' file again.
func (t *adminTokens) reload() error {
	if t.file == "" {
		return nil
	}
	return t.Load(t.file)
}

// admin is the admin port of a running service; nil when there is none.
type admin struct {
	*authz.Admin
	tokens *adminTokens
	cancel context.CancelFunc
	done   chan struct{}
}

// startAdmin opens the admin port, before decisions are answered, so that two
// services with one port are seen at once. It goes on while the service stops,
// which is when it is looked at: see stopping and close.
func startAdmin(o adminOptions, tokens *adminTokens, with authz.AdminOptions) (*admin, error) {
	if !o.wanted() {
		return nil, nil
	}
	audit, err := authz.OpenAudit(o.Audit, with.Log)
	if err != nil {
		return nil, err
	}
	with.Audit = audit
	ctx, cancel := context.WithCancel(context.Background())
	a := &admin{tokens: tokens, cancel: cancel, done: make(chan struct{})}
	ln, err := a.listen(ctx, o)
	if err != nil {
		cancel()
		return nil, err
	}
	with.Tokens = &tokens.Tokens
	with.Registry = authz.NewRegistry(with.Engine, with.Reloader, with.Version)
	a.Admin = authz.NewAdmin(with)
	a.Listening("admin", ln.Addr())
	go func() {
		defer close(a.done)
		// Decisions go on without it.
		if err := a.Serve(ctx, ln); err != nil {
			with.Log.Error("admin", "error", err.Error())
		}
	}()
	with.Log.Info("admin", "listen", ln.Addr().String())
	return a, nil
}

// listen opens the port and then writes the token: two services that want one
// port must not take each other's tokens away.
func (a *admin) listen(ctx context.Context, o adminOptions) (net.Listener, error) {
	ln, err := o.Opened, error(nil)
	if ln == nil {
		ln, err = authz.Listen(ctx, o.Listen)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot open the admin port: %w; another process has it, a second sluice perhaps: want another --admin, or an empty one for none", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the admin port: %w", err)
	}
	if o.Tokens == "" {
		a.tokens.issued = o.TokenFile
		if err := a.tokens.Issue(o.TokenFile); err != nil {
			ln.Close()
			return nil, fmt.Errorf("%w; want --token-file where it can be written, or --admin-tokens", err)
		}
	}
	return ln, nil
}

// serving says where decisions are answered.
func (a *admin) serving(addr net.Addr) {
	if a != nil {
		a.Serving(addr)
	}
}

// hearing shows datagrams, too.
func (a *admin) hearing(d *authz.Datagrams) {
	if a != nil {
		a.Listening("datagrams", d.Addr())
		a.Registry.MustRegister(d.Collector())
	}
}

// watching shows more numbers.
func (a *admin) watching(collectors []prometheus.Collector) {
	if a != nil {
		a.Registry.MustRegister(collectors...)
	}
}

// stopping makes the service not ready, from when ctx ends.
func (a *admin) stopping(ctx context.Context) {
	if a != nil {
		context.AfterFunc(ctx, a.Stopping)
	}
}

// close closes the port and takes back the token that was issued.
func (a *admin) close() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
	if a.tokens.issued != "" {
		a.tokens.Withdraw(a.tokens.issued)
	}
}

// newAdminTokens reads the operators' tokens, when there are any.
func newAdminTokens(o adminOptions, log *slog.Logger) (*adminTokens, error) {
	t := &adminTokens{file: o.Tokens}
	if !o.wanted() && o.Tokens != "" {
		log.Warn("tokens are not used: there is no admin port")
	}
	return t, t.reload()
}
