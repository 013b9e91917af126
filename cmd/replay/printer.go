package replay

import (
	"fmt"
	"strings"
	"time"
)

// printer writes text of a style.
type printer struct {
	Style
	oneYear bool // the whole log
	out     strings.Builder
}

func (p *printer) line(s string) { p.out.WriteString(s + "\n") }

func (p *printer) paint(code, s string) string {
	if !p.Colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) bold(s string) string { return p.paint("1", s) }
func (p *printer) dim(s string) string  { return p.paint("2", s) }
func (p *printer) red(s string) string  { return p.paint("31", s) }

func (p *printer) green(s string) string { return p.paint("32", s) }

// head begins a section.
func (p *printer) head(s string) { p.line("\n" + p.bold(s)) }

// wrap writes text with a first and a following indent, broken between words.
func (p *printer) wrap(first, following, text string) {
	line, at := first, runes(first)
	for i, word := range strings.Fields(clean(text)) {
		if i > 0 && at+1+runes(word) > p.Width {
			p.line(line)
			line, at = following+word, runes(following)+runes(word)
			continue
		}
		if i > 0 {
			line, at = line+" ", at+1
		}
		line, at = line+word, at+runes(word)
	}
	p.line(line)
}

func numberWidth(n int64) int { return len(thousands(n)) }

func subjects(n int64) string {
	if n == 1 {
		return "1 client or tenant"
	}
	return thousands(n) + " clients and tenants"
}

// share is a percentage of five columns: never 0 of something, never all of less.
func share(n, of int64) string {
	switch x := float64(n) * 100 / float64(max(of, 1)); {
	case n == 0 || n == of:
		return fmt.Sprintf("%5.0f %%", x)
	case x < 0.1:
		return " <0.1 %"
	case x > 99.9:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%5.1f %%", x)
	}
}

// short is a time without its year, where the log has one year alone.
func (p *printer) short(t time.Time) string {
	if p.oneYear && p.Width < wideFrom {
		return t.Format("01-02 15:04:05")
	}
	return clock(t)
}

func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

// span64 writes so many seconds as people do.
func span64(seconds int64) string {
	switch {
	case seconds%86400 == 0:
		return fmt.Sprintf("%d d", seconds/86400)
	case seconds%3600 == 0:
		return fmt.Sprintf("%d h", seconds/3600)
	case seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
}
