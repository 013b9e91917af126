package policies

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// files is how the files beside a policy are reached.
type files struct {
	dir  string
	read func(FileName) ([]byte, error)
	glob func(pattern string) ([]FileName, error)
	// tenants are files of tenants besides those that the policy names.
	tenants []FileName
}

// maxFile is the largest file that we read.
const maxFile = 64 << 20

// Load reads a policy file and the files it names, which are relative to its
// directory, and checks all of it. The findings are sorted; with an error
// among them the policy is good for nothing but showing places.
func Load(path string) (*Policy, Diagnostics) {
	src, err := readFile(path)
	if err != nil {
		return &Policy{}, Diagnostics{{Pos: Pos{File: path}, Message: readProblem(err), Rule: ruleRead}}
	}
	return ParseIn(filepath.Dir(path), path, src)
}

// LoadWith is Load with the tenants of more files, as if tenant_files named them.
// Unlike those they are relative to the working directory, and no patterns.
func LoadWith(path string, tenants []string) (*Policy, Diagnostics) {
	src, err := readFile(path)
	if err != nil {
		return &Policy{}, Diagnostics{{Pos: Pos{File: path}, Message: readProblem(err), Rule: ruleRead}}
	}
	beside := onDisk(filepath.Dir(path))
	for _, name := range tenants {
		beside.tenants = append(beside.tenants, seenFrom(beside.dir, name))
	}
	return parse(path, src, beside)
}

// seenFrom is a file as a directory names it; as it is, where that cannot be told.
func seenFrom(dir, name string) FileName {
	from, err := filepath.Abs(dir)
	to, err2 := filepath.Abs(name)
	if err != nil || err2 != nil {
		return FileName(name)
	}
	if rel, err := filepath.Rel(from, to); err == nil {
		return FileName(rel)
	}
	return FileName(name)
}

// ParseIn is Load for a policy that comes from elsewhere, such as standard
// input; the files it names are relative to dir.
func ParseIn(dir, name string, src []byte) (*Policy, Diagnostics) {
	return parse(name, src, onDisk(dir))
}

// onDisk are the files of a directory.
func onDisk(dir string) files {
	within := func(f string) string {
		if filepath.IsAbs(f) {
			return f
		}
		return filepath.Join(dir, f)
	}
	return files{
		dir:  dir,
		read: func(f FileName) ([]byte, error) { return readFile(within(string(f))) },
		glob: func(pattern string) ([]FileName, error) {
			found, err := filepath.Glob(within(pattern))
			var names []FileName
			for _, f := range found {
				if rel, rerr := filepath.Rel(dir, f); rerr == nil && !filepath.IsAbs(pattern) {
					f = rel
				}
				names = append(names, FileName(f))
			}
			return names, err
		},
	}
}

// LoadFS is Load for a policy in a file system, such as a revision in a
// repository. Its name, and those of the files it names, are shown with a prefix.
// A file with an absolute path, or outside of the file system, cannot be read.
func LoadFS(fsys fs.FS, name, shown string) (*Policy, Diagnostics) {
	dir := path.Dir(name)
	within := func(f string) (string, error) {
		if p := path.Join(dir, filepath.ToSlash(f)); fs.ValidPath(p) && !path.IsAbs(f) {
			return p, nil
		}
		return "", &fs.PathError{Op: "open", Path: f, Err: errors.New("it is outside of " + shown)}
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return &Policy{}, Diagnostics{{Pos: Pos{File: shown + name}, Message: readProblem(err), Rule: ruleRead}}
	}
	return parse(shown+name, text, files{
		dir: shown + dir,
		read: func(f FileName) ([]byte, error) {
			p, err := within(string(f))
			if err != nil {
				return nil, err
			}
			return fs.ReadFile(fsys, p)
		},
		glob: func(pattern string) ([]FileName, error) {
			p, err := within(pattern)
			if err != nil {
				return nil, err
			}
			found, err := fs.Glob(fsys, p)
			var names []FileName
			for _, f := range found {
				names = append(names, FileName(relative(dir, f)))
			}
			return names, err
		},
	})
}

// relative is a path of a file system as a folder of it names it.
func relative(dir, name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(name))
	if err != nil {
		panic("BUG: no way from " + dir + " to " + name)
	}
	return filepath.ToSlash(rel)
}

// Parse is Load for a policy in memory. The files it names are read with read;
// without one, naming a list or tenant file is an error. Patterns of tenant_files need a directory:
// see ParseIn.
func Parse(name string, src []byte, read func(FileName) ([]byte, error)) (*Policy, Diagnostics) {
	return parse(name, src, files{dir: filepath.Dir(name), read: read})
}

func parse(name string, text []byte, beside files) (*Policy, Diagnostics) {
	p, found := decodeOnly(name, text, beside)
	return p, crossChecked(p, found)
}

// decodeOnly reads a policy and the files it names, value by value.
func decodeOnly(name string, text []byte, beside files) (*Policy, Diagnostics) {
	p := &Policy{}
	d := &decoder{policy: p, files: p.noting(beside), fields: map[reflect.Type][]fieldSpec{}, lists: map[FileName]*source{}, budget: expansion}
	src, bad := readTree(name, text, "a policy that begins with version: 1")
	p.sources = sources{dir: beside.dir, main: src, lists: d.lists}
	d.src, d.list = src, bad
	if len(bad) == 0 {
		d.value(src.root, reflect.ValueOf(p).Elem(), "")
		d.version()
		d.tenantFiles()
		d.src = src
		d.keySets()
	}
	return p, tidy(d.list)
}

// tidy sorts findings and says each once: what stands behind an anchor is read
// wherever an alias brings it.
func tidy(found Diagnostics) Diagnostics {
	found.Sort()
	return slices.CompactFunc(found, func(a, b Diagnostic) bool {
		return a.Pos == b.Pos && a.Rule == b.Rule && a.Message == b.Message
	})
}

// version wants the one version that there is.
func (d *decoder) version() {
	switch {
	case d.policy.Version == 1, d.src.root.Kind != yaml.MappingNode:
	case d.at("version") == nil:
		d.errorf(d.src.root, "", ruleVersion, "the version is missing; want version: 1")
	case !d.failed("version"):
		d.errorf(d.at("version"), "version", ruleVersion, "version %d is unknown here; want 1", d.policy.Version)
	}
}

// at is the node of a key at the top level.
func (d *decoder) at(key string) *yaml.Node {
	budget := lookupBudget
	_, n := child(d.src.root, step{Key: key}, &budget)
	return n
}

// failed tells whether there was an error about exactly this place.
func (d *decoder) failed(path string) bool {
	return slices.ContainsFunc(d.list, func(x Diagnostic) bool { return x.Path == path })
}

// File is the path of a file that the policy names, such as a jwks_file: as it
// stands, or within the policy's directory.
func (p *Policy) File(name FileName) string {
	if filepath.IsAbs(string(name)) {
		return string(name)
	}
	return filepath.Join(p.sources.dir, string(name))
}

// fileName is the path of a file, as findings show it.
func (p *Policy) fileName(name FileName) string { return p.File(name) }

// readFile reads a file of a bearable size.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return text, err
}

// readProblem says why a file could not be read.
func readProblem(err error) string {
	var at *fs.PathError
	switch {
	case errors.As(err, &at):
		return fmt.Sprintf("cannot read %s: %s; want a file that can be read", at.Path, at.Err)
	default:
		return fmt.Sprintf("cannot read the file: %s; want one that can be read", err)
	}
}
