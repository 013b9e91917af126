package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

// startOwn runs a site of the test's own that has adopted the files. The
// configuration is that of http { } below the includes; LISTEN and APP stand
// for addresses.
func startOwn(t *testing.T, policy, conf string, more map[string]string) *stack {
	t.Helper()
	return startOwnOptions(t, policy, Options{}, conf, more)
}

func startOwnOptions(t *testing.T, policy string, opt Options, conf string, more map[string]string) *stack {
	t.Helper()
	gentest.Binary(t)
	s := &stack{t: t, authz: gentest.StartAuthz(t), app: gentest.StartApp(t), addr: gentest.FreePort(t)}
	opt.Version, opt.CacheDir, opt.Authz = "test", gentest.CacheDir(t), []string{s.authz.Addr}
	files, err := Render(compiled(t, policy), opt)
	if err != nil {
		t.Fatal(err)
	}
	s.files = files
	main, http := gentest.Hermetic()
	conf = strings.NewReplacer("LISTEN", s.addr, "APP", s.app.Addr).Replace(conf)
	files["nginx.conf"] = fmt.Appendf(nil, "%sevents { worker_connections 256; }\nhttp {\n%sinclude sluice/real_ip.conf; include sluice/http.conf;\naccess_log access.log sluice_access;\n%s\n}\n", main, http, conf)
	for name, content := range more {
		files[name] = []byte(content)
	}
	dir := t.TempDir()
	// Debian's nginx gives its workers to another user, who must be let in.
	for d := dir; d != "/" && strings.Contains(d, "Test"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	gentest.WriteFiles(t, dir, files)
	s.nginx = gentest.Start(t, dir, "nginx.conf", s.addr)
	return s
}

// TestOwnLogin: the site's own auth_request, said once for the whole server,
// keeps guarding the routes that the service is not asked about.
func TestOwnLogin(t *testing.T) {
	t.Parallel()
	s := startOwn(t, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: assets, match: {prefix: /assets}, service: false}
  - {name: rest, match: {prefix: /}}
`, `
server {
  listen LISTEN;
  auth_request /login;
  include sluice/server.conf;
  location = /login { internal; auth_request off; if ($http_cookie != "in=1") { return 401; } return 204; }
  location = /healthz { include sluice/routes/health.conf; proxy_pass http://APP; }
  location /assets/ { include sluice/routes/assets.conf; proxy_pass http://APP; }
}`, nil)
	for _, path := range []string{"/healthz", "/assets/x"} {
		if got := s.get(path); got.status != 401 {
			t.Errorf("%s without a login is %d; want 401", path, got.status)
		}
		if got := s.get(path, "Cookie", "in=1"); got.status != 200 {
			t.Errorf("%s with a login is %d; want 200", path, got.status)
		}
	}
	if paths, _ := s.authz.Asked(); len(paths) != 0 {
		t.Errorf("the service was asked %v", paths)
	}
}
