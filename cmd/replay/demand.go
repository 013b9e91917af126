package replay

import (
	"math/bits"
	"strconv"
)

const (
	micros = int64(1_000_000) // of a second
	minute = 60 * micros
	tens   = 10 // seconds
	day    = 24 * 60 * minute
)

// group is who is counted together in tables: a tenant (its subject), or all
// clients of a plan that belong to no tenant (below 0).
type group int32

// What stands for every route in a cellKey: of a tenant or a plan, and of an
// address, whatever its plan.
const (
	allRoutes  = -1
	everything = -2
)

// noPlan is the group of all clients without a tenant.
const noPlan group = -1

// cellKey names a cell of routes by groups.
type cellKey struct {
	route int32
	group group
}

// cell is what a group did on a route.
type cell struct {
	requests, denied int64
	days             days
}

// demand watches how many units each client and tenant takes in each minute, on
// each route: what limits would have to allow. It keeps the clients of one minute,
// and distributions for each cell.
type demand struct {
	minute int64
	index  map[use]int32
	uses   []usage
}

// use is a subject on a route.
type use struct{ route, subject int32 }

// usage is what it took in this minute.
type usage struct {
	cell   *cell
	units  int64
	second int64 // the last one with units
	last   [tens]int64
	inTen  int64 // in the last ten seconds
	peak   int64 // of inTen
}

// take counts units in the ten seconds that end with this one.
func (x *usage) take(second, units int64) {
	second = max(second, x.second)
	for passed := min(second-x.second, tens); passed > 0; passed-- {
		i := (second - passed + 1) % tens
		x.inTen -= x.last[i]
		x.last[i] = 0
	}
	x.second = second
	x.last[second%tens] += units
	x.units += units
	x.inTen += units
	x.peak = max(x.peak, x.inTen)
}

// cell counts the request in its cells, and its units in the minute. What an
// address does in all is counted in requests, as the edge does.
func (t *tally) cell(f *fate, at int64, s int32) {
	g := t.group(f, s)
	t.count(cellKey{int32(f.route), g}, f, at, s, f.cost)
	if g != noPlan {
		t.count(cellKey{allRoutes, g}, f, at, s, f.cost)
	}
	if g < 0 {
		t.count(cellKey{everything, noPlan}, f, at, s, 1)
	}
}

func (t *tally) count(key cellKey, f *fate, at int64, s int32, units int64) {
	c := t.cells[key]
	if c == nil {
		if len(t.cells) >= maxCells {
			return
		}
		c = &cell{}
		t.cells[key] = c
	}
	c.requests++
	if f.denied {
		c.denied++
	}
	t.demand.add(c, use{key.route, s}, at, units)
}

// group is the tenant, or the clients of the plan. Where the edge alone decides
// nobody's plan is looked at: then it is the one that the client had before.
func (t *tally) group(f *fate, s int32) group {
	if f.tenant != "" {
		return group(s)
	}
	if f.plan == "" {
		return t.groupOfPlan(t.subjects[s].plan)
	}
	return t.groupOfPlan(f.plan)
}

// groupOfPlan is noPlan for none, below that for clients of a plan.
func (t *tally) groupOfPlan(plan string) group {
	for i := range t.policy.Plans {
		if t.policy.Plans[i].Name == plan {
			return group(-2 - i)
		}
	}
	return noPlan
}

// groupName is a group for people.
func (t *tally) groupName(g group) string {
	switch {
	case g == noPlan:
		return "clients"
	case g < 0:
		return "clients, plan " + t.policy.Plans[-2-int(g)].Name
	case g == 0:
		return "others"
	}
	return t.subjects[g].tenant
}

// add counts units at a time; a time before this minute is taken for now.
func (d *demand) add(c *cell, u use, at, units int64) {
	if m := at / minute; m > d.minute || d.index == nil {
		d.flush()
		d.minute = m
	}
	i, known := d.index[u]
	if !known {
		i = int32(len(d.uses))
		d.index[u] = i
		d.uses = append(d.uses, usage{cell: c})
	}
	d.uses[i].take(max(at/micros, 0), units)
}

// flush ends the minute.
func (d *demand) flush() {
	today := d.minute * minute / day
	for i := range d.uses {
		x := &d.uses[i]
		x.cell.days.add(today, x.units, x.peak)
	}
	d.uses = d.uses[:0]
	if d.index == nil {
		d.index = map[use]int32{}
	}
	clear(d.index)
}

// days are the distributions of a cell, one day at a time: the busiest one stays.
type days struct {
	today         int64
	minutes, tens histogram
	busiest       Demand
}

// Demand is what one client or tenant took on a route in its minutes with
// requests, on the busiest day: units per minute, and within ten seconds of it.
type Demand struct {
	Minutes    int64 `json:"minutes"` // with requests
	Median     int64 `json:"median"`
	P99        int64 `json:"p99"`
	P999       int64 `json:"p999"`
	Max        int64 `json:"max"`
	TenSeconds int64 `json:"ten_seconds_p999"`
}

func (d *days) add(today, units, peak int64) {
	if today != d.today {
		d.roll()
		d.today = today
	}
	d.minutes.add(units)
	d.tens.add(peak)
}

// roll ends a day.
func (d *days) roll() {
	if d.minutes.count == 0 {
		return
	}
	x := Demand{
		Minutes: d.minutes.count, Median: d.minutes.at(500), P99: d.minutes.at(990), P999: d.minutes.at(999),
		Max: d.minutes.max, TenSeconds: d.tens.at(999),
	}
	if x.P999 > d.busiest.P999 {
		d.busiest = x
	}
	d.minutes, d.tens = histogram{}, histogram{}
}

// histogram counts values from 1: exactly below 16, in steps of an eighth above.
type histogram struct {
	count, max int64
	slots      []uint32
}

func (h *histogram) add(v int64) {
	i := slotOf(v)
	for len(h.slots) <= i {
		h.slots = append(h.slots, 0)
	}
	h.slots[i]++
	h.count++
	h.max = max(h.max, v)
}

func slotOf(v int64) int {
	if v < 16 {
		return int(max(v, 0))
	}
	log := bits.Len64(uint64(v)) - 1
	return 16 + (log-4)*8 + int(v>>(log-3)&7)
}

// top is the largest value of a slot.
func top(slot int) int64 {
	if slot < 16 {
		return int64(slot)
	}
	log := (slot-16)/8 + 4
	return (int64(8+(slot-16)%8)+1)<<(log-3) - 1
}

// at is the value that so many of a thousand do not exceed.
func (h *histogram) at(perMille int64) int64 {
	rank := (h.count*perMille + 999) / 1000
	seen := int64(0)
	for i, n := range h.slots {
		if seen += int64(n); seen >= rank && n > 0 {
			return min(top(i), h.max)
		}
	}
	return h.max
}

// Suggestion is limits that would have let a group's demand pass on a route.
type Suggestion struct {
	Route    string `json:"route"` // empty: all routes together
	Who      string `json:"who"`
	Each     bool   `json:"each_client"` // the numbers are those of one client, not of all together
	Requests int64  `json:"requests"`
	Demand   Demand `json:"demand"`
	Rate     string `json:"rate"`
	Burst    int64  `json:"burst"`
}

// headRoom is what is put on top of a peak, in percent.
const headRoom = 20

// fewMinutes is how many minutes with requests a suggestion needs at least.
const fewMinutes = 10

// suggest makes a limit of a demand: the busiest day's p99.9 of units a minute as
// the rate, and what came within ten seconds as the burst, each with head room.
// Whoever spreads a minute's units evenly over 10 seconds, or over more, then fits.
func (d Demand) suggest() (rate string, burst int64) {
	perMinute := withRoom(d.P999)
	if perMinute >= 60 {
		perSecond := roundUp((perMinute + 59) / 60)
		return strconv.FormatInt(perSecond, 10) + "/s", max(roundUp(withRoom(d.TenSeconds)), perSecond)
	}
	return strconv.FormatInt(roundUp(perMinute), 10) + "/m", max(roundUp(withRoom(d.TenSeconds)), 1)
}

func withRoom(n int64) int64 { return n + (n*headRoom+99)/100 }

// roundUp rounds to two digits.
func roundUp(n int64) int64 {
	step := int64(1)
	for n/step >= 100 {
		step *= 10
	}
	return (n + step - 1) / step * step
}
