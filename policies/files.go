package policies

import (
	"path/filepath"
	"slices"
)

// Files are the paths of the files that the policy was read from, its own first,
// also of those that could not be read; and the patterns in which further files
// may appear. Both are what to watch for changes.
func (p *Policy) Files() (names, patterns []string) {
	if p.sources.main == nil {
		return nil, nil
	}
	names = append(names, p.sources.main.name)
	for _, f := range p.sources.read {
		if path := p.File(f); !slices.Contains(names, path) {
			names = append(names, path)
		}
	}
	for _, pattern := range p.sources.globbed {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(p.sources.dir, pattern)
		}
		patterns = append(patterns, pattern)
	}
	return names, patterns
}

// noting reads and looks as f does, and notes in p what was asked for.
func (p *Policy) noting(f files) files {
	out := f
	if f.read != nil {
		out.read = func(name FileName) ([]byte, error) {
			p.sources.read = append(p.sources.read, name)
			return f.read(name)
		}
	}
	if f.glob != nil {
		out.glob = func(pattern string) ([]FileName, error) {
			p.sources.globbed = append(p.sources.globbed, pattern)
			return f.glob(pattern)
		}
	}
	return out
}
