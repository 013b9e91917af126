package cmd

import (
	"context"
	"path/filepath"
	"testing"

	"sluice/gen"
	"sluice/gen/gentest"
	"sluice/policies"
)

// TestExamples: every example is good without a warning, renders, and passes
// nginx -t.
func TestExamples(t *testing.T) {
	nginx := gentest.Binary(t)
	paths, err := filepath.Glob("../examples/*/policy.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			c, ds := ready(policies.Load(path))
			if c == nil || len(ds) > 0 {
				t.Fatalf("findings: %v", ds)
			}
			files, err := gen.Render(c, gen.Options{Full: true, Upstreams: []string{"127.0.0.1:8081"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := gen.Check(context.Background(), nginx, files); err != nil {
				t.Error(err)
			}
		})
	}
}
