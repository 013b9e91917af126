package cmd

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"sluice/authz/limit/limittest"
)

const (
	benchRounds = 5
	benchTime   = "2s" // of a line in a round
	benchConns  = 32
)

// benchLine is a line of the table: a service under load, and what it is held
// against.
type benchLine struct {
	name   string
	limits string // of plan anonymous, in YAML
	store  func(*benchTable, *benchLine) string
	keys   int // counters in use
	beside string
	target float64

	addr  string
	redis string // HOST:PORT, if it uses one
	cpu   []*os.Process
	rates []float64
	costs []float64 // microseconds of CPU for a decision, Redis included
}

// The limits of the table: none of them is ever reached.
const (
	oneLimit  = "speed: {per: ip, rate: 1000000/s, burst: 1000000}"
	twoLimits = oneLimit + ", org: {per: tenant, rate: 1000000/s, burst: 1000000}"
	// leasedLimit holds what a second of the bench can ask for.
	leasedLimit = "speed: {per: ip, rate: 1000000/s, burst: 1000000, sync: leased}"
	softQuota   = ", monthly: {per: tenant, quota: 1000000000000/month, accounting: soft}"
	benchFirst  = "a constant 204"
)

// benchLines has what is held against another line right behind it.
func benchLines() []*benchLine {
	embedded := func(t *benchTable, _ *benchLine) string {
		return "embedded:" + filepath.Join(t.TempDir(), "sluice.db")
	}
	shared := func(t *benchTable, l *benchLine) string {
		server := limittest.StartServer(t)
		l.redis, l.cpu = server.Addr, append(l.cpu, server.Process())
		return "redis://" + server.Addr
	}
	return []*benchLine{
		{name: benchFirst},
		{name: "embedded, 2 limits, 1,000 keys", limits: twoLimits, store: embedded, keys: 1_000, beside: benchFirst, target: 0.90},
		{name: "embedded, soft quota on top", limits: twoLimits + softQuota, store: embedded, keys: 1_500, beside: "embedded, 2 limits, 1,000 keys", target: 0.97},
		{name: "embedded, 2 limits, 1,000,000 keys", limits: twoLimits, store: embedded, keys: 1_000_000, beside: "embedded, 2 limits, 1,000 keys", target: 0.50},
		{name: "Redis, 1 limit", limits: oneLimit, store: shared, keys: 500, beside: benchFirst, target: 0.38},
		{name: "Redis, 2 limits", limits: twoLimits, store: shared, keys: 1_000, beside: benchFirst, target: 0.30},
		{name: "Redis, soft quota on top", limits: twoLimits + softQuota, store: shared, keys: 1_000, beside: "Redis, 2 limits", target: 0.97},
		{name: "Redis, leased, a hot key", limits: leasedLimit, store: shared, keys: 1, beside: benchFirst, target: 0.85},
	}
}

// benchTable is one run of BenchmarkTable.
type benchTable struct {
	*testing.B
	lines []*benchLine
}

// BenchmarkTable asks real services over loopback, as NGINX would, with wrk: 32
// kept-alive connections, each question about another client. All lines run in
// each round, one after the other; what is printed are medians of five rounds, as
// ratios to another line of the same run. The yardstick answers a constant 204
// with six headers and does nothing else.
func BenchmarkTable(b *testing.B) {
	if _, err := exec.LookPath("wrk"); err != nil {
		b.Skip("wrk is not installed")
	}
	t := &benchTable{B: b, lines: benchLines()}
	for _, l := range t.lines {
		t.start(l)
	}
	for range benchRounds {
		for _, l := range t.lines {
			t.load(l)
		}
	}
	t.print()
}

// start starts what a line is about.
func (t *benchTable) start(l *benchLine) {
	if l.store == nil {
		var p *os.Process
		l.addr, p = startConstant(t)
		l.cpu = append(l.cpu, p)
		return
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}}
plans: {anonymous: {limits: {`+l.limits+`}}}
routes: [{name: all, match: {prefix: /}}]
`)
	s := startServiceOn(t, "127.0.0.1:0", policy, l.store(t, l))
	l.addr, l.cpu = s.addr, append(l.cpu, s.cmd.Process)
	empty := rss(t, s.cmd.Process.Pid)
	t.fill(l)
	if l.keys >= 1_000_000 {
		fmt.Printf("%s: %d MB of memory when empty, %d MB with all keys\n", l.name, empty>>20, rss(t, s.cmd.Process.Pid)>>20)
	}
}

// clients is how many clients a line has: each has a counter in every limit.
func (l *benchLine) clients() int {
	if l.keys == 0 {
		return 500
	}
	return l.keys / strings.Count(l.limits, "per:")
}

// fill lets every client come once, so that no round pays for new counters.
func (t *benchTable) fill(l *benchLine) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const batch = 100
	answer := make([]byte, 1<<20)
	for i := 0; i < l.clients(); i += batch {
		var out bytes.Buffer
		for j := i; j < min(i+batch, l.clients()); j++ {
			fmt.Fprintf(&out, "GET /_sluice/open/all HTTP/1.1\r\nHost: sluice\r\nX-Sluice-Ip: 10.%d.%d.%d\r\n\r\n", j>>16, j>>8&255, j&255)
		}
		want := min(batch, l.clients()-i)
		if _, err := conn.Write(out.Bytes()); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < want; {
			n, err := conn.Read(answer)
			if err != nil {
				t.Fatal(err)
			}
			got += bytes.Count(answer[:n], []byte("\r\n\r\n")) // an answer split there is counted late, never twice
		}
	}
}

var wrkRate = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)

// load is one line of one round.
func (t *benchTable) load(l *benchLine) {
	script := filepath.Join(t.TempDir(), "ask.lua")
	write(t, script, fmt.Sprintf(`
local n, random, floor = %d, math.random, math.floor
local head = "GET /_sluice/open/all HTTP/1.1\r\nHost: sluice\r\nX-Sluice-Method: GET\r\nX-Sluice-Uri: /v1/items?q=1\r\n" ..
  "X-Sluice-Host: api.example\r\nX-Sluice-Ip: 10."
local round, seq = "0123456789abcdef" .. %d .. "a", 100000000
function request() -- each with an id of its own, or it would get the first one's answer
  local i = random(0, n - 1)
  seq = seq + 1
  return head .. floor(i / 65536) .. "." .. floor(i / 256) %% 256 .. "." .. i %% 256 .. "\r\nX-Sluice-Request: " .. round .. seq .. "\r\n\r\n"
end`, l.clients(), len(l.rates)))
	before := cpuOf(t, l.cpu)
	out, err := exec.Command("wrk", "-t1", "-c"+strconv.Itoa(benchConns), "-d"+benchTime, "-s", script, "http://"+l.addr).CombinedOutput()
	if err != nil {
		t.Fatalf("wrk: %v\n%s", err, out)
	}
	m := wrkRate.FindSubmatch(out)
	if m == nil || bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		t.Fatalf("%s:\n%s", l.name, out)
	}
	rate, _ := strconv.ParseFloat(string(m[1]), 64)
	span, _ := time.ParseDuration(benchTime)
	l.rates = append(l.rates, rate)
	l.costs = append(l.costs, float64((cpuOf(t, l.cpu)-before).Microseconds())/(rate*span.Seconds()))
}

// print prints the table, and what a counter takes in Redis.
func (t *benchTable) print() {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%-36s %8s %8s %7s  %s\n", "", "CPU us", "ratio", "wanted", "beside")
	for i, l := range t.lines {
		if l.beside == "" {
			fmt.Fprintf(&out, "%-36s %8.1f %8.2f\n", l.name, median(l.costs), 1.0)
			continue
		}
		at := slices.IndexFunc(t.lines, func(o *benchLine) bool { return o.name == l.beside })
		ratios := make([]float64, len(l.rates))
		for r := range l.rates {
			ratios[r] = l.rates[r] / t.lines[at].rates[r]
		}
		ratio := median(ratios)
		fmt.Fprintf(&out, "%-36s %8.1f %8.2f %7.2f  %s\n", l.name, median(l.costs), ratio, l.target, l.beside)
		t.ReportMetric(ratio, fmt.Sprintf("ratio%d", i))
	}
	for _, l := range t.lines {
		if l.limits == oneLimit && l.redis != "" {
			fmt.Fprintf(&out, "a bucket in Redis: %d bytes (MEMORY USAGE)\n", t.bucketBytes(l))
		}
	}
	fmt.Print(out.String()) // a benchmark's log is cut off after ten lines
}

// bucketBytes is what Redis says of one counter.
func (t *benchTable) bucketBytes(l *benchLine) int64 {
	client := redis.NewClient(&redis.Options{Addr: l.redis, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	t.fill(l) // a full bucket is forgotten after a second
	key, err := client.RandomKey(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	size, err := client.MemoryUsage(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// cpuOf is the CPU time that processes have used.
func cpuOf(t *benchTable, list []*os.Process) (sum time.Duration) {
	for _, p := range list {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, f := range fields[11:13] { // user and system, in hundredths of a second
			ticks, _ := strconv.Atoi(f)
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

// rss is a process's memory, in bytes.
func rss(t *benchTable, pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(status))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// startConstant starts the yardstick, a process of its own.
func startConstant(t *benchTable) (addr string, p *os.Process) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	addr = ln.Addr().String()
	_ = ln.Close() // the copy in file listens on
	cmd := exec.Command("sluice-constant")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{file}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr, cmd.Process
}

// serveConstant is the yardstick: file descriptor 3 listens.
func serveConstant() {
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
		for _, name := range []string{"X-A", "X-B", "X-C", "X-D", "X-E", "X-F"} {
			ctx.Response.Header.Set(name, "some value")
		}
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	}}
	if err := server.Serve(ln); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
