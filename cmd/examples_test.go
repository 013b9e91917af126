package cmd

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
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

// TestExampleTests: every example has tests, which pass, and every route and plan
// of it is in them.
func TestExampleTests(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../examples/*/policy.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			file := strings.TrimSuffix(path, ".yaml") + "_test.yaml"
			if status := Run([]string{"test", file}, nil, &out, &errs); status != exitOK {
				t.Errorf("status %d\n%s%s", status, &out, &errs)
			}
			for _, missing := range []string{"comes to routes", "has plans", "decided by access rules", "counts in"} {
				if strings.Contains(out.String(), missing) {
					t.Errorf("not all of the policy is in its tests:\n%s", &out)
				}
			}
		})
	}
}
