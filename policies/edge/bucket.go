package edge

import "time"

// bucket is what limit_req keeps of one key.
type bucket struct {
	excess int64 // in thousandths of a request
	last   int64 // milliseconds
}

// zone is the shared memory of a rate: as NGINX's, but never full unless somebody
// sets a bound. A bucket that holds nothing any more is the same as none, so the zone is swept when it has
// grown to twice what was left in it the last time.
type zone struct {
	rate    int64 // thousandths of a request each second
	buckets map[string]*bucket
	sweepAt int
	most    int // keys; 0: as many as come
}

func newZone(rate int64) *zone {
	return &zone{rate: rate, buckets: map[string]*bucket{}, sweepAt: 1024}
}

// minuteMS is how far NGINX lets a clock that steps back be believed.
const minuteMS = 60_000

// since is how long ago a bucket was touched, as limit_req reckons it.
func (b *bucket) since(now int64) int64 {
	ms := now - b.last
	switch {
	case ms < -minuteMS:
		return 1
	case ms < 0:
		return 0
	}
	return ms
}

// after is what a bucket would hold with one more request.
func (z *zone) after(b *bucket, now int64) (excess, ms int64) {
	ms = b.since(now)
	return max(0, b.excess-z.rate*ms/1000+1000), ms
}

// take puts a request into a bucket.
func (z *zone) take(b *bucket, now int64) int64 {
	excess, ms := z.after(b, now)
	if ms != 0 {
		b.last = now
	}
	b.excess = excess
	return excess
}

// put makes a bucket for a key that has none. The first request of a key is not
// counted as excess.
func (z *zone) put(key []byte, now int64) *bucket {
	if len(z.buckets) >= z.sweepAt {
		z.sweep(now)
	}
	if z.most > 0 && len(z.buckets) >= z.most {
		for other := range z.buckets {
			delete(z.buckets, other)
			break
		}
	}
	b := &bucket{last: now}
	z.buckets[string(key)] = b
	return b
}

// sweep drops the buckets in which a request would find nothing left.
func (z *zone) sweep(now int64) {
	for key, b := range z.buckets {
		if excess, _ := z.after(b, now); excess == 0 {
			delete(z.buckets, key)
		}
	}
	z.sweepAt = max(1024, 2*len(z.buckets))
}

// Rate is what one edge rate said of a request.
type Rate struct {
	Limit    string
	Unused   string // why it does not count this request; empty: it does
	Key      string
	Bucket   Bucket
	Excess   int64         // what the bucket would hold with it, in thousandths of a request
	Delay    time.Duration // for which this limit alone would hold it
	Exceeded bool
	Shadow   bool
}

// rates asks limit_req. The first limit, in the order of the location, that has no
// room refuses, and then nothing is counted anywhere; else all count, and the
// longest delay holds the request.
func (m *Model) rates(v *Visit, ms int64) {
	v.taken = v.taken[:0]
	dry := false
	for _, i := range v.Location.Edge {
		l := &m.limits[i]
		if l.zone == nil {
			continue
		}
		dry = dry || l.shadow
		unused := m.unused(v, l)
		if unused != "" {
			if v.Trace != nil {
				v.Trace.Rates = append(v.Trace.Rates, Rate{Limit: l.Name, Unused: unused, Bucket: l.bucket, Shadow: l.shadow})
			}
			continue
		}
		l.met = true
		m.key = m.appendKey(m.key[:0], l, v)
		b, known := l.zone.buckets[string(m.key)]
		excess := int64(0)
		if known {
			excess, _ = l.zone.after(b, ms)
		}
		exceeded := excess > l.bucket.Burst*1000
		if v.Trace != nil {
			v.Trace.Rates = append(v.Trace.Rates, Rate{
				Limit: l.Name, Key: shownKey(m.key), Bucket: l.bucket, Excess: excess,
				Delay: l.delay(excess), Exceeded: exceeded, Shadow: l.shadow,
			})
		}
		if exceeded {
			if v.Limit == "" {
				v.Limit, v.Wait = l.Name, l.wait(excess)
			}
			if v.Trace == nil {
				break
			}
			continue
		}
		if !known {
			b = nil
		}
		v.taken = append(v.taken, taken{l, b, len(v.keys), 0})
		v.keys = append(v.keys, m.key...)
		v.taken[len(v.taken)-1].end = len(v.keys)
	}
	if v.Limit != "" {
		v.Verdict, v.Shadow = EdgeRate, dry
		return
	}
	m.account(v, ms, dry)
}

// taken is a bucket that a request found with room in it.
type taken struct {
	limit      *edgeLimit
	bucket     *bucket // nil: there is none yet
	start, end int     // of its key in Visit.keys
}

// account counts the request everywhere.
func (m *Model) account(v *Visit, ms int64, dry bool) {
	for i := range v.taken {
		t := &v.taken[i]
		if t.bucket == nil {
			t.limit.zone.put(v.keys[t.start:t.end], ms)
			continue
		}
		v.Delay = max(v.Delay, t.limit.delay(t.limit.zone.take(t.bucket, ms)))
	}
	if dry {
		v.Delay = 0
	}
}

// delay is how long limit_req holds a request that makes for such an excess.
func (l *edgeLimit) delay(excess int64) time.Duration {
	free := l.bucket.Delay * 1000
	if l.bucket.NoDelay {
		free = l.bucket.Burst * 1000
	}
	if excess <= free {
		return 0
	}
	return time.Duration((excess-free)*1000/l.zone.rate) * time.Millisecond
}

// wait is how long it takes until a request fits that would make for such an
// excess now.
func (l *edgeLimit) wait(excess int64) time.Duration {
	over := excess - l.bucket.Burst*1000
	return time.Duration((over*1000+l.zone.rate-1)/l.zone.rate) * time.Millisecond
}
