package gen

import (
	"fmt"
	"slices"
	"strconv"

	"sluice/policies"
)

// denials are the pages of denials and the maps that choose and fill them.
type denials struct {
	blocks []block
	pages  []page
}

// denyStatuses are all statuses that a denial can have here, in order. 444 is
// none: it closes the connection.
func (b *builder) denyStatuses() []int {
	statuses := policies.DenyStatuses()
	for _, r := range b.c.Access {
		if r.Verdict == policies.AccessDeny && r.Status != 444 {
			statuses = append(statuses, r.Status)
		}
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

func (b *builder) denials() denials {
	var d denials
	d.blocks = append(d.blocks, b.choice()...)
	d.blocks = append(d.blocks, b.reasons()...)
	d.blocks = append(d.blocks, b.format()...)
	d.blocks = append(d.blocks, b.messages()...)
	for _, status := range b.denyStatuses() {
		m := b.body(status)
		d.blocks = append(d.blocks, m)
		d.pages = append(d.pages, page{
			Location: statusPage(status),
			Status:   number(int64(status)),
			Body:     m.Variable,
		})
	}
	return d
}

func statusPage(status int) Token { return word("@sluice_" + strconv.Itoa(status)) }

// choice maps what happened to the page that says so.
func (b *builder) choice() []block {
	closed := newMap(own("$sluice_asked|$sluice_failed"), "sluice_closed",
		"The service is away, and the route fails closed.")
	closed.Volatile = true
	closed.otherwise(none())
	closed.line(ownRegex(`^/_sluice/closed/.*\|1\z`), word("1"))

	page := newMap(own("$sluice_refused|$sluice_closed|$sluice_status"), "sluice_page_403",
		"Which page answers a 403. One that is not ours keeps its status and meaning.")
	page.Volatile = true
	page.otherwise(word("@sluice_own_403"))
	for _, status := range b.denyStatuses() {
		page.line(ownRegex(fmt.Sprintf(`^%d\|`, status)), statusPage(status))
	}
	for _, status := range policies.DenyStatuses() {
		page.line(own("||"+strconv.Itoa(status)), statusPage(status))
	}
	page.line(ownRegex(`^\|1\|`), statusPage(503))

	edge := newMap(own("$sluice_edge_retry|$limit_req_status|$limit_conn_status"), "sluice_edge_reason",
		"An edge limit of ours refused. $sluice_edge_retry is set by our routes only.")
	edge.Volatile = true
	edge.otherwise(none())
	edge.line(ownRegex(`^[0-9]+\|REJECTED\|`), word("edge_rate"))
	edge.line(ownRegex(`^[0-9]+\|.*\|REJECTED\z`), word("edge_conn"))

	page429 := newMap(word("$sluice_edge_reason"), "sluice_page_429", "Which page answers a 429.")
	page429.Volatile = true
	page429.otherwise(statusPage(429))
	page429.line(none(), word("@sluice_own_429"))
	return []block{closed, page, edge, page429}
}

// reasons are why, and how long to wait. All of them are empty while
// $sluice_denied, which the pages set, is.
func (b *builder) reasons() []block {
	retry := newMap(own("$sluice_denied|$sluice_refused|$sluice_closed|$sluice_edge_reason"), "sluice_retry",
		"Seconds to wait, empty where waiting cannot help.")
	retry.otherwise(word("$sluice_retry_after"))
	retry.line(ownRegex(`^\|`), none())
	retry.line(ownRegex(`^[0-9]+\|[0-9]+\|`), none())
	retry.line(ownRegex(`\|1\|[a-z_]*\z`), word("1"))
	retry.line(ownRegex(`\|edge_rate\z`), word("$sluice_edge_retry"))
	retry.line(ownRegex(`\|edge_conn\z`), word("1"))

	reason := newMap(own("$sluice_denied|$sluice_refused|$sluice_closed|$sluice_edge_reason"), "sluice_reason")
	reason.otherwise(word("$sluice_service_reason"))
	reason.line(ownRegex(`^\|`), none())
	reason.line(ownRegex(`^[0-9]+\|[0-9]+\|`), word("access"))
	reason.line(ownRegex(`\|1\|[a-z_]*\z`), word("store_down"))
	reason.line(ownRegex(`\|edge_rate\z`), word("edge_rate"))
	reason.line(ownRegex(`\|edge_conn\z`), word("edge_conn"))

	limit := newMap(word("$sluice_denied"), "sluice_limit")
	limit.otherwise(word("$sluice_service_limit"))
	limit.line(none(), none())

	store := newMap(word("$sluice_denied"), "sluice_cache_control")
	store.otherwise(word("no-store"))
	store.line(none(), none())

	vary := newMap(word("$sluice_denied"), "sluice_vary")
	vary.otherwise(own("Accept, Accept-Language"))
	vary.line(none(), none())
	all := []block{retry, reason, limit, store, vary}
	for i := range all {
		all[i].Volatile = true
	}
	return all
}

// format chooses what the body is made of.
func (b *builder) format() []block {
	format := newMap(word("$http_accept"), "sluice_format", "What the body is: for browsers a small page.")
	format.otherwise(word("plain"))
	format.line(own("~*text/html"), word("html"))
	kind := newMap(own("$sluice_denied|$sluice_format"), "sluice_content_type")
	kind.Volatile = true
	kind.otherwise(own(map[policies.BodyFormat]string{
		policies.BodyProblem: "application/problem+json",
		policies.BodyJSON:    "application/json",
		policies.BodyText:    "text/plain; charset=utf-8",
	}[b.c.Responses.Body]))
	kind.line(ownRegex(`^\|`), none())
	kind.line(ownRegex(`\|html\z`), own("text/html; charset=utf-8"))
	return []block{format, kind}
}
