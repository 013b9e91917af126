package cmd

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"sluice/authz"
	"sluice/cmd/trial"
	"sluice/policies/edge"
)

// liveOptions are the flags of explain that ask a running service.
type liveOptions struct {
	Asked     bool
	Admin     string
	TokenFile string
}

func (o *liveOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.Asked, "live", false, "ask the running service: its policy, its tenants, and counters as they are")
	f.StringVar(&o.Admin, "admin", adminAddress, "with --live: the service's --admin")
	f.StringVar(&o.TokenFile, "token-file", adminTokenFile, "with --live: where the service left its token; $"+tokenVariable+" comes first")
}

// explainLive asks a running service for the way of a request.
func explainLive(e *env, f *pflag.FlagSet, o explainOptions) (*trial.Explanation, error) {
	if o.URL == "" {
		return nil, usagef("--live wants the URL of a request; `sluice usage TENANT` shows the counters of a tenant")
	}
	for _, name := range []string{"plan", "at", "times", "instances", "country-db", "asn-db"} {
		if f.Changed(name) {
			return nil, usagef("--%s is not for --live: the service has its own", name)
		}
	}
	q := authz.ExplainAsked{Method: o.Method, URL: o.URL, IP: o.IP, Peer: o.Peer, Country: o.Country, Key: o.Key, Tenant: o.Tenant, User: o.User, Headers: map[string]string{}}
	for _, h := range o.Headers {
		name, value, ok := headerOf(h)
		if !ok {
			return nil, errHeader
		}
		q.Headers[name] = value
	}
	service, err := newClient(e, f, clientOptions{Admin: o.Live.Admin, TokenFile: o.Live.TokenFile, Format: o.Format})
	if err != nil {
		return nil, err
	}
	x := new(trial.Explanation)
	if err := service.do(http.MethodPost, "/v1/explain", nil, q, x); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		x.Header = append(x.Header, edge.Field{Name: name, Value: x.Headers[name]})
	}
	return x, nil
}

// liveExplainer tells ways of requests with the counters of a running engine. Each
// is told in its turn: it takes a policy that was made ready for it alone.
func liveExplainer(engine *authz.Engine) func(authz.ExplainAsked) (any, error) {
	var turn sync.Mutex
	return func(q authz.ExplainAsked) (any, error) {
		turn.Lock()
		defer turn.Unlock()
		o := explainOptions{Method: q.Method, URL: q.URL, IP: q.IP, Peer: q.Peer, Country: q.Country, Key: q.Key, Tenant: q.Tenant, User: q.User, Times: 1}
		if o.Method == "" {
			o.Method = http.MethodGet
		}
		if o.IP == "" {
			o.IP = someClient
		}
		for _, name := range slices.Sorted(maps.Keys(q.Headers)) {
			o.Headers = append(o.Headers, name+": "+q.Headers[name])
		}
		x, err := o.try(engine.Policy(), trial.Options{Start: time.Now(), Geo: engine.Tables(), Login: true, Live: engine})
		var wrong usageError
		if errors.As(err, &wrong) {
			return nil, authz.Mistake(errors.New(strings.TrimLeft(wrong.Error(), "-")))
		}
		return x, err
	}
}
