package authz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// AuditEntry is one line of the audit log: a change that an operator is about to
// make, or, with Error, one that was announced under this ID and then failed.
type AuditEntry struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Who is the name of a token; From is the address that it came from.
	Who  string `json:"who"`
	From string `json:"from,omitempty"`
	// Action is grant, revoke, block, unblock, reset or reload.
	Action string `json:"action"`
	Tenant string `json:"tenant,omitempty"`
	What   any    `json:"what,omitempty"`
	Reason string `json:"reason,omitempty"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Audit is the log of what operators changed: a file of JSON lines that is only
// ever appended to. A line is on disk before Write returns, and the change comes
// after it: what cannot be written down is not done.
//
// The file is opened for every line, so it can be moved away at any time.
type Audit struct {
	path string
	log  *slog.Logger
	mu   sync.Mutex
}

// OpenAudit makes an audit log in a file, which it makes with mode 0600 if it is
// not there; with an empty path the lines go to log.
func OpenAudit(path string, log *slog.Logger) (*Audit, error) {
	a := &Audit{path: path, log: log}
	if path == "" {
		return a, nil
	}
	f, err := a.open()
	if err != nil {
		return nil, err
	}
	return a, f.Close()
}

// open opens the file, or makes it so that it is there after a crash, too.
func (a *Audit) open() (*os.File, error) {
	_, err := os.Stat(a.path)
	missing := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	if missing {
		if dir, err := os.Open(filepath.Dir(a.path)); err == nil {
			_ = dir.Sync() // not every file system can
			dir.Close()
		}
	}
	return f, nil
}

// Write appends a line.
func (a *Audit) Write(e AuditEntry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot write the audit log: %w", err)
	}
	if a.path == "" {
		a.log.Info("audit", "entry", json.RawMessage(line))
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := a.open()
	if err != nil {
		return err
	}
	err = appendLine(f, line)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("cannot write the audit log: %w", err)
	}
	return nil
}

// appendLine writes a line at the end and waits for the disk. A part of a line,
// which a full disk leaves, is taken back; one that a crash has left is ended.
func appendLine(f *os.File, line []byte) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	text := append(bytes.Clone(line), '\n')
	last := []byte{'\n'}
	if size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		text = append([]byte{'\n'}, text...)
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(size)
	}
	return err
}
