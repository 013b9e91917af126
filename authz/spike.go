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
	turn  uint64
	past  map[metered]*past
}

// metered is a tenant of the policy, or one of the directory.
type metered struct {
	id    string
	found bool
}

// past is what a tenant was refused before.
type past struct {
	total uint64  // of his meter, at the last look
	turn  uint64  // of the last look
	usual float64 // in a turn
	told  time.Time
}

// look ends a turn.
func (s *spikes) look(b *bound, now time.Time) (found []happening) {
	if b == nil {
		return nil
	}
	if b != s.bound { // meters of a policy begin at zero with it
		s.renew(b)
	}
	s.turn++
	for c := range b.metered() {
		total := c.meter.denied.Load()
		who := metered{c.name, c.found != nil}
		p := s.past[who]
		if p == nil {
			if total == 0 {
				continue
			}
			p = &past{}
			s.past[who] = p
		}
		if total < p.total { // his meter is a new one
			p.total = 0
		}
		count := float64(total - p.total)
		p.total, p.turn = total, s.turn
		if count >= spikeLeast && count >= spikeTimes*p.usual && now.Sub(p.told) >= time.Hour {
			p.told = now
			found = append(found, happening{
				ID:    name(EventSpike, c.name, now.Truncate(time.Hour).Unix()),
				Event: Event{Type: EventSpike, Time: now.UTC(), Data: EventData{Tenant: c.name, Plan: c.plan, Denied: int64(count), Usual: int64(p.usual)}},
				Until: now.Add(2 * time.Hour),
			})
		}
		p.usual += (count - p.usual) / spikeTurns
	}
	for who, p := range s.past {
		if p.turn != s.turn {
			delete(s.past, who) // nobody meters him any more
		}
	}
	return found
}

// renew goes on with the tenants of another policy.
func (s *spikes) renew(b *bound) {
	s.bound = b
	if s.past == nil {
		s.past = map[metered]*past{}
	}
	for i := range b.policy.Tenants {
		if p := s.past[metered{id: b.policy.Tenants[i].ID}]; p != nil {
			p.total = 0
		}
	}
}
