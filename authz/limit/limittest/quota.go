package limittest

import (
	"time"

	"sluice/authz/limit"
)

// daily is a quota of its own name with the tag "t": days in UTC.
func daily(name string, most, cost int64) limit.Op {
	return limit.Op{
		Tag: []byte("t"), Key: []byte("sluice:{t}:" + name), Kind: limit.Quota, Max: most, Cost: cost,
		Calendar: limit.NewCalendar(limit.Day, time.UTC, 1),
	}
}

const noon = 12 * time.Hour // to midnight, and from it

func quotaCounts(b *bench) {
	o := daily("ten", 10, 1)
	today := stamp(-noon)
	for i := range int64(10) {
		b.want(-1, []limit.State{{Fits: true, Remaining: 9 - i, Used: 1 + i, Reset: noon, Stamp: today}}, o)
	}
	b.want(0, []limit.State{{Used: 10, Reset: noon, Wait: noon, Stamp: today}}, o)
	o.Cost = 11
	b.want(0, []limit.State{{Used: 10, Reset: noon, Wait: limit.Never, Stamp: today}}, o)

	none := daily("none", 0, 1)
	b.want(0, []limit.State{{Reset: noon, Wait: limit.Never, Stamp: today}}, none)
	all := daily("all", limit.Unlimited, 1_000_000)
	b.want(-1, []limit.State{{Fits: true, Remaining: limit.Unlimited, Used: 1_000_000, Reset: noon, Stamp: today}}, all)
	all.Cost = 1
	b.want(-1, []limit.State{{Fits: true, Remaining: limit.Unlimited, Used: 1_000_001, Reset: noon, Stamp: today}}, all)
	// A plan that has a number again finds what was used.
	all.Max = 500
	b.want(0, []limit.State{{Used: 1_000_001, Reset: noon, Wait: noon, Stamp: today}}, all)
}

func quotaPlanChanges(b *bench) {
	o := daily("monthly", 1000, 900)
	today := stamp(-noon)
	b.fits(o)
	o.Max, o.Cost = 5000, 1
	if s := b.peek(o); s.Remaining != 4100 {
		b.Errorf("after the upgrade: %+v", s)
	}
	o.Max = 500
	b.want(0, []limit.State{{Used: 900, Reset: noon, Wait: noon, Stamp: today}}, o)
}

func quotaPeriods(b *bench) {
	o := daily("periods", 2, 2)
	b.fits(o)
	b.at(noon - time.Microsecond)
	b.want(0, []limit.State{{Used: 2, Reset: time.Microsecond, Wait: time.Microsecond, Stamp: stamp(-noon)}}, o)
	b.at(noon)
	b.want(-1, []limit.State{{Fits: true, Used: 2, Reset: 24 * time.Hour, Stamp: stamp(noon)}}, o)
	// Back into the day before: the new one has begun, and gives nothing twice.
	b.at(noon - time.Minute)
	b.want(0, []limit.State{{Used: 2, Reset: 24*time.Hour + time.Minute, Wait: 24*time.Hour + time.Minute, Stamp: stamp(noon)}}, o)

	// Noon in UTC is eight in the evening in Shanghai: four hours are left.
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		b.Fatal(err)
	}
	b.at(0)
	o = daily("shanghai", 5, 1)
	o.Calendar = limit.NewCalendar(limit.Day, zone, 1)
	b.want(-1, []limit.State{{Fits: true, Remaining: 4, Used: 1, Reset: 4 * time.Hour, Stamp: stamp(-20 * time.Hour)}}, o)
}

// Quota and grants, then overage, then no more; one request may straddle, and a
// unit of overage stays one.
func quotaOverage(b *bench) {
	o := daily("overage", 10, 8)
	o.Overage = 5
	state := func(s limit.State) []limit.State {
		s.Reset, s.Stamp = noon, stamp(-noon)
		return []limit.State{s}
	}
	b.want(-1, state(limit.State{Fits: true, Remaining: 2, Used: 8}), o)
	o.Cost = 4
	b.want(-1, state(limit.State{Fits: true, Used: 12, Over: 2}), o)
	b.want(0, state(limit.State{Used: 12, Over: 2, Wait: noon}), o)
	o.Cost = 16
	b.want(0, state(limit.State{Used: 12, Over: 2, Wait: limit.Never}), o)
	// A grant: it is used before more overage is.
	o.Max, o.Cost = 13, 4
	b.want(-1, state(limit.State{Fits: true, Used: 16, Over: 3}), o)
	// It ends. What was used inside stays inside, and a request inside asks for no
	// overage.
	o.Max, o.Cost = 10, 3
	b.want(0, state(limit.State{Used: 16, Over: 3, Wait: noon}), o)
	o.Cost = 2
	b.want(-1, state(limit.State{Fits: true, Used: 18, Over: 5}), o)
	o.Max, o.Overage, o.Cost = 20, 0, 7
	b.want(-1, state(limit.State{Fits: true, Used: 25, Over: 5}), o)
}

// A request that comes again, here or by another instance, is charged once.
func quotaKnowsIDs(b *bench) {
	o := daily("ids", 10, 4)
	o.ID = []byte("request 1")
	state := limit.State{Fits: true, Remaining: 6, Used: 4, Reset: noon, Stamp: stamp(-noon)}
	for range 3 {
		b.want(-1, []limit.State{state}, o)
	}
	o.ID = []byte("request 2")
	b.fits(o)
	// Also when there would be no room for it, and beside a limit that refuses.
	full := op("full", perSecond(1), 0, 1)
	b.want(1, []limit.State{{Fits: true, Remaining: 2, Used: 8, Reset: noon, Stamp: stamp(-noon)}, {Wait: limit.Never}}, o, full)
	o.ID = []byte("request 3")
	if b.fits(o) {
		b.Error("a third request of 4 fitted into 10")
	}
	o.Cost = 1
	b.fits(o)
	b.clock.Advance(limit.Remember)
	b.fits(o)
	if s := b.peek(o); s.Used != 10 {
		b.Errorf("a minute later an id is charged again: %+v, want 10 used", s)
	}
	// One that is over midnight says under which day it was counted.
	b.at(noon - time.Second)
	o.Max, o.ID = 100, []byte("late")
	b.fits(o)
	b.at(noon + time.Second)
	if _, s := b.take(o); s[0].Used != 0 || s[0].Stamp != stamp(-noon) {
		b.Errorf("a repetition after midnight: %+v", s[0])
	}
}
