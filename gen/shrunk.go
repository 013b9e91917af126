package gen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// listLine begins the line of the manifest that says how many entries a list
// file had. As a comment it names no file of ours.
const listLine = "# Entries of trusted proxies: "

// Shrunk is a list file that lost half of its entries or more.
type Shrunk struct {
	Name     string
	Was, Now int
}

// String is the finding for people.
func (s Shrunk) String() string {
	return fmt.Sprintf("%s: %d of trusted proxies, and %d when it was rendered last; a download that was cut short?", s.Name, s.Now, s.Was)
}

// Shrunk compares the list files of trusted proxies with what the rendering in a
// directory was made from. A list that was cut short on its way would let the
// proxies that it lacks stand for everybody behind them.
func (f Files) Shrunk(dir string) ([]Shrunk, error) {
	content, err := os.ReadFile(place(dir, manifestName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %q: %w", manifestName, err)
	}
	was := entries(content)
	var out []Shrunk
	for line := range strings.Lines(string(f[manifestName])) {
		name, now, ok := listEntries(line)
		if ok && was[name] > 0 && 2*now <= was[name] {
			out = append(out, Shrunk{name, was[name], now})
		}
	}
	return out, nil
}

// entries are the list files in a manifest, and how many entries each had.
func entries(manifest []byte) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(string(manifest)) {
		if name, n, ok := listEntries(line); ok {
			out[name] = n
		}
	}
	return out
}

func listEntries(line string) (name string, n int, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), listLine)
	if !ok {
		return "", 0, false
	}
	number, name, ok := strings.Cut(rest, " in ")
	n, err := strconv.Atoi(number)
	return name, n, ok && err == nil
}
