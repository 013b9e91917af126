package authz

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// watched is a directory that is watched.
type watched struct {
	t       *testing.T
	dir     string
	changes chan string // what the files held at each change
}

// watchFiles watches files and patterns in a new directory that make fills.
func watchFiles(t *testing.T, poll time.Duration, fill func(dir string), names, patterns []string) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), changes: make(chan string, 100)}
	fill(w.dir)
	in := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, filepath.Join(w.dir, s))
		}
		return out
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		Watch(ctx, WatchOptions{
			Files: func() ([]string, []string) { return in(names), in(patterns) },
			Changed: func() {
				all := ""
				for _, name := range in(names) {
					data, _ := os.ReadFile(name)
					all += string(data)
				}
				w.changes <- all
			},
			Log: slog.New(slog.DiscardHandler), Poll: poll,
		})
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	<-w.changes // what it begins with
	return w
}

func (w *watched) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) replace(name, text string) {
	w.t.Helper()
	w.write(name+".new", text)
	if err := os.Rename(filepath.Join(w.dir, name+".new"), filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) link(target, name string) {
	w.t.Helper()
	tmp := filepath.Join(w.dir, name+".tmp")
	if err := os.Symlink(target, tmp); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) want(what, text string) {
	w.t.Helper()
	select {
	case got := <-w.changes:
		if got != text {
			w.t.Errorf("%s: seen with %q, want %q", what, got, text)
		}
	case <-time.After(5 * time.Second):
		w.t.Fatalf("%s: not seen", what)
	}
}

func (w *watched) wantNothing(what string) {
	w.t.Helper()
	select {
	case got := <-w.changes:
		w.t.Errorf("%s: seen as a change to %q", what, got)
	case <-time.After(4 * watchQuiet):
	}
}

func TestWatchFile(t *testing.T) {
	t.Parallel()
	w := watchFiles(t, time.Hour, func(dir string) {
		_ = os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("1"), 0o644)
	}, []string{"policy.yaml", "lists/bad.txt"}, []string{"tenants/*.yaml"})
	w.write("policy.yaml", "2")
	w.want("written in place", "2")
	w.replace("policy.yaml", "3")
	w.want("renamed over", "3")
	w.replace("policy.yaml", "4")
	w.want("renamed over again", "4")
	w.write("policy.yaml", "4")
	w.wantNothing("the same text")
	w.write("sluice.db", "x")
	w.wantNothing("another file")

	// As vim does: the old one becomes a backup, then a new one is made.
	if err := os.Rename(filepath.Join(w.dir, "policy.yaml"), filepath.Join(w.dir, "policy.yaml~")); err != nil {
		t.Fatal(err)
	}
	w.write("policy.yaml", "5")
	w.want("as an editor does", "5")

	// In pieces: one change.
	for i := range 10 {
		w.write("policy.yaml", fmt.Sprint("piece ", i))
		time.Sleep(watchQuiet / 5)
	}
	w.want("in pieces", "piece 9")
	w.wantNothing("in pieces, more than once")

	if err := os.Remove(filepath.Join(w.dir, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	w.want("removed", "")
	w.write("policy.yaml", "6")
	w.want("back again", "6")
}

// A ConfigMap is a directory behind a link: ..data is made to point elsewhere.
func TestWatchKubernetes(t *testing.T) {
	t.Parallel()
	w := watchFiles(t, time.Hour, func(dir string) {
		for i, text := range []string{"one", "two", "three"} {
			d := filepath.Join(dir, fmt.Sprintf("..%d", i))
			_ = os.Mkdir(d, 0o755)
			_ = os.WriteFile(filepath.Join(d, "policy.yaml"), []byte(text), 0o644)
		}
		_ = os.Symlink("..0", filepath.Join(dir, "..data"))
		_ = os.Symlink("..data/policy.yaml", filepath.Join(dir, "policy.yaml"))
	}, []string{"policy.yaml"}, nil)
	w.link("..1", "..data")
	_ = os.RemoveAll(filepath.Join(w.dir, "..0"))
	w.want("the first swap", "two")
	w.link("..2", "..data")
	_ = os.RemoveAll(filepath.Join(w.dir, "..1"))
	w.want("the second swap", "three")
	w.wantNothing("a swap that is over")
}

// Files that appear in a pattern count, and so do directories behind a link.
func TestWatchPatterns(t *testing.T) {
	t.Parallel()
	w := watchFiles(t, time.Hour, func(dir string) {
		_ = os.MkdirAll(filepath.Join(dir, "tenants"), 0o755)
		_ = os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("p"), 0o644)
	}, []string{"policy.yaml"}, []string{"tenants/*.yaml"})
	w.write("tenants/a.yaml", "x")
	w.want("a new file", "p")
	w.write("tenants/a.yaml", "y")
	w.want("its text", "p")
	w.write("tenants/a.txt", "y")
	w.wantNothing("a file that does not fit")
}

// Without notices, as on a file system of the network, polling finds changes.
func TestWatchPolls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	changes := 0
	w := &watch{WatchOptions: WatchOptions{
		Files:   func() ([]string, []string) { return []string{path}, nil },
		Changed: func() { changes++ },
	}}
	w.look()
	w.look()
	if changes != 1 {
		t.Errorf("%d changes, want the one of the beginning", changes)
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.look()
	if changes != 2 {
		t.Errorf("%d changes, want one more", changes)
	}
}

func TestHops(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) []string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		return names
	}
	for _, l := range [][2]string{{"..1", "..data"}, {"..data/f", "f"}, {"loop", "loop"}, {dir + "/f", "abs"}} {
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	f := func(name string, want ...string) {
		t.Helper()
		if got := hops(filepath.Join(dir, name)); !slices.Equal(got, in(want...)) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f("plain", "plain")
	f("f", "f", "..data/f", "..data", "..1/f")
	f("abs", "abs", "f", "..data/f", "..data", "..1/f")
	if n := len(hops(filepath.Join(dir, "loop"))); n > maxHops+1 {
		t.Errorf("a circle has %d hops", n)
	}
}
