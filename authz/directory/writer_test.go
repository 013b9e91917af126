package directory

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"sluice/authz/limit/limittest"
)

// Records are found, written, told and removed on all servers of a cluster.
func TestWriterOnACluster(t *testing.T) {
	t.Parallel()
	c := limittest.StartCluster(t, 3)
	w, err := OpenWriter(c.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	var wanted []Record
	for i := range 500 {
		wanted = append(wanted, Record{fmt.Sprintf("tenant:t%d", i), map[string]string{"plan": "free"}})
	}
	compare := func(what string, wanted []Record, changes, same, others int) *Difference {
		t.Helper()
		d, err := w.Compare(ctx, wanted)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Changes) != changes || d.Same != same || len(d.Others) != others {
			t.Errorf("%s: %d changes, %d the same, %d others; want %d, %d, %d", what, len(d.Changes), d.Same, len(d.Others), changes, same, others)
		}
		return d
	}
	if made, err := w.Apply(ctx, compare("at first", wanted, 500, 0, 0).Changes); made != 500 || err != nil {
		t.Fatalf("%d made, %v", made, err)
	}
	d := compare("with less wanted", wanted[:200], 0, 200, 300)
	if made, err := w.Apply(ctx, d.Others); made != 300 || err != nil {
		t.Fatalf("%d removed, %v", made, err)
	}
	compare("after it", wanted, 300, 200, 0)
}

// A server that goes away is an error, and no harm is done by doing it all again.
func TestWriterAway(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	w, err := OpenWriter("redis://"+server.Addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	wanted := []Record{{"tenant:acme", map[string]string{"plan": "free"}}}
	d, err := w.Compare(ctx, wanted)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if made, err := w.Apply(ctx, d.Changes); made != 0 || err == nil {
		t.Errorf("%d made, %v", made, err)
	}
	if _, err := w.Compare(ctx, wanted); err == nil {
		t.Error("it is compared with nothing")
	}
	server.Restart()
	for range 2 {
		if made, err := w.Apply(ctx, d.Changes); made != 1 || err != nil {
			t.Errorf("%d made, %v", made, err)
		}
	}
}

// What names a tenant is there no longer than he is.
func TestWriterTurns(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"tenant": "acme"}
	last := -1
	for _, c := range []Change{
		{Record: Record{"tenant:acme", fields}}, {Record: Record{"key:00", fields}}, {Record: Record{"claim:x", fields}},
		{Record: Record{Name: "cert:00"}}, {Record: Record{Name: "key:01"}}, {Record: Record{Name: "tenant:old"}},
	} {
		if turn := c.turn(); turn < last {
			t.Errorf("%s comes before what goes before it", c.Name)
		} else {
			last = turn
		}
	}
}
