package trial

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

func quotaMax(l *policies.Limit) int64 {
	if l.Quota.Unlimited {
		return limit.Unlimited
	}
	return l.Quota.Limit
}

// leasedNote is what it costs that instances take shares of a rate ahead: never the
// limit anything.
func leasedNote(l *policies.Limit, instances int) string {
	op := limit.Op{Kind: limit.Rate, Refill: limit.NewRefill(l.Rate.Micro, l.Rate.Per), Burst: l.Burst, Leased: true}
	share, life := limit.LargestShare(&op), limit.ShareLife(&op)
	text := fmt.Sprintf("leased: never more than the limit passes; at most %d at once, the rest of the burst is for shares", limit.SharedBurst(&op))
	if share == 0 || life == 0 {
		return text + ", which are too small here to be taken"
	}
	return text + fmt.Sprintf("; an instance takes up to %d units ahead for %s, so at worst %d lie unused with %d of them",
		share, DurationText(life), min(share*int64(instances), limit.SharedBurst(&op)), instances)
}

// valueOf is a key of a limit as the language writes it.
func valueOf(l *policies.Limit, key string) string {
	switch key {
	case "per":
		return PerText(l.Per)
	case "rate", "retries":
		return RateText(l.Rate)
	case "burst":
		return strconv.FormatInt(l.Burst, 10)
	case "wait":
		return DurationText(l.Wait)
	case "window":
		return fmt.Sprintf("%d/%s", l.Window.Limit, DurationText(l.Window.Length))
	case "algorithm":
		return string(l.Algorithm)
	case "quota":
		return QuotaText(l.Quota)
	case "timezone":
		return l.Zone.String()
	case "anchor_day":
		return strconv.Itoa(l.AnchorDay)
	case "accounting":
		return map[bool]string{true: "soft", false: "hard"}[l.Soft]
	case "overage":
		return strconv.FormatInt(l.Overage, 10)
	case "concurrency":
		return strconv.FormatInt(l.Concurrency, 10)
	case "lease":
		return DurationText(l.Lease)
	case "status":
		return strconv.Itoa(l.Status)
	case "mode":
		return map[bool]string{true: "shadow", false: "enforce"}[l.Shadow]
	case "sync":
		return map[bool]string{true: "leased", false: ""}[l.Leased]
	case "reserve":
		return fmt.Sprintf("{high: %d%%, normal: %d%%}", l.Reserve.High, l.Reserve.Normal)
	}
	return ""
}

// notes are what a limit does that its numbers do not say.
func notes(l *policies.Limit) []string {
	var out []string
	if l.Kind == policies.KindWindow && l.Algorithm == policies.AlgorithmSliding {
		out = append(out, "a burst across the edge of two windows can reach 2x")
	}
	if l.Wait > 0 {
		out = append(out, "holds a request for up to "+DurationText(l.Wait)+" instead of refusing it")
	}
	if l.Overage > 0 {
		out = append(out, "then "+strconv.FormatInt(l.Overage, 10)+" units of overage pass, counted apart")
	}
	if l.Shadow {
		out = append(out, "in shadow: counts and never refuses")
	}
	return out
}

// PerText is what a limit counts by, as people say it.
func PerText(per []policies.Dim) string {
	if len(per) == 1 && per[0].Kind == policies.DimGlobal {
		return "everybody together"
	}
	words := make([]string, len(per))
	for i, d := range per {
		words[i] = strings.TrimSpace(string(d.Kind) + " " + d.Name)
	}
	return strings.Join(words, " and ")
}

func dateText(d policies.Date) string {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}
