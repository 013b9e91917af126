package replay

import "sluice/cmd/trial"

// widths are the steps that a timeline may have, in seconds: each a multiple of
// the one before.
type widths [13]int64

const lastWidth = len(widths{}) - 1

func steps() widths {
	return widths{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}
}

// maxBuckets is how many points a timeline has at most.
const maxBuckets = 300

// timeline counts requests by time, in steps that grow with the log.
type timeline struct {
	width   int // index of widths
	first   int64
	buckets []Bucket
}

// Bucket is one step of time.
type Bucket struct {
	Requests int64 `json:"requests"`
	Edge     int64 `json:"denied_edge"`    // by NGINX alone
	Service  int64 `json:"denied_service"` // by the service
	Newly    int64 `json:"newly_denied,omitempty"`
	NoLonger int64 `json:"no_longer_denied,omitempty"`
}

func (b *Bucket) join(o Bucket) {
	b.Requests += o.Requests
	b.Edge += o.Edge
	b.Service += o.Service
	b.Newly += o.Newly
	b.NoLonger += o.NoLonger
}

func (t *timeline) add(it *item) {
	b := t.bucket(it.at / micros)
	b.Requests++
	switch {
	case it.fate.by == trial.ByService:
		b.Service++
	case it.fate.denied:
		b.Edge++
	}
	if it.runner.before == nil {
		return
	}
	switch {
	case it.fate.denied && !it.old.denied:
		b.Newly++
	case !it.fate.denied && it.old.denied:
		b.NoLonger++
	}
}

func (t *timeline) step() int64 { return steps()[t.width] }

// bucket is that of a second. One before the first is the first.
func (t *timeline) bucket(second int64) *Bucket {
	if t.buckets == nil {
		t.first = second
		t.buckets = make([]Bucket, 0, maxBuckets)
	}
	for t.index(second) >= maxBuckets && t.width < lastWidth {
		t.widen()
	}
	i := min(max(t.index(second), 0), maxBuckets-1)
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, Bucket{})
	}
	return &t.buckets[i]
}

// index counts from the step that the first second lies in.
func (t *timeline) index(second int64) int {
	return int(min(second/t.step()-t.first/t.step(), 1<<30))
}

// widen goes to the next step.
func (t *timeline) widen() {
	old, oldStep := t.buckets, t.step()
	start := t.first / oldStep * oldStep
	t.width++
	t.buckets = make([]Bucket, 0, maxBuckets)
	for i, b := range old {
		j := t.index(start + int64(i)*oldStep)
		for len(t.buckets) <= j {
			t.buckets = append(t.buckets, Bucket{})
		}
		t.buckets[j].join(b)
	}
}
