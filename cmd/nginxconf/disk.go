package nginxconf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// ReadFile reads a file: a dump, or a configuration whose includes are read
// from the disk, relative to its directory as NGINX does. An include that is
// not there is left unread and listed in Missing.
func ReadFile(name string) (*Site, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if _, _, dump := split(string(data)); dump {
		return Read(name, string(data))
	}
	return read(filepath.ToSlash(name), string(data), source{
		glob: func(pattern string) []string {
			found, err := filepath.Glob(filepath.FromSlash(pattern))
			if err != nil {
				return nil
			}
			found = slices.DeleteFunc(found, func(f string) bool {
				info, err := os.Stat(f)
				return err != nil || !info.Mode().IsRegular()
			})
			for i := range found {
				found[i] = filepath.ToSlash(found[i])
			}
			return found
		},
		read: func(file string) (string, error) {
			data, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil {
				return "", fmt.Errorf("cannot read %q: %w", file, err)
			}
			return string(data), nil
		},
	})
}
