package policies

// quota checks a quota.
func (f *findings) quota(path string, all, own *LimitSpec) {
	f.anchor(path, all, own)
	if all.Quota.Unlimited {
		f.without(path, "the quota has no end", key{"overage", own.Overage != nil}, key{"notify", own.Notify != nil})
	}
	for i := 1; i < len(own.Notify); i++ {
		if own.Notify[i] <= own.Notify[i-1] {
			f.errorf(elem(field(path, "notify"), i), ruleNotify, "%s does not come after %s; want rising percentages, each once", own.Notify[i], own.Notify[i-1])
			break
		}
	}
}

// anchor wants a day that the period has.
func (f *findings) anchor(path string, all, own *LimitSpec) {
	if all.AnchorDay == nil || own.AnchorDay == nil && own.Quota == nil {
		return
	}
	day, at := *all.AnchorDay, field(path, "anchor_day")
	switch all.Quota.Period {
	case PeriodWeek:
		if day < 1 || day > 7 {
			f.errorf(at, ruleAnchor, "a week has no day %d; want 1 (Monday) to 7", day)
		}
	case PeriodMonth:
		if day < 1 || day > 31 {
			f.errorf(at, ruleAnchor, "no month has a day %d; want 1 to 31, where 31 is the last day of each", day)
		}
	default:
		f.errorf(at, ruleAnchor, "a quota by the %s begins on no certain day; want anchor_day left out, or a quota by the week or month", all.Quota.Period)
	}
}
