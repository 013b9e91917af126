package authz

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

func (a *Admin) grants(w http.ResponseWriter, r *http.Request) {
	_, t, err := a.find(r)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, GrantList{Tenant: t.id, Grants: a.Engine.ledger.of(t.tag).list()})
}

func (a *Admin) grant(w http.ResponseWriter, r *http.Request) {
	g, err := a.doGrant(r)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusCreated, g)
}

func (a *Admin) doGrant(r *http.Request) (Grant, error) {
	_, t, err := a.find(r)
	if err != nil {
		return Grant{}, err
	}
	var what GrantAsked
	if err := readBody(r, &what); err != nil {
		return Grant{}, err
	}
	now := a.Engine.now()
	from, until, err := what.check(&t, now)
	if err != nil {
		return Grant{}, err
	}
	ledger := a.Engine.ledger
	if ledger == nil {
		return Grant{}, answerNo{http.StatusServiceUnavailable, "this service keeps no grants"}
	}
	g := Grant{
		ID: "grant-" + strings.ToLower(rand.Text()[:10]), Limit: what.Limit, Add: what.Add, From: from.String(), Until: until.String(),
		Changed: Changed{Reason: what.Reason, By: Caller(r), At: now.UTC()},
	}
	entry := AuditEntry{Action: "grant", Tenant: t.id, What: what, Reason: what.Reason, Before: ledger.of(t.tag).list(), After: g}
	end := midnight(until, 1, time.UTC).Add(noteMargin)
	err = a.change(r, entry, func() error { return ledger.put(r.Context(), t.tag, g.ID, note{Grant: &g}, end) })
	return g, err
}

// check finds what no grant can be.
func (g *GrantAsked) check(t *boundRef, now time.Time) (from, until policies.Date, err error) {
	if err := checkReason(g.Reason); err != nil {
		return from, until, err
	}
	zone, err := t.quotaZone(g.Limit)
	if err != nil {
		return from, until, err
	}
	if g.Add < 1 || g.Add > limit.MaxCount {
		return from, until, badRequest("add is %d; want how many units more, 1 or more", g.Add)
	}
	today := policies.Date{}
	today.Year, today.Month, today.Day = now.In(zone).Date()
	if from = today; g.From != "" {
		if err := from.UnmarshalText([]byte(g.From)); err != nil {
			return from, until, badRequest("from: %v", err)
		}
	}
	if err := until.UnmarshalText([]byte(g.Until)); err != nil {
		return from, until, badRequest("until: %v", err)
	}
	switch {
	case until.Compare(today) < 0:
		return from, until, badRequest("until %s is over already: today is %s there", until, today)
	case until.Compare(from) < 0:
		return from, until, badRequest("until %s is before from %s", until, from)
	case midnight(until, 0, time.UTC).After(now.AddDate(0, 0, maxGrantDays)):
		return from, until, badRequest("until %s is more than %d days away; what is to stay belongs into the policy", until, maxGrantDays)
	}
	return from, until, nil
}

// quotaZone is the time zone of a quota in the tenant's plan.
func (t *boundRef) quotaZone(name string) (*time.Location, error) {
	var quotas []string
	for i := range t.rules {
		l := t.rules[i].limit
		switch {
		case l.Kind != policies.KindQuota:
		case l.Name != name:
			quotas = append(quotas, l.Name)
		case l.Quota.Unlimited:
			return nil, badRequest("the quota %q is unlimited already", name)
		default:
			return l.Zone, nil
		}
	}
	if len(quotas) == 0 {
		return nil, badRequest("the tenant's plan has no quota; grants are for quotas")
	}
	return nil, badRequest("the tenant's plan has no quota %q; want one of: %s", name, strings.Join(quotas, ", "))
}

func (a *Admin) revoke(w http.ResponseWriter, r *http.Request) {
	if err := a.doRevoke(r); err != nil {
		a.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *Admin) doRevoke(r *http.Request) error {
	_, t, err := a.find(r)
	if err != nil {
		return err
	}
	reason, id := r.URL.Query().Get("reason"), r.PathValue("grant")
	if err := checkReason(reason); err != nil {
		return err
	}
	list := a.Engine.ledger.of(t.tag).list()
	i := slices.IndexFunc(list, func(g Grant) bool { return g.ID == id })
	if i < 0 {
		return answerNo{http.StatusNotFound, fmt.Sprintf("the tenant has no grant %q", id)}
	}
	return a.change(r, AuditEntry{Action: "revoke", Tenant: t.id, What: id, Reason: reason, Before: list[i]}, func() error {
		_, err := a.Engine.ledger.remove(r.Context(), t.tag, id)
		return err
	})
}

func (a *Admin) block(w http.ResponseWriter, r *http.Request) {
	b, err := a.doBlock(r)
	if err != nil {
		a.fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, b)
}

func (a *Admin) doBlock(r *http.Request) (Block, error) {
	_, t, err := a.find(r)
	if err != nil {
		return Block{}, err
	}
	var what BlockAsked
	if err := readBody(r, &what); err != nil {
		return Block{}, err
	}
	if err := checkReason(what.Reason); err != nil {
		return Block{}, err
	}
	now := a.Engine.now()
	switch {
	case !what.Until.After(now):
		return Block{}, badRequest("until is over already; want a time to come, such as %s", now.Add(time.Hour).UTC().Format(time.RFC3339))
	case what.Until.After(now.AddDate(0, 0, maxGrantDays)):
		return Block{}, badRequest("until is more than %d days away; for ever is `disabled: true` in the policy", maxGrantDays)
	case a.Engine.ledger == nil:
		return Block{}, answerNo{http.StatusServiceUnavailable, "this service keeps no blocks"}
	}
	b := Block{Until: what.Until.UTC(), Changed: Changed{Reason: what.Reason, By: Caller(r), At: now.UTC()}}
	entry := AuditEntry{Action: "block", Tenant: t.id, What: what, Reason: what.Reason, Before: a.blockNow(&t), After: b}
	err = a.change(r, entry, func() error {
		return a.Engine.ledger.put(r.Context(), t.tag, blockID, note{Block: &b}, b.Until.Add(time.Hour))
	})
	return b, err
}

// blockNow is the tenant's block; nil when he has none.
func (a *Admin) blockNow(t *boundRef) *Block {
	if terms := a.Engine.ledger.of(t.tag); terms.blocked(a.Engine.now()) {
		return terms.block
	}
	return nil
}

func (a *Admin) unblock(w http.ResponseWriter, r *http.Request) {
	if err := a.doUnblock(r); err != nil {
		a.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *Admin) doUnblock(r *http.Request) error {
	_, t, err := a.find(r)
	if err != nil {
		return err
	}
	reason := r.URL.Query().Get("reason")
	if err := checkReason(reason); err != nil {
		return err
	}
	before := a.blockNow(&t)
	if before == nil {
		return answerNo{http.StatusNotFound, "the tenant is not blocked"}
	}
	return a.change(r, AuditEntry{Action: "unblock", Tenant: t.id, Reason: reason, Before: before}, func() error {
		_, err := a.Engine.ledger.remove(r.Context(), t.tag, blockID)
		return err
	})
}
