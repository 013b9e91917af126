package policies

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// unit is a unit of time as the language writes it.
type unit struct {
	sign   string
	length time.Duration
}

// units are the units of durations, the longest first. A day is 24 hours.
func units() []unit {
	const day = 24 * time.Hour
	return []unit{{"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
}

// unitLength is the length of a unit, 0 when it is none.
func unitLength(sign string) time.Duration {
	for _, u := range units() {
		if u.sign == sign {
			return u.length
		}
	}
	return 0
}

// maxDuration is the longest duration that the language has a use for.
const maxDuration = 366 * 24 * time.Hour

var durationShape = regexp.MustCompile(`^([0-9]+(?:\.[0-9]{1,9})?)\s*([A-Za-zµ]*)$`)

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	parts := durationShape.FindStringSubmatch(s)
	if parts == nil {
		return wrongf(ruleDuration, "%s %s", show(s), durationHint(s))
	}
	number, sign := parts[1], parts[2]
	switch {
	case sign == "" && strings.Trim(number, "0.") == "":
		return wrongf(ruleDuration, "%s is no time at all; want more than zero, or leave the key out", show(s))
	case strings.ContainsAny(s, " \t\n"):
		return wrongf(ruleDuration, "%s has a space; want %s%s", show(s), number, sign)
	case unitLength(sign) == 0:
		return wrongf(ruleDuration, "%s %s", show(s), unitHint(number, sign))
	case number[0] == '0' && len(number) > 1 && number[1] != '.':
		return wrongf(ruleDuration, "%s has a leading zero; want %s%s", show(s), plain(number), sign)
	}
	length, _ := new(big.Rat).SetString(number)
	length.Mul(length, new(big.Rat).SetInt64(int64(unitLength(sign))))
	switch ms := new(big.Rat).Quo(length, new(big.Rat).SetInt64(int64(time.Millisecond))); {
	case length.Sign() == 0:
		return wrongf(ruleDuration, "%s is no time at all; want more than zero, or leave the key out", show(s))
	case length.Cmp(new(big.Rat).SetInt64(int64(maxDuration))) > 0:
		return wrongf(ruleDuration, "%s is too long; want at most 366d", show(s))
	case !ms.IsInt():
		return wrongf(ruleDuration, "%s is no whole number of milliseconds; want a rounder one", show(s))
	}
	*d = Duration(length.Num().Int64())
	return nil
}

// durationHint says what is odd about a text that is not a number and a unit.
func durationHint(s string) string {
	switch _, err := time.ParseDuration(s); {
	case strings.HasPrefix(s, "-"):
		return "is negative; want more than zero, such as 30s"
	case numberInf.MatchString(strings.ToLower(s)):
		return "is not finite; want a number and a unit, such as 30s"
	case err == nil:
		return "has several units; want one number and one unit, such as 90m for 1h30m"
	}
	return "is no duration; want a number and a unit of ms, s, m, h, d or w, such as 30s"
}

// unitHint says what is wrong with a unit.
func unitHint(number, sign string) string {
	switch strings.ToLower(sign) {
	case "":
		return fmt.Sprintf("has no unit; want %ss, %sm or %sh, whichever is meant", number, number, number)
	case "mo", "mon", "month", "months":
		return "is a month, which has no fixed length; want days (30d), or a quota by the month (500/month)"
	case "m":
		return fmt.Sprintf("could be a month or a minute; want %sm for minutes, or a quota by the month (500/month)", number)
	case "us", "µs", "ns":
		return "is finer than we count; want ms, s, m, h, d or w"
	}
	if near := shortUnit(sign); near != "" {
		return fmt.Sprintf("spells its unit out; want %s%s", number, near)
	}
	return "has no unit that we know; want ms, s, m, h, d or w"
}

// shortUnit is the sign of a unit that was written in another way.
func shortUnit(word string) string {
	switch strings.TrimSuffix(strings.ToLower(word), "s") {
	case "", "sec", "second":
		return "s"
	case "min", "minute":
		return "m"
	case "h", "hr", "hour":
		return "h"
	case "d", "day":
		return "d"
	case "w", "wk", "week":
		return "w"
	case "m", "msec", "milli", "millisecond":
		return "ms"
	}
	return ""
}

func (d Duration) String() string {
	for _, u := range units() {
		if n := time.Duration(d); n%u.length == 0 {
			return strconv.FormatInt(int64(n/u.length), 10) + u.sign
		}
	}
	return time.Duration(d).String()
}

// UnmarshalText reads a date.
func (d *Date) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err != nil || t.Year() < 1970 {
		return wrongf(ruleDate, "%s is no day of the calendar; want year, month and day, such as 2026-12-31", show(string(text)))
	}
	*d = Date{t.Year(), t.Month(), t.Day()}
	return nil
}

func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }
