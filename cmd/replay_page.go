package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sluice/cmd/replay"
)

// writePage writes the report's page to a file, all at once. What is there and no
// plain file, such as /dev/stdout, is written to as it is.
func writePage(path string, r *replay.Report) (err error) {
	var page bytes.Buffer
	if err := r.WritePage(&page); err != nil {
		return fmt.Errorf("cannot draw the page: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %q: %w", path, cause(err))
		}
	}()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, page.Bytes(), 0o644)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(page.Bytes())
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
