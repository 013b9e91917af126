package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// callTimeout is how long one call may take: the service itself answers a store
// that is away within 20 ms, and holds an answer for two seconds at most.
const callTimeout = 5 * time.Second

// Client asks a service of Sluice. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// NewClient asks at HOST:PORT or unix:PATH, as `sluice serve --listen` has it.
func NewClient(address string) *Client {
	c := &Client{base: "http://" + address, http: &http.Client{Timeout: callTimeout}}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		c.base = "http://sluice"
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
	}
	return c
}

// Ask is for what somebody wants to be let pass. Tenant or Key say who he is, or
// neither, and then IP.
type Ask struct {
	Route  string `json:"route"`            // of the policy
	Tenant string `json:"tenant,omitempty"` // its id, or its claim
	Key    string `json:"key,omitempty"`    // an API key
	User   string `json:"user,omitempty"`
	IP     string `json:"ip,omitempty"`
	Cost   int64  `json:"cost,omitempty"` // units; 0: the route's
	// Request names what is asked for, among what is asked for the same one: asked
	// again within a minute it is answered, and not charged, again. Take makes one up.
	Request string `json:"request"`
}

// Permit is the service's answer.
type Permit struct {
	Asked         Ask   // what it answers
	Allowed       bool  // false: see Limit, Reason and Wait
	Degraded      bool  // nothing was counted: the store was away
	Cost          int64 // units
	Limit, Reason string
	Wait          time.Duration // until it may fit; 0: waiting cannot help
}

// ending is what is told of a Permit that was used: what was asked for, and for whom.
type ending struct {
	Request string `json:"request"`
	Route   string `json:"route"`
	Tenant  string `json:"tenant,omitempty"`
	Key     string `json:"key,omitempty"`
	User    string `json:"user,omitempty"`
	IP      string `json:"ip,omitempty"`
	Cost    *int64 `json:"cost,omitempty"`
}

func (p *Permit) end(cost *int64) ending {
	a := p.Asked
	return ending{Request: a.Request, Route: a.Route, Tenant: a.Tenant, Key: a.Key, User: a.User, IP: a.IP, Cost: cost}
}

// answer is the body of the service's answer, or of its problem.
type answer struct {
	Allowed  *bool  `json:"allowed"`
	Degraded bool   `json:"degraded"`
	Cost     int64  `json:"cost"`
	Limit    string `json:"limit"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail"`
}

// Take asks once. The error says why there was no answer: what that means, to go
// ahead or to wait, is the caller's to know.
func (c *Client) Take(ctx context.Context, a Ask) (Permit, error) {
	if a.Request == "" {
		a.Request = rand.Text()
	}
	status, header, got, err := c.post(ctx, "/v1/take", a)
	if isNetwork(err) && ctx.Err() == nil {
		// Whether it was charged nobody knows; by its name it is charged once.
		status, header, got, err = c.post(ctx, "/v1/take", a)
	}
	if err != nil {
		return Permit{}, err
	}
	if got.Allowed == nil {
		return Permit{}, fmt.Errorf("cannot take %q: status %d: %s", a.Route, status, got.Detail)
	}
	p := Permit{
		Asked: a, Allowed: *got.Allowed, Degraded: got.Degraded,
		Cost: got.Cost, Limit: got.Limit, Reason: got.Reason,
	}
	// The header has the jitter that keeps those who wait together from coming
	// together.
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && !p.Allowed {
		p.Wait = time.Duration(seconds) * time.Second
	}
	return p, nil
}

// Await asks until it is let pass, or waiting cannot help: then the Permit is not
// allowed. Each try has a name of its own, since a name keeps its answer.
func (c *Client) Await(ctx context.Context, a Ask) (Permit, error) {
	for {
		a.Request = rand.Text()
		p, err := c.Take(ctx, a)
		if err != nil || p.Allowed || p.Wait == 0 {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(p.Wait):
		}
	}
}

// Release tells that what was let pass has ended. It frees what `concurrency` held,
// which else comes free when its lease is over.
func (c *Client) Release(ctx context.Context, p Permit) error {
	status, _, got, err := c.post(ctx, "/v1/release", p.end(nil))
	if err == nil && status != http.StatusNoContent && status != http.StatusNotFound { // 404: it held nothing
		err = fmt.Errorf("cannot release %q: status %d: %s", p.Asked.Request, status, got.Detail)
	}
	return err
}

// Report says what it has cost in the end, in units: once, for a route with
// `cost_from: {report: ...}`.
func (c *Client) Report(ctx context.Context, p Permit, cost int64) error {
	status, _, got, err := c.post(ctx, "/v1/cost", p.end(&cost))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("cannot report the cost of %q: status %d: %s", p.Asked.Request, status, got.Detail)
	}
	return err
}

func (c *Client) post(ctx context.Context, path string, body any) (status int, header http.Header, got answer, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, got, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, got, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, got, networkError{err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, nil, got, networkError{err}
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got); err != nil {
			return 0, nil, got, fmt.Errorf("status %d with what is no JSON: is this the --listen of sluice serve?", resp.StatusCode)
		}
	}
	return resp.StatusCode, resp.Header, got, nil
}

// networkError tells that nobody knows what became of a call.
type networkError struct{ error }

func (e networkError) Unwrap() error { return e.error }

func isNetwork(err error) bool {
	var n networkError
	return errors.As(err, &n)
}
