package gen

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
	"sluice/geo/geotest"
	"sluice/policies"
)

// largePolicy has a thousand routes and five hundred access rules of all kinds.
func largePolicy() string {
	var b strings.Builder
	b.WriteString("version: 1\nclient_ip: {trusted_proxies: [127.0.0.1]}\nedge:\n  access:\n")
	for i := range 500 {
		what := []string{
			fmt.Sprintf("deny: {cidrs: [11.%d.%d.0/24, \"2001:db8:%x::/48\"]}", i/256, i%256, i),
			fmt.Sprintf("allow: {countries: [DE, AT], cidrs: [12.%d.%d.0/24]}", i/256, i%256),
			fmt.Sprintf("deny: {asns: [AS%d], user_agents: ['bot-%d/']}, status: 451", 64500+i, i),
			fmt.Sprintf("deny: all, when: {headers: {X-Test-%d: present}}", i),
			fmt.Sprintf("exempt: {cidrs: [13.%d.%d.7]}", i/256, i%256),
		}[i%5]
		fmt.Fprintf(&b, "    - {name: rule-%d, %s, routes: [r%d, r%d]}\n", i, what, i*2, (i*7+1)%1000)
	}
	b.WriteString("  limits: {each: {per: [ip, route], rate: 10/s, burst: 20}}\nroutes:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - {name: r%d, match: {prefix: /v%d/%d}}\n", i, i%7, i)
	}
	b.WriteString("  - {name: re, match: {regex: '^/v1/[0-9]+/export$'}}\n")
	return b.String()
}

// TestLarge: a large policy with both databases is rendered to the same bytes
// each time, in less time than NGINX needs to read them, and NGINX accepts it.
func TestLarge(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	p, ds := policies.Parse("policy.yaml", []byte(largePolicy()), nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	c := policies.Compile(p)
	opt := Options{Full: true, Geo: smallWorld(t, geotest.MaxMind)}
	files, err := Render(c, opt)
	if err != nil {
		t.Fatal(err)
	}
	runs := 20
	if os.Getenv("CI") == "true" { // a laptop has not all day
		runs = 100
	}
	fastest := time.Hour
	for range runs {
		began := time.Now()
		again, err := Render(c, opt)
		if err != nil {
			t.Fatal(err)
		}
		fastest = min(fastest, time.Since(began))
		if !maps.EqualFunc(files, again, bytes.Equal) {
			t.Fatal("a second rendering is another one")
		}
	}
	if err := Check(t.Context(), nginx, files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, files)
	reading := time.Hour
	for range 3 {
		began := time.Now()
		if err := gentest.Test(context.Background(), t, dir, "nginx.conf"); err != nil {
			t.Fatal(err)
		}
		reading = min(reading, time.Since(began))
	}
	t.Logf("rendering took %v, nginx -t %v", fastest, reading)
	if fastest > reading {
		t.Errorf("rendering took %v, and nginx -t %v", fastest, reading)
	}
}
