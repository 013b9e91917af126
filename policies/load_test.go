package policies

import (
	"path/filepath"
	"testing"
)

// TestLoadSites loads the example of the language and the policies of real sites.
func TestLoadSites(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sites/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, file := range append(files, "testdata/example/policy.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, found := Load(file)
			for _, d := range found {
				if !d.Warning {
					t.Error(d)
				}
			}
		})
	}
}
