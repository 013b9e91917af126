package replay

// changes are what another policy does differently with the same requests.
type changes struct {
	newly, noLonger       ledger
	newlyCount, freeCount int64 // requests
	newlyWho, freeWho     int64 // subjects
	otherwise             int64 // denied by both, for another cause
}

func newChanges() *changes { return &changes{newly: newLedger(), noLonger: newLedger()} }

func (c *changes) add(it *item, sub *subject, s int32) {
	switch {
	case it.fate.denied && !it.old.denied:
		c.newlyCount++
		if sub.newly++; sub.newly == 1 {
			c.newlyWho++
		}
		c.newly.add(it.fate.cause, it, s)
	case !it.fate.denied && it.old.denied:
		c.freeCount++
		if sub.noLonger++; sub.noLonger == 1 {
			c.freeWho++
		}
		c.noLonger.add(it.old.cause, it, s)
	case it.fate.denied && it.fate.cause != it.old.cause:
		c.otherwise++
	}
}
