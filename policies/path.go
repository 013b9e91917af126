package policies

import (
	"strconv"
	"strings"
)

// A path names a place in a policy the way people write it:
// plans.pro.limits.speed.rate, routes[2].match.prefix. A key that is more than
// letters, digits, _ and - stands in double quotes: plans."v1.5".limits.

// field is the path of a key of the mapping at path.
func field(path, key string) string {
	if !plainKey(key) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// elem is the path of an entry of the list at path.
func elem(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

func plainKey(key string) bool {
	if key == "" {
		return false
	}
	return strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// step is one part of a path: a key, or an index when Key is empty.
type step struct {
	Key   string
	Index int
}

// steps takes a path apart. Paths are ours, never a user's: a malformed one is a bug.
func steps(path string) []step {
	var out []step
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			i, err := strconv.Atoi(path[1:end])
			if err != nil {
				panic("BUG: path index: " + path)
			}
			out, path = append(out, step{Index: i}), path[end+1:]
		case '"':
			quoted, err := strconv.QuotedPrefix(path)
			if err != nil {
				panic("BUG: path quote: " + path)
			}
			key, _ := strconv.Unquote(quoted)
			out, path = append(out, step{Key: key}), path[len(quoted):]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			out, path = append(out, step{Key: path[:end]}), path[end:]
		}
	}
	return out
}

// FieldPath is the path of a key of the mapping at path, as findings write it.
func FieldPath(path, key string) string { return field(path, key) }

// ElemPath is the path of an entry, counted from 0, of the list at path.
func ElemPath(path string, i int) string { return elem(path, i) }
