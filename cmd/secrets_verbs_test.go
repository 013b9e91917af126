package cmd

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/authz/limit/limittest"
)

// What must not be seen of the verbs, and of what a service is told at its start.
const (
	plantedHook    = "planted-webhook-path-0010"
	plantedSecret  = "planted-webhook-secret-0011-of-a-good-length"
	plantedRefused = "planted-other-password-0012"
	plantedCert    = "cGxhbnRlZC1jZXJ0aWZpY2F0ZS0wMDEz" // base64
)

// hook is a receiver of notifications that takes none.
func (p *planted) hook(t *testing.T) (url string) {
	t.Helper()
	p.secrets = append(p.secrets, plantedHook, plantedSecret, plantedRefused, plantedCert)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, plantedHook, 500) }))
	t.Cleanup(receiver.Close)
	return receiver.URL + "/" + plantedHook + "?k=" + plantedHook
}

// say runs a verb, whatever comes of it, and keeps what it says.
func (p *planted) say(t *testing.T, env []string, args ...string) (out string) {
	t.Helper()
	c := exec.Command("sluice", args...)
	c.Dir, c.Env = p.dir, append(os.Environ(), env...)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	out = fmt.Sprintf("status %d\n%s", c.ProcessState.ExitCode(), both.String())
	p.out["sluice "+args[0]] += out
	return out
}

// verbs runs everything that is told a secret at the command line, in a variable or
// in a file, and goes wrong.
func (p *planted) verbs(t *testing.T) {
	t.Helper()
	locked := limittest.StartServer(t, "--requirepass", plantedPassword)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	urls := []string{
		"redis://:" + plantedRefused + "@" + locked.Addr, "redis://u:" + plantedRefused + "@" + locked.Addr + "/0?x=y", "redis://:" + plantedRefused + "@" + gone.Addr().String(),
		"redis://:" + plantedRefused + "@127.0.0.1:port/", "rediss://:" + plantedRefused + "@" + locked.Addr, "redis+cluster://:" + plantedRefused + "@" + gone.Addr().String(),
		"unix:///nowhere/" + "redis.sock?password=" + plantedRefused, "redis//:" + plantedRefused + "@" + locked.Addr,
	}
	for _, url := range urls {
		p.say(t, nil, "tenants", "push", "policy.yaml", "--to", url)
		p.say(t, nil, "tenants", "check", "policy.yaml", "--in", url)
	}
	// serve goes on without its Redis: only addresses that are none end it.
	for _, url := range []string{urls[3], urls[7]} {
		for _, flag := range []string{"--store", "--tenants"} {
			out := p.say(t, []string{"HOOK_SECRET=" + plantedSecret}, "serve", "policy.yaml", "--listen", "127.0.0.1:0", "--admin", "", "--datagrams", "", flag, url)
			if !strings.HasPrefix(out, "status ") || strings.HasPrefix(out, "status 0") {
				t.Errorf("serve %s with no address: %s", flag, out)
			}
		}
	}
	admin := strings.TrimPrefix(p.admin, "http://")
	for _, env := range [][]string{nil, {"SLUICE_ADMIN_TOKEN=" + plantedAdmin}} {
		p.say(t, env, "usage", "acme", "--admin", admin)
		p.say(t, env, "usage", "acme", "--admin", gone.Addr().String())
		p.say(t, env, "block", "acme", "--until", "1h", "--reason", "x", "--admin", gone.Addr().String())
		for _, live := range [][]string{nil, {"--live", "--admin", admin}} {
			for _, shown := range [][]string{
				{"-H", "X-API-Key: " + plantedKey}, {"-H", "X-API-Key: " + plantedWrong}, {"-H", "Cookie: session=" + plantedCookie}, {"-H", plantedWrong},
				{"-H", "Authorization: Bearer " + p.token(t, plantedSigner)}, {"-H", "Authorization: Bearer " + p.token(t, plantedSigner+"x")},
			} {
				for _, format := range []string{"text", "json"} {
					args := append([]string{"explain", "/rest?api_key=" + plantedQuery, "--format", format}, shown...)
					p.say(t, env, append(args, live...)...)
				}
			}
		}
	}
	p.say(t, nil, "render", "policy.yaml", "--out", "rendered")
	p.say(t, nil, "validate", "policy.yaml")
	p.say(t, nil, "diff", "policy.yaml", "policy.yaml")
	rendered, err := filepath.Glob(filepath.Join(p.dir, "rendered/sluice/*.conf"))
	if err != nil || len(rendered) < 5 {
		t.Fatalf("rendered: %q, %v", rendered, err)
	}
	for _, file := range rendered {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p.out[file] = string(data)
	}
}

// apps says secrets where applications, proxies and operators speak JSON, or nearly.
func (p *planted) apps(t *testing.T) {
	t.Helper()
	post := func(url string, bodies ...string) {
		t.Helper()
		for _, body := range bodies {
			resp, err := http.Post(url, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			_, _ = text.ReadFrom(resp.Body)
			resp.Body.Close()
			p.out[url] += fmt.Sprintln(resp.StatusCode, resp.Header, text.String())
		}
	}
	for _, key := range []string{plantedKey, plantedWrong} {
		post("http://"+p.addr+"/v1/take", `{"route":"rest","key":"`+key+`","request":"r1"}`, `{"route":"rest","key":"`+key+`","cost":"`+key+`"}`,
			`{"route":"rest","`+key+`":1}`, `"`+key+`"`, `{"key":"`+key)
		post("http://"+p.addr+"/v1/release", `{"route":"rest","key":"`+key+`","request":"r1"}`, `{"key":["`+key+`"]}`)
		post("http://"+p.addr+"/v1/cost", `{"route":"rest","key":"`+key+`","request":"r1","cost":1}`, `{"key":7,"x":"`+key+`"}`)
		post(p.admin+"/v1/explain", `{"url":"/rest?api_key=`+key+`","headers":{"X-API-Key":"`+key+`","Cookie":"session=`+key+`"}}`,
			`{"url":"`+key+`"}`, `{"url":"/","headers":{"X-API-Key":["`+key+`"]}}`, `{"url":"/","headers":{"`+key)
	}
	for range 6 {
		a := ask(t, http.DefaultClient, http.MethodGet, "http://"+p.addr+"/authz", "X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/rest?api_key="+plantedQuery,
			"X-Forwarded-Host", "a.example", "X-Forwarded-For", "192.0.2.9", "X-Api-Key", plantedWrong, "Authorization", "Bearer "+p.token(t, plantedSigner), "Cookie", "session="+plantedCookie)
		p.out["/authz"] += fmt.Sprintln(a.status, a.header, a.body)
		a = ask(t, http.DefaultClient, http.MethodGet, "http://"+p.addr+"/_sluice/open/rest", "X-Sluice-Ip", "192.0.2.1",
			"X-Sluice-Cert", "-----BEGIN%20CERTIFICATE-----%0A"+plantedCert+"%0A-----END%20CERTIFICATE-----%0A")
		p.out["/certificates"] += fmt.Sprintln(a.status, a.header, a.body)
	}
}
