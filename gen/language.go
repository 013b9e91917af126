package gen

import (
	"strings"

	"sluice/policies"
	"sluice/policies/denial"
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
	longest := denial.ByLength(languages)
	ranges := make([]string, len(longest))
	for i, lang := range longest {
		ranges[i] = denial.Range(lang, languages)
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

// qualities match the quality values from 1 down to just above 0, which means
// that a language is not wanted.
func qualities() []string {
	out := []string{`(?:\s*;\s*q=1(?:\.0*)?)?`}
	for digit := '9'; digit > '0'; digit-- {
		out = append(out, `\s*;\s*q=0?\.`+string(digit)+`[0-9]*`)
	}
	return append(out, `\s*;\s*q=0?\.0[0-9]*[1-9][0-9]*`)
}
