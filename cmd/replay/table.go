package replay

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wideFrom is the width from which tables have all their columns.
const wideFrom = 120

// column is one column of a table.
type column struct {
	head  string
	right bool // aligned
	wide  bool // only where there is room
}

// table writes rows under heads, no line longer than width: the last column that
// is aligned left gives way first, then the others.
func table(p *printer, columns []column, rows [][]string) {
	var shown []int
	for i, c := range columns {
		if !c.wide || p.Width >= wideFrom {
			shown = append(shown, i)
		}
	}
	widths := make([]int, len(columns))
	for _, i := range shown {
		widths[i] = runes(columns[i].head)
		for _, row := range rows {
			widths[i] = max(widths[i], runes(clean(row[i])))
		}
	}
	shrink(p.Width-2*len(shown), columns, shown, widths)
	heads := make([]string, len(columns))
	for i := range columns {
		heads[i] = columns[i].head
	}
	p.line(p.dim(tableRow(columns, shown, widths, heads)))
	for _, row := range rows {
		p.line(tableRow(columns, shown, widths, row))
	}
}

// shrink makes columns that are aligned left narrower until all fit, the widest first.
func shrink(room int, columns []column, shown, widths []int) {
	for {
		total, widest := 0, -1
		for _, i := range shown {
			total += widths[i]
			if !columns[i].right && widths[i] > 8 && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if total <= room || widest < 0 {
			return
		}
		widths[widest]--
	}
}

func tableRow(columns []column, shown, widths []int, cells []string) string {
	var out strings.Builder
	for _, i := range shown {
		cell := cut(clean(cells[i]), widths[i])
		pad := strings.Repeat(" ", widths[i]-runes(cell))
		out.WriteString("  ")
		if columns[i].right {
			out.WriteString(pad + cell)
		} else {
			out.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(out.String(), " ")
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// cut shortens text to a width, with an ellipsis.
func cut(s string, width int) string {
	if runes(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}

// clean replaces what a terminal might obey.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
