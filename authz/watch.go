package authz

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// watchQuiet is how long files must be left alone before they are read: who
	// writes several, or one in pieces, is done by then.
	watchQuiet = 100 * time.Millisecond
	// watchPatience is how long that can be put off by somebody who goes on writing.
	watchPatience = 2 * time.Second
	// watchPoll is how often files are looked at anyway: file systems on the
	// network tell of nothing, and a machine may have no watches left.
	watchPoll = 10 * time.Second
)

// WatchOptions are the choices of Watch.
type WatchOptions struct {
	// Files are the paths to watch and the patterns in which further ones may
	// appear. It is asked again after each change.
	Files func() (names, patterns []string)
	// Changed is called at the beginning and after a change, never twice at a time.
	Changed func()
	// Log gets what hinders watching; nil: slog.Default.
	Log *slog.Logger
	// Poll is how often files are looked at without a notice; 10 s if 0.
	Poll time.Duration
}

// Watch calls Changed once at the beginning and whenever what the files hold has
// changed, until ctx ends. It
// watches directories, and those of every link on the way to a file: an editor
// puts another file in a file's place, and Kubernetes another directory behind
// a link. Files that are written anew with the same text have not changed.
func Watch(ctx context.Context, o WatchOptions) {
	w := newWatch(o)
	if w.notify != nil {
		defer w.notify.Close()
	}
	// Who calls has read the files before they were watched: they are read again,
	// now that their print is taken, and no change falls in between.
	w.look()
	poll := time.NewTicker(w.Poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			w.look()
		case e, ok := <-w.events():
			if !ok || !w.concerns(e.Name) {
				continue
			}
			if !w.settle(ctx) {
				return
			}
			w.look()
		case err := <-w.problems():
			// Events were lost: what changed is found by looking.
			w.Log.Warn("watching files", "error", err.Error())
			w.look()
		}
	}
}

type watch struct {
	WatchOptions
	notify   *fsnotify.Watcher // nil: none to be had, so polling must do
	dirs     []string          // that are watched
	paths    []string          // files, and the links on the way to them
	patterns []string
	seen     [sha256.Size]byte
}

func newWatch(o WatchOptions) *watch {
	w := &watch{WatchOptions: o}
	if w.Log == nil {
		w.Log = slog.Default()
	}
	if w.Poll <= 0 {
		w.Poll = watchPoll
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.Log.Warn("cannot be told of changed files: they are looked at now and then", "every", w.Poll.String(), "error", err.Error())
		return w
	}
	w.notify = notify
	return w
}

func (w *watch) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watch) problems() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

// look calls Changed when the files are not what they were.
func (w *watch) look() {
	w.aim()
	now := w.print()
	if now == w.seen {
		return
	}
	w.seen = now
	w.Changed()
	// The policy may name other files now, which nobody watched while they were
	// read: they are read once more, after their print was taken.
	if w.aim() {
		w.seen = w.print()
		w.Changed()
	}
}

// settle waits until nothing is written any more; false when ctx ends.
func (w *watch) settle(ctx context.Context) bool {
	quiet := time.NewTimer(watchQuiet)
	defer quiet.Stop()
	enough := time.NewTimer(watchPatience)
	defer enough.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-quiet.C:
			return true
		case <-enough.C:
			return true
		case e := <-w.events():
			if w.concerns(e.Name) {
				quiet.Reset(watchQuiet)
			}
		}
	}
}

// concerns tells whether what happened at a path may change a file. Others write
// in the same directories: a log, a store.
func (w *watch) concerns(path string) bool {
	path = filepath.Clean(path)
	if slices.Contains(w.paths, path) {
		return true
	}
	return slices.ContainsFunc(w.patterns, func(pattern string) bool {
		fits, _ := filepath.Match(pattern, path)
		return fits
	})
}

// aim watches the directories where files are now. It tells whether the files
// are others than before.
func (w *watch) aim() bool {
	names, patterns := w.Files()
	patterns = slices.Clone(patterns)
	var paths, dirs []string
	for _, name := range names {
		paths = append(paths, hops(name)...)
	}
	for i, pattern := range patterns {
		if full, err := filepath.Abs(pattern); err == nil {
			patterns[i] = full
		}
		dirs = append(dirs, filepath.Dir(patterns[i]))
	}
	for _, path := range paths {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(paths)
	slices.Sort(dirs)
	paths, dirs = slices.Compact(paths), slices.Compact(dirs)
	changed := !slices.Equal(paths, w.paths) || !slices.Equal(patterns, w.patterns)
	w.paths, w.patterns = paths, patterns
	w.follow(dirs)
	return changed
}

// follow watches these directories and no others.
func (w *watch) follow(dirs []string) {
	if w.notify == nil {
		return
	}
	for _, dir := range w.dirs {
		if !slices.Contains(dirs, dir) {
			_ = w.notify.Remove(dir) // it may be gone, and the watch with it
		}
	}
	w.dirs = w.dirs[:0]
	for _, dir := range dirs {
		// A directory that was replaced has lost its watch: adding again is harmless.
		switch err := w.notify.Add(dir); {
		case err == nil:
			w.dirs = append(w.dirs, dir)
		case !errors.Is(err, os.ErrNotExist):
			w.Log.Warn("cannot watch a directory: its files are looked at now and then", "dir", dir, "every", w.Poll.String(), "error", err.Error())
		}
	}
}

// print is a fingerprint of what all files hold, and of which there are.
func (w *watch) print() (sum [sha256.Size]byte) {
	h := sha256.New()
	names, patterns := w.Files()
	for _, pattern := range patterns {
		more, _ := filepath.Glob(pattern)
		names = append(names, more...)
	}
	for _, name := range names {
		_, _ = io.WriteString(h, name+"\x00")
		one := sha256.New()
		if f, err := os.Open(name); err == nil {
			_, _ = io.Copy(one, io.LimitReader(f, 1<<30))
			f.Close()
			_, _ = h.Write(one.Sum(nil))
		}
		_, _ = h.Write([]byte{0})
	}
	h.Sum(sum[:0])
	return sum
}
