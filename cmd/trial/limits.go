package trial

import (
	"fmt"
	"strconv"
	"time"

	"sluice/policies"
)

// LimitText is what a limit allows, as the policy would say it.
func LimitText(l *policies.Limit) string {
	switch l.Kind {
	case policies.KindRate:
		return fmt.Sprintf("%s, burst %d", RateText(l.Rate), l.Burst)
	case policies.KindRetries:
		return fmt.Sprintf("%s retries", RateText(l.Rate))
	case policies.KindWindow:
		return fmt.Sprintf("%d in %s, %s", l.Window.Limit, DurationText(l.Window.Length), l.Algorithm)
	case policies.KindQuota:
		return QuotaText(l.Quota)
	}
	return fmt.Sprintf("%d at a time", l.Concurrency)
}

// RateText is a rate as the language writes it: 100/s.
func RateText(r policies.Rate) string {
	n := strconv.FormatFloat(float64(r.Micro)/1e6, 'f', -1, 64)
	switch r.Per {
	case time.Second:
		return n + "/s"
	case time.Minute:
		return n + "/m"
	case time.Hour:
		return n + "/h"
	case 24 * time.Hour:
		return n + "/day"
	}
	return n + "/" + DurationText(r.Per)
}

// QuotaText is a quota as the language writes it: 10000/month.
func QuotaText(q policies.Quota) string {
	if q.Unlimited {
		return "unlimited/" + string(q.Period)
	}
	return strconv.FormatInt(q.Limit, 10) + "/" + string(q.Period)
}

// DurationText is a length of time as the language writes it, in its largest
// unit that fits: 90m.
func DurationText(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		length time.Duration
		sign   string
	}{{7 * day, "w"}, {day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= u.length && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.sign
		}
	}
	return d.String()
}
