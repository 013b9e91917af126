package authz

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxSpool is how many deliveries wait for all receivers together.
	maxSpool = 2000
	// maxSpoolFile is the largest file of the spool, in bytes.
	maxSpoolFile = 64 << 10
)

// delivery is an event on its way to one receiver.
type delivery struct {
	Hook  string    `json:"hook"` // webhook.name
	Since time.Time `json:"since"`
	happening

	tries  int
	next   time.Time // when it is tried again
	onDisk bool
}

// file is the delivery's name in the spool.
func (d *delivery) file() string { return d.ID + "." + d.Hook + ".json" }

// spool is a directory of deliveries that are still to be made: what a receiver
// that is away must get after a restart. It holds no secret.
type spool struct{ dir string }

// load reads what is there, oldest first. What cannot be read stays there.
func (s spool) load() ([]*delivery, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the spool: %w", err)
	}
	var list []*delivery
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") || len(list) == maxSpool {
			continue
		}
		d := &delivery{onDisk: true}
		if info, err := entry.Info(); err != nil || info.Size() > maxSpoolFile {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		if err == nil && json.Unmarshal(data, d) == nil && d.file() == entry.Name() {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b *delivery) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) })
	return list, nil
}

// keep writes a delivery.
func (s spool) keep(d *delivery) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the spool: %w", err)
	}
	path := filepath.Join(s.dir, d.file())
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("cannot write the spool: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("cannot write the spool: %w", err)
	}
	d.onDisk = true
	return nil
}

// drop removes a delivery.
func (s spool) drop(d *delivery) {
	if d.onDisk {
		_ = os.Remove(filepath.Join(s.dir, d.file()))
	}
}
