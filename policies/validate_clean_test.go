package policies

import (
	"path/filepath"
	"testing"
)

// TestSitesAreClean wants nothing to be found about the example of the
// language and the policies of real sites, not even a warning, but one.
func TestSitesAreClean(t *testing.T) {
	t.Parallel()
	deserved := map[string]string{
		// A dear route that lets everybody in, and strangers whose bucket is too small for it.
		"saas.yaml": ruleNeverFits,
	}
	files, err := filepath.Glob("testdata/sites/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, file := range append(files, "testdata/example/policy.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, found := Load(file)
			for _, d := range found {
				if !d.Warning || d.Rule != deserved[filepath.Base(file)] {
					t.Error(d)
				}
			}
		})
	}
}
