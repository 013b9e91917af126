package importer

import (
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// findLocated finds the variables that say where an address is: those of the
// old geoip module and of a CDN have names of their own, geoip2 lets the site
// choose.
func (im *importer) findLocated() {
	im.located = map[string]string{"geoip_country_code": "country", "http_cf_ipcountry": "country"}
	for _, h := range im.site.HTTP() {
		for _, block := range h.All("geoip2") {
			block.Each(func(d *nginxconf.Directive) bool {
				im.geoip2(d)
				return true
			})
		}
	}
}

// geoip2 reads a line such as `$country default=XX source=$ip country iso_code`.
func (im *importer) geoip2(d *nginxconf.Directive) {
	name := nginxconf.Lone(d.Name)
	words := d.Texts()
	for _, w := range words {
		if value, ok := strings.CutPrefix(w, "default="); ok {
			im.note(d.Place, "default=%s makes a country of addresses that the database lacks; a policy calls them unknown", value)
		}
		if value, ok := strings.CutPrefix(w, "source="); ok && value != "$remote_addr" {
			im.note(d.Place, "source=%s: a policy asks about the client's address; want the proxies that may name it in client_ip.trusted_proxies", value)
		}
	}
	switch {
	case name == "":
	case slices.Contains(words, "iso_code") && slices.Contains(words, "country"):
		im.located[name] = "country"
	case slices.Contains(words, "autonomous_system_number"):
		im.located[name] = "asn"
	}
}
