package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve starts a service that gives one answer after another, and remembers what it
// was asked. An answer of "" is cut off.
func serve(t *testing.T, answers ...string) (c *Client, asked func() []Ask) {
	t.Helper()
	var mu sync.Mutex
	var seen []Ask
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var a Ask
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		seen = append(seen, a)
		status, body, _ := strings.Cut(answers[min(len(seen), len(answers))-1], " ")
		if status == "" {
			panic(http.ErrAbortHandler)
		}
		if status == "429" {
			w.Header().Set("Retry-After", "1")
		}
		var code int
		_, _ = fmt.Sscan(status, &code)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return NewClient(s.Listener.Addr().String()), func() []Ask {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// A call whose answer is lost is made again under its name: it is charged once.
func TestTakeAgain(t *testing.T) {
	c, asked := serve(t, "", `200 {"allowed":true,"cost":3}`)
	p, err := c.Take(t.Context(), Ask{Route: "export", Tenant: "acme"})
	if err != nil || !p.Allowed || p.Cost != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	if a := asked(); len(a) != 2 || a[0].Request == "" || a[0] != a[1] || a[1].Request != p.Asked.Request {
		t.Errorf("asked %+v, want the same twice", a)
	}
}

// Who is refused waits as long as he was told, and asks by another name; where
// waiting cannot help nobody waits.
func TestAwait(t *testing.T) {
	refused := `429 {"allowed":false,"limit":"speed","reason":"rate"}`
	c, asked := serve(t, refused, `200 {"allowed":true}`)
	began := time.Now()
	if p, err := c.Await(t.Context(), Ask{Route: "export"}); err != nil || !p.Allowed {
		t.Fatalf("%+v, %v", p, err)
	}
	if a := asked(); len(a) != 2 || a[0].Request == a[1].Request || time.Since(began) < time.Second {
		t.Errorf("asked %+v within %s, want twice by two names, a second apart", a, time.Since(began))
	}
	c, _ = serve(t, `403 {"allowed":false,"limit":"speed","reason":"too_large"}`)
	if p, err := c.Await(t.Context(), Ask{Route: "export"}); err != nil || p.Allowed || p.Reason != "too_large" {
		t.Errorf("too large: %+v, %v", p, err)
	}
	c, _ = serve(t, refused)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Await(ctx, Ask{Route: "export"}); err == nil {
		t.Error("it waited longer than it was to")
	}
}

// What is no decision is an error, and never a yes.
func TestNoDecision(t *testing.T) {
	for _, answer := range []string{"", `200 {}`, `200`, `200 <html>`, `400 {"detail":"route \"x\" is not in the policy"}`, `502 {"allowed":null}`} {
		c, _ := serve(t, answer)
		if p, err := c.Take(t.Context(), Ask{Route: "x"}); err == nil || p.Allowed {
			t.Errorf("%q: %+v, %v", answer, p, err)
		}
	}
	c, _ := serve(t, `404 {"detail":"holds nothing"}`)
	if err := c.Release(t.Context(), Permit{}); err != nil {
		t.Errorf("nothing to release: %v", err)
	}
	if err := c.Report(t.Context(), Permit{}, 7); err == nil {
		t.Error("a report that nobody waits for is no error")
	}
}
