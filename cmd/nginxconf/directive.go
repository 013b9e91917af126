package nginxconf

import "strings"

// Directive is one directive. An include keeps what it brought in Included;
// Each and All look through includes, as NGINX does.
type Directive struct {
	Name string
	Args []Word
	Place
	Braced   bool // it has a block, an empty one included
	Block    []*Directive
	Included []*Directive // of an include: what stands in its files
	Found    bool         // of an include: at least one file was there to read
	Parent   *Directive   // the block that it takes effect in, nil at the top
}

// Arg is the text of an argument, empty when there are not so many.
func (d *Directive) Arg(i int) string {
	if i < len(d.Args) {
		return d.Args[i].Text
	}
	return ""
}

// Texts are the arguments' texts.
func (d *Directive) Texts() []string {
	out := make([]string, len(d.Args))
	for i, w := range d.Args {
		out[i] = w.Text
	}
	return out
}

// String is the directive in words, for messages: name and arguments, without
// its block.
func (d *Directive) String() string {
	const most = 80
	s := strings.Join(append([]string{d.Name}, d.Texts()...), " ")
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}

// Each yields the directives of the block, includes themselves and then what
// they bring, in the order in which NGINX reads them. It does not go into
// blocks.
func (d *Directive) Each(yield func(*Directive) bool) { each(d.Block, yield) }

func each(list []*Directive, yield func(*Directive) bool) bool {
	for _, d := range list {
		if !yield(d) || !each(d.Included, yield) {
			return false
		}
	}
	return true
}

// All are the block's directives of one of these names.
func (d *Directive) All(names ...string) []*Directive {
	var out []*Directive
	d.Each(func(c *Directive) bool {
		for _, name := range names {
			if c.Name == name {
				out = append(out, c)
			}
		}
		return true
	})
	return out
}

// First is the block's first directive of a name, nil when there is none.
func (d *Directive) First(name string) *Directive {
	if all := d.All(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// In is the innermost block around the directive with this name, nil when none is.
func (d *Directive) In(name string) *Directive {
	for p := d.Parent; p != nil; p = p.Parent {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Walk calls visit for the directives of the block and of all blocks in it.
func (d *Directive) Walk(visit func(*Directive)) {
	d.Each(func(c *Directive) bool {
		visit(c)
		if c.Braced {
			c.Walk(visit)
		}
		return true
	})
}

// Parse reads the text of one file; includes stay as they are.
func Parse(file, src string) ([]*Directive, error) {
	s := &scanner{src: strings.TrimPrefix(src, "\ufeff"), file: file, line: 1}
	list, err := s.block(nil, 0)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// deepest is how many blocks may stand in each other; real ones are below ten.
const deepest = 60

// block reads directives up to the end of the block, of the file at depth 0.
func (s *scanner) block(parent *Directive, depth int) ([]*Directive, error) {
	var list []*Directive
	var words []Word
	for {
		w, m, err := s.next()
		if err != nil {
			return nil, err
		}
		switch {
		case m == markWord:
			words = append(words, w)
			continue
		case m == markEnd || m == markOpen:
			if len(words) == 0 {
				return nil, s.fail(w.Place, "unexpected %q; want a directive before it", byte(m))
			}
			d := &Directive{Name: words[0].Text, Args: words[1:], Place: words[0].Place, Braced: m == markOpen, Parent: parent}
			if d.Braced {
				if err := s.open(d, depth+1); err != nil {
					return nil, err
				}
			}
			list, words = append(list, d), nil
		case len(words) > 0:
			return nil, s.fail(words[0].Place, "%q is not ended; want ; or a block", words[0].Text)
		case m == markClose && depth == 0:
			return nil, s.fail(w.Place, "unexpected }; no block is open")
		case m == markEOF && depth > 0:
			return nil, s.fail(parent.Place, "the block of %s is not closed; want a }", parent.Name)
		default:
			return list, nil
		}
	}
}

// open reads the block of a directive.
func (s *scanner) open(d *Directive, depth int) error {
	if depth > deepest {
		return s.fail(d.Place, "blocks stand %d deep in each other; want fewer", depth)
	}
	if strings.HasSuffix(d.Name, "_by_lua_block") {
		return s.code(d.Place)
	}
	var err error
	d.Block, err = s.block(d, depth)
	return err
}

// Condition is what stands between the parentheses of an if: one word or three.
func (d *Directive) Condition() []string {
	words := d.Texts()
	if len(words) == 0 {
		return nil
	}
	words[0] = strings.TrimPrefix(words[0], "(")
	if words[0] == "" {
		words = words[1:]
	}
	if last := len(words) - 1; last >= 0 {
		if words[last] == ")" {
			return words[:last]
		}
		words[last] = strings.TrimSuffix(words[last], ")")
	}
	return words
}
