package policies

import (
	"encoding"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// spelledBack wants a value to be read from its own spelling.
func spelledBack[T comparable](t *rapid.T, value T) {
	text := any(value).(fmt.Stringer).String()
	var again T
	if err := any(&again).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		t.Fatalf("%#v is spelled %q, which is refused: %v", value, text, err)
	}
	if again != value {
		t.Fatalf("%#v is spelled %q, which is %#v", value, text, again)
	}
}

// TestSpelledBack draws values of the types with more than one spelling.
func TestSpelledBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spelledBack(t, Rate{
			Micro: rapid.Int64Range(1, maxRate*micro).Draw(t, "micro"),
			Per:   rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "per"),
		})
		spelledBack(t, Window{
			Limit:  rapid.Int64Range(0, maxCount).Draw(t, "limit"),
			Length: time.Duration(rapid.Int64Range(1, 31*24*3600).Draw(t, "seconds")) * time.Second,
		})
		spelledBack(t, Duration(rapid.Int64Range(1, maxDuration.Milliseconds()).Draw(t, "ms")*int64(time.Millisecond)))
		quota := Quota{
			Unlimited: rapid.Bool().Draw(t, "unlimited"),
			Period:    rapid.SampledFrom([]Period{PeriodHour, PeriodDay, PeriodWeek, PeriodMonth}).Draw(t, "period"),
		}
		if !quota.Unlimited {
			quota.Limit = rapid.Int64Range(0, maxCount).Draw(t, "quota")
		}
		spelledBack(t, quota)
		spelledBack(t, ASN(rapid.Uint32().Draw(t, "asn")))
		day := time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "day"), 0).UTC()
		spelledBack(t, Date{day.Year(), day.Month(), day.Day()})
		spelledBack(t, drawNetwork(t))
	})
}

func drawNetwork(t *rapid.T) Network {
	bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
	if rapid.Bool().Draw(t, "v4") {
		bytes = bytes[:4]
	}
	addr, _ := netip.AddrFromSlice(bytes)
	addr = addr.Unmap()
	return Network{Prefix: netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")).Masked()}
}
