package authz

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// FuzzRequest asks with anything. Whatever comes, the answer is one that
// auth_request understands; a tenant is named only to who shows his key; and
// nobody passes a limit of nothing, however his question is spelled.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /_sluice/open/rest HTTP/1.1\r\nX-Sluice-Ip: 192.0.2.1\r\nX-Sluice-Method: GET\r\n\r\n",
		"GET /_sluice/closed/gone HTTP/1.1\r\nX-Sluice-Uri: /a/%2e%2e/b?c\r\nX-Sluice-Host: [::1]:80\r\n\r\n",
		"GET /_sluice/open/read HTTP/1.1\r\nX-Sluice-Method: PUT\r\nX-Sluice-Uri: //\x01\r\n\r\n",
		"HEAD /_sluice/open/rest HTTP/1.0\r\nAuthorization: Bearer sk_x\r\nX-Api-Key: !\r\nX-Sluice-Exempt: 1\r\n\r\n",
		"GET /_sluice/open/rest HTTP/1.1\r\nx-sluice-ip: fe80::1%25eth0\r\nX-Sluice-Header-X-User: \xff\r\nx_sluice_ip: 1\r\n\r\n",
		"GET http://a/_sluice/open/rest HTTP/1.1\r\nContent-Length: 10\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	policy := strings.ReplaceAll(shop, "rate: 1/s, burst: 3}", "rate: 1/h, burst: 1}")
	c := compile(f, policy+"limits: {each: {per: [ip, {header: X-User}, server], rate: 1/h, burst: 1, count: requests}}\n")
	for i := range c.Plans {
		for j := range c.Plans[i].Limits {
			c.Plans[i].Limits[j].Burst = 0
		}
	}
	e := New(limit.NewMemory(limit.MemoryOptions{}), Options{})
	if err := e.Swap(c); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		var ctx fasthttp.RequestCtx
		if err := ctx.Request.Header.Read(bufio.NewReaderSize(bytes.NewReader(head), maxHead)); err != nil {
			return
		}
		var r Request
		if !r.Read(&ctx.Request.Header) {
			return
		}
		var d Decision
		e.Decide(&r, &d)
		if n := e.Counters().Panics; n > 0 {
			t.Fatal("a decision panicked")
		}
		d.Write(&ctx.Response)
		a := readAnswer(t, &ctx.Response)
		if a.status != 204 && a.status != 401 && a.status != 403 {
			t.Errorf("status %d", a.status)
		}
		if strings.ContainsAny(a.header[policies.HeaderReason]+a.header[policies.HeaderLimit], "\r\n") || len(a.raw) > 16<<10 {
			t.Errorf("a strange head:\n%s", a.raw)
		}
		if d.Tenant != "" && !bytes.Contains(head, []byte("sk_")) {
			t.Errorf("taken for tenant %q without a key", d.Tenant)
		}
		counted := d.Verdict == Allow && d.Route != "" && d.Plan != "" && !r.Exempt
		if counted {
			t.Errorf("passed a limit of nothing: route %q, plan %q", d.Route, d.Plan)
		}
	})
}

// FuzzClient reads any address. One client has one spelling, and spelled so he
// is the same again.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{"192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::1.2.3.4", "2001:DB8::1", "fe80::1%eth0", "unix:", "", "1.2.3"} {
		f.Add([]byte(seed), 64)
	}
	f.Fuzz(func(t *testing.T, text []byte, bits int) {
		bits = 48 + (bits&0x7f)%81
		c := newClient(text, bits)
		spelled := c.String()
		if len(spelled) > 45 || strings.ContainsAny(spelled, "{}, %") {
			t.Errorf("%q is spelled %q", text, spelled)
		}
		if !c.prefix.IsValid() {
			if spelled != noAddress {
				t.Errorf("%q has no prefix, and is spelled %q", text, spelled)
			}
			return
		}
		address, _, _ := strings.Cut(spelled, "/")
		if again := newClient([]byte(address), bits).String(); again != spelled {
			t.Errorf("%q is %q, which is %q", text, spelled, again)
		}
	})
}
