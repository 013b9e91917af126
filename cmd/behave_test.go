package cmd

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"sluice/cmd/importer"
	"sluice/cmd/nginxconf"
	"sluice/gen"
	"sluice/gen/gentest"
	"sluice/policies"
)

// TestImportBehaves runs sites, and what was imported from them, on a real
// NGINX beside each other: of the same requests both let the same number pass.
func TestImportBehaves(t *testing.T) {
	names, err := filepath.Glob("testdata/sites/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]string{}
		for _, f := range archive.Files {
			in[f.Name] = string(f.Data)
		}
		if in["probes"] == "" {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			app := gentest.StartApp(t)
			site, imported := runSite(t, in["nginx.conf"], app.Addr), runImported(t, in["nginx.conf"], app.Addr)
			refused := 0
			for _, line := range strings.Split(strings.TrimSpace(in["probes"]), "\n") {
				start := time.Now()
				n, before := probe(t, site, line)
				_, after := probe(t, imported, line)
				refused += n - after
				// Tokens come while the requests are sent.
				const fastest = 50 // a second, of all rates in the sites that have probes
				tokens := int(time.Since(start).Seconds() * fastest)
				if before-after > tokens || after-before > tokens {
					t.Errorf("%s: the site let %d pass, the policy %d, and %d tokens came meanwhile", line, before, after, tokens)
				}
			}
			if refused == 0 {
				t.Error("nothing was refused: the probes show nothing")
			}
		})
	}
}

var (
	anyListen = regexp.MustCompile(`listen [^;]*;`)
	anyPass   = regexp.MustCompile(`(?:proxy|fastcgi)_pass [^;]*;`)
	fastcgi   = regexp.MustCompile(`(?m)^.*fastcgi_(?:param|cache)[^;]*;|include (?:fastcgi_params|mime.types|cloudflare.conf);`)
	realIP    = regexp.MustCompile(`(?:real_ip_header|real_ip_recursive|set_real_ip_from) [^;]*;`)
	logs      = regexp.MustCompile(`access_log [^;]*;|user [^;]*;|auth_basic[^;]*;`)
)

// clientHeader lets a probe choose its address.
const clientHeader = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Test-Ip;\n"

// runSite runs a site with an application of ours behind it.
func runSite(t *testing.T, text, app string) string {
	t.Helper()
	listen := gentest.FreePort(t)
	main, http := gentest.Hermetic()
	for _, re := range []*regexp.Regexp{fastcgi, realIP, logs} {
		text = re.ReplaceAllString(text, "")
	}
	first := true
	text = anyListen.ReplaceAllStringFunc(text, func(l string) string {
		if strings.Contains(l, "default_server") && first {
			first = false
			return "listen " + listen + " default_server;"
		}
		return "listen " + listen + ";"
	})
	if !strings.Contains(text, "listen ") {
		t.Fatal("the site listens nowhere")
	}
	text = anyPass.ReplaceAllString(text, "proxy_pass http://"+app+";")
	text = strings.Replace(text, "http {", "http {\naccess_log off;\n"+http+clientHeader, 1)
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, map[string]string{"nginx.conf": main + text})
	gentest.Start(t, dir, "nginx.conf", listen)
	return listen
}

// runImported runs what is imported from it, rendered as a whole.
func runImported(t *testing.T, text, app string) string {
	t.Helper()
	site, err := nginxconf.Read("nginx.conf", text)
	if err != nil {
		t.Fatal(err)
	}
	p, ds := policies.Parse("policy.yaml", importer.Import(site).Policy, func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
	c, ds := ready(p, ds)
	if c == nil {
		t.Fatalf("%v", ds)
	}
	listen := gentest.FreePort(t)
	files, err := gen.Render(c, gen.Options{CacheDir: gentest.CacheDir(t), Full: true, Upstreams: []string{app}, Listen: []string{listen}})
	if err != nil {
		t.Fatal(err)
	}
	files["sluice/real_ip.conf"] = []byte(clientHeader)
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, files)
	gentest.Start(t, dir, "nginx.conf", listen)
	return listen
}

// probe sends the requests of a line, `N METHOD PATH ip=ADDRESS HEADER=VALUE...`,
// and counts those that were let pass; 404 is the site's own answer.
func probe(t *testing.T, addr, line string) (sent, passed int) {
	t.Helper()
	words := strings.Fields(line)
	n, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		req, err := http.NewRequestWithContext(context.Background(), words[1], "http://"+addr+words[2], nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words[3:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "ip":
				req.Header.Set("X-Test-Ip", value)
			case "Host":
				req.Host = value
			default:
				req.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // closed, as 444 does
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode == 404 {
			passed++
		}
	}
	return n, passed
}
