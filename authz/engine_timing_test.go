package authz

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// timed is the shop with buckets that never empty.
const timed = `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1000000/s, burst: 1000000}}}
  pro: {limits: {speed: {per: key, rate: 1000000/s, burst: 1000000}, org: {per: tenant, rate: 1000000/s, burst: 1000000}}}
tenants: [{id: acme, plan: pro, keys: [{id: acme-web, sha256: hash(sk_web)}]}]
routes:
  - {name: rest, match: {prefix: /}, cost: 1}
  - {name: wide, match: {prefix: /wide}, limits: {wide: {per: route, rate: 1000000/s, burst: 1000000}}}
`

func benchmarkHandler(b *testing.B, policy, route string, headers ...string) {
	s := newSiteOn(b, policy, newSite(b, "").clock, limit.NewMemory(limit.MemoryOptions{}))
	s.quiet()
	head := s.head(route, headers)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var ctx fasthttp.RequestCtx
		head.CopyTo(&ctx.Request.Header)
		for pb.Next() {
			ctx.Response.Reset()
			s.handler.serve(&ctx)
		}
	})
}

// From the head of a question to the headers of its answer.
func BenchmarkDecide(b *testing.B) {
	b.Run("key, 2 limits", func(b *testing.B) { benchmarkHandler(b, timed, "rest", key("sk_web")) })
	b.Run("key, 3 limits", func(b *testing.B) { benchmarkHandler(b, timed, "wide", key("sk_web")) })
	b.Run("anonymous, 1 limit", func(b *testing.B) { benchmarkHandler(b, timed, "rest") })
	b.Run("denied", func(b *testing.B) { benchmarkHandler(b, shop, "rest") })
	b.Run("bad key", func(b *testing.B) { benchmarkHandler(b, shop, "rest", key("sk_nobody")) })
	b.Run("exempt", func(b *testing.B) { benchmarkHandler(b, timed, "rest", key("sk_web"), "X-Sluice-Exempt: 1") })
}

// Many clients, so that neither the store nor a cache knows the next one.
func BenchmarkDecideManyClients(b *testing.B) {
	s := newSiteOn(b, timed, newSite(b, "").clock, limit.NewMemory(limit.MemoryOptions{}))
	addresses := make([][]byte, 100_000)
	for i := range addresses {
		addresses[i] = fmt.Appendf(nil, "10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var d Decision
		r := Request{Route: []byte("rest"), Mode: policies.FailOpen, Method: []byte("GET")}
		i := int(next.Add(7919))
		for pb.Next() {
			i++
			r.IP = addresses[i%len(addresses)]
			s.engine.Decide(&r, &d)
		}
	})
}

// What a swap costs with as many tenants as a large site has.
func BenchmarkSwap(b *testing.B) {
	c := *compile(b, timed)
	tenant := c.Tenants[0]
	c.Tenants = nil
	for i := range 10_000 {
		tenant.ID = fmt.Sprintf("tenant-%d", i)
		c.Tenants = append(c.Tenants, tenant)
	}
	e := New(limit.NewMemory(limit.MemoryOptions{}), Options{Log: slog.New(slog.DiscardHandler)})
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Swap(&c); err != nil {
			b.Fatal(err)
		}
	}
}

// What counting a decision for metrics adds to it: numbers, and two readings of
// the clock.
func BenchmarkMetrics(b *testing.B) {
	s := newSiteOn(b, timed, newSite(b, "").clock, limit.NewMemory(limit.MemoryOptions{}))
	d := s.decide("rest", key("sk_web"))
	b.Run("count", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.engine.metrics.count(d, s.engine.metrics.clock())
		}
	})
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			_ = s.engine.metrics.clock()
		}
	})
	b.Run("decision", func(b *testing.B) {
		r := new(Request)
		head := s.head("rest", []string{key("sk_web")})
		b.ReportAllocs()
		for b.Loop() {
			r.Read(head)
			s.engine.Decide(r, d)
		}
	})
}
