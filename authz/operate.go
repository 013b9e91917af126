package authz

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice/authz/limit"
)

const (
	// tenantsPage and maxTenantsPage are how many tenants one answer lists.
	tenantsPage, maxTenantsPage = 100, 1000
	// maxReason is the longest reason, in characters.
	maxReason = 500
	// maxGrantDays is how long a grant or a block may last: what is to stay belongs
	// into the policy.
	maxGrantDays = 400
	// pickUnlisted is the parameter that means a tenant of tokens and logins alone.
	pickUnlisted = "unlisted"
)

// TenantsPage is one page of the policy's tenants, by id.
type TenantsPage struct {
	Tenants []TenantLine `json:"tenants"`
	// Next is the `after` of the next page; empty on the last.
	Next string `json:"next,omitempty"`
}

// TenantLine is a tenant in a list.
type TenantLine struct {
	ID       string `json:"id"`
	Plan     string `json:"plan"`
	Keys     int    `json:"keys"`
	Disabled bool   `json:"disabled,omitempty"`
	Blocked  *Block `json:"blocked,omitempty"`
	Grants   int    `json:"grants,omitempty"` // made at run time
}

// ResetAsked says what to reset: all counters of a tenant, or those that it names.
type ResetAsked struct {
	Limit  string `json:"limit,omitempty"`
	Key    string `json:"key,omitempty"`
	IP     string `json:"ip,omitempty"`
	User   string `json:"user,omitempty"`
	Reason string `json:"reason"`
}

// ResetDone tells which counters were reset, as they were before.
type ResetDone struct {
	Tenant string    `json:"tenant"`
	Before []Counter `json:"before"`
}

// GrantAsked asks for a grant. From is today when it is empty.
type GrantAsked struct {
	Limit  string `json:"limit"`
	Add    int64  `json:"add"`
	From   string `json:"from,omitempty"`
	Until  string `json:"until"`
	Reason string `json:"reason"`
}

// GrantList are the grants that a tenant got at run time.
type GrantList struct {
	Tenant string  `json:"tenant"`
	Grants []Grant `json:"grants"`
}

// BlockAsked asks for a block.
type BlockAsked struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// operations are what the admin port does about tenants; see openapi.yaml.
func (a *Admin) operations() {
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /v1/tenants":                            a.tenants,
		"GET /v1/tenants/{tenant}/usage":             a.usage,
		"POST /v1/tenants/{tenant}/reset":            a.reset,
		"GET /v1/tenants/{tenant}/grants":            a.grants,
		"POST /v1/tenants/{tenant}/grants":           a.grant,
		"DELETE /v1/tenants/{tenant}/grants/{grant}": a.revoke,
		"PUT /v1/tenants/{tenant}/block":             a.block,
		"DELETE /v1/tenants/{tenant}/block":          a.unblock,
	} {
		a.Handle(pattern, handle)
	}
}

// answerNo is an answer to somebody who asked for what cannot be.
type answerNo struct {
	status int
	detail string
}

func (r answerNo) Error() string { return r.detail }

func badRequest(format string, args ...any) error {
	return answerNo{http.StatusUnprocessableEntity, fmt.Sprintf(format, args...)}
}

// fail answers with what went wrong: the caller's mistake, or the store.
func (a *Admin) fail(w http.ResponseWriter, err error) {
	var r answerNo
	switch {
	case errors.As(err, &r):
		WriteProblem(w, r.status, r.detail)
	case errors.Is(err, limit.ErrUnavailable):
		WriteProblem(w, http.StatusServiceUnavailable, err.Error())
	default:
		a.Log.Error("admin", "error", err.Error())
		WriteProblem(w, http.StatusInternalServerError, "it could not be done; the log says why")
	}
}

// readBody reads a body of JSON, strictly.
func readBody(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more behind it")
		}
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return answerNo{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit)}
	}
	return answerNo{http.StatusBadRequest, "the body is not the JSON that is wanted: " + strings.TrimPrefix(err.Error(), "json: ")}
}

// checkReason wants a line that a person can read.
func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return badRequest("no reason is given; want one: it stands in the audit log")
	case utf8.RuneCountInString(reason) > maxReason || !utf8.ValidString(reason):
		return badRequest("the reason is no text, or longer than %d characters", maxReason)
	case strings.ContainsFunc(reason, unicode.IsControl):
		return badRequest("the reason has control characters; want one line of text")
	}
	return nil
}

// find is the tenant that a request names.
func (a *Admin) find(r *http.Request) (*bound, boundRef, error) {
	b := a.Engine.state.Load()
	if b == nil {
		return nil, boundRef{}, answerNo{http.StatusServiceUnavailable, "no policy is in force"}
	}
	ref := tenantAsked(r)
	t, known, err := b.tenant(ref, a.Engine.now())
	switch {
	case err != nil:
		return nil, boundRef{}, err
	case known:
		return b, t, nil
	case ref.Unlisted:
		return nil, boundRef{}, answerNo{http.StatusNotFound, "the policy has no plan for tenants that it does not list"}
	}
	return nil, boundRef{}, answerNo{http.StatusNotFound, fmt.Sprintf("the policy has no tenant %q; one that only tokens and logins name is meant with ?%s=1", ref.ID, pickUnlisted)}
}

func tenantAsked(r *http.Request) TenantRef {
	return TenantRef{ID: r.PathValue("tenant"), Unlisted: r.URL.Query().Get(pickUnlisted) == "1"}
}

// change writes down what is going to happen, and then lets it happen.
func (a *Admin) change(r *http.Request, e AuditEntry, do func() error) error {
	e.ID, e.Time, e.Who, e.From = rand.Text(), time.Now().UTC(), Caller(r), r.RemoteAddr
	if err := a.Audit.Write(e); err != nil {
		a.Log.Error("audit: the change is not made", "error", err.Error())
		return answerNo{http.StatusServiceUnavailable, "the change cannot be written to the audit log, so it was not made; the log says why"}
	}
	err := do()
	if err != nil {
		e.Time, e.Error = time.Now().UTC(), err.Error()
		if auditErr := a.Audit.Write(e); auditErr != nil {
			a.Log.Error("audit: a change failed", "id", e.ID, "error", auditErr.Error())
		}
	}
	return err
}

func (a *Admin) tenants(w http.ResponseWriter, r *http.Request) {
	page, err := a.listTenants(r)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, page)
}

func (a *Admin) listTenants(r *http.Request) (TenantsPage, error) {
	page, size := TenantsPage{Tenants: []TenantLine{}}, tenantsPage
	if text := r.URL.Query().Get("size"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxTenantsPage {
			return page, answerNo{http.StatusBadRequest, fmt.Sprintf("size is no number from 1 to %d", maxTenantsPage)}
		}
		size = n
	}
	b := a.Engine.state.Load()
	if b == nil {
		return page, answerNo{http.StatusServiceUnavailable, "no policy is in force"}
	}
	var rest []int
	after := r.URL.Query().Get("after")
	for i := range b.policy.Tenants {
		if b.policy.Tenants[i].ID > after {
			rest = append(rest, i)
		}
	}
	slices.SortFunc(rest, func(x, y int) int { return strings.Compare(b.policy.Tenants[x].ID, b.policy.Tenants[y].ID) })
	for _, i := range rest[:min(size, len(rest))] {
		page.Tenants = append(page.Tenants, a.line(b, i))
	}
	if len(rest) > size {
		page.Next = page.Tenants[size-1].ID
	}
	return page, nil
}

func (a *Admin) line(b *bound, i int) TenantLine {
	t := &b.policy.Tenants[i]
	line := TenantLine{ID: t.ID, Plan: b.policy.Plans[t.Plan].Name, Keys: len(t.Keys), Disabled: t.Disabled}
	if terms := a.Engine.ledger.of(b.tenants[i].id); terms != nil {
		line.Grants = len(terms.grants)
		if terms.blocked(a.Engine.now()) {
			line.Blocked = terms.block
		}
	}
	return line
}

func (a *Admin) usage(w http.ResponseWriter, r *http.Request) {
	if _, _, err := a.find(r); err != nil {
		a.fail(w, err)
		return
	}
	q := r.URL.Query()
	u, _, err := a.Engine.Usage(r.Context(), tenantAsked(r), Who{IP: q.Get("ip"), User: q.Get("user"), Key: q.Get("key"), Limit: q.Get("limit")})
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, u)
}

func (a *Admin) reset(w http.ResponseWriter, r *http.Request) {
	done, err := a.doReset(r)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, done)
}

func (a *Admin) doReset(r *http.Request) (ResetDone, error) {
	_, t, err := a.find(r)
	if err != nil {
		return ResetDone{}, err
	}
	var what ResetAsked
	if err := readBody(r, &what); err != nil {
		return ResetDone{}, err
	}
	if err := checkReason(what.Reason); err != nil {
		return ResetDone{}, err
	}
	u, _, err := a.Engine.Usage(r.Context(), tenantAsked(r), Who{IP: what.IP, User: what.User, Key: what.Key, Limit: what.Limit})
	if err != nil {
		return ResetDone{}, err
	}
	if len(u.Counters) == 0 {
		return ResetDone{}, badRequest("the tenant has no such counter; `usage` shows those that he has")
	}
	reason := what.Reason
	what.Reason = ""
	entry := AuditEntry{Action: "reset", Tenant: t.id, What: what, Reason: reason, Before: u.Counters}
	err = a.change(r, entry, func() error { return a.Engine.Reset(r.Context(), u.Counters) })
	return ResetDone{Tenant: t.id, Before: u.Counters}, err
}
