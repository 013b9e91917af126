package cmd

import (
	"log/slog"
	"os"
	"time"

	"sluice/authz"
	"sluice/geo"
)

// placeFiles are the databases that a running service looks clients up in.
type placeFiles struct {
	countries, asns string // paths; empty: none
	log             *slog.Logger
	tables          geo.Tables // the last good ones
	seen            [2]fileMark
}

// fileMark tells one state of a file from another without reading it: a database
// has tens of megabytes, and most reloads are for something else.
type fileMark struct {
	size int64
	time time.Time
}

// markOf is the zero mark for a file that is not there.
func markOf(path string) fileMark {
	info, err := os.Stat(path)
	if err != nil {
		return fileMark{}
	}
	return fileMark{info.Size(), info.ModTime()}
}

// open reads the databases for the first time, when they must be good.
func (f *placeFiles) open() (authz.Places, error) {
	f.seen = [2]fileMark{markOf(f.countries), markOf(f.asns)}
	for _, read := range []func() error{f.readCountries, f.readASNs} {
		if err := read(); err != nil {
			return authz.Places{}, err
		}
	}
	return authz.PlacesOf(f.tables), nil
}

func (f *placeFiles) readCountries() (err error) {
	if f.countries == "" {
		return nil
	}
	t, err := geo.OpenCountries(f.countries, geo.Limits{})
	if err == nil {
		f.tables.Countries = t
	}
	return err
}

func (f *placeFiles) readASNs() (err error) {
	if f.asns == "" {
		return nil
	}
	t, err := geo.OpenASNs(f.asns, geo.Limits{})
	if err == nil {
		f.tables.ASNs = t
	}
	return err
}

// reload reads what has changed. One that is not good leaves the one before.
func (f *placeFiles) reload(engine *authz.Engine) {
	now := [2]fileMark{markOf(f.countries), markOf(f.asns)}
	changed := false
	for i, read := range []func() error{f.readCountries, f.readASNs} {
		if now[i] == f.seen[i] {
			continue
		}
		f.seen[i] = now[i]
		if err := read(); err != nil {
			f.log.Error("database not loaded: the last good one serves", "error", err.Error())
			continue
		}
		changed = true
	}
	if !changed {
		return
	}
	if err := engine.Locate(authz.PlacesOf(f.tables)); err != nil {
		f.log.Error("databases not used", "error", err.Error())
		return
	}
	f.log.Info("databases loaded", "countries", f.tables.Countries != nil, "asns", f.tables.ASNs != nil)
}

// files are the paths to watch.
func (f *placeFiles) files() (names []string) {
	for _, name := range []string{f.countries, f.asns} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
