package authz

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
)

// sold is a policy with quotas to grant.
const sold = `
identity:
  sources: [{api_key: {header: X-API-Key}}]
  unlisted: {plan: free}
plans:
  free:
    limits:
      speed: {per: key, rate: 1/h, burst: 9}
      each: {per: ip, rate: 1/h, burst: 5}
      daily: {per: tenant, quota: 3/day, timezone: Asia/Tokyo}
      jobs: {per: tenant, concurrency: 3}
      counted: {per: tenant, quota: unlimited/day}
tenants:
  - {id: acme, plan: free, keys: [{id: acme-a, sha256: hash(sk_a)}, {id: acme-b, sha256: hash(sk_b)}]}
  - {id: globex, plan: free, keys: [{id: globex-a, sha256: hash(sk_g)}]}
routes:
  - {name: reports, match: {prefix: /reports}, limits: {reports: {per: tenant, rate: 10/h, burst: 2}}}
  - {name: rest, match: {prefix: /}}
`

// newShopOffice is an office whose shop sells quotas, with an audit log in a file.
func newShopOffice(t *testing.T) (o *office, audit string) {
	t.Helper()
	o = newOffice(t)
	o.site.swap(sold)
	audit = filepath.Join(t.TempDir(), "audit.log")
	var err error
	if o.admin.Audit, err = OpenAudit(audit, o.admin.Log); err != nil {
		t.Fatal(err)
	}
	return o, audit
}

// do sends a change as bob, who may write, and reads the answer.
func (o *office) do(status int, method, path, body string, into any) {
	o.t.Helper()
	got, text, _ := o.send(method, path, strings.NewReader(body), bearer(writeToken))
	if got != status {
		o.t.Fatalf("%s %s %s: status %d, want %d\n%s", method, path, body, got, status, text)
	}
	if into != nil {
		reflect.ValueOf(into).Elem().SetZero()
		if err := json.Unmarshal([]byte(text), into); err != nil {
			o.t.Fatalf("%s %s: %v in\n%s", method, path, err, text)
		}
	}
}

func auditLines(t *testing.T, path string) (lines []AuditEntry) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		lines = append(lines, e)
	}
	return lines
}

func (u *Usage) counter(t *testing.T, limit, key string) Counter {
	t.Helper()
	i := slices.IndexFunc(u.Counters, func(c Counter) bool { return c.Limit == limit && c.Key == key })
	if i < 0 {
		t.Fatalf("no counter of %s for %q in %+v", limit, key, u.Counters)
	}
	return u.Counters[i]
}

func TestUsage(t *testing.T) {
	t.Parallel()
	o, _ := newShopOffice(t)
	o.site.passes(2, "rest", key("sk_a"))
	o.site.passes(1, "reports", key("sk_a"))
	var u Usage
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &u)
	names := []string{}
	for _, c := range u.Counters {
		names = append(names, c.Limit+"/"+c.Route+"/"+c.Key)
	}
	want := []string{"counted//", "daily//", "jobs//", "reports/reports/", "speed//acme-a", "speed//acme-b"}
	if !slices.Equal(names, want) || !slices.Equal(u.Unseen, []string{"each"}) || u.Plan != "free" || len(u.Grants) != 0 {
		t.Errorf("counters %q, unseen %q, plan %q", names, u.Unseen, u.Plan)
	}
	daily := u.counter(t, "daily", "")
	// The clock of the test is at noon in UTC: in Tokyo the day ends at 15:00.
	end := o.site.clock.Now().Add(3 * time.Hour)
	if daily.Used != 3 || *daily.Max != 3 || *daily.Remaining != 0 || daily.Reset == nil || !daily.Reset.Equal(end) {
		t.Errorf("daily: %+v, reset %v, want %v", daily, daily.Reset, end)
	}
	if a, b := u.counter(t, "speed", "acme-a"), u.counter(t, "speed", "acme-b"); a.Used != 3 || *a.Remaining != 6 || b.Used != 0 || *b.Remaining != 9 {
		t.Errorf("speed: %+v and %+v", a, b)
	}
	if c := u.counter(t, "counted", ""); c.Max != nil || c.Remaining != nil || c.Used != 3 {
		t.Errorf("unlimited: %+v", c)
	}
	if c := u.counter(t, "jobs", ""); c.Used != 3 || *c.Remaining != 0 || c.Reset != nil {
		t.Errorf("leases: %+v", c)
	}
	if c := u.counter(t, "reports", ""); *c.Remaining != 1 || c.Route != "reports" {
		t.Errorf("of a route: %+v", c)
	}
	var one Usage
	o.do(200, "GET", "/v1/tenants/acme/usage?ip=192.0.2.1&limit=each", "", &one)
	if c := one.counter(t, "each", ""); len(one.Counters) != 1 || c.IP != "192.0.2.1" || *c.Remaining != 2 {
		t.Errorf("of an address: %+v", one)
	}
	// Looking charges nothing.
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &one)
	if one.counter(t, "daily", "").Used != 3 {
		t.Error("looking was charged")
	}
	o.do(404, "GET", "/v1/tenants/nobody/usage", "", nil)
	o.do(200, "GET", "/v1/tenants/nobody/usage?unlisted=1", "", &one)
	if !one.Unlisted || !strings.Contains(one.Counters[0].Name, "{unlisted~") {
		t.Errorf("an unlisted tenant: %+v", one)
	}
	// Reading is free on loopback, and tells no secret.
	status, body, _ := o.ask("GET", "/v1/tenants/acme/usage")
	if status != 200 || strings.Contains(body, "sk_a") {
		t.Errorf("a reader: %d %s", status, body)
	}
}

func TestListTenants(t *testing.T) {
	t.Parallel()
	o, _ := newShopOffice(t)
	var page TenantsPage
	o.do(200, "GET", "/v1/tenants?size=1", "", &page)
	if len(page.Tenants) != 1 || page.Tenants[0].ID != "acme" || page.Tenants[0].Keys != 2 || page.Next != "acme" {
		t.Errorf("the first page: %+v", page)
	}
	page = TenantsPage{}
	o.do(200, "GET", "/v1/tenants?size=1&after=acme", "", &page)
	if len(page.Tenants) != 1 || page.Tenants[0].ID != "globex" || page.Next != "" {
		t.Errorf("the last page: %+v", page)
	}
	for _, size := range []string{"0", "-1", "1001", "x"} {
		o.do(400, "GET", "/v1/tenants?size="+size, "", nil)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	o, audit := newShopOffice(t)
	if n := o.site.passes(6, "rest", key("sk_a")); n != 3 { // leases, and the quota
		t.Fatalf("%d pass, want 3", n)
	}
	o.do(422, "POST", "/v1/tenants/acme/reset", `{"reason": " "}`, nil)
	o.do(422, "POST", "/v1/tenants/acme/reset", `{"reason": "two\nlines"}`, nil)
	o.do(422, "POST", "/v1/tenants/acme/reset", `{"limit": "nix", "reason": "r"}`, nil)
	o.do(400, "POST", "/v1/tenants/acme/reset", `{"reason": "r", "limits": "jobs"}`, nil)
	o.do(400, "POST", "/v1/tenants/acme/reset", `{"reason": "r"} {}`, nil)
	o.do(404, "POST", "/v1/tenants/nobody/reset", `{"reason": "r"}`, nil)
	if lines := auditLines(t, audit); len(lines) != 0 {
		t.Errorf("what was not done is in the audit log: %+v", lines)
	}
	var done ResetDone
	o.do(200, "POST", "/v1/tenants/acme/reset", `{"limit": "jobs", "reason": "stuck"}`, &done)
	if len(done.Before) != 1 || done.Before[0].Limit != "jobs" || done.Before[0].Used != 3 {
		t.Errorf("reset: %+v", done)
	}
	if n := o.site.passes(6, "rest", key("sk_a")); n != 0 { // the quota is where it was
		t.Errorf("%d pass after the leases were freed, want 0", n)
	}
	o.do(200, "POST", "/v1/tenants/acme/reset", `{"ip": "192.0.2.1", "reason": "all of them"}`, &done)
	if n := o.site.passes(6, "rest", key("sk_a")); n != 3 {
		t.Errorf("%d pass after all was reset, want 3", n)
	}
	lines := auditLines(t, audit)
	if len(lines) != 2 || lines[0].Who != "bob" || lines[0].Action != "reset" || lines[0].Tenant != "acme" || lines[0].Reason != "stuck" || lines[0].Before == nil || lines[0].ID == lines[1].ID || !strings.HasPrefix(lines[0].From, "127.0.0.1:") {
		t.Errorf("audit: %+v", lines)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	o, audit := newShopOffice(t)
	path := "/v1/tenants/acme/grants"
	f := func(what, body string) {
		t.Helper()
		o.do(422, "POST", path, body, nil)
		if lines := auditLines(t, audit); len(lines) != 0 {
			t.Fatalf("%s: in the audit log: %+v", what, lines)
		}
	}
	f("no reason", `{"limit": "daily", "add": 2, "until": "2026-02-05"}`)
	f("nothing", `{"limit": "daily", "add": 0, "until": "2026-02-05", "reason": "r"}`)
	f("less", `{"limit": "daily", "add": -1, "until": "2026-02-05", "reason": "r"}`)
	f("yesterday", `{"limit": "daily", "add": 1, "until": "2026-02-02", "reason": "r"}`)
	f("backwards", `{"limit": "daily", "add": 1, "from": "2026-02-06", "until": "2026-02-05", "reason": "r"}`)
	f("no day", `{"limit": "daily", "add": 1, "until": "2026-02-30", "reason": "r"}`)
	f("for ever", `{"limit": "daily", "add": 1, "until": "2126-02-05", "reason": "r"}`)
	f("a rate", `{"limit": "speed", "add": 1, "until": "2026-02-05", "reason": "r"}`)
	f("unlimited", `{"limit": "counted", "add": 1, "until": "2026-02-05", "reason": "r"}`)

	ask := func() Verdict { // from another address and key each time
		t.Helper()
		o.do(200, "POST", "/v1/tenants/acme/reset", `{"limit": "jobs", "reason": "r"}`, nil)
		o.do(200, "POST", "/v1/tenants/acme/reset", `{"limit": "speed", "reason": "r"}`, nil)
		o.do(200, "POST", "/v1/tenants/acme/reset", `{"limit": "each", "ip": "192.0.2.1", "reason": "r"}`, nil)
		return o.site.decide("rest", key("sk_a")).Verdict
	}
	for range 3 {
		ask()
	}
	if ask() != Deny {
		t.Fatal("the quota does not end")
	}
	var g Grant
	o.do(201, "POST", path, `{"limit": "daily", "add": 2, "until": "2026-02-04", "reason": "launch"}`, &g)
	if g.From != "2026-02-03" || g.By != "bob" || g.ID == "" {
		t.Errorf("grant %+v", g)
	}
	if ask() != Allow { // though it was refused a moment ago
		t.Error("a grant is not felt at once")
	}
	var u Usage
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &u)
	if c := u.counter(t, "daily", ""); c.Granted != 2 || *c.Max != 5 || *c.Remaining != 1 || len(u.Grants) != 1 {
		t.Errorf("usage %+v", u)
	}
	// Both days count in Tokyo, where it is 21:00 of the 3rd: over at 15:00 of the 4th in UTC.
	o.site.clock.Advance(3 * time.Hour)
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &u)
	if c := u.counter(t, "daily", ""); c.Used != 0 || *c.Max != 5 {
		t.Errorf("on the next day: %+v", c)
	}
	o.site.clock.Advance(24 * time.Hour)
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &u)
	if c := u.counter(t, "daily", ""); c.Granted != 0 || *c.Max != 3 {
		t.Errorf("after its last day: %+v", c)
	}
	// Another is taken back.
	o.do(201, "POST", path, `{"limit": "daily", "add": 7, "until": "2026-02-09", "reason": "r"}`, &g)
	o.do(422, "DELETE", path+"/"+g.ID, "", nil)
	o.do(204, "DELETE", path+"/"+g.ID+"?reason=a+mistake", "", nil)
	o.do(404, "DELETE", path+"/"+g.ID+"?reason=a+mistake", "", nil)
	var list GrantList
	o.do(200, "GET", path, "", &list)
	if len(list.Grants) != 1 || list.Grants[0].Add != 2 {
		t.Errorf("grants %+v", list)
	}
	lines := auditLines(t, audit)
	last := lines[len(lines)-1]
	if last.Action != "revoke" || last.Reason != "a mistake" || last.Before == nil {
		t.Errorf("audit %+v", last)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	o, audit := newShopOffice(t)
	path := "/v1/tenants/acme/block"
	o.do(422, "PUT", path, `{"until": "2026-02-03T11:00:00Z", "reason": "r"}`, nil)
	o.do(422, "PUT", path, `{"until": "2036-02-03T11:00:00Z", "reason": "r"}`, nil)
	o.do(404, "DELETE", path+"?reason=r", "", nil)
	var b Block
	o.do(422, "PUT", path, `{"until": "2026-02-03T13:00:00+01:00", "reason": "r"}`, nil) // now, in another zone
	o.do(200, "PUT", path, `{"until": "2026-02-03T14:00:00+01:00", "reason": "abuse"}`, &b)
	d := o.site.decide("rest", key("sk_a"))
	if d.Verdict != Deny || d.Reason != ReasonDisabled || d.Status != 403 || len(d.ops) != 0 {
		t.Errorf("a blocked tenant: %+v", d)
	}
	if d := o.site.decide("rest", key("sk_a"), "X-Sluice-Exempt: 1"); d.Verdict != Deny {
		t.Error("an exempt address opens a block")
	}
	if d := o.site.decide("rest", key("sk_g")); d.Verdict != Allow {
		t.Errorf("another tenant: %+v", d)
	}
	var page TenantsPage
	o.do(200, "GET", "/v1/tenants", "", &page)
	if page.Tenants[0].Blocked == nil || page.Tenants[1].Blocked != nil {
		t.Errorf("tenants %+v", page)
	}
	o.site.clock.Advance(time.Hour)
	if d := o.site.decide("rest", key("sk_a")); d.Verdict != Allow {
		t.Error("a block does not end by itself")
	}
	o.do(200, "PUT", path, `{"until": "2026-02-04T00:00:00Z", "reason": "again"}`, nil)
	o.do(204, "DELETE", path+"?reason=sorry", "", nil)
	if d := o.site.decide("rest", key("sk_a")); d.Verdict != Allow {
		t.Error("a block that was lifted refuses")
	}
	lines := auditLines(t, audit)
	if n := len(lines); n < 3 || lines[n-1].Action != "unblock" || lines[n-1].Reason != "sorry" {
		t.Errorf("audit %+v", lines)
	}
}

// A change that cannot be written down is not made.
func TestNoAuditNoChange(t *testing.T) {
	t.Parallel()
	o, audit := newShopOffice(t)
	if err := os.Remove(audit); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(audit, 0o700); err != nil {
		t.Fatal(err)
	}
	o.site.passes(2, "rest", key("sk_a"))
	o.do(503, "POST", "/v1/tenants/acme/reset", `{"reason": "r"}`, nil)
	o.do(503, "POST", "/v1/tenants/acme/grants", `{"limit": "daily", "add": 2, "until": "2026-02-04", "reason": "r"}`, nil)
	o.do(503, "PUT", "/v1/tenants/acme/block", `{"until": "2026-02-04T00:00:00Z", "reason": "r"}`, nil)
	reloads := o.reloads
	o.do(503, "POST", "/-/reload", "", nil)
	var u Usage
	o.do(200, "GET", "/v1/tenants/acme/usage", "", &u)
	if c := u.counter(t, "daily", ""); c.Used != 2 || len(u.Grants) != 0 || u.Blocked != nil || o.reloads != reloads {
		t.Errorf("changed without a trace: %+v", u)
	}
}

func TestAuditFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	a, err := OpenAudit(path, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("audit file: %v, %v", info, err)
	}
	write := func(who string) {
		t.Helper()
		if err := a.Write(AuditEntry{Who: who}); err != nil {
			t.Fatal(err)
		}
	}
	write("ann")
	// A crash left half a line; it is ended, and the next begins on its own.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"who":"b`)
	f.Close()
	write("cid")
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) != 3 || lines[1] != `{"who":"b` || !strings.Contains(lines[2], `"cid"`) {
		t.Errorf("lines %q", lines)
	}
	// Moved away, it begins anew.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write("dan")
	if lines := auditLines(t, path); len(lines) != 1 || lines[0].Who != "dan" {
		t.Errorf("after it was moved: %+v", lines)
	}
	if _, err := OpenAudit(filepath.Join(path, "x"), slog.Default()); err == nil {
		t.Error("a file that cannot be is opened")
	}
}

// Another instance feels a change at its next look, and goes on with what it knows
// while the notes are away.
func TestLedgerElsewhere(t *testing.T) {
	t.Parallel()
	o, _ := newShopOffice(t)
	notes := o.site.engine.ledger.notes
	away := &flakyNotes{Notes: notes}
	other := newSite(t, "")
	other.engine.ledger = NewLedger(away, slog.New(slog.NewTextHandler(other.log, nil)))
	other.engine.ledger.changed = other.engine.Forget
	other.swap(sold)
	o.do(200, "PUT", "/v1/tenants/acme/block", `{"until": "2026-02-04T00:00:00Z", "reason": "r"}`, nil)
	if other.decide("rest", key("sk_a")).Verdict != Allow {
		t.Error("it knows before it looks")
	}
	if err := other.engine.ledger.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other.decide("rest", key("sk_a")).Verdict != Deny {
		t.Error("it has looked, and does not know")
	}
	away.err = limit.ErrUnavailable
	if err := other.engine.ledger.Refresh(t.Context()); err == nil {
		t.Error("no error from notes that are away")
	}
	if other.decide("rest", key("sk_a")).Verdict != Deny {
		t.Error("what is known is forgotten while the notes are away")
	}
	// Nonsense holds nothing up.
	away.err = nil
	for id, text := range map[string]string{"a": "{", "b": `{"grant":{"limit":"daily","add":1,"from":"x","until":"y"}}`, "c": "{}"} {
		if err := notes.Put(t.Context(), limit.Note{Tag: "acme", ID: id, Text: []byte(text), Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.engine.ledger.Refresh(t.Context()); err != nil || other.decide("rest", key("sk_a")).Verdict != Deny {
		t.Errorf("beside nonsense: %v", err)
	}
}

type flakyNotes struct {
	limit.Notes
	err error
}

func (f *flakyNotes) List(ctx context.Context, since string) ([]limit.Note, string, bool, error) {
	if f.err != nil {
		return nil, "", false, f.err
	}
	return f.Notes.List(ctx, since)
}
