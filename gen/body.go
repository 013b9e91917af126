package gen

import (
	"strconv"

	"sluice/policies/denial"
)

// body is the body of a denial with one status.
func (b *builder) body(status int) block {
	m := newMap(word("$sluice_format"), "sluice_body_"+strconv.Itoa(status))
	m.Volatile = true
	m.otherwise(b.take(b.form(denial.Plain(b.c.Responses.Body, status)).token()))
	m.line(word("html"), b.take(b.form(denial.Page(status)).token()))
	return m
}

// form is a body with variables for what is not the same for everybody.
func (b *builder) form(f denial.Form) *text {
	t := &text{}
	for _, p := range f {
		switch p.Slot {
		case denial.Detail:
			t.v(b.detail...)
		case denial.Retry:
			t.v("sluice_member_retry")
		case denial.Limit:
			t.v("sluice_member_limit")
		case denial.Reason:
			t.v("sluice_member_reason")
		case denial.Support:
			t.v(b.support...)
		case denial.Language:
			t.v("sluice_told_language")
		case denial.Head:
			t.v(b.head...)
		case denial.Paragraph:
			t.v(b.paragraph...)
		case denial.SupportLink:
			t.v(b.supportLink...)
		default:
			t.lit(p.Text)
		}
	}
	return t
}

// members are the parts of a JSON body that are not always there.
func (b *builder) members() []block {
	var out []block
	for _, m := range []struct {
		name, source string
		slot         denial.Slot
	}{
		{"sluice_member_retry", "sluice_retry", denial.Retry},
		{"sluice_member_limit", "sluice_limit", denial.Limit},
		{"sluice_member_reason", "sluice_reason", denial.Reason},
	} {
		t := &text{}
		for i, lit := range denial.Member(m.slot, b.c.Responses.Body) {
			if i > 0 {
				t.v(m.source)
			}
			t.lit(lit)
		}
		bl := newMap(variable(m.source), m.name)
		bl.Volatile = true
		bl.otherwise(t.mustToken())
		bl.line(none(), none())
		out = append(out, bl)
	}
	return out
}
