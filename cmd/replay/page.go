package replay

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"sluice/templates"
)

// pageRows is how many bars a chart of names has.
const pageRows = 12

// WritePage writes the report as one page of HTML with charts, which asks nobody
// for anything.
func (r *Report) WritePage(w io.Writer) error {
	t, err := template.New("replay.html.tmpl").Funcs(template.FuncMap{"num": thousands, "clock": clock}).
		ParseFS(templates.FS, "pages/replay.html.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, newPage(r))
}

// page is what the template shows.
type page struct {
	Report    *Report
	Title     string
	Span      string
	Tiles     []tile
	Before    *before
	Timeline  *timelineChart
	Offenders *offenderChart
	Heat      *heatChart
	Unused    []named
	Notes     []string
	HeadRoom  int
}

// tile is one number; Mood is good, bad or nothing.
type tile struct{ Number, What, Mood string }

// named is a kind of rules with the names of some.
type named struct{ What, Names string }

// rowBar is a bar beside a name. Width is in percent.
type rowBar struct {
	Label, What, Class, Number string
	Width                      float64
}

func newPage(r *Report) *page {
	p := &page{Report: r, Title: r.title(), Span: "No request was replayed.", Notes: r.noteLines(), HeadRoom: headRoom}
	for _, l := range r.Unused.lists() {
		p.Unused = append(p.Unused, named{l.what, strings.Join(l.names, ", ")})
	}
	v := &r.Verdicts
	if v.Requests == 0 {
		return p
	}
	p.Span = fmt.Sprintf("%s to %s UTC, %s of %s.", clock(r.Log.From), clock(r.Log.To), plural(v.Requests, "request"), subjects(v.Subjects))
	denied := v.Edge + v.Service
	mood := "good"
	if denied > 0 {
		mood = "bad"
	}
	p.Tiles = []tile{
		{strings.TrimSpace(share(v.Passed, v.Requests)), thousands(v.Passed) + " pass", ""},
		{strings.TrimSpace(share(denied, v.Requests)), thousands(denied) + " are denied", mood},
		{thousands(v.Edge), "denied by the edge", ""},
		{thousands(v.Service), "denied by the service", ""},
		{thousands(v.Denied), "clients and tenants denied", ""},
	}
	if c := r.Changes; c != nil {
		p.Tiles = append(p.Tiles, tile{thousands(c.NewlyDenied), "newly denied", ""}, tile{thousands(c.NoLonger), "no longer denied", ""})
		p.Before = newBefore(c)
	}
	p.Timeline = newTimelineChart(&r.Timeline)
	p.Offenders = newOffenderChart(r.Offenders)
	p.Heat = newHeatChart(&r.Heat)
	return p
}

// before is what another policy did, as bars.
type before struct {
	Rows []rowBar
	Who  []ChangedWhom
}

func newBefore(c *Changes) *before {
	b := &before{Who: c.Who}
	most := int64(1)
	for _, list := range [][]Denial{c.Newly, c.NoLongerList} {
		for i := range list {
			most = max(most, list[i].Requests)
		}
	}
	add := func(list []Denial, class, what string) {
		for i := range list[:min(len(list), pageRows)] {
			d := &list[i]
			b.Rows = append(b.Rows, rowBar{d.Label(), what, class, thousands(d.Requests), percent(d.Requests, most)})
		}
	}
	add(c.Newly, "service", "newly denied")
	add(c.NoLongerList, "fine", "no longer denied")
	return b
}

// percent is at least a sliver, so that what is there can be seen.
func percent(n, of int64) float64 {
	return max(0.5, float64(n*1000/of)/10)
}

// timelineChart is bars of denials: x is a bucket's number, y goes down from 0 to 100.
type timelineChart struct {
	Count                      int
	Most, Step, From, To, Desc string
	Bars                       []timeBar
	Rows                       []timeRow
}

type timeBar struct {
	Title                          string
	X                              int
	Edge, EdgeY, Service, ServiceY float64
}

type timeRow struct {
	From string
	Bucket
}

func newTimelineChart(t *Timeline) *timelineChart {
	most, at := int64(0), 0
	for i, b := range t.Buckets {
		if b.Edge+b.Service > most {
			most, at = b.Edge+b.Service, i
		}
	}
	if most == 0 {
		return nil
	}
	when := func(i int) string { return clock(t.From.Add(time.Duration(int64(i)*t.Step) * time.Second)) }
	c := &timelineChart{
		Count: len(t.Buckets), Most: thousands(most), Step: span64(t.Step), From: when(0), To: when(len(t.Buckets)),
		Desc: fmt.Sprintf("From %s to %s UTC, most at %s: %s.", when(0), when(len(t.Buckets)), when(at), plural(most, "request")),
	}
	for i, b := range t.Buckets {
		c.Rows = append(c.Rows, timeRow{when(i), b})
		if b.Edge+b.Service == 0 {
			continue
		}
		edge, service := height(b.Edge, most), height(b.Service, most)
		c.Bars = append(c.Bars, timeBar{
			Title: fmt.Sprintf("%s: %s denied by the edge, %s by the service, of %s", when(i), thousands(b.Edge), thousands(b.Service), thousands(b.Requests)),
			X:     i, Service: service, ServiceY: 100 - service, Edge: edge, EdgeY: 100 - service - edge,
		})
	}
	return c
}

// height leaves a little air above the tallest bar.
func height(n, most int64) float64 { return float64(n*9400/most) / 100 }

// offenderChart is bars of those who are denied most, and all of them for the table.
type offenderChart struct {
	Rows []rowBar
	All  []Offender
}

func newOffenderChart(list []Offender) *offenderChart {
	if len(list) == 0 {
		return nil
	}
	c := &offenderChart{All: list}
	for _, o := range list[:min(len(list), pageRows)] {
		c.Rows = append(c.Rows, rowBar{Label: name(o.Who, o.Tenant), Number: thousands(o.Denied), Width: percent(o.Denied, list[0].Denied)})
	}
	return c
}

// The heat map's measures, in pixels.
const (
	heatLeft  = 150 // for the names of routes
	heatTop   = 110 // for those of tenants
	heatRight = 110 // for the last one, which stands aslant
	heatCellX = 50
	heatCellY = 30
	heatName  = 20 // runes of a name
)

// heatChart is a grid of routes by groups.
type heatChart struct {
	Width, Height int
	Columns, Rows []heatLabel
	Cells         []heatBox
	Groups        []string
	Table         []heatRow
}

type heatLabel struct {
	Label string
	X, Y  int
}

type heatBox struct {
	Title, Text        string
	X, Y, TextX, TextY int
	Opacity            float64
	Some               bool
}

type heatRow struct {
	Route string
	Cells []HeatCell
}

func newHeatChart(h *Heat) *heatChart {
	if len(h.Routes) == 0 || len(h.Groups) == 0 {
		return nil
	}
	c := &heatChart{Groups: h.Groups, Width: heatLeft + heatCellX*len(h.Groups) + heatRight, Height: heatTop + heatCellY*len(h.Routes) + 4}
	for j, g := range h.Groups {
		c.Columns = append(c.Columns, heatLabel{cut(g, heatName), heatLeft + j*heatCellX + heatCellX/2, heatTop - 8})
	}
	for i, route := range h.Routes {
		y := heatTop + i*heatCellY
		c.Rows = append(c.Rows, heatLabel{cut(route, heatName), heatLeft - 8, y + 18})
		c.Table = append(c.Table, heatRow{route, h.Cells[i]})
		for j, cell := range h.Cells[i] {
			c.Cells = append(c.Cells, newHeatBox(route, h.Groups[j], cell, heatLeft+j*heatCellX, y))
		}
	}
	return c
}

func newHeatBox(route, group string, cell HeatCell, x, y int) heatBox {
	b := heatBox{Title: fmt.Sprintf("%s, %s: no request", route, group), X: x, Y: y, TextX: x + 23, TextY: y + 17}
	if cell.Requests == 0 {
		return b
	}
	part := float64(cell.Denied) / float64(cell.Requests)
	b.Some, b.Opacity = true, float64(int(part*80))/100
	b.Title = fmt.Sprintf("%s, %s: %s of %s denied", route, group, thousands(cell.Denied), thousands(cell.Requests))
	switch {
	case cell.Denied == 0:
		b.Text = "0"
	case part < 0.01:
		b.Text = "<1"
	default:
		b.Text = fmt.Sprintf("%.0f", part*100)
	}
	return b
}
