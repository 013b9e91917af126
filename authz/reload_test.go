package authz

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/policies"
)

func TestReload(t *testing.T) {
	s := newSite(t, "")
	var next *policies.Compiled
	var found policies.Diagnostics
	r := NewReloader(s.engine, func() (*policies.Compiled, policies.Diagnostics) { return next, found }, s.engine.log)
	f := func(what string, good bool, message string) {
		t.Helper()
		before := len(s.log.String())
		err := r.Reload()
		if (err == nil) != good {
			t.Errorf("%s: error %v", what, err)
		}
		if got := r.Status().Err; got != err {
			t.Errorf("%s: status has error %v, want %v", what, got, err)
		}
		if log := s.log.String()[before:]; !strings.Contains(log, message) {
			t.Errorf("%s: want %q in the log:\n%s", what, message, log)
		}
	}
	broken := func(n int) policies.Diagnostics {
		return repeated(policies.Diagnostic{Pos: policies.Pos{File: "policy.yaml", Line: 3, Col: 5}, Path: "plans.x", Message: "is wrong", Rule: "r"}, n)
	}

	found = broken(1)
	f("broken at first", false, "policy.yaml:3:5: plans.x: is wrong [r]")
	if s.engine.Policy() != nil {
		t.Error("a policy is in force")
	}
	first := compile(t, shop)
	next, found = first, nil
	f("a good one", true, "policy loaded")
	f("the same again", true, "policy unchanged")

	next, found = compile(t, strings.Replace(shop, "burst: 3}", "burst: 9}", 1)), broken(7)
	f("broken", false, `[r] (and 6 more)","findings":7`)
	if s.engine.Policy() != first {
		t.Error("the last good policy is not in force")
	}
	next, found = nil, nil
	f("nothing", false, "cannot use the policy: it could not be read")

	// The hash does not speak for tenants: one less must not go unseen.
	next = compile(t, strings.Replace(shop, "{id: globex-b, sha256: hash(sk_b)}", "{id: globex-c, sha256: hash(sk_c)}", 1))
	if next.Hash != first.Hash {
		t.Fatal("this test wants two policies of one hash")
	}
	f("other tenants", true, "policy loaded")
	s.ask("rest", key("sk_b")).want(t, "a key that was taken away", 401)
	s.ask("rest", key("sk_c")).want(t, "a new key", 204)

	next = compile(t, shop)
	next.Limits = []policies.Limit{{Name: "q", Kind: "tides"}}
	next.Hash = "other"
	f("not enforceable", false, `cannot enforce limit \"q\"`)
	if got := r.Status(); got.Loads != 7 || got.Failures != 4 {
		t.Errorf("status %+v, want 7 loads, 4 failures", got)
	}
}

func repeated(d policies.Diagnostic, n int) policies.Diagnostics {
	var out policies.Diagnostics
	for range n {
		out = append(out, d)
	}
	return out
}

func TestReloadBySignal(t *testing.T) {
	s := newSite(t, "")
	loads := make(chan struct{})
	c := compile(t, shop)
	r := NewReloader(s.engine, func() (*policies.Compiled, policies.Diagnostics) {
		loads <- struct{}{}
		return c, nil
	}, s.engine.log)
	signals := make(chan os.Signal, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		r.Run(ctx, signals)
		close(done)
	}()
	for range 2 {
		signals <- syscall.SIGHUP
		select {
		case <-loads:
		case <-time.After(5 * time.Second):
			t.Fatal("no reload")
		}
	}
	cancel()
	<-done
	if s.engine.Policy() != c {
		t.Error("the policy is not in force")
	}
}

// The hash does not speak for what tenants are called, nor for the keys of an
// issuer: a change of these alone must not go unseen.
func TestReloadSeesIdentity(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, strings.Replace(tokenShop, "cidrs: [198.51.100.0/24]}", "cidrs: [198.51.100.0/24], cert_sha256: [aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc]}", 1))
	first := s.engine.Policy()
	for what, change := range map[string]func(*policies.Compiled){
		"a claim":       func(c *policies.Compiled) { c.Tenants[0].Claim = "org-2" },
		"a certificate": func(c *policies.Compiled) { c.Tenants[3].Certs[0][0]++ },
		"a key of an issuer": func(c *policies.Compiled) {
			c.Identity.Sources[1].Token.Keys = c.Identity.Sources[1].Token.Keys[1:]
		},
	} {
		next := compileIn(t, s.dir, strings.Replace(tokenShop, "cidrs: [198.51.100.0/24]}", "cidrs: [198.51.100.0/24], cert_sha256: [aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc]}", 1))
		if !sameMeaning(first, next) {
			t.Fatal("the same policy read twice is another one")
		}
		change(next)
		if next.Hash != first.Hash || sameMeaning(first, next) {
			t.Errorf("%s alone goes unseen", what)
		}
	}
}
