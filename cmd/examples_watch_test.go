package cmd

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sluice/geo/geotest"
	"strings"
	"testing"
)

// tool finds a program; where CI=true it must be there.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// shownMetrics are the names that a service shows after a request, a denial and
// a shadowed one.
func shownMetrics(t *testing.T) (names map[string]bool, text string) {
	t.Helper()
	dir, policy := adminSite(t)
	write(t, policy, strings.NewReplacer(
		"limits: {", "limits: {watch: {per: ip, rate: 1/h, burst: 1, mode: shadow}, ",
		"routes: [", "routes: [{name: small, match: {prefix: /small}, limits: {small: {per: ip, rate: 1/h, burst: 1}}}, ",
	).Replace(adminPolicy))
	write(t, filepath.Join(dir, "tenants/a.yaml"), "[{id: acme, plan: free, keys: [{id: k, sha256: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed}]}]\n")
	db := geotest.Bytes(t, geotest.Options{Type: "GeoLite2-Country"}, geotest.Networks{"9.0.0.0/8": geotest.Country(geotest.MaxMind, "DE", "EU")})
	write(t, filepath.Join(dir, "country.mmdb"), string(db))
	s := serveIn(t, dir, "--country-db", "country.mmdb", "--tenants", "redis://127.0.0.1:1") // whose Redis nobody needs
	if st := s.status(t); len(st.Databases) != 1 || st.Databases[0].Knows != "country" || st.Databases[0].Type != "GeoLite2-Country" || st.Databases[0].Built.IsZero() {
		t.Errorf("databases: %+v", st.Databases)
	}
	for range 3 {
		ask(t, http.DefaultClient, "GET", "http://"+s.addr+"/_sluice/open/small", "X-API-Key", "one", "X-Sluice-Ip", "192.0.2.1")
	}
	a := ask(t, http.DefaultClient, "GET", s.admin+"/metrics")
	names = map[string]bool{}
	for _, line := range strings.Split(a.body, "\n") {
		if line != "" && line[0] != '#' {
			names[line[:strings.IndexAny(line, "{ ")]] = true
		}
	}
	return names, a.body
}

// TestShippedNames: the dashboard and the alerts name only metrics that there
// are, and promtool has nothing to say about these.
func TestShippedNames(t *testing.T) {
	shown, text := shownMetrics(t)
	word := regexp.MustCompile(`\b(sluice|process|go)_[a-z_]+`)
	for _, path := range []string{"../examples/grafana/dashboard.json", "../examples/prometheus/alerts.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := word.FindAllString(string(data), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics only", path, len(found))
		}
		for _, name := range found {
			if !shown[name] {
				t.Errorf("%s names %s, which is not in /metrics", path, name)
			}
		}
		if strings.HasSuffix(path, ".json") {
			checkDashboard(t, data)
		}
	}
	check := exec.Command(tool(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || strings.Contains(string(out), "sluice_") {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// checkDashboard: every panel has a title, a place of its own and a question.
func checkDashboard(t *testing.T, data []byte) {
	t.Helper()
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("panel %d has no title or asks nothing", p.ID)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestShippedAlerts: the rules are good, and fire when they should.
func TestShippedAlerts(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		c := exec.Command(promtool, args...)
		c.Dir = "../examples/prometheus"
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestShippedUnits: systemd understands the units, with nothing left over.
func TestShippedUnits(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	dir := t.TempDir()
	units, err := filepath.Glob("../examples/systemd/*")
	if err != nil || len(units) == 0 {
		t.Fatalf("no units: %v", err)
	}
	binary, err := exec.LookPath("sluice")
	if err != nil {
		t.Fatal(err)
	}
	var copies []string
	for _, unit := range units {
		to := filepath.Join(dir, filepath.Base(unit))
		// A unit that runs what is not installed here is not good.
		fill(t, unit, to, "/usr/bin/sluice", binary, "/usr/sbin/nginx", binary, "/bin/systemctl", binary)
		copies = append(copies, to)
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, copies...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// The flags that ExecStart gives are known.
	for _, unit := range units {
		data, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			_, command, ok := strings.Cut(line, "=/usr/bin/sluice serve ")
			if ok {
				checkServeFlags(t, strings.Fields(command)[1:])
			}
		}
	}
}
