package cmd

import (
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"sluice/gen"
	"sluice/geo"
	"sluice/policies"
)

// geoOptions are the databases that say where clients are, and who looks into them.
type geoOptions struct {
	Mode       string
	Countries  string
	ASNs       string
	MaxAge     string
	ModuleFile string
}

func (o *geoOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Mode, "geo", "compiled", "compiled: what the policy names of the databases is written out | module: NGINX's geoip2 module looks into them")
	f.StringVar(&o.Countries, "country-db", "", "a country database: GeoLite2, GeoIP2, DB-IP or IPinfo (.mmdb)")
	f.StringVar(&o.ASNs, "asn-db", "", "a database of autonomous systems (.mmdb)")
	f.StringVar(&o.MaxAge, "max-age", "", "refuse databases that were built longer ago, such as 30d")
	f.StringVar(&o.ModuleFile, "geo-module-file", "/usr/lib/nginx/modules/ngx_http_geoip2_module.so", "what a whole nginx.conf loads for --geo module; empty: nothing")
}

// open reads the databases that were named.
func (o *geoOptions) open(to *gen.Options) error {
	if o.Mode != "compiled" && o.Mode != "module" {
		return usagef("--geo %q; want compiled or module", o.Mode)
	}
	limits := geo.Limits{Now: time.Now()}
	if o.MaxAge != "" {
		var age policies.Duration
		if err := age.UnmarshalText([]byte(o.MaxAge)); err != nil {
			return usagef("--max-age: %w", err)
		}
		limits.MaxAge = time.Duration(age)
	}
	to.GeoModule, to.GeoModuleFile = o.Mode == "module", o.ModuleFile
	for _, db := range []struct{ flag, file string }{{"--country-db", o.Countries}, {"--asn-db", o.ASNs}} {
		if to.GeoModule && db.file != "" && !filepath.IsAbs(db.file) {
			return usagef("%s %q; with --geo module NGINX opens it: want an absolute path", db.flag, db.file)
		}
	}
	var err error
	if o.Countries != "" {
		if to.Geo.Countries, err = geo.OpenCountries(o.Countries, limits); err != nil {
			return err
		}
	}
	if o.ASNs != "" {
		if to.Geo.ASNs, err = geo.OpenASNs(o.ASNs, limits); err != nil {
			return err
		}
	}
	return nil
}
