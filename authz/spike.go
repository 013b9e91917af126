package authz

import "time"

const (
	// spikeLeast is how many denials in one turn are worth telling anybody.
	spikeLeast = 100
	// spikeTimes is how many times more than usual they must be.
	spikeTimes = 10
	// spikeTurns is over how many turns what is usual is learned.
	spikeTurns = 10
)

// spikes finds tenants who are refused far more often than before, in this
// instance: at least spikeLeast times in a turn, and spikeTimes as often as in the
// turns before. Each is told once an hour.
type spikes struct {
	bound *bound
	past  map[string]*past
}

// past is what a tenant was refused before.
type past struct {
	total uint64  // of his meter, at the last look
	usual float64 // in a turn
	told  time.Time
}

// look ends a turn.
func (s *spikes) look(b *bound, now time.Time) (found []happening) {
	if b == nil {
		return nil
	}
	if b != s.bound { // meters begin at zero with every policy
		s.renew(b)
	}
	for i := range b.meters {
		total := b.meters[i].denied.Load()
		t := &b.policy.Tenants[i]
		p := s.past[t.ID]
		if p == nil {
			if total == 0 {
				continue
			}
			p = &past{}
			s.past[t.ID] = p
		}
		count := float64(total - p.total)
		p.total = total
		if count >= spikeLeast && count >= spikeTimes*p.usual && now.Sub(p.told) >= time.Hour {
			p.told = now
			found = append(found, happening{
				ID:    name(EventSpike, t.ID, now.Truncate(time.Hour).Unix()),
				Event: Event{Type: EventSpike, Time: now.UTC(), Data: EventData{Tenant: t.ID, Plan: b.policy.Plans[t.Plan].Name, Denied: int64(count), Usual: int64(p.usual)}},
				Until: now.Add(2 * time.Hour),
			})
		}
		p.usual += (count - p.usual) / spikeTurns
	}
	return found
}

// renew goes on with the tenants of another policy.
func (s *spikes) renew(b *bound) {
	before := s.past
	s.bound, s.past = b, map[string]*past{}
	for i := range b.policy.Tenants {
		id := b.policy.Tenants[i].ID
		if p := before[id]; p != nil {
			p.total = 0
			s.past[id] = p
		}
	}
}
