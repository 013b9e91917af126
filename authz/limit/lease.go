package limit

import "time"

// leaseSet is what a store keeps of a concurrency limit: the leases that were
// taken and not given back, with the time when each is over. A nil set holds none.
//
// lease.lua says the same in Lua.
type leaseSet struct {
	expiry map[string]int64 // by ID
	next   int64            // no lease is over before
	last   int64            // and none later
}

// leaseWait is what is told of the wait for a lease: when one comes free is
// up to those who hold them.
const leaseWait = time.Second

// holds tells whether id holds a lease at now.
func (s *leaseSet) holds(id []byte, now int64) bool {
	return s != nil && s.expiry[string(id)] > now
}

// held counts the leases that are not over at now. Those that are stay until the
// next charge.
func (s *leaseSet) held(now int64) (count int64) {
	if s == nil {
		return 0
	}
	if now < s.next {
		return int64(len(s.expiry))
	}
	for _, expiry := range s.expiry {
		if expiry > now {
			count++
		}
	}
	return count
}

// charge takes a lease for op's ID, and drops all that are over.
func (s *leaseSet) charge(op *Op, now int64) {
	if s.expiry == nil {
		s.expiry = map[string]int64{}
	}
	if now >= s.next {
		s.prune(now)
	}
	expiry := now + op.length()
	if len(s.expiry) == 0 {
		s.next, s.last = expiry, expiry
	}
	s.expiry[string(op.ID)] = expiry
	s.next, s.last = min(s.next, expiry), max(s.last, expiry)
}

func (s *leaseSet) prune(now int64) {
	s.next = maxMicros
	for id, expiry := range s.expiry {
		if expiry <= now {
			delete(s.expiry, id)
		} else {
			s.next = min(s.next, expiry)
		}
	}
}

// free gives a lease back.
func (s *leaseSet) free(id []byte) {
	if s != nil {
		delete(s.expiry, string(id))
	}
}

// leaseState is what is told of a set with so many leases after the step.
func leaseState(op *Op, held int64, fits bool) State {
	s := State{Fits: fits, Remaining: max(0, op.max()-held), Used: held}
	switch {
	case fits:
	case op.Max == 0:
		s.Wait = Never
	default:
		s.Wait = leaseWait
	}
	return s
}
