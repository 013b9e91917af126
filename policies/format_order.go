package policies

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// arranged is the text with the keys of every mapping in the order of the
// language. Text is moved, never written anew: a key takes its value along, the
// comments right above it and those beside it; blank lines stay where they are.
func (r *reading) arranged() []byte {
	a := &arranger{reading: r}
	for i := range r.src.starts {
		a.lines = append(a.lines, string(r.src.line(i+1)))
	}
	a.node(r.src.root, 0, len(a.lines))
	return []byte(strings.Join(a.lines, "\n"))
}

// arranger moves lines. It goes from the inside out, so that what is moved has
// its order already; a move within a range of lines leaves the range as long as
// it was.
type arranger struct {
	*reading
	lines []string
}

// piece is an entry of a mapping or list as lines: from its comments to before
// those of the next one.
type piece struct {
	from, key, to int // lines; key has the entry's first word
	rank          int
}

// node arranges what is within a node whose text ends before line hi, and tells
// whether it may be moved as a whole: nothing in it is an anchor or an alias.
func (a *arranger) node(n *yaml.Node, lo, hi int) bool {
	free := n.Kind != yaml.AliasNode && n.Anchor == ""
	if len(n.Content) == 0 {
		return free
	}
	step, keys := 1, n.Content
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	flow := n.Style&yaml.FlowStyle != 0
	var pieces []piece
	if !flow {
		pieces = a.pieces(n, step, lo, hi)
	}
	for i := step - 1; i < len(keys); i += step {
		from, to := lo, hi
		if !flow {
			from, to = pieces[i/step].key, pieces[i/step].to
		}
		if n.Kind == yaml.MappingNode && keys[i-1].Tag == mergeTag {
			free = false
		}
		if !a.node(keys[i], from, to) {
			free = false
		}
	}
	known := a.mappings[n]
	if known == nil || !free {
		return free
	}
	ranks := ranksOf(n, known)
	switch {
	case slices.IsSorted(ranks):
	case flow:
		a.flow(n, ranks)
	default:
		for i := range pieces {
			pieces[i].rank = ranks[i]
		}
		a.block(n, pieces)
	}
	return free
}

// ranksOf tells where each key of a mapping belongs. Free space follows the
// version, as its anchors would have to.
func ranksOf(n *yaml.Node, known []fieldSpec) []int {
	ranks := make([]int, 0, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		rank := 1
		for j, f := range known {
			if f.key == n.Content[i].Value {
				rank = 2 * j
			}
		}
		ranks = append(ranks, rank)
	}
	return ranks
}

// pieces cuts the lines of a block into its entries.
func (a *arranger) pieces(n *yaml.Node, step, lo, hi int) []piece {
	var out []piece
	column := n.Column - 1
	for i := 0; i < len(n.Content); i += step {
		key := n.Content[i].Line - 1
		from := key
		for from > lo && a.above(from-1, column) && (len(out) > 0 || !a.blank(from-1)) {
			from--
		}
		if len(out) == 0 && !a.begins(key, column) {
			from = key // a dash stands before it: what is above is the list's
		}
		if len(out) > 0 {
			out[len(out)-1].to = from
		}
		out = append(out, piece{from: from, key: key, to: hi})
	}
	last := &out[len(out)-1]
	for last.to > last.key+1 && a.above(last.to-1, column) {
		last.to--
	}
	return out
}

// above tells whether a line belongs to what stands below it: it is blank, or a
// comment that is not indented deeper.
func (a *arranger) above(i, column int) bool {
	text := strings.TrimLeft(a.lines[i], " ")
	return a.blank(i) || text[0] == '#' && len(a.lines[i])-len(text) <= column
}

func (a *arranger) blank(i int) bool { return strings.TrimSpace(a.lines[i]) == "" }

// begins tells whether there is nothing before a column of a line.
func (a *arranger) begins(i, column int) bool {
	return len(a.lines[i]) >= column && strings.TrimLeft(a.lines[i][:column], " ") == ""
}

// block puts the entries of a block mapping in order.
func (a *arranger) block(n *yaml.Node, pieces []piece) {
	column := n.Column - 1
	first, end := pieces[0], pieces[len(pieces)-1].to
	dash := ""
	if !a.begins(first.key, column) {
		dash = a.lines[first.key][:column]
		if strings.Trim(dash, "- ") != "" {
			return // something that we do not know how to move
		}
		a.lines[first.key] = strings.Repeat(" ", column) + a.lines[first.key][column:]
	}
	blanks := make([]int, len(pieces)) // above each place
	for i, p := range pieces {
		for a.blank(p.from + blanks[i]) {
			blanks[i]++
		}
		pieces[i].from += blanks[i]
	}
	order := slices.Clone(pieces)
	slices.SortStableFunc(order, func(x, y piece) int { return cmp.Compare(x.rank, y.rank) })
	var out []string
	for i, p := range order {
		for range blanks[i] {
			out = append(out, "")
		}
		at := len(out) + p.key - p.from
		out = append(out, a.lines[p.from:p.to]...)
		if i == 0 && dash != "" {
			out[at] = dash + out[at][column:]
		}
	}
	copy(a.lines[first.from:end], out)
}

// flow puts the entries of a mapping in braces in order, if it is in one line.
func (a *arranger) flow(n *yaml.Node, ranks []int) {
	pos := a.src.at(n)
	line := a.lines[pos.Line-1]
	spans := flowSpans(line, pos.Col-1)
	if len(spans) != len(ranks) {
		return
	}
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(ranks[x], ranks[y]) })
	var out strings.Builder
	last := 0
	for i, s := range spans {
		from := spans[order[i]]
		out.WriteString(line[last:s[0]])
		out.WriteString(line[from[0]:from[1]])
		last = s[1]
	}
	out.WriteString(line[last:])
	a.lines[pos.Line-1] = out.String()
}

// flowSpans are the entries of the braces that open at a place of a line, without
// the spaces around them; none when the line does not close them.
func flowSpans(line string, open int) [][2]int {
	var spans [][2]int
	depth, quote, start := 0, byte(0), open+1
	for i := open; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.ContainsRune("{[,:", rune(lastWord(line[:i]))):
			quote = c
		case c == '#' && line[i-1] == ' ':
			return nil
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']' || c == ',' && depth == 1:
			if depth == 1 {
				if s := trimSpan(line, start, i); s[0] < s[1] {
					spans = append(spans, s)
				}
				start = i + 1
			}
			if c != ',' {
				depth--
			}
			if depth == 0 {
				return spans
			}
		}
	}
	return nil
}

// lastWord is the last byte that is no space.
func lastWord(s string) byte {
	s = strings.TrimRight(s, " ")
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// trimSpan is a part of a line without spaces around it.
func trimSpan(line string, from, to int) [2]int {
	for from < to && line[from] == ' ' {
		from++
	}
	for to > from && line[to-1] == ' ' {
		to--
	}
	return [2]int{from, to}
}
