package limit

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEmbeddedWhenItsFileFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	e, err := OpenEmbedded(path, EmbeddedOptions{FlushEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	hard := Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:month"), Kind: Quota, Max: 10, Cost: 1, Calendar: NewCalendar(Month, time.UTC, 1)}
	take := func(ctx context.Context) error {
		_, err := e.Take(ctx, []Op{hard}, make([]State, 1))
		return err
	}
	late, cancel := context.WithCancel(context.Background())
	cancel()
	// Either the commit was faster, or the caller learns that it did not wait.
	if err := take(late); err != nil && (!errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled)) {
		t.Errorf("without time: error %v", err)
	}
	if err := take(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := e.file.db.Close(); err != nil { // every commit fails now
		t.Fatal(err)
	}
	for range 3 {
		if err := take(context.Background()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v; want ErrUnavailable and the file's name", err)
		}
	}
	// It is refused in memory as ever, and needs no file for that.
	hard.Cost = 9
	if err := take(context.Background()); err != nil {
		t.Errorf("refusal: %v", err)
	}
	if s := e.Stats(); s.Failures != 3 || s.Waiting != 1 || s.Err == nil || s.Lag <= 0 {
		t.Errorf("%+v; want 3 failures and one quota waiting", s)
	}
	if err := e.Close(); err == nil || !strings.Contains(err.Error(), "cannot write 1 quotas") {
		t.Errorf("Close: %v; want it to say what is lost", err)
	}
}
