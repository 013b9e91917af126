package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sluice/authz"
)

const (
	// clientTimeout is how long a running service may take to answer a verb.
	clientTimeout = 30 * time.Second
	// maxReply is the largest answer that is read, in bytes.
	maxReply = 64 << 20
	// tokenVariable is where verbs find their token.
	tokenVariable = "SLUICE_ADMIN_TOKEN"
	// adminAddress and adminTokenFile are what serve and the verbs that ask it take
	// when nobody says otherwise.
	adminAddress   = "127.0.0.1:9181"
	adminTokenFile = "sluice.token"
)

// clientOptions are the flags of verbs that ask a running service.
type clientOptions struct {
	Admin     string // HOST:PORT, unix:PATH or a URL
	TokenFile string
	Format    string
}

func (o *clientOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Admin, "admin", adminAddress, "the service's --admin: HOST:PORT, unix:PATH, or https://... through a proxy with TLS")
	f.StringVar(&o.TokenFile, "token-file", adminTokenFile, "where the service on this machine left its token; $"+tokenVariable+" comes first")
	f.StringVar(&o.Format, "format", "text", "text or json")
}

// client asks a running service.
type client struct {
	base  string
	http  *http.Client
	token string // of the environment; empty: none
	file  string
}

func newClient(e *env, f *pflag.FlagSet, o clientOptions) (*client, error) {
	if o.Format != "text" && o.Format != "json" {
		return nil, usagef("--format %q; want text or json", o.Format)
	}
	if admin, ok := e.LookupEnv("SLUICE_ADMIN"); ok && !f.Changed("admin") {
		o.Admin = admin
	}
	transport := &http.Transport{Proxy: nil} // a token is for the service alone
	c := &client{file: o.TokenFile, http: &http.Client{
		Transport:     transport,
		Timeout:       clientTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.token, _ = e.LookupEnv(tokenVariable)
	path, unix := strings.CutPrefix(o.Admin, "unix:")
	switch {
	case unix:
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	case strings.HasPrefix(o.Admin, "http://"), strings.HasPrefix(o.Admin, "https://"):
		c.base = strings.TrimSuffix(o.Admin, "/")
	default:
		if _, _, err := net.SplitHostPort(o.Admin); err != nil {
			return nil, usagef("--admin %q; want HOST:PORT, unix:PATH or a URL", o.Admin)
		}
		c.base = "http://" + o.Admin
	}
	return c, nil
}

// tenantPath is the path of something about a tenant.
func tenantPath(tenant string, more ...string) string {
	path := "/v1/tenants/" + url.PathEscape(tenant)
	for _, part := range more {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// do asks, and reads the answer into reply unless that is nil. Reading needs no token
// on the service's own machine, so none is sent unless it is asked for.
func (c *client) do(method, path string, query url.Values, body, reply any) error {
	token := c.token
	if token == "" && method != http.MethodGet {
		token = c.fromFile()
	}
	status, text, err := c.send(method, path, query, body, token)
	if err == nil && status == http.StatusUnauthorized && token == "" {
		if token = c.fromFile(); token != "" {
			status, text, err = c.send(method, path, query, body, token)
		}
	}
	if err != nil {
		return err
	}
	if status >= 300 {
		return refusedBy(status, text)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("cannot read the service's answer: %w", err)
	}
	return nil
}

// fromFile is the token that the service left on this machine.
func (c *client) fromFile() string {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (c *client) send(method, path string, query url.Values, body any, token string) (status int, text []byte, err error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(data)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequest(method, target, content)
	if err != nil {
		return 0, nil, usagef("--admin: %w", err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask the service at %s: %w; does it run, with this --admin?", c.base, innermost(err))
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return 0, nil, fmt.Errorf("cannot read the answer of the service at %s: %w", c.base, innermost(err))
	}
	return resp.StatusCode, text, nil
}

// innermost is what went wrong, without the request that net/http puts before it.
func innermost(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusedBy is the service's no.
func refusedBy(status int, text []byte) error {
	var p authz.Problem
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the service answers %d %s", status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		return fmt.Errorf("the service refuses: %s; want $%s, or --token-file of the service on this machine", p.Detail, tokenVariable)
	}
	return fmt.Errorf("the service refuses: %s", p.Detail)
}

// printJSON prints an answer as the service gives it.
func (e *env) printJSON(value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		_, err = e.Out.Write(append(data, '\n'))
	}
	return err
}
