package limit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
)

// A process sells from a store and says on a pipe what it is about to do and what
// was acknowledged, until it is killed in the middle. Nothing acknowledged may be
// missing from the file; and when the next process repeats what was not
// acknowledged, under the same names, nothing may be counted twice.

// sale is one line of the pipe: an intent, or the same line again as acknowledged.
type sale struct {
	Key, ID string
	Units   int64 // below 0: a refund
	Stamp   int64
}

const crashFile = "SLUICE_TEST_CRASH_FILE"

func TestEmbeddedCrashChild(t *testing.T) {
	path := os.Getenv(crashFile)
	if path == "" {
		t.Skip("the child of TestEmbeddedCrash")
	}
	store, err := limit.OpenEmbedded(path, limit.EmbeddedOptions{FlushEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	round := os.Getenv(crashFile + "_ROUND")
	for client := range 8 {
		go func() {
			for i := 0; ; i++ {
				s := sale{Key: "k" + strconv.Itoa(rand.IntN(5)), ID: fmt.Sprintf("%s-%d-%d", round, client, i), Units: 1 + rand.Int64N(9)}
				if s.Stamp = doSale(store, s, true); rand.IntN(3) == 0 {
					s.ID, s.Units = "r"+s.ID, -rand.Int64N(s.Units+1)
					doSale(store, s, true)
				}
			}
		}()
	}
	time.Sleep(time.Minute) // to be killed
}

// doSale makes a sale or a refund; loud tells the parent.
func doSale(store limit.Store, s sale, loud bool) (stamp int64) {
	tell := func(what string) {
		if loud {
			fmt.Printf("%s %s %s %d %d\n", what, s.Key, s.ID, s.Units, s.Stamp)
		}
	}
	op := limit.Op{
		Tag: []byte(s.Key), Key: []byte("sluice:{" + s.Key + "}:sold"), Kind: limit.Quota, Calendar: crashYears,
		Max: limit.Unlimited, Cost: max(1, s.Units), Stamp: s.Stamp,
	}
	states := make([]limit.State, 1)
	var err error
	tell("intent")
	if s.Units > 0 {
		op.ID = []byte(s.ID)
		_, err = store.Take(context.Background(), []limit.Op{op}, states)
	} else {
		err = store.Settle(context.Background(), []byte(s.ID), []limit.Op{op}, []int64{s.Units})
	}
	if err != nil {
		panic(err)
	}
	tell("done")
	return states[0].Stamp
}

// crashYears has periods that do not end during a test, but for once a month.
var crashYears = limit.NewCalendar(limit.Month, time.UTC, 1)

func TestEmbeddedCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	sales := map[string]sale{}
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		open := crashRound(t, path, round, sales)
		store := openEmbedded(t, path, limit.EmbeddedOptions{})
		least, most := map[string]int64{}, map[string]int64{}
		for id, s := range sales {
			least[s.Key] += s.Units
			most[s.Key] += s.Units
			if open[id] && s.Units > 0 {
				least[s.Key] -= s.Units
			} else if open[id] {
				most[s.Key] -= s.Units
			}
		}
		for key := range most {
			if used := soldOf(t, store, key); used < least[key] || used > most[key] {
				t.Errorf("round %d, %s: used %d after the crash; want %d to %d", round, key, used, least[key], most[key])
			}
		}
		sum := map[string]int64{}
		for id, s := range sales {
			sum[s.Key] += s.Units
			if open[id] || rand.IntN(20) == 0 {
				doSale(store, s, false)
			}
		}
		for key, want := range sum {
			if used := soldOf(t, store, key); used != want {
				t.Errorf("round %d, %s: used %d after repeating; want %d", round, key, used, want)
			}
		}
		closeStore(t, store)
	}
	t.Logf("%d sales", len(sales))
	if len(sales) == 0 {
		t.Error("nothing was sold")
	}
}

func soldOf(t testing.TB, store limit.Store, key string) int64 {
	t.Helper()
	return peekOne(t, store, limit.Op{
		Tag: []byte(key), Key: []byte("sluice:{" + key + "}:sold"), Kind: limit.Quota, Calendar: crashYears, Max: limit.Unlimited, Cost: 1,
	}).Used
}

// crashRound runs a child, kills it at some moment, and adds its sales. It returns
// the names of those that were not acknowledged.
func crashRound(t *testing.T, path string, round int, sales map[string]sale) (open map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEmbeddedCrashChild$")
	cmd.Env = append(os.Environ(), crashFile+"="+path, crashFile+"_ROUND="+strconv.Itoa(round))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	open = map[string]bool{}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			return open
		}
		once.Do(func() {
			time.AfterFunc(time.Duration(rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		})
		var what string
		var s sale
		if n, _ := fmt.Sscanf(line, "%s %s %s %d %d", &what, &s.Key, &s.ID, &s.Units, &s.Stamp); n < 5 {
			t.Fatalf("the child says %q", line)
		}
		if what == "intent" {
			sales[s.ID], open[s.ID] = s, true
		} else {
			delete(open, s.ID)
		}
	}
}
