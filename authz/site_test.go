package authz

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
	"sluice/policies"
)

// A site is an engine with a policy, a clock of its own and the store of one
// process, asked as NGINX asks.
type site struct {
	t       testing.TB
	clock   *limittest.Clock
	store   limit.Store
	engine  *Engine
	handler *handler
	log     *safeBuffer
	quiet   func() // ends the log of denials, when it has written all
	ctx     fasthttp.RequestCtx
}

// compile reads a policy; hash(KEY) in it stands for the SHA-256 of KEY.
func compile(t testing.TB, policy string) *policies.Compiled {
	t.Helper()
	return compileIn(t, t.TempDir(), policy)
}

// compileIn is compile with the files that the policy names in dir.
func compileIn(t testing.TB, dir, policy string) *policies.Compiled {
	t.Helper()
	for {
		before, rest, found := strings.Cut(policy, "hash(")
		if !found {
			break
		}
		key, after, _ := strings.Cut(rest, ")")
		sum := sha256.Sum256([]byte(key))
		policy = before + hex.EncodeToString(sum[:]) + after
	}
	p, found := policies.ParseIn(dir, "policy.yaml", []byte("version: 1\n"+policy))
	if found.HasErrors() {
		t.Fatalf("the test's policy is not good: %v", found)
	}
	return policies.Compile(p)
}

func newSite(t testing.TB, policy string) *site {
	t.Helper()
	clock := limittest.NewClock()
	return newSiteOn(t, policy, clock, limit.NewMemory(limit.MemoryOptions{Now: clock.Now}))
}

func newSiteOn(t testing.TB, policy string, clock *limittest.Clock, store limit.Store) *site {
	t.Helper()
	s := &site{t: t, clock: clock, store: store, log: new(safeBuffer)}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.engine = New(store, Options{Log: log, Now: clock.Now, Jitter: func() float64 { return 0.999 }, Ledger: NewLedger(&limit.MemoryNotes{Now: clock.Now}, log)})
	if policy != "" {
		s.swap(policy)
	}
	denials := newDenialLog(log, 1_000_000)
	s.handler = newHandler(s.engine, denials)
	s.quiet = sync.OnceFunc(denials.close)
	t.Cleanup(s.quiet)
	return s
}

func (s *site) swap(policy string) {
	s.t.Helper()
	if err := s.engine.Swap(compile(s.t, policy)); err != nil {
		s.t.Fatalf("Swap: %v", err)
	}
}

// decide asks the engine. A header is "Name: value"; a path without a slash is
// the name of a route that fails open.
func (s *site) decide(path string, headers ...string) *Decision {
	s.t.Helper()
	var r Request
	if h := s.head(path, headers); !r.Read(h) {
		s.t.Fatalf("path %q is not taken for a question", path)
	}
	d := new(Decision)
	s.engine.Decide(&r, d)
	return d
}

func (s *site) head(path string, headers []string) *fasthttp.RequestHeader {
	if !strings.HasPrefix(path, "/") {
		path = policies.AuthPath(policies.FailOpen, path)
	}
	h := new(fasthttp.RequestHeader)
	h.SetRequestURI(path)
	h.Set(policies.HeaderMethod, "GET")
	h.Set(policies.HeaderURI, "/")
	h.Set(policies.HeaderHost, "api.example")
	h.Set(policies.HeaderIP, "192.0.2.1")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	return h
}

// answer is what NGINX gets.
type answer struct {
	status int
	header map[string]string // names as they are on the wire
	raw    string
}

// ask asks the handler.
func (s *site) ask(path string, headers ...string) answer {
	s.t.Helper()
	s.ctx.Request.Reset()
	s.ctx.Response.Reset()
	s.head(path, headers).CopyTo(&s.ctx.Request.Header)
	s.handler.serve(&s.ctx)
	return readAnswer(s.t, &s.ctx.Response)
}

func readAnswer(t testing.TB, resp *fasthttp.Response) answer {
	t.Helper()
	if n := len(resp.Body()); n > 0 {
		t.Errorf("the answer has a body of %d bytes", n)
	}
	a := answer{status: resp.StatusCode(), header: map[string]string{}}
	for name, value := range resp.Header.All() {
		a.header[string(name)] = string(value)
	}
	// The date is not the decision's.
	for line := range strings.Lines(resp.Header.String()) {
		if !strings.HasPrefix(line, "Date: ") {
			a.raw += line
		}
	}
	return a
}

// want compares some headers; an empty value means absent.
func (a answer) want(t testing.TB, what string, status int, headers ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: status %d, want %d\n%s", what, a.status, status, a.raw)
	}
	for _, line := range headers {
		name, want, _ := strings.Cut(line, ": ")
		if got := a.header[name]; got != want {
			t.Errorf("%s: %s is %q, want %q", what, name, got, want)
		}
	}
}

// passes counts how many of n questions pass.
func (s *site) passes(n int, path string, headers ...string) int {
	s.t.Helper()
	passed := 0
	for range n {
		if s.decide(path, headers...).Verdict == Allow {
			passed++
		}
	}
	return passed
}

// logged is what was logged, all of it. Later denials are not.
func (s *site) logged() string {
	s.quiet()
	return s.log.String()
}

func key(k string) string { return "X-Api-Key: " + k }

func ip(a string) string { return policies.HeaderIP + ": " + a }

func method(m string) string { return policies.HeaderMethod + ": " + m }

func uri(u string) string { return policies.HeaderURI + ": " + u }

const second = time.Second

// shop is a policy with a bit of everything.
const shop = `
identity:
  sources:
    - api_key: {header: X-API-Key}
    - api_key: {header: Authorization, scheme: Bearer, prefix: sk_}
    - api_key: {query: api_key}
    - api_key: {cookie: session}
  missing: {plan: anonymous}
  invalid: {deny: 401}
plans:
  anonymous:
    limits:
      speed: {per: ip, rate: 1/s, burst: 3}
  free:
    limits:
      speed: {per: key, rate: 2/s, burst: 10}
      org: {per: tenant, rate: 4/s, burst: 15}
  pro:
    extends: free
    priority: high
    limits:
      speed: {rate: 10/s, burst: 40}
      org: {rate: 20/s, burst: 100}
tenants:
  - id: acme
    plan: pro
    overrides: {speed: {rate: 20/s, burst: 80}}
    keys:
      - {id: acme-web, sha256: hash(sk_web)}
      - {id: acme-batch, sha256: hash(sk_batch), plan: free}
      - {id: acme-old, sha256: hash(sk_old), disabled: true}
      - {id: acme-home, sha256: hash(sk_home), cidrs: [198.51.100.0/24]}
  - id: globex
    plan: free
    keys:
      - {id: globex-a, sha256: hash(sk_a)}
      - {id: globex-b, sha256: hash(sk_b)}
  - {id: initech, plan: free, disabled: true, keys: [{id: ini, sha256: hash(sk_ini)}]}
  - id: hooli
    plan: free
    cidrs: [203.0.113.0/24, "2001:db8:77::/48"]
    keys: [{id: hooli-a, sha256: hash(sk_hooli)}]
routes:
  - name: search
    match: {prefix: /search}
    cost: 5
  - name: reports
    match: {prefix: /reports}
    plans: [free, pro]
    limits:
      reports: {per: [tenant, route], rate: 10/h, burst: 2, count: requests}
  - name: closed
    match: {prefix: /closed}
    on_store_down: closed
  - name: free_for_all
    match: {prefix: /free}
    exempt: true
  - name: read
    match: {prefix: /items, methods: [GET, HEAD]}
  - name: write
    match: {prefix: /items, methods: [POST]}
    cost: 2
  - name: rest
    match: {prefix: /}
`
