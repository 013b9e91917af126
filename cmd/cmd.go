package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK     = 0
	exitNo     = 1 // findings, failed tests, drift
	exitUsage  = 2 // unknown verb or flag, missing argument
	exitFailed = 3 // a file or the network failed
)

// errNo is the answer no: everything worth saying has been printed.
var errNo = errors.New("the answer is no")

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// env is what a verb may touch of the process.
type env struct {
	In        io.Reader
	Out, Err  io.Writer
	LookupEnv func(string) (string, bool)
}

// Run runs one command line, without the program's name, and returns its exit status.
func Run(args []string, in io.Reader, out, errw io.Writer) int {
	e := &env{In: in, Out: out, Err: errw, LookupEnv: os.LookupEnv}
	root := newRootCmd(e)
	root.SetArgs(args)
	return e.exitStatus(root.Execute())
}

func (e *env) exitStatus(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	case errors.As(err, &usage):
		fmt.Fprintf(e.Err, "sluice: %v\nRun 'sluice help' or 'sluice VERB --help' for usage.\n", err)
		return exitUsage
	}
	fmt.Fprintf(e.Err, "sluice: %v\n", err)
	return exitFailed
}

func newRootCmd(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "One policy file: NGINX configuration, and the service NGINX asks",
		Long: `Sluice turns one policy file into NGINX configuration that drops cheap traffic
at the edge, and into a service that NGINX asks about everything else.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown verb %q", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", fmt.Sprintf("Flags.FlagUsagesWrapped %d ", width)))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newInitCmd(e),
		newValidateCmd(e),
		newRenderCmd(e),
		newDiffCmd(e),
		newReplayCmd(e),
		newServeCmd(e),
		newLintCmd(e),
		newImportCmd(e),
		newTestCmd(e),
		newExplainCmd(e),
		newUsageCmd(e),
		newGrantCmd(e),
		newResetCmd(e),
		newBlockCmd(e),
		newUnblockCmd(e),
		newTenantsCmd(e),
		newKeyCmd(e),
		newFormatCmd(e),
		newSchemaCmd(e),
		newManCmd(e),
		newVersionCmd(e),
	)
	layHelp(root)
	return root
}

// layHelp breaks the help of all verbs into lines that fit a narrow terminal.
// What is indented stays as it is.
func layHelp(c *cobra.Command) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = strings.Join(wrap(strings.Join(strings.Fields(p), " "), width), "\n")
		}
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range c.Commands() {
		layHelp(sub)
	}
}

// policyArg is the POLICY argument of a verb that takes one.
func policyArg(args []string) string {
	if len(args) == 0 {
		return "policy.yaml"
	}
	return args[0]
}

// atMostOne refuses a second argument.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("one policy at a time; got %q", args)
	}
	return nil
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}
