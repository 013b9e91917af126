package authz

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

const (
	// ledgerEvery is how often others' changes are looked for: they are felt within
	// two of these.
	ledgerEvery = time.Second
	// ledgerAnew is after how many looks everything is read, changed or not: a change
	// of which the announcement was lost.
	ledgerAnew = 60
	// noteMargin is how long a note is kept after its last day began in the last
	// time zone.
	noteMargin = 3 * 24 * time.Hour
)

// Grant adds units to a quota of a tenant for some days, both included, in the
// limit's time zone.
type Grant struct {
	ID    string `json:"id"`
	Limit string `json:"limit"`
	Add   int64  `json:"add"`
	From  string `json:"from"`  // 2006-01-02
	Until string `json:"until"` // 2006-01-02
	Changed
}

// Block refuses everything to a tenant until a time.
type Block struct {
	Until time.Time `json:"until"`
	Changed
}

// Changed says who changed something, when and why.
type Changed struct {
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// note is the text of a limit.Note: one of the two.
type note struct {
	Grant *Grant `json:"grant,omitempty"`
	Block *Block `json:"block,omitempty"`
}

// blockID names the only block that a tenant can have among his notes.
const blockID = "block"

// Ledger is what operators gave to tenants and took from them at run time, beside
// the policy: grants and blocks. It is kept by limit.Notes, with the counters;
// decisions see a copy that is replaced as a whole, with one pointer, when
// something has changed. What is over ends by itself, whether or not the notes can
// be reached.
type Ledger struct {
	notes limit.Notes
	log   *slog.Logger
	// changed is called when something has: what was believed of refusals no longer
	// holds.
	changed func()
	copy    atomic.Pointer[map[string]*terms]

	mu      sync.Mutex // one look at a time
	version string
	failing bool
}

// terms are what holds for one tenant.
type terms struct {
	block  *Block
	grants []Grant
	days   []term // of the grants
}

// term is a grant as decisions see it.
type term struct {
	limit       string
	add         int64
	from, until policies.Date
}

// NewLedger makes a ledger on notes. Until the first Refresh it is empty. log nil:
// slog.Default.
func NewLedger(notes limit.Notes, log *slog.Logger) *Ledger {
	if log == nil {
		log = slog.Default()
	}
	return &Ledger{notes: notes, log: log}
}

// Run looks for changes until ctx ends. While the notes cannot be reached what
// is known goes on.
func (l *Ledger) Run(ctx context.Context) {
	ticker := time.NewTicker(ledgerEvery)
	defer ticker.Stop()
	for looks := 0; ; looks++ {
		if err := l.look(ctx, looks%ledgerAnew == 0); err != nil && ctx.Err() == nil {
			l.complain(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// complain logs the first of some failures.
func (l *Ledger) complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failing {
		l.log.Warn("grants and blocks cannot be read: those that are known go on", "error", err.Error())
	}
	l.failing = true
}

// Refresh reads what has changed.
func (l *Ledger) Refresh(ctx context.Context) error { return l.look(ctx, false) }

func (l *Ledger) look(ctx context.Context, anew bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.version
	if anew {
		since = ""
	}
	notes, version, changed, err := l.notes.List(ctx, since)
	if err != nil {
		return err
	}
	l.failing = false
	if !changed {
		return nil
	}
	all := map[string]*terms{}
	for _, n := range notes {
		t := all[n.Tag]
		if t == nil {
			t = new(terms)
			all[n.Tag] = t
		}
		if err := t.read(n.Text); err != nil {
			l.log.Warn("a grant or block cannot be read, and does not hold", "note", n.ID, "error", err.Error())
		}
	}
	l.copy.Store(&all)
	if version != l.version && l.changed != nil {
		l.changed()
	}
	l.version = version
	return nil
}

// read adds what a note says.
func (t *terms) read(text []byte) error {
	var n note
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	switch {
	case n.Block != nil:
		t.block = n.Block
	case n.Grant != nil:
		g := term{limit: n.Grant.Limit, add: n.Grant.Add}
		if err := g.from.UnmarshalText([]byte(n.Grant.From)); err != nil {
			return err
		}
		if err := g.until.UnmarshalText([]byte(n.Grant.Until)); err != nil {
			return err
		}
		if g.add < 1 {
			return fmt.Errorf("it adds %d", g.add)
		}
		t.grants, t.days = append(t.grants, *n.Grant), append(t.days, g)
	default:
		return fmt.Errorf("it says nothing that this version knows")
	}
	return nil
}

// of is what holds for the tenant with a tag; nil when nothing does. It takes no
// lock and does not allocate.
func (l *Ledger) of(tag []byte) *terms {
	if l == nil || len(tag) == 0 {
		return nil
	}
	all := l.copy.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	return (*all)[string(tag)]
}

// blocked tells whether the tenant is refused now.
func (t *terms) blocked(now time.Time) bool {
	return t != nil && t.block != nil && now.Before(t.block.Until)
}

// granted is how many units grants add to a limit now.
func (t *terms) granted(l *policies.Limit, now time.Time) int64 {
	if t == nil || l.Zone == nil {
		return 0
	}
	var today policies.Date
	today.Year, today.Month, today.Day = now.In(l.Zone).Date()
	sum := int64(0)
	for i := range t.days {
		if g := &t.days[i]; g.limit == l.Name && g.from.Compare(today) <= 0 && today.Compare(g.until) <= 0 {
			sum = limit.SumCounts(sum, g.add)
		}
	}
	return sum
}

// list is the grants of a tenant that are not long over, by their first day.
func (t *terms) list() []Grant {
	list := []Grant{}
	if t != nil {
		list = append(list, t.grants...)
	}
	slices.SortFunc(list, func(a, b Grant) int {
		return strings.Compare(a.From+a.ID, b.From+b.ID)
	})
	return list
}

// put writes a note and takes it into use here, at once.
func (l *Ledger) put(ctx context.Context, tag []byte, id string, n note, until time.Time) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := l.notes.Put(ctx, limit.Note{Tag: string(tag), ID: id, Text: text, Until: until}); err != nil {
		return err
	}
	return l.Refresh(ctx)
}

// remove takes a note away, here at once. It tells whether there was one.
func (l *Ledger) remove(ctx context.Context, tag []byte, id string) (bool, error) {
	there, err := l.notes.Remove(ctx, string(tag), id)
	if err != nil {
		return false, err
	}
	return there, l.Refresh(ctx)
}

// max is a quota with the grants that touch now, those of the policy and those of
// the ledger. t may be nil.
func (t *terms) max(r *rule, now time.Time) int64 {
	most := r.op.Max
	if len(r.grants) > 0 {
		most = r.granted(now)
	}
	if t == nil || most == limit.Unlimited || !r.limit.InPlan {
		return most
	}
	return limit.SumCounts(most, t.granted(r.limit, now))
}
