package policies

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the findings in testdata")

// TestFindings reads the policies of testdata/yaml and compares what is found
// with what stands beside them. Each case is named for what somebody wrote.
func TestFindings(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/yaml/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := findingsOf(ar)
			if *update {
				setFile(ar, "findings", got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(fileIn(ar, "findings"), got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// findingsOf decodes every policy*.yaml of an archive, without cross checks.
func findingsOf(ar *txtar.Archive) string {
	var out strings.Builder
	for _, f := range ar.Files {
		if !strings.HasPrefix(f.Name, "policy") {
			continue
		}
		_, found := decodeOnly(f.Name, unescape(ar, f.Data), archiveFiles(ar))
		for _, d := range found {
			fmt.Fprintln(&out, d)
		}
	}
	if out.Len() == 0 {
		return "none\n"
	}
	return out.String()
}

// unescape writes the bytes that cannot stand in a text file, when the comment
// of a case asks for it.
func unescape(ar *txtar.Archive, data []byte) []byte {
	if !strings.Contains(string(ar.Comment), "escapes: <BOM> <CR> <TAB> <NUL> <FF>") {
		return data
	}
	return []byte(strings.NewReplacer("<BOM>", "\ufeff", "<CR>", "\r", "<TAB>", "\t", "<NUL>", "\x00", "<FF>", "\xff").Replace(string(data)))
}

func fileIn(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setFile(ar *txtar.Archive, name, data string) {
	for i := range ar.Files {
		if ar.Files[i].Name == name {
			ar.Files[i].Data = []byte(data)
			return
		}
	}
	ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(data)})
}

// archiveFiles are the files of an archive, as if they stood beside the policy.
func archiveFiles(ar *txtar.Archive) files {
	return files{
		dir: ".",
		read: func(name FileName) ([]byte, error) {
			for _, f := range ar.Files {
				if f.Name == string(name) {
					return unescape(ar, f.Data), nil
				}
			}
			return nil, &os.PathError{Op: "open", Path: string(name), Err: os.ErrNotExist}
		},
		glob: func(pattern string) ([]FileName, error) {
			var names []FileName
			for _, f := range ar.Files {
				ok, err := path.Match(pattern, f.Name)
				if err != nil {
					return nil, err
				}
				if ok {
					names = append(names, FileName(f.Name))
				}
			}
			return names, nil
		},
	}
}
