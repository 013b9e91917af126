package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice/policies"
)

type formatOptions struct {
	Write bool
	Check bool
}

func newFormatCmd(e *env) *cobra.Command {
	var o formatOptions
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Give a policy its canonical order and spelling, comments kept",
		Long: `Prints a policy, or a file of tenants, with its keys in the order of the
language and its values in their usual spelling. Comments, blank lines, lists
and the layout stay, and so does what it means. With --write the file itself is
changed; with --check nothing is, and the exit status is 1 when something would
be.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{policyArg(args)}
			}
			return runFormat(e, args, o)
		},
	}
	c.Flags().BoolVarP(&o.Write, "write", "w", false, "write the result to the file, if it differs")
	c.Flags().BoolVar(&o.Check, "check", false, "name the files that differ from their form; exit 1 if any does")
	return c
}

func runFormat(e *env, files []string, o formatOptions) error {
	switch {
	case o.Write && o.Check:
		return usagef("--write or --check; want one of them")
	case len(files) > 1 && !o.Write && !o.Check:
		return usagef("several files would be printed as one; want --write or --check")
	}
	no := false
	for _, file := range files {
		same, err := formatFile(e, file, o)
		if err != nil {
			return err
		}
		no = no || !same
	}
	if no {
		return errNo
	}
	return nil
}

// formatFile formats one file. It is false when the answer is no: the file is not
// as it should be, or cannot be read as a policy.
func formatFile(e *env, file string, o formatOptions) (bool, error) {
	text, name, err := readText(e, file)
	if err != nil {
		return false, err
	}
	out, found := policies.Format(name, text)
	if found.HasErrors() {
		return false, writeText(e.Err, found)
	}
	same := bytes.Equal(out, text)
	switch {
	case o.Check:
		if !same {
			_, err = fmt.Fprintf(e.Out, "%s: not formatted\n", name)
		}
		return same, err
	case !o.Write:
		_, err = e.Out.Write(out)
		return true, err
	case file == "-":
		return false, usagef("standard input cannot be written to")
	case !same:
		return true, replaceFile(file, out)
	}
	return true, nil
}

// readText reads a file that an argument names, and gives it its name in findings.
func readText(e *env, arg string) ([]byte, string, error) {
	if arg == "-" {
		text, err := io.ReadAll(e.In)
		if err != nil {
			return nil, "", fmt.Errorf("cannot read policy from standard input: %w", err)
		}
		return text, "<stdin>", nil
	}
	text, err := os.ReadFile(arg)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read policy %q: %w", arg, cause(err))
	}
	return text, arg, nil
}

// replaceFile puts a text in the place of a file that is there, all at once; a link
// stays one.
func replaceFile(path string, text []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %q: %w", path, err)
		}
	}()
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	return err
}
