package nginxconf

import "regexp"

var variableName = regexp.MustCompile(`\$(?:\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))`)

// Variables are the names of the variables in a text, each time they occur.
func Variables(text string) []string {
	var out []string
	for _, m := range variableName.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// Lone is the variable that a text consists of, empty when there is more to it.
func Lone(text string) string {
	if m := variableName.FindStringSubmatch(text); m != nil && m[0] == text {
		return m[1] + m[2]
	}
	return ""
}

// Table is a map or geo block: what a variable is made of.
type Table struct {
	*Directive
	Source  string // of a map: its text; of a geo: the address, $remote_addr by default
	Entries []Entry
	Default string // "" when none is given
	Ranges  bool   // a geo by ranges of addresses
}

// Entry is one line of a Table.
type Entry struct {
	Key   Word
	Value string
	Place Place
}

// Geo tells a geo from a map.
func (t *Table) Geo() bool { return t.Name == "geo" }

// Tables are the maps and geos of a site by the name of their variable. Of two
// with one name NGINX takes the last.
func (s *Site) Tables() map[string]*Table {
	out := map[string]*Table{}
	for _, h := range s.HTTP() {
		for _, d := range h.All("map", "geo") {
			if t := table(d); t != nil {
				out[Lone(d.Args[len(d.Args)-1].Text)] = t
			}
		}
	}
	return out
}

func table(d *Directive) *Table {
	if !d.Braced || len(d.Args) == 0 || d.Name == "map" && len(d.Args) != 2 || len(d.Args) > 2 || Lone(d.Args[len(d.Args)-1].Text) == "" {
		return nil
	}
	t := &Table{Directive: d, Source: "$remote_addr"}
	if len(d.Args) == 2 {
		t.Source = d.Arg(0)
	}
	d.Each(func(e *Directive) bool {
		switch {
		case e.Name == "include":
		case e.Name == "default" && len(e.Args) == 1:
			t.Default = e.Arg(0)
		case t.Geo() && e.Name == "ranges" && len(e.Args) == 0:
			t.Ranges = true
		case t.Geo() && (e.Name == "proxy" || e.Name == "proxy_recursive" || e.Name == "delete" || e.Name == "volatile"):
		case !t.Geo() && len(e.Args) == 0 && (e.Name == "hostnames" || e.Name == "volatile"):
		case len(e.Args) == 1:
			t.Entries = append(t.Entries, Entry{Word{Text: e.Name, Place: e.Place}, e.Arg(0), e.Place})
		}
		return true
	})
	return t
}
