package cmd

import (
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/cmd/trial"
	"sluice/gen"
	"sluice/policies"
	"sluice/policies/edge"
)

type explainOptions struct {
	Policy  string
	URL     string
	Method  string
	Headers []string
	IP      string
	Peer    string
	Key     string
	Tenant  string
	User    string
	Plan    string
	Country string
	At      string
	Times   int
	Format  string
	Nodes   int
	Geo     geoOptions
	Live    liveOptions
}

// someClient is who asks when nobody says.
const someClient = "203.0.113.1"

func newExplainCmd(e *env) *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain [POLICY] [URL]",
		Short: "Tell the whole way of one request, or the limits of a tenant or plan",
		Long: `Tells what would become of one request: the client's address, access rules,
edge limits, identity, plan, route, cost, each limit with its counter, and the
answer; also what did not apply, and why. Nothing is asked and nothing is
counted: the counters are empty before it, --times sends the request so many
times first. With --live the running service tells it, by its own policy and with
its counters as they are; nothing is charged.

    sluice explain policy.yaml -H 'X-API-Key: …' --ip 192.0.2.7 /v1/search?q=x
    sluice explain policy.yaml --key acme-web --times 50 /v1/search
    sluice explain --live --key acme-web /v1/search

Without a URL, --tenant or --plan: a table of the limits that hold, where each
number comes from, and what happens when the store is away.

    sluice explain policy.yaml --tenant acme`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usagef("want a POLICY and a URL; got %q", args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.Live.Asked && len(args) > 1 {
				return usagef("--live has the service's policy; want a URL alone")
			}
			o.Policy, o.URL = explainArgs(args)
			return runExplain(e, c.Flags(), o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Method, "request", "X", "GET", "the method")
	f.StringArrayVarP(&o.Headers, "header", "H", nil, "a header, 'Name: value'; repeatable")
	f.StringVar(&o.IP, "ip", someClient, "the client's address")
	f.StringVar(&o.Peer, "peer", "", "who connects, when it is not the client: a proxy")
	f.StringVar(&o.Key, "key", "", "show the credential of the key with this id")
	f.StringVar(&o.Tenant, "tenant", "", "be somebody of this tenant; without a URL: its limits")
	f.StringVar(&o.User, "user", "", "the user of --tenant")
	f.StringVar(&o.Plan, "plan", "", "without a URL: the limits of this plan")
	f.StringVar(&o.Country, "country", "", "where the client is, instead of a look into --country-db")
	f.StringVar(&o.At, "at", "", "when, such as 2026-12-01T09:00:00Z; now when left out")
	f.IntVar(&o.Times, "times", 1, "send it so many times at once, and tell of the last")
	f.IntVar(&o.Nodes, "instances", 1, "how many instances of the service share the store")
	f.StringVar(&o.Format, "format", "text", "text or json")
	o.Geo.flags(f)
	o.Live.flags(f)
	return c
}

// explainArgs tells the policy from the URL: a URL begins with a slash or a
// scheme, and stands last. A lone argument that is the name of a file is the policy.
func explainArgs(args []string) (policy, target string) {
	if len(args) == 2 {
		return args[0], args[1]
	}
	if len(args) == 1 && (strings.Contains(args[0], "://") || strings.HasPrefix(args[0], "/") && !strings.HasSuffix(args[0], ".yaml") && !strings.HasSuffix(args[0], ".yml")) {
		return policyArg(nil), args[0]
	}
	return policyArg(args), ""
}

func runExplain(e *env, f *pflag.FlagSet, o explainOptions) error {
	switch {
	case o.Format != "text" && o.Format != "json":
		return usagef("--format %q; want text or json", o.Format)
	case o.Live.Asked:
		x, err := explainLive(e, f, o)
		if err != nil {
			return err
		}
		return printExplanation(e, o.Format, x)
	case o.URL == "" && o.Tenant == "" && o.Plan == "":
		return usagef("want a URL, such as /v1/search, or --tenant or --plan")
	case o.URL != "" && o.Plan != "":
		return usagef("--plan is for a table of limits; a request has the plan of its credential: want --key or --tenant")
	case o.Times < 1 || o.Times > policies.MaxTestRequests:
		return usagef("--times %d; want 1 to %d", o.Times, policies.MaxTestRequests)
	case o.Nodes < 1:
		return usagef("--instances %d; want 1 or more", o.Nodes)
	}
	p, ds, err := loadPolicy(e, o.Policy)
	if err != nil {
		return err
	}
	if o.URL == "" && !ds.HasErrors() {
		// A table tells also what is not enforced yet.
		return explainLimits(e, o, p, policies.Compile(p))
	}
	c, err := compileQuietly(e, p, ds)
	if err != nil {
		return err
	}
	return explainRequest(e, o, c)
}

func explainRequest(e *env, o explainOptions, c *policies.Compiled) error {
	var opt gen.Options
	if err := o.Geo.open(&opt); err != nil {
		return err
	}
	x, err := o.try(c, trial.Options{Start: time.Now(), Geo: opt.Geo, Login: true})
	if err != nil {
		return err
	}
	return printExplanation(e, o.Format, x)
}

func printExplanation(e *env, format string, x *trial.Explanation) error {
	if format == "json" {
		return writeIndented(e.Out, x)
	}
	paint := paintFor(e)
	lines := []string{paint.strong(x.Method + " " + x.URL), ""}
	lines = append(lines, explanationLines(x, paint, "")...)
	if len(x.Header) > 0 {
		lines = append(append(lines, ""), headerLines(x, paint, "    ")...)
	}
	_, err := io.WriteString(e.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// try sends the request through a trial of its own.
func (o *explainOptions) try(c *policies.Compiled, opt trial.Options) (*trial.Explanation, error) {
	req, err := o.request(opt.Start)
	if err != nil {
		return nil, err
	}
	opt.Start = req.At
	who := trial.Who{Key: o.Key, Tenant: o.Tenant, User: o.User}
	cast, errs := trial.NewCast(c, []trial.Who{who})
	if errs[0] != nil {
		return nil, usageError{errs[0]}
	}
	t, err := trial.New(cast.Policy(), opt)
	if err != nil {
		return nil, err
	}
	cast.Show(&who, req)
	ip, peer, err := o.addresses()
	if err != nil {
		return nil, err
	}
	trial.From(c, &req.Request, ip, peer)
	for range o.Times - 1 {
		again := *req
		t.Submit(&again, func(*trial.Outcome) {})
	}
	req.Trace = &trial.Trace{}
	t.Run(req, func(*trial.Outcome) {})
	return t.Explain(req.Trace), nil
}

// errHeader does not show the header: its value may be a secret.
var errHeader = usagef("-H: want 'Name: value'")

// headerOf reads 'Name: value'.
func headerOf(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	return name, value, ok && name != ""
}

// request reads the request out of the flags. It comes at a time unless they say
// another one.
func (o *explainOptions) request(at time.Time) (*trial.Request, error) {
	if o.At != "" {
		var instant policies.Instant
		if err := instant.UnmarshalText([]byte(o.At)); err != nil {
			return nil, usagef("--at: %w", err)
		}
		at = time.Time(instant)
	}
	var target policies.Target
	if err := target.UnmarshalText([]byte(o.URL)); err != nil {
		return nil, usagef("URL: %w", err)
	}
	host, uri := target.Split()
	if host == "" {
		host = "localhost"
	}
	req := &trial.Request{Request: edge.Request{Method: o.Method, URI: uri, Host: host}, At: at}
	if o.Country != "" {
		var country policies.Country
		if err := country.UnmarshalText([]byte(o.Country)); err != nil {
			return nil, usagef("--country: %w", err)
		}
		req.Country = country
	}
	for _, h := range o.Headers {
		name, value, ok := headerOf(h)
		if !ok {
			return nil, errHeader
		}
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header = append(req.Header, edge.Field{Name: name, Value: value})
	}
	return req, nil
}

func (o *explainOptions) addresses() (ip, peer netip.Addr, err error) {
	if ip, err = netip.ParseAddr(o.IP); err != nil {
		return ip, peer, usagef("--ip %q; want an address such as 192.0.2.7", o.IP)
	}
	if o.Peer != "" {
		if peer, err = netip.ParseAddr(o.Peer); err != nil {
			return ip, peer, usagef("--peer %q; want an address such as 10.0.0.1", o.Peer)
		}
	}
	return ip, peer, nil
}
