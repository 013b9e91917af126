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
	if b.asked {
		statuses = append(statuses, 401)
	}
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
	for _, blocks := range [][]block{b.choice(), b.reasons(), b.format(), b.messages(), b.grpc(), b.crossOrigin()} {
		d.blocks = append(d.blocks, blocks...)
	}
	d.blocks = append(d.blocks, b.pageParts()...)
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
	if b.chained() {
		closed = newMap(own("$sluice_login_lost$sluice_asked|$sluice_failed"), "sluice_closed",
			"The service is away, and the route fails closed; or nobody could be asked who it is, which is always closed.")
		closed.line(ownRegex(`^lost/`), word("1"))
	}
	closed.Volatile = true
	closed.otherwise(none())
	closed.line(ownRegex(`^/_sluice/closed/.*\|1\z`), word("1"))

	page := newMap(own("$sluice_refused|$sluice_closed|$sluice_status|$sluice_decision:$sluice_authz_status"), "sluice_page_403",
		"Which page answers a 403. One that is not ours keeps its status and meaning.")
	page.Volatile = true
	page.otherwise(word("@sluice_own_403"))
	for _, status := range b.denyStatuses() {
		page.line(ownRegex(fmt.Sprintf(`^%d\|`, status)), statusPage(status))
	}
	for _, status := range policies.DenyStatuses() {
		page.line(ownRegex(fmt.Sprintf(`^\|\|%d\|`, status)), statusPage(status))
	}
	page.line(ownRegex(`^\|1\|`), statusPage(503))
	blocks := []block{closed}
	if b.asked {
		page.line(ownRegex(`^\|\|\|deny:(?:.*[^0-9])?401\z`), statusPage(401))
		blocks = append(blocks, challenged())
	}

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
	return append(blocks, page, edge, page429)
}

// challenged tells a 401 of the service from one of the site's own
// authenticator. Ours travels as a 403 from the subrequest to its page: so no
// error_page is needed for 401, which would take the place of the site's.
func challenged() block {
	m := newMap(word("$upstream_http_x_sluice_decision"), "sluice_page_401",
		"A 401 of the service becomes a 403 on its way to the page that says 401. One that is not the service's stays, with the page that you have for it.")
	m.Volatile = true
	m.otherwise(word("@sluice_own_401"))
	m.line(word("deny"), word("@sluice_challenge"))
	return m
}

// reasons are why, and how long to wait. All of them are empty while
// $sluice_denied, which the pages set, is; but a policy in shadow tells on what it
// lets pass what would have refused it.
func (b *builder) reasons() []block {
	const what = "$sluice_denied|$sluice_refused|$sluice_closed|$sluice_edge_reason"
	retry := newMap(own(what), "sluice_retry", "Seconds to wait, empty where waiting cannot help.")
	retry.otherwise(word("$sluice_retry_after"))
	retry.line(ownRegex(`^\|`), none())
	retry.line(ownRegex(`^[0-9]+\|[0-9]+\|`), none())
	retry.line(ownRegex(`\|1\|[a-z_]*\z`), word("1"))
	retry.line(ownRegex(`\|edge_rate\z`), word("$sluice_edge_retry"))
	retry.line(ownRegex(`\|edge_conn\z`), word("1"))

	passing, passingBy := none(), none()
	if b.c.Mode == policies.ModeShadow {
		passing, passingBy = word("$sluice_service_reason"), word("$sluice_service_limit")
	}
	reason := newMap(own(what), "sluice_reason")
	reason.otherwise(word("$sluice_service_reason"))
	reason.line(ownRegex(`^\|`), passing)
	reason.line(ownRegex(`^[0-9]+\|[0-9]+\|`), word("access"))
	reason.line(ownRegex(`\|1\|[a-z_]*\z`), word("store_down"))
	reason.line(ownRegex(`\|edge_rate\z`), word("edge_rate"))
	reason.line(ownRegex(`\|edge_conn\z`), word("edge_conn"))

	limit := newMap(own("$sluice_denied|$sluice_edge_reason"), "sluice_limit",
		"The limit that refused. NGINX does not say which of several: a route that has one names it.")
	limit.otherwise(word("$sluice_service_limit"))
	limit.line(ownRegex(`^\|`), passingBy)
	limit.line(ownRegex(`\|edge_rate\z`), word("$sluice_edge_rate"))
	limit.line(ownRegex(`\|edge_conn\z`), word("$sluice_edge_conn"))

	all := []block{retry, reason, limit}
	for _, m := range []struct {
		name, value string
	}{{"sluice_cache_control", "no-store"}, {"sluice_vary", "Accept, Accept-Language, Origin"}} {
		bl := newMap(word("$sluice_denied"), m.name)
		bl.otherwise(own(m.value))
		bl.line(none(), none())
		all = append(all, bl)
	}
	if b.asked {
		m := newMap(word("$sluice_denied"), "sluice_challenge")
		m.otherwise(none())
		m.line(word("401"), word("$sluice_www_authenticate"))
		all = append(all, m)
	}
	for i := range all {
		all[i].Volatile = true
	}
	return all
}
