package trial_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sluice/cmd/trial"
)

// BenchmarkSubmit is a request of 100,000 clients without a trace.
func BenchmarkSubmit(b *testing.B) {
	tr, keys := newTrial(b, twoFloors, "acme-web")
	reqs := make([]*trial.Request, 100_000)
	for i := range reqs {
		reqs[i] = get(0, fmt.Sprintf("/v1/items/%d?q=x", i))
		reqs[i].Peer = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if i%2 == 0 {
			reqs[i].Key = keys["acme-web"]
		}
	}
	denied := 0
	done := func(o *trial.Outcome) {
		if o.Denied {
			denied++
		}
	}
	b.ReportAllocs()
	at := start()
	for i := 0; b.Loop(); i++ {
		r := reqs[i%len(reqs)]
		at = at.Add(20 * time.Microsecond)
		r.At = at
		tr.Submit(r, done)
	}
	b.ReportMetric(float64(denied)/float64(b.N), "denied/op")
}
