package replay

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice/cmd/accesslog"
)

// writeLog writes a day of requests in the combined format: most of the traffic is
// a few clients', as it is.
func writeLog(b *testing.B, lines, clients int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "access.log")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	random := rand.New(rand.NewPCG(1, 1))
	targets := []string{"/v1/search?q=%d", "/v1/items/%d", "/assets/app.%d.js", "/v1/pay/%d", "/?x=%d", "/healthz?%d", "/docs/page%d?x=1&y=2"}
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for i := range lines {
		// Every client comes once; the others' share falls with their number.
		n := i
		if i >= clients {
			r := random.Float64()
			n = int(r * r * r * float64(clients))
		}
		at := day.Add(time.Duration(float64(i) / float64(lines) * float64(24*time.Hour)))
		fmt.Fprintf(w, "10.%d.%d.%d - - [%s] \"GET %s HTTP/1.1\" 200 %d \"https://example.com/\" \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36\"\n",
			n>>16, n>>8&255, n&255, at.Format("02/Jan/2006:15:04:05 -0700"), fmt.Sprintf(targets[random.IntN(len(targets))], random.IntN(5000)), random.IntN(50_000))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkReplay replays a million lines of 100,000 clients, and lets goaccess
// read the same file in the same run. It tells the ratio of their times, and the
// most memory that the process had of the system.
func BenchmarkReplay(b *testing.B) {
	path := writeLog(b, 1_000_000, 100_000)
	policy := compiled(b, strings.Replace(twoFloors, "- {name: api, match: {prefix: /v1}}", "- {name: api, match: {prefix: /v1}}\n  - {name: rest, match: {prefix: /}}", 1))
	var mine time.Duration
	for b.Loop() {
		began := time.Now()
		r, err := Run(Options{Policy: policy, Sources: []accesslog.Source{{Name: path}}})
		mine = time.Since(began)
		if err != nil || r.Verdicts.Requests != 1_000_000 || r.Verdicts.Subjects != 100_000 {
			b.Fatal(err, r)
		}
	}
	b.ReportMetric(float64(mine.Nanoseconds())/1_000_000, "ns/line")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys>>20), "MB")
	goaccess, err := exec.LookPath("goaccess")
	if err != nil {
		b.Log("goaccess is not there")
		return
	}
	began := time.Now()
	if out, err := exec.Command(goaccess, path, "--log-format=COMBINED", "--no-progress", "-o", filepath.Join(b.TempDir(), "out.json")).CombinedOutput(); err != nil {
		b.Fatalf("goaccess: %v\n%s", err, out)
	}
	b.ReportMetric(float64(time.Since(began))/float64(mine), "times-goaccess")
}
