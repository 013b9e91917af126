package gen

import (
	"regexp"
	"slices"
	"strings"

	"sluice/policies"
)

// languageChoice finds the language that the client likes best of those that
// there is a message in. Quality values count to their first decimal; of
// languages that are liked alike the first in the client's list is taken.
func (b *builder) languageChoice(languages []policies.Language) block {
	m := newMap(word("$http_accept_language"), "sluice_language", "The language that the client likes best of those that there is a message in.")
	m.otherwise(b.take(Quote(string(languages[0]))))
	if len(languages) == 1 {
		return m
	}
	longest := slices.SortedStableFunc(slices.Values(languages), func(a, b policies.Language) int { return len(b) - len(a) })
	ranges := make([]string, len(longest))
	for i, lang := range longest {
		ranges[i] = languageRange(lang, languages)
	}
	for _, quality := range qualities() {
		end := quality + `\s*(?:,|\z)`
		others := `(?:(?!\s*(?:` + strings.Join(ranges, "|") + `)` + end + `)[^,]*,)*+`
		for i, lang := range longest {
			m.line(b.take(Literal(`~*^`+others+`\s*(?:`+ranges[i]+`)`+end)), b.take(Quote(string(lang))))
		}
	}
	return m
}

// languageRange matches what a client may call a language: its tag, one that is
// narrower, and the language alone where only a narrower tag has a message.
func languageRange(lang policies.Language, all []policies.Language) string {
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

// qualities match the quality values from 1 down to just above 0, which means
// that a language is not wanted.
func qualities() []string {
	out := []string{`(?:\s*;\s*q=1(?:\.0*)?)?`}
	for digit := '9'; digit > '0'; digit-- {
		out = append(out, `\s*;\s*q=0?\.`+string(digit)+`[0-9]*`)
	}
	return append(out, `\s*;\s*q=0?\.0[0-9]*[1-9][0-9]*`)
}
