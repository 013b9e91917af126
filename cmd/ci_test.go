package cmd

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sluice/gen/gentest"
)

// repository is a scratch git repository with a policy and what it is rendered to.
type repository struct {
	t    *testing.T
	dir  string
	home string
	env  []string
}

const (
	firstPolicy = `version: 1
# one bucket for each address
edge:
  limits:
    per_ip: {per: ip, rate: 10/s, burst: 20}
routes:
  - {name: all, match: {prefix: /}}
`
	rate = "rate: 10/s"

	firstTest = `policy: policy.yaml
tests:
  - name: twenty at once pass
    requests:
      - {at: 0s, times: 18, ip: 192.0.2.7, url: /, expect: {status: 200}}
`
)

// newRepository has one commit on main, and the branch work checked out.
func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	gentest.Binary(t) // the pipelines run nginx -t
	r := &repository{t: t, dir: t.TempDir(), home: t.TempDir()}
	bin := filepath.Join(r.home, "bin")
	gentest.WriteFiles(t, bin, map[string]string{
		// The comment goes to a server of others: what is said to it is kept.
		"gh": "#!/bin/sh\nprintf '%s\\n' \"$*\" >\"$HOME/said\"\nfor last; do :; done\ncat \"$last\" >\"$HOME/comment\"\n",
	})
	if err := os.Chmod(filepath.Join(bin, "gh"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.env = []string{
		"HOME=" + r.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TMPDIR=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid",
		"GITHUB_STEP_SUMMARY=" + filepath.Join(r.home, "summary"),
	}
	r.write(firstPolicy)
	gentest.WriteFiles(t, r.dir, map[string]string{"policy_test.yaml": firstTest})
	r.must("git init -q -b main && sluice render policy.yaml --out nginx && git add . && git commit -q -m first && git switch -q -c work")
	return r
}

func (r *repository) write(policy string) {
	r.t.Helper()
	gentest.WriteFiles(r.t, r.dir, map[string]string{"policy.yaml": policy})
}

// commit changes the policy, and renders it if told to.
func (r *repository) commit(policy string, render bool) {
	r.t.Helper()
	r.write(policy)
	if render {
		r.must("sluice render policy.yaml --out nginx")
	}
	r.must("git add . && git commit -q --no-verify -m change")
}

// run runs a shell script in the repository, as a pipeline does.
func (r *repository) run(script string, env ...string) (string, error) {
	c := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	c.Dir = r.dir
	c.Env = append(append([]string{}, r.env...), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (r *repository) must(script string, env ...string) string {
	r.t.Helper()
	out, err := r.run(script, env...)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (r *repository) base() string { return strings.TrimSpace(r.must("git rev-parse main")) }

// file is a file in the home of whoever runs the pipeline.
func (r *repository) file(name string) string {
	text, err := os.ReadFile(filepath.Join(r.home, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// githubStep is a step of the workflow, as far as it is run here.
type githubStep struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
}

// githubSteps are the steps of the workflow that have a script.
func githubSteps(t *testing.T) []githubStep {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []githubStep `yaml:"steps"`
		} `yaml:"jobs"`
	}
	readYAML(t, "../examples/ci/github.yaml", &workflow)
	var steps []githubStep
	for _, s := range workflow.Jobs["policy"].Steps {
		if s.Run != "" {
			steps = append(steps, s)
		}
	}
	if len(steps) < 8 {
		t.Fatalf("the workflow has %d steps", len(steps))
	}
	return steps
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pullRequest runs the workflow for the branch up to a step that fails, and
// returns that step's name and all output.
func (r *repository) pullRequest(steps []githubStep, labels ...string) (failed, output string) {
	env := []string{"BASE=" + r.base(), "PULL_REQUEST=7"}
	var all strings.Builder
	for _, s := range steps {
		if strings.Contains(s.If, "'tightens'") && strings.Contains(strings.Join(labels, ","), "tightens") {
			continue
		}
		out, err := r.run(s.Run, env...)
		all.WriteString(out)
		if err != nil {
			return s.Name, all.String()
		}
	}
	return "", all.String()
}

// TestGitHubWorkflow runs each line of the workflow in a scratch repository.
func TestGitHubWorkflow(t *testing.T) {
	t.Parallel()
	steps := githubSteps(t)
	f := func(name, policy string, render bool, labels string, wantFailed string, wantOut ...string) {
		t.Helper()
		r := newRepository(t)
		r.commit(policy, render)
		failed, out := r.pullRequest(steps, labels)
		if failed != wantFailed {
			t.Errorf("%s: %q fails, want %q\n%s", name, failed, wantFailed, out)
		}
		out += r.file("comment") + r.file("said")
		for _, want := range wantOut {
			if !strings.Contains(out, want) {
				t.Errorf("%s: nothing says %q:\n%s", name, want, out)
			}
		}
		if r.file("comment") != r.file("summary") {
			t.Errorf("%s: the comment is\n%s\nthe summary\n%s", name, r.file("comment"), r.file("summary"))
		}
	}
	f("looser", strings.Replace(firstPolicy, rate, "rate: 12/s", 1), true, "", "",
		"**loosened**", "`10/s` → `12/s`", "pr comment 7 --edit-last --create-if-none --body-file diff.md")
	f("a comment", firstPolicy+"# the end\n", true, "", "", "no change in meaning")
	f("not rendered", strings.Replace(firstPolicy, rate, "rate: 12/s", 1), false, "", "what is committed is what the policy says", "sluice/http.conf")
	f("tighter", strings.Replace(firstPolicy, rate, "rate: 9/s", 1), true, "", `what takes something away from somebody wants the label "tightens"`)
	f("tighter, with the label", strings.Replace(firstPolicy, rate, "rate: 9/s", 1), true, "tightens", "", "**tightened**")
	f("another form", strings.Replace(firstPolicy, "{per: ip, rate: 10/s, burst: 20}", "{burst: 20, per: ip, rate: 10/s}", 1), true, "", "the usual form")
	f("a test fails", strings.Replace(firstPolicy, "burst: 20", "burst: 5", 1), true, "tightens", "its tests", "twenty at once pass")
	f("refused by NGINX", strings.Replace(firstPolicy, "edge:\n", "edge:\n  access:\n    - {name: bots, deny: {user_agents: ['(?:"+strings.Repeat("abcdefghij", 10)+"){900}']}}\n", 1), true, "tightens",
		"NGINX reads what it is rendered to", "regular expression is too large")
	f("broken", strings.Replace(firstPolicy, "rate:", "rat:", 1), false, "",
		"findings stand beside the changed lines",
		"::error file=policy.yaml,line=5,col=")
}

// TestGitHubFirst: the pull request that brings the first policy has nothing to
// compare with.
func TestGitHubFirst(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.must("git switch -q --orphan empty && git commit -q --allow-empty -m empty && git branch -f main empty && git switch -q work")
	if failed, out := r.pullRequest(githubSteps(t)); failed != "" || !strings.Contains(r.file("comment"), "the first one") {
		t.Errorf("%q fails, the comment is %q\n%s", failed, r.file("comment"), out)
	}
}

// TestGitLabPipeline runs each line of the pipeline, the comment against a server
// of our own.
func TestGitLabPipeline(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	var pipeline map[string]yaml.Node
	readYAML(t, "../examples/ci/gitlab.yaml", &pipeline)
	var scripts []string
	for _, job := range []string{"policy", "policy-diff"} {
		var spec struct {
			Script []string `yaml:"script"`
		}
		node := pipeline[job]
		if err := node.Decode(&spec); err != nil || len(spec.Script) < 3 {
			t.Fatalf("the job %s has %d lines: %v", job, len(spec.Script), err)
		}
		scripts = append(scripts, strings.Join(spec.Script, "\n"))
	}
	f := func(name, policy string, render bool, labels, token string, want [2]bool, comment string) {
		t.Helper()
		r := newRepository(t)
		r.commit(policy, render)
		heard := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/api/v4/projects/5/merge_requests/6/notes" || q.Header.Get("PRIVATE-TOKEN") != token {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			heard = q.FormValue("body")
			w.WriteHeader(http.StatusCreated)
		}))
		defer server.Close()
		for i, script := range scripts {
			out, err := r.run(script, "CI_MERGE_REQUEST_DIFF_BASE_SHA="+r.base(), "CI_API_V4_URL="+server.URL+"/api/v4", "CI_PROJECT_ID=5", "CI_MERGE_REQUEST_IID=6",
				"CI_MERGE_REQUEST_LABELS="+labels, "POLICY_TOKEN="+token)
			if (err == nil) != want[i] {
				t.Errorf("%s: job %d ends with %v\n%s", name, i, err, out)
			}
		}
		if (comment == "") != (heard == "") || !strings.Contains(heard, comment) {
			t.Errorf("%s: the comment is %q, want %q", name, heard, comment)
		}
	}
	f("looser", strings.Replace(firstPolicy, rate, "rate: 12/s", 1), true, "", "secret", [2]bool{true, true}, "`10/s` → `12/s`")
	f("no token", strings.Replace(firstPolicy, rate, "rate: 12/s", 1), true, "", "", [2]bool{true, true}, "")
	f("tighter", strings.Replace(firstPolicy, rate, "rate: 9/s", 1), true, "other", "secret", [2]bool{true, false}, "**tightened**")
	f("tighter, with the label", strings.Replace(firstPolicy, rate, "rate: 9/s", 1), true, "a,tightens", "secret", [2]bool{true, true}, "**tightened**")
	f("a test fails", strings.Replace(firstPolicy, "burst: 20", "burst: 5", 1), true, "tightens", "secret", [2]bool{false, true}, "**tightened**")
	f("drift", strings.Replace(firstPolicy, rate, "rate: 12/s", 1), false, "", "secret", [2]bool{false, true}, "**loosened**")
}

// TestPreCommitHook: the hook looks at what is staged, and lets only that through
// which is good, in form, and rendered.
func TestPreCommitHook(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	hook, err := filepath.Abs("../examples/ci/pre-commit")
	if err != nil {
		t.Fatal(err)
	}
	r.must("cp " + hook + " .git/hooks/pre-commit")
	commit := func() (string, error) { return r.run("git add . && git commit -m change") }
	f := func(name, policy, prepare string, ok bool, want string) {
		t.Helper()
		r.must("git reset -q --hard main")
		r.write(policy)
		r.must(prepare)
		out, err := commit()
		if (err == nil) != ok || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	looser := strings.Replace(firstPolicy, rate, "rate: 12/s", 1)
	const render = "sluice render policy.yaml --out nginx"
	f("good", looser, render, true, "rate  10/s -> 12/s")
	f("not rendered", looser, "true", false, "want: sluice render policy.yaml --out nginx")
	f("another form", strings.Replace(looser, "{per: ip, rate: 12/s, burst: 20}", "{burst: 20, per: ip, rate: 12/s}", 1), render, false, "want: sluice fmt --write policy.yaml")
	f("broken", strings.Replace(looser, "rate:", "rat:", 1), "true", false, `"rat" is no key here`)
	f("a test fails", strings.Replace(firstPolicy, "burst: 20", "burst: 5", 1), render, false, "twenty at once pass")
	f("another file", firstPolicy, "echo x >other", true, "no change in meaning")

	// The working tree is good, what is staged is not: and the other way round.
	r.must("git reset -q --hard main")
	r.write(strings.Replace(looser, "rate:", "rat:", 1))
	r.must("git add .")
	r.write(looser)
	if out, err := r.run("git commit -m staged"); err == nil {
		t.Errorf("what is staged is broken, and is committed:\n%s", out)
	}
	r.must("git reset -q --hard main")
	r.write(looser)
	r.must(render + " && git add .")
	r.write("broken")
	r.must("git commit -m staged")
	if left, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(r.env[3], "TMPDIR="), "*")); len(left) > 0 {
		t.Errorf("the hook leaves %v", left)
	}
}
