package accesslog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// line is a line of combined at a second of 1 December 2026.
func line(second int, target string) string {
	at := time.Date(2026, 12, 1, 0, 0, second, 0, time.UTC)
	return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 5 \"-\" \"-\"\n", at.Format("02/Jan/2006:15:04:05 -0700"), target)
}

func targets(l *Log) []string {
	defer l.Close()
	var out []string
	for e := l.Next(); e != nil; e = l.Next() {
		out = append(out, string(e.AppendTarget(nil)))
	}
	return out
}

// TestOrder is C116: a line is written when its request ends; entries come by when
// it began, whatever the time zone, and lines without order are sorted in a window.
func TestOrder(t *testing.T) {
	f, err := ParseFormat(`$remote_addr [$time_local] "$request" $request_time`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join([]string{
		`192.0.2.1 [01/Dec/2026:01:00:00 +0100] "GET /2 HTTP/1.1" 0.000`,
		`192.0.2.1 [01/Dec/2026:00:00:31 +0000] "GET /5 HTTP/1.1" 0.000`,
		`192.0.2.1 [01/Dec/2026:00:00:30 +0000] "GET /3 HTTP/1.1" 30.000`,
		`192.0.2.1 [01/Dec/2026:01:00:31 +0100] "GET /4 HTTP/1.1" 0.500`,
		`192.0.2.1 [30/Nov/2026:23:59:58 -0000] "GET /1 HTTP/1.1" -`,
		`192.0.2.1 [01/Dec/2026:02:00:31 +0100] "GET /6 HTTP/1.1" 0.000`, // an hour later
		`192.0.2.1 [01/Dec/2026:00:00:00 +0000] "GET /7 HTTP/1.1" 0.000`, // too late to be sorted
	}, "\n")
	l := Open([]Source{{Name: "x", Reader: strings.NewReader(text)}}, Options{Format: f})
	got := targets(l)
	if want := []string{"/1", "/2", "/3", "/4", "/5", "/7", "/6"}; !cmp.Equal(got, want) {
		t.Errorf("order: %q", got)
	}
	if c := l.Counts(); c.Late != 1 {
		t.Errorf("late: %+v", c)
	}
}

// TestTimeNeverGoesBack: a line that is too late to be sorted gets the time of
// those before it.
func TestTimeNeverGoesBack(t *testing.T) {
	text := line(4000, "/a") + line(4100, "/b") + line(0, "/late") + line(4101, "/c") + line(4300, "/d")
	l := Open([]Source{{Name: "x", Reader: strings.NewReader(text)}}, Options{})
	defer l.Close()
	last := int64(0)
	for e := l.Next(); e != nil; e = l.Next() {
		if e.Start < last {
			t.Errorf("%s goes back", e.AppendTarget(nil))
		}
		last = e.Start
	}
}

// TestLeap: one line of a clock that was wrong does not make all others late; a
// gap in the log is none.
func TestLeap(t *testing.T) {
	const aWeek = 7 * 86400
	text := line(0, "/a") + line(aWeek, "/wrong") + line(1, "/b") + line(aWeek, "/later") + line(aWeek+1, "/last")
	l := Open([]Source{{Name: "x", Reader: strings.NewReader(text)}}, Options{})
	got := targets(l)
	if want := []string{"/a", "/b", "/later", "/last"}; !cmp.Equal(got, want) {
		t.Errorf("order: %q", got)
	}
	if c := l.Counts(); c.Bad[Leap] != (Tally{1, "x", 2}) || c.Late != 0 {
		t.Errorf("counts: %+v", c)
	}
}

// TestSources: files are merged by time, packed or not, whatever their names.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) Source {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return Source{Name: path}
	}
	var zipped, zstded bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, line(0, "/0"), line(3, "/3"))
	z.Close()
	zs, _ := zstd.NewWriter(&zstded)
	fmt.Fprint(zs, line(1, "/1"), line(4, "/4"))
	zs.Close()
	sources := []Source{
		write("plain", []byte(line(2, "/2")+strings.TrimSuffix(line(5, "/5"), "\n"))),
		write("log.gz", zipped.Bytes()),
		write("zstd-without-its-name", zstded.Bytes()),
		write("empty", nil),
	}
	l := Open(sources, Options{})
	got := targets(l)
	if want := []string{"/0", "/1", "/2", "/3", "/4", "/5"}; !cmp.Equal(got, want) || l.Err() != nil {
		t.Errorf("order: %q, %v", got, l.Err())
	}
	l = Open([]Source{sources[0], write("cut.gz", zipped.Bytes()[:zipped.Len()-6])}, Options{})
	for range targets(l) {
	}
	if l.Err() == nil || !strings.Contains(l.Err().Error(), "cut.gz") {
		t.Errorf("a file that was cut short: %v", l.Err())
	}
	l = Open([]Source{{Name: filepath.Join(dir, "absent")}}, Options{})
	if got := targets(l); got != nil || l.Err() == nil || !strings.Contains(l.Err().Error(), "no such file") {
		t.Errorf("a file that is not there: %q, %v", got, l.Err())
	}
}

// TestBatches: lines survive where batches are cut, and are numbered through.
func TestBatches(t *testing.T) {
	var text strings.Builder
	const n = 30_000
	for i := range n {
		text.WriteString(line(i/100, fmt.Sprintf("/%d/%s", i, strings.Repeat("x", i%300))))
		if i == 20_000 {
			text.WriteString(strings.Repeat("y", 3*batchSize) + "\n")
		}
	}
	l := Open([]Source{{Name: "x", Reader: strings.NewReader(text.String())}}, Options{Workers: 4})
	defer l.Close()
	i := 0
	for e := l.Next(); e != nil; e = l.Next() {
		number := int64(i + 1)
		if i > 20_000 {
			number++
		}
		want := fmt.Sprintf("/%d/%s", i, strings.Repeat("x", i%300))
		if got := string(e.AppendTarget(nil)); got != want || e.Line != number {
			t.Fatalf("entry %d is line %d, %.40q", i, e.Line, got)
		}
		i++
	}
	c := l.Counts()
	if i != n || c.Bad[TooLong] != (Tally{1, "x", 20_002}) || c.Lines != n+1 {
		t.Errorf("%d entries, %+v", i, c)
	}
}

// TestManyAtOnce: more lines in a window than may wait are handed out early, and
// none is lost.
func TestManyAtOnce(t *testing.T) {
	q := newQueue(60, 100)
	pushed, popped := 0, 0
	for i := range 10_000 {
		e := Entry{Start: int64(i/50) * second, End: int64(i/50) * second}
		for !q.ready(&e) {
			for q.pop() != nil {
				popped++
			}
		}
		q.push(e)
		if pushed++; q.held > 150 {
			t.Fatalf("%d are held", q.held)
		}
	}
	for q.pop() != nil || q.drain() {
		popped++
	}
	for q.pop() != nil {
		popped++
	}
	if q.early == 0 || popped < pushed {
		t.Errorf("%d of %d, %d seconds went early", popped, pushed, q.early)
	}
}

// TestClosedEarly: whoever stops in the middle leaves nothing running.
func TestClosedEarly(t *testing.T) {
	text := strings.Repeat(line(1, "/a"), 100_000)
	l := Open([]Source{{Name: "x", Reader: strings.NewReader(text)}}, Options{Workers: 2})
	if l.Next() == nil {
		t.Fatal("no entry")
	}
	l.Close()
	l.Close()
}
