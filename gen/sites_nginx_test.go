package gen

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/geo/geotest"
	"sluice/policies"
)

// probe is one request to a site, or as many as it takes to see a limit.
type probe struct {
	what    string // METHOD HOST/PATH
	ip      string
	headers string // "Name: value", several with a |
	want    int    // status; 0: the connection is closed
	// A limit: so many pass at once, at this rate per second more, and then 429.
	burst int
	rate  float64
	held  bool // all but the first are held: the refused are counted
	conns int  // so many at a time
}

// siteRules has a probe for each edge rule of the policies of real sites, and
// for what must not meet it.
func siteRules() map[string][]probe {
	return map[string][]probe{
		"cloudflare": {
			{what: "GET a/", ip: "1.2.3.4", want: 200},
			{what: "GET a/", ip: "175.45.176.9", want: 451},
			{what: "GET a/", ip: "2a00:9::1", want: 451},
			{what: "GET a/", ip: "9.0.0.1", burst: 20, rate: 10}, // half of it: there are two nodes
		},
		"country-allow": {
			{what: "GET nas.example/x", ip: "9.0.0.1", want: 200},
			{what: "GET nas.example/x", ip: "5.9.0.1", want: 0},
			{what: "GET nas.example/x", ip: "192.168.1.5", want: 200},
			{what: "GET other/x", ip: "5.9.0.1", want: 200},
			{what: "GET other/x", ip: "5.1.9.1", want: 200},
			{what: "GET other/x", ip: "9.0.0.1", want: 0},
			{what: "GET other/x", ip: "1.2.3.4", want: 0}, // in no country that the database knows
			{what: "GET other/.well-known/acme-challenge/t", ip: "1.2.3.4", want: 200},
		},
		"country-fixed": {
			{what: "GET a/", ip: "10.1.2.3", want: 200},
			{what: "GET a/", ip: "14.0.0.1", want: 200},
			{what: "GET a/", ip: "1.2.3.4", want: 200},
			{what: "GET a/", ip: "5.9.0.1", want: 403},
			{what: "GET a/", ip: "5.3.0.1", want: 200}, // the record says EU, which is no country
		},
		"dcrstakepool": {
			{what: "GET a/", ip: "1.2.3.4", burst: 6, held: true},
			{what: "GET a/assets/x", ip: "1.2.3.4", want: 200},
		},
		"discourse": {
			{what: "GET a/", ip: "1.2.3.4", burst: 13, rate: 12},
			{what: "GET a/", ip: "1.2.3.5", conns: 13, rate: 12}, // the flood limit is met before 20 connections
		},
		"hypothesis": {
			{what: "GET status.internal/status", ip: "127.0.0.9", want: 200},
			{what: "GET status.internal/status", ip: "127.0.1.9", want: 403},
			{what: "GET other/status", ip: "1.2.3.4", headers: "Authorization: s", want: 200}, // another host: the web route
			{what: "GET a/", ip: "1.2.3.4", headers: "Authorization: a", burst: 15, rate: 1},
			{what: "GET a/", ip: "1.2.3.4", headers: "Authorization: b", burst: 15, rate: 1},
			{what: "GET a/", ip: "1.2.3.4", burst: 15, rate: 1}, // without one: by address
			{what: "GET a/api/badge", ip: "1.2.3.4", headers: "Authorization: a", burst: 16, held: true},
			{what: "GET a/api/annotations/1", ip: "1.2.3.4", headers: "Authorization: a", burst: 4, held: true},
			{what: "GET a/assets/1", ip: "1.2.3.4", headers: "Authorization: a", burst: 201, rate: 1},
			{what: "GET a/ws", ip: "1.2.3.4", headers: "Authorization: a", want: 200},
			{what: "GET a/annotating-all-knowledge", ip: "1.2.3.4", headers: "Authorization: a", want: 200},
		},
		"ingress": {
			{what: "GET shop.example/api/x", ip: "1.2.3.4", burst: 51, rate: 10},
			{what: "GET shop.example/x", ip: "1.2.3.4", burst: 1501, rate: 5},
			{what: "GET shop.example/x", ip: "1.2.3.5", conns: 20},
			{what: "GET shop.example/api/x", ip: "10.0.0.1", conns: 20}, // spared by the rate alone
			{what: "GET blog.example/x", ip: "1.2.3.4", burst: 16, rate: 5},
		},
		"key-tiers": {
			{what: "GET a/x", ip: "1.2.3.4", burst: 11, rate: 20},
			{what: "GET a/stocks/health", ip: "1.2.3.4", want: 200},
		},
		"quay": {
			{what: "GET a/v2/auth?scope=repository:acme/x:pull", ip: "1.2.3.4", burst: 3, rate: 120},
			{what: "GET a/v2/auth?scope=repository:redhat/x:pull", ip: "1.2.3.4", want: 200},
			{what: "GET a/v2/auth", ip: "1.2.3.4", headers: "Authorization: Basic x", burst: 3, rate: 120},
			{what: "GET a/v2/redhat/x/manifests/1", ip: "1.2.3.4", want: 200},
			{what: "GET a/x", ip: "1.2.3.4", want: 200},
		},
		"saturn": {{what: "GET a/", ip: "1.2.3.4", burst: 201, rate: 300}},
	}
}

// TestSiteRules: every edge rule of the policies of real sites does on NGINX
// what its comment and its original say.
func TestSiteRules(t *testing.T) {
	t.Parallel()
	listen := regexp.MustCompile(`(listen [0-9.:]+) proxy_protocol`)
	for name, probes := range siteRules() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, ds := policies.Load(filepath.Join("../policies/testdata/sites", name+".yaml"))
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			s := startOptions(t, policies.Compile(p), Options{Geo: smallWorld(t, geotest.MaxMind)}, func(f Files, _ string) {
				// The test is the proxy, and says who the client is.
				f["sluice/real_ip.conf"] = []byte("set_real_ip_from 127.0.0.1; real_ip_header X-Test;\n")
				f["nginx.conf"] = listen.ReplaceAll(f["nginx.conf"], []byte("$1"))
				f["sluice/http.conf"] = []byte(strings.Replace(string(f["sluice/http.conf"]), "geo $realip_remote_addr $sluice_direct {", "geo $realip_remote_addr $sluice_direct {\n127.0.0.1 0;", 1))
			})
			for _, p := range probes {
				s.probe(p)
			}
			s.noWarnings()
		})
	}
}

func (s *stack) probe(p probe) {
	s.t.Helper()
	send := func(ctx context.Context, client *http.Client, query string) int {
		method, target, _ := strings.Cut(p.what, " ")
		host, path, _ := strings.Cut(target, "/")
		req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+"/"+path+query, nil)
		if err != nil {
			s.t.Error(err)
			return 0
		}
		req.Host = host
		req.Header.Set("X-Test", p.ip)
		for h := range strings.SplitSeq(p.headers, "|") {
			if name, value, ok := strings.Cut(h, ": "); ok {
				req.Header.Set(name, value)
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer func() { _ = resp.Body.Close() }()
		// What was read is not looked at.
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	switch {
	case p.held:
		refused, passing := s.atOnce(p.burst+3, func(ctx context.Context) int { return send(ctx, client, "") })
		if refused != 3 || passing != p.burst {
			s.t.Errorf("%s from %s: of %d at once %d are refused; want 3", p.what, p.ip, p.burst+3, refused)
		}
	case p.conns > 0:
		refused, passing := s.atOnce(p.conns+3, func(ctx context.Context) int { return send(ctx, client, "?wait=700ms") })
		if passing != p.conns && p.rate == 0 || refused == 0 {
			s.t.Errorf("%s from %s: of %d at a time %d pass and %d are refused", p.what, p.ip, p.conns+3, passing, refused)
		}
	case p.burst > 0:
		began, passed := time.Now(), 0
		for ; passed < 5000; passed++ {
			if status := send(context.Background(), client, ""); status == 429 {
				break
			} else if status != 200 {
				s.t.Fatalf("%s from %s is %d", p.what, p.ip, status)
			}
		}
		if most := float64(p.burst) + p.rate*time.Since(began).Seconds() + 1; passed < p.burst || float64(passed) > most {
			s.t.Errorf("%s from %s: %d passed; want %d and not more than %.1f", p.what, p.ip, passed, p.burst, most)
		}
	default:
		if got := send(context.Background(), client, ""); got != p.want {
			s.t.Errorf("%s from %s is %d; want %d", p.what, p.ip, got, p.want)
		}
	}
}

// atOnce sends requests at once and counts those that are refused soon, and the rest.
func (s *stack) atOnce(n int, send func(context.Context) int) (refused, passing int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	statuses := make(chan int, n)
	for range n {
		go func() { statuses <- send(ctx) }()
	}
	for range n {
		switch status := <-statuses; status {
		case 429:
			refused++
		case 200, 0: // passed, or is still held
			passing++
		default:
			s.t.Error(fmt.Errorf("one of many is %d", status))
		}
	}
	return refused, passing
}
