package gen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Check lets nginx (a path or a name in $PATH) read the files. It works in a
// directory of its own: pid, logs and temporary files are there, servers listen
// on unix sockets, and names in addresses stand aside for loopback, so nothing
// outside is touched or asked. What nginx refuses is a *Refused, which names
// our files and lines; any other error means that it could not be asked.
func Check(ctx context.Context, nginx string, f Files) error {
	dir, err := os.MkdirTemp("", "sluice-check-")
	if err != nil {
		return fmt.Errorf("cannot make a directory to check in: %w", err)
	}
	defer func() {
		// What stays is a temporary directory.
		_ = os.RemoveAll(dir)
	}()
	confs := []string{"check.conf"}
	files := Files{"check.conf": wrapper(f)}
	for name, content := range f {
		files[name] = withoutNames(content)
	}
	if chain, ok := files["sluice/chain.conf"]; ok {
		files["sluice/chain.conf"] = onSockets(chain)
	}
	if full, ok := files["nginx.conf"]; ok {
		files["nginx.conf"] = onSockets(full)
		confs = append(confs, "nginx.conf")
	}
	for name, content := range files {
		path := place(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			return fmt.Errorf("cannot write %q to check it: %w", name, err)
		}
	}
	for _, conf := range confs {
		cmd := exec.CommandContext(ctx, nginx, "-t", "-q", "-p", dir, "-c", filepath.Join(dir, conf), "-e", "stderr")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return complaint(string(out), dir, err)
		}
	}
	return nil
}

// wrapper is a configuration that includes every rendered file, as sites do.
func wrapper(f Files) []byte {
	var b strings.Builder
	b.WriteString("access_log off;\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path temp_%s;\n", kind, kind)
	}
	b.WriteString("include sluice/real_ip.conf;\ninclude sluice/http.conf;\n")
	if !strings.Contains(string(f["sluice/http.conf"]), "upstream sluice_app {") {
		b.WriteString("upstream sluice_app { server 127.0.0.1:9; }\n")
	}
	sockets := 0
	server := func(body string) {
		sockets++
		fmt.Fprintf(&b, "server { listen unix:s%d.sock; include sluice/server.conf;\n%s}\n", sockets, body)
	}
	var routes strings.Builder
	for _, name := range f.Names() {
		switch {
		case strings.HasPrefix(name, "sluice/routes/"):
			fmt.Fprintf(&routes, "location /%d { include %s; include sluice/app.conf; }\n", routes.Len(), name)
		case name == "sluice/locations.conf", strings.HasPrefix(name, "sluice/locations/"):
			server("include " + name + ";\n")
		}
	}
	if _, ok := f["sluice/chain.conf"]; ok {
		b.WriteString("server { include sluice/chain.conf; }\n")
	}
	server("include sluice/log.conf;\n" + routes.String() + "location /own { add_header X-Own 1; include sluice/headers.conf; }\n")
	b.WriteString("}\n")
	// Each server listens, and NGINX wants a connection for that.
	return fmt.Appendf(nil, "pid check.pid;\nevents { worker_connections %d; }\nhttp {\n%s", sockets+512, b.String())
}

var (
	serverName   = regexp.MustCompile(`(?m)^(\s*server )([A-Za-z0-9._-]+):([0-9]+)(;| )`)
	datagramName = regexp.MustCompile(`(syslog:server=)([A-Za-z0-9._-]+):([0-9]+)(,)`)
	cachePath    = regexp.MustCompile(`(?m)^(proxy_cache_path )"[^"]*"`)
	listenLine   = regexp.MustCompile(`(?m)^(\s*listen) [^ ;]+`)
)

// withoutNames puts loopback in the place of names that would need DNS, and a
// folder of the check's own in the place of the cache's, which nginx -t makes.
func withoutNames(content []byte) []byte {
	content = cachePath.ReplaceAll(content, []byte("${1}deny"))
	for _, re := range []*regexp.Regexp{serverName, datagramName} {
		content = re.ReplaceAllFunc(content, func(m []byte) []byte {
			part := re.FindSubmatch(m)
			if !isName(string(part[2]) + ":" + string(part[3])) {
				return m
			}
			return slices.Concat(part[1], []byte("127.0.0.1:"), part[3], part[4])
		})
	}
	return content
}

// onSockets lets the servers of a whole nginx.conf listen on unix sockets, one
// for each `listen` of a server.
func onSockets(content []byte) []byte {
	n := 0
	for _, server := range strings.SplitAfter(string(content), "server {") {
		n = max(n, strings.Count(server, "listen "))
	}
	seen := 0
	return listenLine.ReplaceAllFunc(content, func(m []byte) []byte {
		part := listenLine.FindSubmatch(m)
		seen++
		return fmt.Appendf(nil, "%s unix:full%d.sock", part[1], (seen-1)%n)
	})
}

var nginxPlace = regexp.MustCompile(`\[(emerg|alert|crit|error|warn)\] (?:\d+#\d+: )?(.*?)(?: in (\S+):(\d+))?$`)

// Refused is what nginx says against the files.
type Refused struct{ Complaints []Complaint }

// Complaint is one thing that nginx refuses.
type Complaint struct {
	File    string // of ours; empty when nginx names none
	Line    int
	Message string
}

func (c Complaint) String() string {
	if c.File == "" {
		return c.Message
	}
	return fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Message)
}

func (r *Refused) Error() string {
	lines := make([]string, len(r.Complaints))
	for i, c := range r.Complaints {
		lines[i] = c.String()
	}
	return "nginx refuses the files: " + strings.Join(lines, "\n")
}

// complaint turns what nginx wrote into an error that names our files.
func complaint(out, dir string, cause error) error {
	var refused Refused
	for line := range strings.Lines(out) {
		m := nginxPlace.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] == "warn" {
			continue
		}
		c := Complaint{Message: strings.ReplaceAll(m[2], dir+"/", "")}
		if m[3] != "" {
			c.File = m[3]
			if file, err := filepath.Rel(dir, m[3]); err == nil {
				c.File = filepath.ToSlash(file)
			}
			c.Line, _ = strconv.Atoi(m[4]) // digits
		}
		refused.Complaints = append(refused.Complaints, c)
	}
	if len(refused.Complaints) == 0 {
		return fmt.Errorf("cannot check the files with nginx: %w: %s", cause, strings.TrimSpace(out))
	}
	return &refused
}
