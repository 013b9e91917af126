package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sluice/geo/geotest"
)

// TestMain lets the test binary be the sluice of scripts and of the end-to-end test.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sluice":          func() { os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"sluice-constant": serveConstant,
		"sluice-timer":    serveTimer,
	})
}

// TestScripts runs the command line as a user types it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           haveNGINX,
		Setup:               writeDatabases,
	})
}

// writeDatabases puts two small databases beside every script.
func writeDatabases(env *testscript.Env) error {
	t := env.T().(testing.TB)
	for name, networks := range map[string]geotest.Networks{
		"country.mmdb": {"5.0.0.0/8": geotest.Country(geotest.MaxMind, "DE", "EU"), "175.45.176.0/22": geotest.Country(geotest.MaxMind, "KP", "AS")},
		"asn.mmdb":     {"5.0.0.0/8": geotest.ASN(geotest.MaxMind, 64500)},
	} {
		raw := geotest.Bytes(t, geotest.Options{Type: "Test-" + name}, networks)
		if err := os.WriteFile(filepath.Join(env.WorkDir, name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// haveNGINX is the condition [nginx]; where CI=true the program must be there.
func haveNGINX(cond string) (bool, error) {
	if cond != "nginx" {
		return false, nil
	}
	_, err := os.Stat("/usr/sbin/nginx")
	return err == nil || os.Getenv("CI") == "true", nil
}
