package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/authz"
)

type serveOptions struct {
	Policy    string
	Listen    string
	Datagrams string
	Store     string
	Peers     string
	Tenants   string
	Countries string
	ASNs      string
	Spool     string
	Opened    storeOptions
	Admin     adminOptions
}

func newServeCmd(e *env) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve [POLICY]",
		Short: "Answer NGINX's questions",
		Long: `The service that NGINX asks by auth_request. The policy is read again when one
of its files changes, and at SIGHUP: a broken one leaves the last good one
serving. SIGTERM and SIGINT answer what is in flight, and end. The log is JSON
on standard error.

Sockets that systemd hands over take the place of --listen and --datagrams (and,
named admin, of --admin): questions then wait while the service restarts.

Every flag is also an environment variable: --store is SLUICE_STORE.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			o.Policy = policyArg(args)
			if err := fromEnv(e, c.Flags()); err != nil {
				return err
			}
			return runServe(e, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:9180", "HOST:PORT or unix:PATH")
	f.StringVar(&o.Datagrams, "datagrams", "127.0.0.1:9182", "HOST:PORT, UDP: where NGINX tells of the ends of requests; empty: nowhere")
	f.StringVar(&o.Admin.Listen, "admin", adminAddress, "HOST:PORT or unix:PATH of metrics, health, status and reload; empty: none")
	f.StringVar(&o.Admin.Tokens, "admin-tokens", "", "a file of who may use it: lines NAME read|write SHA256")
	f.StringVar(&o.Admin.TokenFile, "token-file", adminTokenFile, "without --admin-tokens: where a token for this machine's verbs is written")
	f.StringVar(&o.Admin.Audit, "audit", "", "a file that gets a line for every change that operators make; empty: the log does")
	f.StringVar(&o.Spool, "spool", "sluice.spool", "a directory for notifications that a webhook did not take yet; made when needed")
	f.StringVar(&o.Store, "store", "embedded:sluice.db", "embedded:FILE, memory, redis://..., rediss://..., unix://..., redis://h1,h2/?master=NAME or redis+cluster://h1,h2")
	f.IntVar(&o.Opened.Instances, "instances", 1, "how many services share the Redis: each counts its share of soft quotas alone")
	f.IntVar(&o.Opened.MaxKeys, "max-keys", 1_000_000, "the most counters that memory and embedded keep")
	f.DurationVar(&o.Opened.Deadline, "deadline", authz.DefaultDeadline, "how long a decision may wait for Redis; then on_store_down decides")
	f.StringVar(&o.Tenants, "tenants", "", "a Redis with tenants that are not in the policy, named as --store names it; empty: none")
	f.StringVar(&o.Countries, "country-db", "", "a country database (.mmdb), for limits that count by country")
	f.StringVar(&o.ASNs, "asn-db", "", "a database of autonomous systems (.mmdb), for limits that count by asn")
	f.StringVar(&o.Peers, "peers", "127.0.0.0/8,::1/128", "networks that may ask, with commas between")
	return c
}

// fromEnv gives flags that were not set their environment variable.
func fromEnv(e *env, flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "SLUICE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := e.LookupEnv(name)
		if !ok || f.Changed || f.Name == "help" || err != nil {
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = usagef("%s: %w", name, setErr)
		}
	})
	return err
}

func runServe(e *env, o serveOptions) error {
	if o.Policy == "-" {
		return usagef("serve reads its policy again at SIGHUP: it needs a file")
	}
	peers, err := parsePeers(o.Peers)
	if err != nil {
		return err
	}
	switch {
	case o.Opened.MaxKeys <= 0:
		return usagef("--max-keys %d; want more than 0", o.Opened.MaxKeys)
	case o.Opened.Deadline <= 0:
		return usagef("--deadline %s; want more than 0", o.Opened.Deadline)
	case o.Opened.Instances <= 0:
		return usagef("--instances %d; want how many share the store, 1 or more", o.Opened.Instances)
	}
	handed, err := handedSockets()
	if err != nil {
		return err
	}
	defer handed.close()
	o.Admin.Opened = handed.admin
	log := slog.New(slog.NewJSONHandler(e.Err, nil))
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	tokens, err := newAdminTokens(o.Admin, log)
	if err != nil {
		return err
	}
	source := &policySource{path: o.Policy, tokens: tokens, places: placeFiles{countries: o.Countries, asns: o.ASNs, log: log}, log: log}
	// The first policy must be good, and its findings are for a person.
	first, err := source.first(e)
	if err != nil {
		return err
	}
	places, err := source.places.open()
	if err != nil {
		return err
	}
	store, err := openStore(o.Store, o.Opened, log)
	if err != nil {
		return err
	}
	// Its error says what was not written, which nobody else will.
	defer func() {
		if err := store.Close(); err != nil {
			log.Error("closing the store", "error", err.Error())
		}
	}()
	ledger := authz.NewLedger(store.notes, log)
	notifier := authz.NewNotifier(authz.NotifierOptions{Notes: store.notes, Spool: o.Spool, LookupEnv: e.LookupEnv, Log: log})
	tenants, err := openDirectory(o.Tenants, o.Opened, log)
	if err != nil {
		return err
	}
	if tenants != nil {
		defer tenants.Close()
	}
	engine := authz.New(store.Store, authz.Options{Directory: tenants, Deadline: store.deadline, WaitsForQuotas: store.disk, Places: places, Shared: store.breaker != nil, Breaker: store.breaker, Local: store.local, Log: log, Ledger: ledger, Notifier: notifier})
	source.engine = engine
	if err := engine.Swap(first); err != nil {
		return fmt.Errorf("cannot enforce policy %q: %w", o.Policy, err)
	}
	log.Info("starting", "version", version(), "policy", first.Hash, "store", store.kind)
	reloader := authz.NewReloader(engine, source.load, log)
	port, err := startAdmin(o.Admin, source.tokens, authz.AdminOptions{Engine: engine, Reloader: reloader, Store: store.kind, Version: version(), Log: log, Explain: liveExplainer(engine)})
	if err != nil {
		return err
	}
	// What is deferred later ends earlier: datagrams, the admin port, then the store.
	defer port.close()
	port.stopping(ctx)
	port.followTenants(ctx, tenants)
	heard, err := hearDatagrams(ctx, o.Datagrams, handed.datagrams, engine, peers, port, log)
	if err != nil {
		return err
	}
	defer func() { stop(); heard() }()
	// Blocks hold from the first answer on, if the store can tell them.
	if err := ledger.Refresh(ctx); err != nil {
		log.Warn("grants and blocks are not known yet", "error", err.Error())
	}
	go ledger.Run(ctx)
	port.watching(notifier.Collectors())
	port.watching(authz.StoreCollectors(store.Store))
	// The last decision may have something to tell.
	telling, told := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); notifier.Run(telling, engine) }()
	defer func() { told(); <-done }()
	source.keepFresh(ctx, reloader, hup)
	context.AfterFunc(ctx, func() { tellManager(daemon.SdNotifyStopping, log) })
	return authz.Serve(ctx, engine, authz.ServeOptions{Listen: o.Listen, Listener: handed.decisions, Peers: peers, Log: log, Ready: func(addr net.Addr) {
		port.serving(addr)
		tellManager(daemon.SdNotifyReady, log)
	}})
}

// tellManager tells systemd how the service is, if it wants to know (Type=notify).
func tellManager(state string, log *slog.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot tell the service manager", "state", state, "error", err.Error())
	}
}

// hearDatagrams listens to NGINX telling of the ends of requests, until ctx ends:
// on a socket that is open, or on an address. The function it returns waits until
// all that was heard is settled.
func hearDatagrams(ctx context.Context, address string, open *net.UDPConn, engine *authz.Engine, peers []netip.Prefix, port *admin, log *slog.Logger) (heard func(), err error) {
	var datagrams *authz.Datagrams
	switch {
	case open != nil:
		datagrams = authz.NewDatagrams(engine, open, peers, log)
	case address == "":
		return func() {}, nil
	default:
		if datagrams, err = authz.ListenDatagrams(engine, address, peers, log); err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	go func() { datagrams.Serve(ctx); close(done) }()
	port.hearing(datagrams)
	log.Info("hearing", "datagrams", datagrams.Addr().String())
	return func() {
		<-done
		log.Info("datagrams", "counts", datagrams.Counts())
	}, nil
}

func parsePeers(list string) ([]netip.Prefix, error) {
	peers := []netip.Prefix{}
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, addrErr := netip.ParseAddr(s)
			if addrErr != nil {
				return nil, usagef("--peers: %q is no network; want CIDR,... such as 10.0.0.0/8,127.0.0.1", s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		peers = append(peers, p.Masked())
	}
	return peers, nil
}
