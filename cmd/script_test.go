package cmd

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be the sluice of scripts and of the end-to-end test.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sluice": func() { os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command line as a user types it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           haveNGINX,
	})
}

// haveNGINX is the condition [nginx]; where CI=true the program must be there.
func haveNGINX(cond string) (bool, error) {
	if cond != "nginx" {
		return false, nil
	}
	_, err := os.Stat("/usr/sbin/nginx")
	return err == nil || os.Getenv("CI") == "true", nil
}
