package cmd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"

	"sluice/policies"
)

// loadRevision reads and checks the policy that git:REV:PATH names, with the
// lists and tenants of that revision. As in git, PATH begins at the root of the
// repository, or with ./ at the working directory, and an empty REV is what is
// staged.
func loadRevision(arg string) (*policies.Policy, policies.Diagnostics, error) {
	rev, name, ok := strings.Cut(strings.TrimPrefix(arg, "git:"), ":")
	if !ok || name == "" {
		return nil, nil, usagef("%q names no policy of a revision; want git:REV:PATH", arg)
	}
	tree, err := openRevision(rev)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy %q: %w", arg, err)
	}
	defer tree.close()
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		prefix, err := git("rev-parse", "--show-prefix")
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read policy %q: %w", arg, err)
		}
		name = path.Join(strings.TrimSuffix(prefix, "\n"), name)
	}
	if _, err := fs.Stat(tree, path.Clean(name)); err != nil {
		return nil, nil, fmt.Errorf("cannot read policy %q: %w", arg, cause(err))
	}
	p, ds := policies.LoadFS(tree, path.Clean(name), "git:"+rev+":")
	return p, ds, nil
}

// revision is the files of a commit, read as they are asked for through one git
// that stays open.
type revision struct {
	tree string // a commit, or what is staged as a tree
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

func openRevision(rev string) (*revision, error) {
	r := &revision{}
	var id string
	var err error
	if rev == "" {
		id, err = git("write-tree")
	} else {
		id, err = git("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{tree}")
		if err != nil && strings.HasSuffix(err.Error(), "exit status 1") {
			err = fmt.Errorf("git knows no revision %q here", rev)
		}
	}
	if err != nil {
		return nil, err
	}
	r.tree = strings.TrimSpace(id)
	r.cmd = exec.Command("git", "cat-file", "--batch")
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cmd.Start()
}

func (r *revision) close() {
	// Everything was read; what git still has to say changes nothing.
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

// git runs a git command and returns what it prints.
func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n"); line != "" {
			return "", fmt.Errorf("git: %s", strings.TrimPrefix(line, "fatal: "))
		}
		return "", fmt.Errorf("cannot run git: %w", err)
	}
	return string(out), nil
}

// object asks for a file or folder by its path.
func (r *revision) object(name string) (kind string, content []byte, err error) {
	if strings.ContainsAny(name, "\n\x00") {
		return "", nil, fs.ErrInvalid
	}
	at := r.tree
	if name != "." {
		at += ":" + name
	}
	if _, err := fmt.Fprintln(r.in, at); err != nil {
		return "", nil, err
	}
	head, err := r.out.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	words := strings.Fields(head)
	if len(words) < 3 || strings.HasSuffix(head, " missing\n") {
		return "", nil, fs.ErrNotExist
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return "", nil, fmt.Errorf("git said %q", head)
	}
	content = make([]byte, size+1) // and a line break
	if _, err := io.ReadFull(r.out, content); err != nil {
		return "", nil, err
	}
	return words[len(words)-2], content[:size], nil
}

// Open opens a file or a folder.
func (r *revision) Open(name string) (fs.File, error) {
	kind, content, err := "", []byte(nil), fs.ErrInvalid
	if fs.ValidPath(name) {
		kind, content, err = r.object(name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &blob{Reader: bytes.NewReader(content), name: path.Base(name), size: int64(len(content)), dir: kind == "tree"}, nil
}

// ReadDir lists a folder.
func (r *revision) ReadDir(name string) ([]fs.DirEntry, error) {
	kind, _, err := r.object(name)
	if err == nil && kind != "tree" {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	at := r.tree
	if name != "." {
		at += ":" + name
	}
	out, err := git("ls-tree", "-z", "--full-tree", at)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var entries []fs.DirEntry
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if about, file, ok := strings.Cut(line, "\t"); ok {
			entries = append(entries, fs.FileInfoToDirEntry(&blob{name: file, dir: strings.Contains(about, " tree ")}))
		}
	}
	return entries, nil // git sorts them by name, as is wanted here
}

// blob is an open file of a revision, and what there is to say about it.
type blob struct {
	*bytes.Reader
	name string
	size int64
	dir  bool
}

// Read reads a file; a folder has nothing to read.
func (b *blob) Read(p []byte) (int, error) {
	if b.dir {
		return 0, &fs.PathError{Op: "read", Path: b.name, Err: errors.New("is a directory")}
	}
	return b.Reader.Read(p)
}

func (b *blob) Close() error               { return nil }
func (b *blob) Stat() (fs.FileInfo, error) { return b, nil }
func (b *blob) Name() string               { return b.name }
func (b *blob) Size() int64                { return b.size }
func (b *blob) ModTime() time.Time         { return time.Time{} }
func (b *blob) IsDir() bool                { return b.dir }
func (b *blob) Sys() any                   { return nil }

// Mode is that of a file or a folder that can be read.
func (b *blob) Mode() fs.FileMode {
	if b.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
