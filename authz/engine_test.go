package authz

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// steady is a store without memory: what it says depends on the op alone.
type steady struct{}

func (steady) Take(_ context.Context, ops []limit.Op, states []limit.State) (int, error) {
	refused := -1
	for i := range ops {
		states[i] = limit.State{Fits: true, Remaining: ops[i].Burst / 2, Reset: time.Second}
		if len(ops[i].Key)%3 == 0 {
			states[i] = limit.State{Reset: time.Minute, Wait: 3 * time.Second}
			refused = i
		}
		if len(ops[i].Key)%7 == 0 {
			return -1, limit.ErrUnavailable
		}
	}
	return refused, nil
}

func (s steady) Peek(ctx context.Context, ops []limit.Op, states []limit.State) error {
	_, err := s.Take(ctx, ops, states)
	return err
}

func (steady) Settle(context.Context, []byte, []limit.Op, []int64) error { return nil }
func (steady) Reset(context.Context, []limit.Op) error                   { return nil }
func (steady) Close() error                                              { return nil }

// questions are of all kinds.
func questions() [][]string {
	var list [][]string
	for _, route := range []string{"rest", "search", "reports", "closed", "read", "gone", "free_for_all", "/_sluice/closed/gone"} {
		for _, headers := range [][]string{
			{}, {key("sk_web")}, {key("sk_a")}, {key("sk_old")}, {key("sk_nobody")}, {"Authorization: Bearer sk_batch"},
			{"X-Sluice-Exempt: 1", key("sk_web")}, {ip("2001:db8::1")}, {ip("unix:"), key("sk_hooli")}, {method("PUT"), uri("/reports/1")},
		} {
			list = append(list, append([]string{route}, headers...))
		}
	}
	return list
}

// A Decision and a Request that are used again answer as new ones do: nothing of
// one client is left for the next.
func TestNothingIsLeftBehind(t *testing.T) {
	s := newSiteOn(t, shop, newSite(t, "").clock, steady{})
	fresh := map[string]string{}
	kinds := map[string]bool{}
	for _, q := range questions() {
		d := s.decide(q[0], q[1:]...)
		var resp fasthttp.Response
		d.Write(&resp)
		fresh[fmt.Sprint(q)] = readAnswer(t, &resp).raw
		kinds[d.Verdict.String()+d.Reason.String()] = true
	}
	if len(kinds) < 8 {
		t.Fatalf("the questions come to %d kinds of answers only: %v", len(kinds), kinds)
	}
	x := new(exchange)
	for _, before := range questions() {
		for _, q := range questions() {
			for _, each := range [][]string{before, q} {
				x.request.Read(s.head(each[0], each[1:]))
				s.engine.Decide(&x.request, &x.decision)
			}
			var resp fasthttp.Response
			x.decision.Write(&resp)
			if got := readAnswer(t, &resp).raw; got != fresh[fmt.Sprint(q)] {
				t.Fatalf("%v after %v:\n%s\nwant\n%s", q, before, got, fresh[fmt.Sprint(q)])
			}
		}
	}
	x.request.Reset()
	for _, f := range x.request.fields[:cap(x.request.fields)] {
		if f.name != nil || f.value != nil {
			t.Errorf("a view of %q is kept", f.name)
		}
	}
}

// Decisions go on while policies are swapped, and each is by one of them.
func TestSwapUnderLoad(t *testing.T) {
	s := newSite(t, "")
	a := compile(t, "limits: {l: {per: ip, rate: 1000000/s, burst: 1000000}}\nroutes: [{name: all, match: {prefix: /}, cost: 1}]\n")
	b := compile(t, "limits: {l: {per: ip, rate: 1000000/s, burst: 500000}}\nroutes: [{name: all, match: {prefix: /}, cost: 2}]\n")
	if err := s.engine.Swap(a); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var d Decision
			r := Request{Mode: policies.FailOpen, Route: []byte("all"), IP: []byte("192.0.2.1")}
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.engine.Decide(&r, &d)
				if d.Verdict == Degraded || len(d.ops) != 1 || d.ops[0].Cost*d.ops[0].Burst != 1_000_000 {
					t.Errorf("decided by half a policy: %v, cost %d, ops %+v", d.Verdict, d.Cost, d.ops)
					return
				}
			}
		})
	}
	for i := range 200 {
		if err := s.engine.Swap([]*policies.Compiled{b, a}[i%2]); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
	close(stop)
	wg.Wait()
}
