package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestCalendarDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone string
		period     Period
		anchor     int
		at         string // UTC, as all
		want       [4]string
	}{
		{"a day in UTC", "", Day, 1, "2026-02-03 12:00", [4]string{"2026-02-02 00:00", "2026-02-03 00:00", "2026-02-04 00:00", "2026-02-05 00:00"}},
		{"C098 a day in Shanghai", "Asia/Shanghai", Day, 1, "2026-02-03 16:00", [4]string{"2026-02-02 16:00", "2026-02-03 16:00", "2026-02-04 16:00", "2026-02-05 16:00"}},
		{"a day of 23 hours", "Europe/Berlin", Day, 1, "2026-03-29 12:00", [4]string{"2026-03-27 23:00", "2026-03-28 23:00", "2026-03-29 22:00", "2026-03-30 22:00"}},
		{"a day of 25 hours", "Europe/Berlin", Day, 1, "2026-10-25 12:00", [4]string{"2026-10-23 22:00", "2026-10-24 22:00", "2026-10-25 23:00", "2026-10-26 23:00"}},
		{"UTC+14", "Pacific/Kiritimati", Day, 1, "2026-02-03 10:00", [4]string{"2026-02-02 10:00", "2026-02-03 10:00", "2026-02-04 10:00", "2026-02-05 10:00"}},
		{"UTC-12", "Etc/GMT+12", Day, 1, "2026-02-03 11:59", [4]string{"2026-02-01 12:00", "2026-02-02 12:00", "2026-02-03 12:00", "2026-02-04 12:00"}},
		{"a day without midnight", "America/Santiago", Day, 1, "2026-09-06 12:00", [4]string{"2026-09-05 04:00", "2026-09-06 04:00", "2026-09-07 03:00", "2026-09-08 03:00"}},
		{"a day that was left out", "Pacific/Apia", Day, 1, "2011-12-30 09:00", [4]string{"2011-12-28 10:00", "2011-12-29 10:00", "2011-12-30 10:00", "2011-12-31 10:00"}},
		{"a week", "", Week, 1, "2026-02-03 12:00", [4]string{"2026-01-26 00:00", "2026-02-02 00:00", "2026-02-09 00:00", "2026-02-16 00:00"}},
		{"a week from Sunday", "", Week, 7, "2026-02-03 12:00", [4]string{"2026-01-25 00:00", "2026-02-01 00:00", "2026-02-08 00:00", "2026-02-15 00:00"}},
		{"a month", "", Month, 1, "2026-02-03 12:00", [4]string{"2026-01-01 00:00", "2026-02-01 00:00", "2026-03-01 00:00", "2026-04-01 00:00"}},
		{"from the 31st", "", Month, 31, "2026-02-28 00:00", [4]string{"2026-01-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00", "2026-04-30 00:00"}},
		{"from the 30th of a leap year", "", Month, 30, "2028-02-29 00:00", [4]string{"2028-01-30 00:00", "2028-02-29 00:00", "2028-03-30 00:00", "2028-04-30 00:00"}},
		{"from the 29th", "", Month, 29, "2026-02-27 23:59", [4]string{"2025-12-29 00:00", "2026-01-29 00:00", "2026-02-28 00:00", "2026-03-29 00:00"}},
		{"over the year", "", Month, 15, "2026-01-14 23:59", [4]string{"2025-11-15 00:00", "2025-12-15 00:00", "2026-01-15 00:00", "2026-02-15 00:00"}},
		{"an hour in India", "Asia/Kolkata", Hour, 1, "2026-02-03 12:29", [4]string{"2026-02-03 10:30", "2026-02-03 11:30", "2026-02-03 12:30", "2026-02-03 13:30"}},
		{"the hour that comes twice", "Europe/Berlin", Hour, 1, "2026-10-25 01:30", [4]string{"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 03:00"}},
		{"half an hour comes twice", "Australia/Lord_Howe", Hour, 1, "2026-04-04 15:10", [4]string{"2026-04-04 14:00", "2026-04-04 15:00", "2026-04-04 15:30", "2026-04-04 16:30"}},
	} {
		at, err := time.Parse("2006-01-02 15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		b := NewCalendar(c.period, mustZone(t, c.zone), c.anchor).Bounds(at)
		var got [4]string
		for i, n := range b {
			got[i] = time.UnixMicro(n).UTC().Format("2006-01-02 15:04")
		}
		if got != c.want || !b.Start().Equal(time.UnixMicro(b[1])) || !b.End().Equal(time.UnixMicro(b[2])) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A calendar as people keep one: they look at the clock every minute, and when it
// shows a date that no period had before, or a full hour, they begin another.
func TestCalendarAgainstClocksOnTheWall(t *testing.T) {
	t.Parallel()
	for _, zone := range []struct {
		name string
		year int
	}{
		{"UTC", 2024}, {"Europe/Berlin", 2026}, {"America/New_York", 2028}, {"Pacific/Kiritimati", 2026}, {"Etc/GMT+12", 2026},
		{"Asia/Kathmandu", 2026}, {"Australia/Lord_Howe", 2026}, {"America/Santiago", 2026}, {"America/Havana", 2026},
		{"Asia/Beirut", 2026}, {"Pacific/Apia", 2011}, {"America/St_Johns", 2010}, {"Africa/Cairo", 2024}, {"America/Sao_Paulo", 2018},
	} {
		t.Run(zone.name, func(t *testing.T) {
			t.Parallel()
			location := mustZone(t, zone.name)
			wall := watch(location, zone.year)
			for _, c := range []struct {
				period Period
				anchor int
			}{{Hour, 1}, {Day, 1}, {Week, 1}, {Week, 4}, {Month, 1}, {Month, 15}, {Month, 29}, {Month, 31}} {
				checkCalendar(t, NewCalendar(c.period, location, c.anchor), wall.bounds(c.period, c.anchor))
			}
		})
	}
}

// wallClock is what was seen in a year: the full hours, and the first minute of
// every date that had not been seen before.
type wallClock struct {
	hours, days []int64 // microseconds
	dates       []string
}

func watch(zone *time.Location, year int) (w wallClock) {
	latest, offset := 0, 0
	for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == year; at = at.Add(time.Minute) {
		local := at.In(zone)
		_, now := local.Zone()
		if y, m, d := local.Date(); y*10000+int(m)*100+d > latest {
			latest = y*10000 + int(m)*100 + d
			w.days = append(w.days, at.UnixMicro())
			w.dates = append(w.dates, local.Format("2006-01-02"))
		}
		if local.Minute() == 0 || (now-offset)%3600 != 0 {
			w.hours = append(w.hours, at.UnixMicro())
		}
		offset = now
	}
	return w
}

// bounds are the beginnings of periods. The first minute of the year began none.
func (w *wallClock) bounds(period Period, anchor int) (bounds []int64) {
	if period == Hour {
		return w.hours[1:]
	}
	for i := 1; i < len(w.days); i++ {
		// A day may have been left out: it may have been the first.
		if firstOf(period, anchor, w.dates[i-1], w.dates[i]) {
			bounds = append(bounds, w.days[i])
		}
	}
	return bounds
}

// firstOf tells whether a period begins on one of the days after one date up to
// another.
func firstOf(period Period, anchor int, after, until string) bool {
	for day := 1; ; day++ {
		d, _ := time.Parse("2006-01-02", after)
		d = d.AddDate(0, 0, day)
		if d.Format("2006-01-02") > until {
			return false
		}
		tomorrow := d.AddDate(0, 0, 1)
		switch {
		case period == Day,
			period == Week && d.Weekday() == time.Weekday(anchor%7),
			period == Month && (d.Day() == anchor || (d.Day() < anchor && tomorrow.Day() == 1)):
			return true
		}
	}
}

func checkCalendar(t *testing.T, c *Calendar, bounds []int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		i := 1 + rng.IntN(len(bounds)-3)
		at := bounds[i] + rng.Int64N(bounds[i+1]-bounds[i])
		switch rng.IntN(4) {
		case 0:
			at = bounds[i]
		case 1:
			at = bounds[i+1] - 1
		}
		if got := c.Bounds(time.UnixMicro(at)); !slices.Equal(got[:], bounds[i-1:i+3]) {
			t.Fatalf("period %d, anchor %d, at %s: %s, want %s", c.period, c.anchor, show(at), show(got[:]...), show(bounds[i-1:i+3]...))
		}
	}
}

func show(micros ...int64) (s string) {
	for _, n := range micros {
		s += fmt.Sprint(time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.999999 "))
	}
	return s
}

func TestCalendarRefuses(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no zone":   func() { NewCalendar(Day, nil, 1) },
		"no period": func() { NewCalendar(Month+1, time.UTC, 1) },
		"day 0":     func() { NewCalendar(Month, time.UTC, 0) },
		"day 32":    func() { NewCalendar(Month, time.UTC, 32) },
		"weekday 0": func() { NewCalendar(Week, time.UTC, 0) },
		"weekday 8": func() { NewCalendar(Week, time.UTC, 8) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// The machine's own zone means nothing (C098).
func TestCalendarIgnoresTheMachine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 23, 30, 0, 0, time.UTC)
	c := NewCalendar(Day, time.UTC, 1)
	want := c.Bounds(at)
	if got := c.Bounds(at.In(time.FixedZone("", 5*3600))); got != want {
		t.Errorf("the same moment in another zone: %s, want %s", show(got[:]...), show(want[:]...))
	}
}
