package limit_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// Instances are killed with the shares that they hold, and others come: on one Redis,
// no interval may see more than there is.

const leasedAddr = "SLUICE_TEST_LEASED_REDIS"

const (
	crashRate  = 2000
	crashBurst = 1000
)

func TestLeasedCrashChild(t *testing.T) {
	addr := os.Getenv(leasedAddr)
	if addr == "" {
		t.Skip("the child of TestLeasedCrash")
	}
	store, err := limit.OpenRedis("redis://"+addr, limit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := limit.NewLeased(store, limit.LeasedOptions{})
	states := make([]limit.State, 1)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // to be killed
		op := hot(crashRate, crashBurst, 1+time.Now().UnixNano()%3)
		from := time.Now()
		refused, err := l.Take(t.Context(), []limit.Op{op}, states)
		if err != nil {
			t.Fatal(err)
		}
		if refused < 0 {
			fmt.Printf("passed %d %d %d\n", from.UnixNano(), time.Now().UnixNano(), op.Cost)
		}
	}
}

func TestLeasedCrash(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	var mu sync.Mutex
	var all []admission
	var instances sync.WaitGroup
	for instance := range 3 {
		instances.Go(func() {
			for round := range 3 {
				passed, err := leasedChild(addr, time.Duration(200+100*instance+50*round)*time.Millisecond)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, passed...)
				mu.Unlock()
			}
		})
	}
	instances.Wait()
	within(t, all, crashRate, crashBurst)
	if sum := total(all); sum < crashBurst {
		t.Errorf("only %d units passed", sum)
	}
}

// leasedChild lets an instance live for a while, and tells what it has let pass.
func leasedChild(addr string, life time.Duration) (passed []admission, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeasedCrashChild$", "-test.v")
	cmd.Env = append(os.Environ(), leasedAddr+"="+addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var kill *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var from, till, units int64
		if n, _ := fmt.Sscanf(lines.Text(), "passed %d %d %d", &from, &till, &units); n < 3 {
			continue // the last line may be cut off
		}
		passed = append(passed, admission{time.Unix(0, from), time.Unix(0, till), units})
		if kill == nil { // its life begins when it works
			kill = time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait() // killed
	if kill == nil {
		return nil, fmt.Errorf("an instance let nothing pass: %v", lines.Err())
	}
	return passed, nil
}
