package denial

import (
	"regexp"
	"slices"
	"strings"

	"sluice/policies"
)

// Range matches what a client may call a language: its tag, one that is narrower,
// and the language alone where only a narrower tag has a message. It is a regular
// expression that NGINX and Go both read, for any case of letters.
func Range(lang policies.Language, all []policies.Language) string {
	tag := string(lang)
	out := regexp.QuoteMeta(tag) + `(?:-[a-z0-9-]+)?`
	primary, _, narrow := strings.Cut(tag, "-")
	first := slices.IndexFunc(all, func(l policies.Language) bool {
		p, _, _ := strings.Cut(string(l), "-")
		return p == primary
	})
	if narrow && !slices.Contains(all, policies.Language(primary)) && all[first] == lang {
		out += "|" + primary
	}
	if lang == all[0] {
		out += `|\*`
	}
	return out
}

// ByLength are languages in the order in which their ranges are tried: the narrow
// ones first.
func ByLength(all []policies.Language) []policies.Language {
	return slices.SortedStableFunc(slices.Values(all), func(a, b policies.Language) int { return len(b) - len(a) })
}

// chooser finds the language that a client likes best.
type chooser struct {
	all    []policies.Language
	ranges []langRange
}

type langRange struct {
	lang  policies.Language
	match *regexp.Regexp // of an element of Accept-Language: its group is the quality
}

func newChooser(all []policies.Language) chooser {
	c := chooser{all: all}
	for _, lang := range ByLength(all) {
		c.ranges = append(c.ranges, langRange{lang, regexp.MustCompile(
			`(?i)^\s*(?:` + Range(lang, all) + `)(?:\s*;\s*q=([0-9.]*))?\s*\z`)})
	}
	return c
}

// of is the language for a value of Accept-Language. Quality values count to their
// first decimal; of languages that are liked alike the first in the client's list is
// taken.
func (c *chooser) of(accept string) policies.Language {
	best, most := c.all[0], -1
	if len(c.all) == 1 {
		return best
	}
	for element := range strings.SplitSeq(accept, ",") {
		for _, r := range c.ranges {
			found := r.match.FindStringSubmatchIndex(element)
			if found == nil {
				continue
			}
			quality := 10
			if found[2] >= 0 {
				quality = qualityOf(element[found[2]:found[3]])
			}
			if quality > most {
				best, most = r.lang, quality
			}
			break
		}
	}
	return best
}

// qualityOf is a quality value in tenths, rounded down, 10 for 1; -1 for what is not
// wanted or cannot be read.
func qualityOf(q string) int {
	if whole, zeros, _ := strings.Cut(q, "."); whole == "1" && strings.Trim(zeros, "0") == "" {
		return 10
	}
	whole, decimals, dot := strings.Cut(q, ".")
	if !dot || whole != "" && whole != "0" || strings.Contains(decimals, ".") || strings.Trim(decimals, "0") == "" {
		return -1
	}
	return int(decimals[0] - '0')
}

// WantsPage tells whether a client that sends such an Accept asks for HTML, and not
// for JSON before it.
func WantsPage(accept string) bool {
	for element := range strings.SplitSeq(accept, ",") {
		element = strings.ToLower(strings.TrimLeft(element, " \t"))
		if rest, page := strings.CutPrefix(element, "text/html"); page {
			return !unwanted(rest)
		}
		if strings.Contains(element, "json") {
			return false
		}
	}
	return false
}

// unwanted tells whether parameters say q=0.
func unwanted(parameters string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(parameters, " \t"), ";")
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), "q=0")
	rest = strings.TrimRight(rest, " \t")
	return ok && (rest == "" || rest[0] == '.' && strings.Trim(rest[1:], "0") == "")
}
