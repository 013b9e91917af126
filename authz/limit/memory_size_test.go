//go:build linux && !race

package limit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
)

const sizeFile = "SLUICE_TEST_SIZE_FILE"

// sizeKeys live buckets may take sizeMost bytes of memory above an empty process.
const (
	sizeKeys = 1_000_000
	sizeMost = 150 << 20
)

func TestMemorySizeChild(t *testing.T) {
	path := os.Getenv(sizeFile)
	if path == "" {
		t.Skip("the child of TestMemorySize")
	}
	store, err := limit.OpenEmbedded(path, limit.EmbeddedOptions{Memory: limit.MemoryOptions{MaxKeys: 2 * sizeKeys}})
	if err != nil {
		t.Fatal(err)
	}
	empty := residentMemory(t)
	op := limit.Op{Refill: limit.NewRefill(limit.Unit, time.Hour), Burst: 100, Cost: 1}
	states := make([]limit.State, 1)
	var key []byte
	for i := range sizeKeys {
		key = fmt.Appendf(key[:0], "sluice:{ip=10.%d.%d.%d}:speed-1a2b3c4d:", i>>16, i>>8&255, i&255)
		op.Key, op.Tag = key, key[8:bytes.IndexByte(key, '}')]
		if _, err := store.Take(context.Background(), []limit.Op{op}, states); err != nil {
			t.Fatal(err)
		}
	}
	// What the tables grew out of goes back to the system by and by; do it now.
	runtime.GC()
	debug.FreeOSMemory()
	fmt.Printf("grown %d keys %d\n", residentMemory(t)-empty, store.Len())
}

// residentMemory is this process's, in bytes.
func residentMemory(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestMemorySize counts what a million live buckets take in the default store.
func TestMemorySize(t *testing.T) {
	if testing.Short() {
		t.Skip("a million buckets")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemorySizeChild$", "-test.v")
	cmd.Env = append(os.Environ(), sizeFile+"="+filepath.Join(t.TempDir(), "sluice.db"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var grown int64
	var keys int
	for line := range strings.Lines(string(out)) {
		if n, _ := fmt.Sscanf(line, "grown %d keys %d", &grown, &keys); n == 2 {
			break
		}
	}
	if keys != sizeKeys || grown > sizeMost {
		t.Errorf("%d buckets take %d MB above an empty store; want %d and at most %d MB", keys, grown>>20, sizeKeys, sizeMost>>20)
	}
	t.Logf("%d live buckets: %d MB, %d bytes each", keys, grown>>20, grown/max(1, int64(keys)))
}
