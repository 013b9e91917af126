package limit

// window is what a store keeps of a fixed or sliding window: the units of the
// window that begins at start, and of the one before it. A window that is not
// there has counted nothing.
//
// window.lua says the same in Lua.
type window struct {
	start  int64 // microseconds since 1970, a multiple of length
	length int64 // microseconds
	count  int64 // units, 0 to MaxCount
	last   int64 // units of the window before, 0 to MaxCount
}

// roll brings the window to now. Time never goes back: when the clock is behind
// its start, the window stays the newest one. One of another length begins anew.
func (w window) roll(op *Op, now int64) window {
	length := op.length()
	start := now - now%length
	switch {
	case w.length != length:
		return window{start: start, length: length}
	case w.start >= start:
		return w
	case w.start == start-length:
		return window{start: start, length: length, last: w.count}
	}
	return window{start: start, length: length}
}

// inside is how much of the last window still counts, rounded up: all of it, less
// the part that has left, rounded down.
func (w *window) inside(op *Op, now int64) int64 {
	if op.Kind == FixedWindow {
		return 0
	}
	left, _ := mulDiv(max(0, now-w.start), w.last, w.length)
	return w.last - left
}

// counted is what counts at now, at most MaxCount.
func (w *window) counted(op *Op, now int64) int64 {
	return min(w.inside(op, now)+w.count, MaxCount)
}

func (w *window) fits(op *Op, now int64) bool {
	counted := w.counted(op, now)
	return op.Cost <= op.max() && counted <= op.max()-op.Cost
}

// charge counts op's cost, which fits.
func (w *window) charge(op *Op) { w.count += op.Cost }

// settle corrects the window that began at stamp, and tells whether it is still
// there.
func (w *window) settle(op *Op, stamp, delta int64) bool {
	switch {
	case stamp == w.start:
		w.count = min(max(0, w.count+delta), MaxCount)
	case stamp == w.start-w.length && op.Kind == SlidingWindow:
		w.last = min(max(0, w.last+delta), MaxCount)
	default:
		return false
	}
	return true
}

// until is the time from now until op fits, in microseconds; its cost is at most
// max. In this window it is the last one that leaves; in the next it is this
// one.
func (w *window) until(op *Op, now int64) int64 {
	room := op.max() - op.Cost
	switch {
	case op.Kind == FixedWindow:
		return w.start + w.length - now
	case w.count <= room:
		return w.start + leaves(w.last, w.last+w.count-room, w.length) - now
	}
	return w.start + w.length + leaves(w.count, w.count-room, w.length) - now
}

// leaves is the time after which part of count units, which leave evenly within
// length, have left.
func leaves(count, part, length int64) int64 {
	if part <= 0 {
		return 0
	}
	t, rest := mulDiv(part, length, count)
	if rest {
		t++
	}
	return t
}

// state is what is told of the window after the step.
func (w *window) state(op *Op, now int64, fits bool) State {
	counted := w.counted(op, now)
	end := w.start + w.length
	if op.Kind == SlidingWindow {
		end += w.length
	}
	s := State{
		Fits:      fits,
		Remaining: max(0, op.max()-counted),
		Used:      counted,
		Reset:     micros(end - now),
		Stamp:     w.start,
	}
	switch {
	case fits:
	case op.Cost > op.max():
		s.Wait = Never
	default:
		s.Wait = micros(w.until(op, now))
	}
	return s
}

func (w *window) words() words { return words{w.start, w.length, w.count, w.last} }

func windowOf(w *words) window {
	return window{start: w[0], length: w[1], count: w[2], last: w[3]}
}
