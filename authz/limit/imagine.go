package limit

import "time"

// Imagine is what a limit would say of op at now if nobody but the request knew
// it: as one that has just been used up, or as one that nobody has ever used. No
// store is asked and nothing is charged.
func Imagine(op *Op, now time.Time, usedUp bool) State {
	micro := now.UnixMicro()
	asked := *op
	asked.MaxWait = 0 // nothing is held that is not taken
	switch op.Kind {
	case Rate, Retries:
		b := fullBucket(&asked, micro)
		if usedUp {
			b.level = asked.Reserve * Unit
		}
		return b.state(&asked, micro, !usedUp && b.fits(&asked, micro))
	case FixedWindow, SlidingWindow:
		w := window{}.roll(&asked, micro)
		if usedUp {
			w.count = asked.max()
		}
		return w.state(&asked, micro, !usedUp && w.fits(&asked, micro))
	case LogWindow:
		t := logTally{}
		if usedUp {
			t = logTally{counted: asked.max(), newest: micro, leaves: micro}
		}
		return t.state(&asked, micro, !usedUp && t.fits(&asked))
	case Quota:
		q := quota{}.roll(asked.Calendar.around(micro), micro)
		if usedUp && asked.Max != Unlimited {
			q.used, q.over = SumCounts(asked.max(), asked.overage()), asked.overage()
		}
		return q.state(&asked, micro, !usedUp && q.fits(&asked))
	}
	held := int64(0)
	if usedUp {
		held = asked.max()
	}
	return leaseState(&asked, held, held < asked.max())
}
