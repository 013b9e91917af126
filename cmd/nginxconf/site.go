package nginxconf

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Site is a whole configuration: one tree, includes followed.
type Site struct {
	Root    *Directive // stands for the main context; it was not written anywhere
	File    string     // the file that it began with
	Version string     // of NGINX, such as 1.22.1, when the text says so
	Missing []*Directive
}

// HTTP are the http blocks; the root itself when the text is of a file that is
// included in one, such as sites-available/shop.
func (s *Site) HTTP() []*Directive {
	if blocks := s.Root.All("http"); len(blocks) > 0 {
		return blocks
	}
	if len(s.Root.All("server", "limit_req_zone", "limit_conn_zone", "map", "geo", "upstream", "limit_req")) > 0 {
		return []*Directive{s.Root}
	}
	return nil
}

// Servers are the server blocks of http.
func (s *Site) Servers() []*Directive {
	var out []*Directive
	for _, h := range s.HTTP() {
		out = append(out, h.All("server")...)
	}
	return out
}

// source is where the text of included files comes from.
type source struct {
	// glob are the files that a pattern names.
	glob func(pattern string) []string
	read func(file string) (string, error)
}

// Read reads text: the output of `nginx -T`, or a file of the name given.
// Only a dump has includes to follow; for a file on disk there is ReadFile.
func Read(name, text string) (*Site, error) {
	if first, files, ok := split(text); ok {
		site, err := read(first, files[first], dumped(files))
		if site != nil {
			site.Version = versionOf(text)
		}
		return site, err
	}
	return read(name, text, source{
		glob: func(string) []string { return nil },
		read: func(file string) (string, error) { return "", fmt.Errorf("cannot read %q: only a dump is here", file) },
	})
}

var markerLine = regexp.MustCompile(`(?m)^# configuration file (.+):\r?\n`)

// split cuts a dump into its files.
func split(text string) (first string, files map[string]string, ok bool) {
	marks := markerLine.FindAllStringSubmatchIndex(text, -1)
	files = map[string]string{}
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		name := text[m[2]:m[3]]
		if i == 0 {
			first = name
		}
		if _, twice := files[name]; !twice {
			files[name] = text[m[1]:end]
		}
	}
	return first, files, len(marks) > 0
}

// dumped is the source of the files of a dump.
func dumped(files map[string]string) source {
	return source{
		glob: func(pattern string) []string {
			var names []string
			for name := range files {
				if ok, err := path.Match(pattern, name); err == nil && ok || name == pattern {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names
		},
		read: func(file string) (string, error) { return files[file], nil },
	}
}

var versionLine = regexp.MustCompile(`(?:nginx version: |^nginx/|# nginx/)(?:nginx/|openresty/|angie/)?([0-9]+\.[0-9]+\.[0-9]+)`)

// versionOf is the version that `nginx -V` or `nginx -v` wrote in front of a dump.
func versionOf(text string) string {
	at := markerLine.FindStringIndex(text)
	if at == nil {
		return ""
	}
	if m := versionLine.FindStringSubmatch(text[:at[0]]); m != nil {
		return m[1]
	}
	return ""
}

// most is how many files a configuration may include, each time counted.
const most = 10_000

// reader follows includes.
type reader struct {
	source
	dir   string // of the first file: includes are relative to it
	stack []string
	count int
	site  *Site
}

func read(name, text string, src source) (*Site, error) {
	list, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{source: src, dir: path.Dir(name), stack: []string{name}}
	r.site = &Site{Root: &Directive{Name: "main", Braced: true, Block: list, Place: Place{File: name, Line: 1, Col: 1}}, File: name}
	if err := r.follow(list, r.site.Root); err != nil {
		return nil, err
	}
	return r.site, nil
}

// follow reads the files that a block includes, and those of the blocks in it.
func (r *reader) follow(list []*Directive, around *Directive) error {
	for _, d := range list {
		d.Parent = around
		if d.Name == "include" && len(d.Args) == 1 && !d.Braced {
			if err := r.include(d); err != nil {
				return err
			}
		}
		if err := r.follow(d.Block, d); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) include(d *Directive) error {
	pattern := d.Arg(0)
	if !path.IsAbs(pattern) {
		pattern = path.Join(r.dir, pattern)
	}
	files := r.glob(pattern)
	if len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
		r.site.Missing = append(r.site.Missing, d)
	}
	for _, file := range files {
		if r.count++; slices.Contains(r.stack, file) || r.count > most {
			return &Error{d.Place, fmt.Sprintf("%s includes itself, or too many files are included", file)}
		}
		text, err := r.read(file)
		if err != nil {
			return err
		}
		list, err := Parse(file, text)
		if err != nil {
			return err
		}
		d.Found = true
		r.stack = append(r.stack, file)
		if err := r.follow(list, d.Parent); err != nil {
			return err
		}
		r.stack = r.stack[:len(r.stack)-1]
		d.Included = append(d.Included, list...)
	}
	return nil
}
