// Command client is a worker that asks before each job, as it would before each call
// to somebody else's API: sluice.go is what to copy.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"time"
)

func main() {
	log.SetFlags(0)
	address := flag.String("service", "127.0.0.1:9180", "HOST:PORT or unix:PATH of sluice serve")
	route := flag.String("route", "", "the route that a job counts as")
	tenant := flag.String("tenant", "", "for whom; or set SLUICE_KEY to an API key")
	cost := flag.Int64("cost", 0, "units of a job; 0 is the route's cost")
	jobs := flag.Int("jobs", 1, "how many jobs there are")
	workers := flag.Int("workers", 1, "how many work at a time")
	takes := flag.Duration("takes", 100*time.Millisecond, "how long a job takes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	w := worker{NewClient(*address), Ask{Route: *route, Tenant: *tenant, Key: os.Getenv("SLUICE_KEY"), Cost: *cost}, *takes}
	if err := w.workAll(ctx, *jobs, *workers); err != nil {
		log.Fatal(err)
	}
}

// worker does jobs of one kind.
type worker struct {
	client *Client
	ask    Ask
	takes  time.Duration
}

// workAll does all jobs, some at a time, and returns the first error.
func (w *worker) workAll(ctx context.Context, jobs, workers int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for job := range queue {
				if err := w.work(ctx, job); err != nil {
					cancel(fmt.Errorf("job %d: %w", job, err))
				}
			}
		})
	}
	for job := 1; job <= jobs && ctx.Err() == nil; job++ {
		select {
		case queue <- job:
		case <-ctx.Done():
		}
	}
	close(queue)
	all.Wait()
	return context.Cause(ctx)
}

// work waits for its turn, does the job, and tells that it is done.
func (w *worker) work(ctx context.Context, job int) error {
	p, err := w.client.Await(ctx, w.ask)
	if err != nil {
		return err
	}
	if !p.Allowed {
		return fmt.Errorf("refused for good: %s %s", p.Reason, p.Limit)
	}
	defer func() {
		// Also when the work was cut short: others wait for the place.
		if err := w.client.Release(context.WithoutCancel(ctx), p); err != nil {
			log.Printf("job %d: %v", job, err)
		}
	}()
	select {
	case <-time.After(w.takes):
		fmt.Printf("job %d: done, for %d units\n", job, p.Cost)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
