package authz

import (
	"os"
	"path/filepath"
	"strings"
)

// maxHops bounds links that lead in a circle.
const maxHops = 40

// hops are the path of a file, made absolute, and every link on the way to what
// is behind it: /etc/p/policy.yaml, /etc/p/..data, /etc/p/..2026/policy.yaml.
// When none of them is replaced, the file is the same.
func hops(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	out := []string{path}
	for range maxHops {
		link, behind, found := firstLink(path)
		if !found {
			break
		}
		if link != path {
			out = append(out, link)
		}
		path = behind
		out = append(out, path)
	}
	return out
}

// firstLink finds the first part of a path that is a link, and the path with
// what it points to in its place.
func firstLink(path string) (link, behind string, found bool) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != filepath.Separator {
			continue
		}
		target, err := os.Readlink(path[:i])
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:i]), target)
		}
		return path[:i], filepath.Join(target, strings.TrimPrefix(path[i:], "/")), true
	}
	return "", "", false
}
