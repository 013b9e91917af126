package cmd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/policies"
)

// blocks are the fenced blocks of README in one language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, part := range strings.Split(string(data), "\n```"+language+"\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```")
		if !ok {
			t.Fatalf("README has an open block: %q", part)
		}
		out = append(out, block)
	}
	if len(out) == 0 {
		t.Fatalf("README has no %s block", language)
	}
	return out
}

// TestReadmeCommands runs README's command lines that name the binary, and
// knows the others: make targets, which CI runs, and the long-running serve.
func TestReadmeCommands(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(t, "sh") {
		for _, line := range strings.Split(block, "\n") {
			words := strings.Fields(line)
			switch {
			case words[0] == "bin/sluice" && asksService(words):
				continue // TestReadmeOperators runs it
			case asksAsWorker(words):
				continue // TestReadmeWorker runs it
			case words[0] == "make":
				if !bytes.Contains(makefile, []byte("\n"+words[1]+":")) {
					t.Errorf("README says %q; Makefile has no such target", line)
				}
			case words[0] == "bin/sluice" && words[1] == "serve":
				checkServeFlags(t, words[3:])
			case words[0] == "curl":
				checkAdminPath(t, words[len(words)-1])
			case words[0] == "bin/sluice":
				runReadme(t, words[1:])
			default:
				t.Errorf("README says %q, which no test knows", line)
			}
		}
	}
}

func runReadme(t *testing.T, args []string) {
	t.Helper()
	for i, arg := range args {
		if strings.HasPrefix(arg, "/tmp/") {
			args[i] = filepath.Join(t.TempDir(), filepath.Base(arg))
		}
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "git:") }) && exec.Command("git", "rev-parse", "HEAD").Run() != nil {
		t.Logf("no git repository: sluice %s is not run", strings.Join(args, " "))
		return
	}
	c := exec.Command("sluice", args...)
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("README: sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func checkServeFlags(t *testing.T, args []string) {
	t.Helper()
	if err := newServeCmd(&env{}).ParseFlags(args); err != nil {
		t.Errorf("README: serve %s: %v", strings.Join(args, " "), err)
	}
}

// checkAdminPath: the admin port has the page, where the flag says.
func checkAdminPath(t *testing.T, url string) {
	t.Helper()
	path, ok := strings.CutPrefix(url, "http://"+newServeCmd(&env{}).Flags().Lookup("admin").DefValue)
	if !ok || !slices.Contains([]string{"/-/status", "/metrics", "/-/reload"}, path) {
		t.Errorf("README asks %s, which is no page of the admin port", url)
	}
}

// TestReadmePolicy: the policy shown is good, and can be served.
func TestReadmePolicy(t *testing.T) {
	for _, block := range blocks(t, "yaml") {
		if strings.HasPrefix(block, "policy:") {
			continue // TestReadmeTests runs it
		}
		p, ds := policies.Parse("README.md", []byte(block), func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
		if c, ds := ready(p, ds); c == nil || len(ds) > 0 {
			t.Errorf("README's policy has findings: %v", ds)
		}
	}
}

// TestReadmeTests: the tests shown hold for the example.
func TestReadmeTests(t *testing.T) {
	policy, err := filepath.Abs("../examples/saas/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, block := range blocks(t, "yaml") {
		if !strings.HasPrefix(block, "policy:") {
			continue
		}
		ran = true
		file := filepath.Join(t.TempDir(), "policy_test.yaml")
		write(t, file, strings.Replace(block, "policy: policy.yaml", "policy: "+policy, 1)+"\n")
		var out, errs bytes.Buffer
		if status := Run([]string{"test", file}, nil, &out, &errs); status != exitOK {
			t.Errorf("status %d\n%s%s", status, &out, &errs)
		}
	}
	if !ran {
		t.Error("README shows no tests")
	}
}

// TestReadmeFinding: the finding shown is what the mistake gives.
func TestReadmeFinding(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	src := strings.Replace(blocks(t, "yaml")[0], "198.51.100.0/24", "198.51.100.7/24", 1)
	_, ds := policies.Parse("policy.yaml", []byte(src), func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
	if len(ds) != 1 || !strings.Contains(string(readme), ds[0].String()) {
		t.Errorf("README does not show %v", ds)
	}
}

// TestReadmeFlags: the table of serve names its flags and their defaults.
func TestReadmeFlags(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := newServeCmd(&env{}).Flags()
	for _, name := range []string{"listen", "datagrams", "admin", "admin-tokens", "token-file", "audit", "spool", "store", "peers"} {
		def := flags.Lookup(name).DefValue
		if name == "peers" {
			def = "loopback"
		}
		row := "| `--" + name + "` | "
		_, rest, ok := strings.Cut(string(readme), row)
		if !ok || !strings.HasPrefix(strings.Trim(rest, "`"), def) {
			t.Errorf("README's row for --%s does not say %s", name, def)
		}
	}
}

// asksService tells whether a verb asks a running service.
func asksService(words []string) bool {
	return slices.Contains([]string{"tenants", "usage", "grant", "reset", "block", "unblock"}, words[1]) || slices.Contains(words, "--live")
}

// TestReadmeOperators: what README does to a tenant works on a running service, in
// its order, when the last day of its grant is to come.
func TestReadmeOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), strings.Replace(operatedPolicy, "daily:", "speed: {per: key, rate: 1/h, burst: 1}\n      monthly:", 1))
	s := serveIn(t, dir)
	ran := 0
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			if words[0] != "bin/sluice" || !asksService(words) {
				continue
			}
			line = strings.Replace(line, "2026-12-31", time.Now().UTC().Format(time.DateOnly), 1)
			args := append([]string{words[1], "--admin", strings.TrimPrefix(s.admin, "http://")}, shellWords(strings.SplitN(line, words[1], 2)[1])...)
			c := exec.Command("sluice", args...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("README: %s: %v\n%s", line, err, out)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("README shows %d verbs of operators", ran)
	}
}

// shellWords are the words of a line, in which "double quotes" hold blanks.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
