package gen

import (
	"strconv"

	"sluice/policies/denial"
)

// pageParts are texts that all pages share. What is longer than NGINX's
// longest argument stands in several variables.
func (b *builder) pageParts() []block {
	blocks, names := b.constant("sluice_page_head", (&text{}).lit(denial.PageHead()))
	b.head = names
	url := b.c.Responses.SupportURL
	if url == "" {
		return blocks
	}
	more, names := b.constant("sluice_support", (&text{}).lit(denial.SupportText(b.c.Responses.Body, url)))
	b.support = names
	blocks = append(blocks, more...)
	more, names = b.constant("sluice_support_link", (&text{}).lit(denial.PageLink(url)))
	b.supportLink = names
	return append(blocks, more...)
}

// constant is a text that is always the same, in as many variables as it takes.
func (b *builder) constant(name string, t *text) (blocks []block, names []string) {
	for i, piece := range t.split(maxToken - 100) {
		n := name
		if i > 0 {
			n += strconv.Itoa(i + 1)
		}
		m := newMap(none(), n)
		m.otherwise(b.take(piece.token()))
		blocks, names = append(blocks, m), append(names, n)
	}
	return blocks, names
}
