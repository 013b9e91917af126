package policies

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// micro is how many micro-units a unit has.
const micro = 1_000_000

// maxRate is the largest rate, in units for each period: its micro-units stay exact.
const maxRate = 1_000_000_000

var rateShape = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(r?/)([A-Za-z]+)$`)

// UnmarshalText reads a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	s := string(text)
	parts := rateShape.FindStringSubmatch(s)
	if parts == nil {
		return wrongf(ruleRate, "%s %s", show(s), rateHint(s))
	}
	number, sign := parts[1], parts[3]
	per := unitLength(sign)
	switch {
	case per < time.Second || sign == "w":
		return wrongf(ruleRate, "%s %s", show(s), rateUnitHint(number, sign))
	case number[0] == '0' && len(number) > 1 && number[1] != '.':
		return wrongf(ruleRate, "%s has a leading zero; want %s/%s", show(s), plain(number), sign)
	case len(number) > 20:
		return wrongf(ruleRate, "%s is too large or too fine; want up to %d and at most six decimals", show(s), maxRate)
	}
	units, _ := new(big.Rat).SetString(number)
	units.Mul(units, new(big.Rat).SetInt64(micro))
	switch {
	case units.Sign() == 0:
		return wrongf(ruleRate, "%s never lets anything pass; want more than 0, or an access rule with deny", show(s))
	case units.Cmp(new(big.Rat).SetInt64(maxRate*micro)) > 0:
		return wrongf(ruleRate, "%s is too large; want at most %d", show(s), maxRate)
	case !units.IsInt():
		return wrongf(ruleRate, "%s is too fine; want at most six decimals", show(s))
	}
	*r = Rate{units.Num().Int64(), per}
	return nil
}

var (
	rateSpaced = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(?:r|req|reqs|requests)?\s*(?:/|per)\s*([A-Za-z]+)$`)
	ratePacked = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(?:r|req)p([smhd])$`)
	rateTimes  = regexp.MustCompile(`^([0-9]+)r?/([0-9]+[a-z]+)$`)
)

// rateHint says what is odd about a text that is not a number, a slash and a unit.
func rateHint(s string) string {
	const want = "want a number and a unit, such as 100/s, 60/m, 10/h or 1000/d"
	number, _, slash := strings.Cut(s, "/")
	lower := strings.ToLower(number)
	if m := rateSpaced.FindStringSubmatch(s); m != nil {
		if unitLength(m[2]) == 0 && shortUnit(m[2]) != "" {
			return fmt.Sprintf("is not how a rate is written; want %s/%s", m[1], shortUnit(m[2]))
		}
		return fmt.Sprintf("is not how a rate is written; want %s/%s", m[1], m[2])
	}
	if m := ratePacked.FindStringSubmatch(s); m != nil {
		return fmt.Sprintf("is not how a rate is written; want %s/%s", m[1], m[2])
	}
	if rateTimes.MatchString(s) {
		return "has a length of its own: that is a window; want one unit (" + number + "/m), or the key window"
	}
	switch {
	case strings.HasPrefix(number, ".") && only(number[1:], digit):
		return "has no digit before its point; want 0" + number + "/…"
	case strings.HasPrefix(number, "-"):
		return "is negative; " + want
	case numberInf.MatchString(lower):
		return "is not finite; " + want
	case numberExponent.MatchString(lower) || numberBased.MatchString(lower) || strings.ContainsAny(number, "_,"):
		return "is not a plain decimal number; " + want
	case !slash && numberFraction.MatchString(s) || !slash && only(s, digit):
		return "does not say in which time; " + want
	case number == "unlimited":
		return "is no rate; leave the limit out where nothing shall be limited"
	}
	return "is no rate; " + want
}

// rateUnitHint says what is wrong with the unit of a rate.
func rateUnitHint(number, sign string) string {
	short := shortUnit(sign)
	switch {
	case sign == "M":
		return fmt.Sprintf("could mean a month or a minute; want %s/m for minutes, or quota: %s/month", number, number)
	case strings.HasPrefix(strings.ToLower(sign), "mo"):
		return fmt.Sprintf("is by the month, which is a quota; want quota: %s/month", number)
	case short == "w":
		return fmt.Sprintf("is by the week, which is a quota; want quota: %s/week", number)
	case short == "d":
		return fmt.Sprintf("is not how a rate is written; want %s/d, or for calendar days quota: %s/day", number, number)
	case short != "" && short != "ms":
		return fmt.Sprintf("is not how a rate is written; want %s/%s", number, short)
	}
	return "has no unit that we know; want /s, /m, /h or /d"
}

func (r Rate) String() string {
	if r.Per == 0 {
		return ""
	}
	number := strconv.FormatInt(r.Micro/micro, 10)
	if rest := r.Micro % micro; rest != 0 {
		number += "." + strings.TrimRight(fmt.Sprintf("%06d", rest), "0")
	}
	return number + "/" + strings.TrimPrefix(Duration(r.Per).String(), "1")
}

var windowShape = regexp.MustCompile(`^([0-9]+)/([0-9.]*[A-Za-z]+)$`)

// UnmarshalText reads a window.
func (w *Window) UnmarshalText(text []byte) error {
	const longest = 31 * 24 * time.Hour
	s := string(text)
	number, length, slash := strings.Cut(s, "/")
	if slash && unitLength(length) != 0 && only(number, digit) {
		return wrongf(ruleWindow, "%s does not say how long; want a length such as %s/1%s", show(s), number, length)
	}
	if !windowShape.MatchString(s) {
		return wrongf(ruleWindow, "%s is no window; want a number and a length, such as 30000/1m or 5/15m", show(s))
	}
	limit, err := whole(ruleWindow, number, maxCount)
	if err != nil {
		return err
	}
	var d Duration
	if err := d.UnmarshalText([]byte(length)); err != nil {
		return wrongf(ruleWindow, "the length %s", err.Error())
	}
	switch n := time.Duration(d); {
	case n < time.Second || n > longest:
		return wrongf(ruleWindow, "%s is a length that windows cannot have; want 1s to 31d", show(length))
	case n%time.Second != 0:
		return wrongf(ruleWindow, "%s is no whole number of seconds; want a rounder length", show(length))
	}
	*w = Window{limit, time.Duration(d)}
	return nil
}

func (w Window) String() string {
	if w.Length == 0 {
		return ""
	}
	return strconv.FormatInt(w.Limit, 10) + "/" + Duration(w.Length).String()
}

// UnmarshalText reads a quota.
func (q *Quota) UnmarshalText(text []byte) error {
	const want = "want a number or the word unlimited, and hour, day, week or month, such as 500/day"
	s := string(text)
	number, period, slash := strings.Cut(s, "/")
	switch {
	case strings.HasPrefix(s, "-"):
		return wrongf(ruleQuota, "%s: a negative number is neither nothing nor everything; want 0/month for nothing, unlimited/month for no end", show(s))
	case !slash:
		return wrongf(ruleQuota, "%s does not say in which period; %s", show(s), want)
	}
	out := Quota{Unlimited: number == "unlimited"}
	if !out.Unlimited {
		n, err := whole(ruleQuota, number, maxCount)
		if err != nil {
			return err
		}
		out.Limit = n
	}
	if err := out.Period.UnmarshalText([]byte(period)); err != nil {
		return wrongf(ruleQuota, "%s is no period of the calendar%s; want %s", show(period), periodHint(period),
			number+"/hour, /day, /week or /month")
	}
	*q = out
	return nil
}

// periodHint names the period that was written in another way.
func periodHint(word string) string {
	for sign, period := range map[string]Period{"h": PeriodHour, "d": PeriodDay, "w": PeriodWeek} {
		if shortUnit(word) == sign {
			return "; did you mean " + string(period) + "?"
		}
	}
	if strings.HasPrefix(strings.ToLower(word), "mo") || word == "M" {
		return "; did you mean month?"
	}
	return ""
}

func (q Quota) String() string {
	switch {
	case q.Period == "":
		return ""
	case q.Unlimited:
		return "unlimited/" + string(q.Period)
	}
	return strconv.FormatInt(q.Limit, 10) + "/" + string(q.Period)
}
