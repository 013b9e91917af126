package gen

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"sluice/geo"
	"sluice/policies"
	"sluice/templates"
)

// Options are what a policy does not say.
type Options struct {
	// Version is stamped on every file.
	Version string
	// Authz are the addresses of the service, HOST:PORT or unix:PATH;
	// 127.0.0.1:9180 when there is none.
	Authz []string
	// Datagrams are where the ends of requests are told, HOST:PORT;
	// 127.0.0.1:9182 when there is none.
	Datagrams []string
	// Upstreams are the addresses of the application, HOST:PORT or unix:PATH.
	// Without any the site defines upstream sluice_app itself; a whole nginx.conf
	// then has 127.0.0.1:8081.
	Upstreams []string
	// CacheDir is where denials are kept for a moment, a folder that NGINX makes
	// if its parent exists; /dev/shm/sluice when empty. It belongs on tmpfs: the
	// names of its entries hold credentials. Two NGINX on one machine need two.
	CacheDir string
	// NoDenyCache keeps none.
	NoDenyCache bool
	// LoginSocket is where the server listens that asks a chained authenticator,
	// unix:PATH or HOST:PORT; unix:/run/sluice-login.sock when empty.
	LoginSocket string
	// Full adds a whole nginx.conf.
	Full bool
	// Listen are the addresses of its servers; 127.0.0.1:8080 when there is none.
	Listen []string
	// Geo are the databases that say where clients are. A policy that asks for
	// what they lack cannot be rendered.
	Geo geo.Tables
	// GeoModule lets NGINX's geoip2 module look into the databases, at the paths
	// that Geo has them from; else what the policy names is written out.
	GeoModule bool
	// GeoModuleFile is the file of that module, which a whole nginx.conf loads;
	// empty: it is loaded already.
	GeoModuleFile string
}

// waitMargin is what the service is given to answer, besides the time it may hold
// a request.
const waitMargin = 200 * time.Millisecond

// Render turns a compiled policy into files. It reads and writes nothing else,
// and the same input gives the same bytes.
func Render(c *policies.Compiled, opt Options) (Files, error) {
	files, _, err := RenderTraced(c, opt)
	return files, err
}

// RenderTraced is Render that also tells which place of the policy gave which line.
func RenderTraced(c *policies.Compiled, opt Options) (Files, Origins, error) {
	b := newBuilder(c, opt)
	b.stamp = stamp(opt.Version, c.Hash)
	set, err := template.ParseFS(templates.FS, "*.tmpl")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the templates: %w", err)
	}
	out := output{set: set, files: Files{}, origins: Origins{}}
	b.render(&out)
	if b.err != nil {
		return nil, nil, b.err
	}
	if out.err != nil {
		return nil, nil, out.err
	}
	out.files[manifestName] = manifest(b.stamp, out.files, c.Client.Lists)
	return out.files, out.origins, nil
}

func (o Options) withDefaults() Options {
	if len(o.Authz) == 0 {
		o.Authz = []string{"127.0.0.1:9180"}
	}
	if len(o.Datagrams) == 0 {
		o.Datagrams = []string{"127.0.0.1:9182"}
	}
	if o.Full && len(o.Upstreams) == 0 {
		o.Upstreams = []string{"127.0.0.1:8081"}
	}
	if o.CacheDir == "" {
		o.CacheDir = DefaultCacheDir
	}
	if o.LoginSocket == "" {
		o.LoginSocket = "unix:/run/sluice-login.sock"
	}
	if len(o.Listen) == 0 {
		o.Listen = []string{"127.0.0.1:8080"}
	}
	return o
}

// output executes templates into files and keeps the first error.
type output struct {
	set     *template.Template
	files   Files
	origins Origins
	err     error
}

func (o *output) file(name, tmpl string, view any) {
	var buf bytes.Buffer
	if err := o.set.ExecuteTemplate(&buf, tmpl, view); err != nil && o.err == nil {
		o.err = fmt.Errorf("cannot render %q: %w", name, err)
	}
	text, origins := cut(buf.Bytes())
	o.files[name] = text
	if origins != nil {
		o.origins[name] = origins
	}
}

// render writes every file.
func (b *builder) render(out *output) {
	asked := slices.ContainsFunc(b.c.Routes, func(r policies.Route) bool { return r.Asked })
	b.asked = asked
	rules := b.accessRules()
	exempting := slices.ContainsFunc(b.c.Access, func(r policies.AccessRule) bool {
		return r.Verdict == policies.AccessExempt && !r.Shadow
	})
	b.edgeLimits(exempting)
	a := b.ask(exempting)
	answers, vars := b.answers()
	d := b.denials()

	for i := range b.c.Routes {
		r := &b.c.Routes[i]
		out.file("sluice/routes/"+r.Name+".conf", "route.conf.tmpl", b.route(r, rules, asked))
	}
	http := httpView{
		Stamp: b.stamp, Asked: asked,
		Client: b.clientKey(), Values: b.values, Access: b.access, Keys: b.keys,
		Zones: b.zones, ZoneTotal: b.zoneTotal(),
		Defaults: b.defaults(asked, vars),
		Authz:    b.peers(b.opt.Authz), App: b.peers(b.opt.Upstreams),
		Denials: d.blocks, Costs: b.costs(),
	}
	http.Keys = append(b.pads(), http.Keys...)
	var places []geoFile
	http.Geo, places = b.geoBlocks()
	for _, f := range places {
		out.file(f.name, "geo.conf.tmpl", f.view)
	}
	if asked {
		http.Answers, http.Sent, http.Deny = answers, a.blocks, b.denyCache(a)
		http.Login = b.serverLogin(a)
		b.loginFiles(out, a, http.Login)
		out.file("sluice/ask.conf", "ask.conf.tmpl", askView{b.stamp, a.headers, word(milliseconds(b.c.LongestWait() + waitMargin)), http.Deny, b.chained()})
		out.file("sluice/no_cache.conf", "no_cache.conf.tmpl", cacheView{Stamp: b.stamp})
		if !b.opt.NoDenyCache {
			out.file("sluice/cache.conf", "cache.conf.tmpl", cacheView{b.stamp, http.Deny})
		}
		out.file("sluice/vars.conf", "vars.conf.tmpl", varsView{b.stamp, vars})
	}
	out.file("sluice/real_ip.conf", "real_ip.conf.tmpl", b.client())
	out.file("sluice/http.conf", "http.conf.tmpl", http)
	out.file("sluice/server.conf", "server.conf.tmpl", serverView{b.stamp, asked, asked && !b.opt.NoDenyCache, asked && b.chained(), d.pages})
	out.file("sluice/headers.conf", "headers.conf.tmpl", headersView{b.stamp, b.clientHeaders()})
	out.file("sluice/proxy_headers.conf", "proxy_headers.conf.tmpl", headersView{b.stamp, b.appHeaders(a)})
	out.file("sluice/app.conf", "app.conf.tmpl", appView{b.stamp, len(b.opt.Upstreams) > 0})
	out.file("sluice/log.conf", "log.conf.tmpl", logView{b.stamp, b.addresses(b.opt.Datagrams)})
	b.renderLocations(out)
}

// renderLocations writes the locations of each server, and the whole nginx.conf.
func (b *builder) renderLocations(out *output) {
	patterns := append([]string{""}, hosts(b.c)...)
	full := nginxView{Stamp: b.stamp, Listen: b.addresses(b.opt.Listen)}
	full.Ends, full.Names = b.c.Settles(), nameBucket(patterns)
	if b.c.Client.ProxyProtocol {
		full.Suffix = word("proxy_protocol")
	}
	if b.opt.GeoModule && b.opt.GeoModuleFile != "" && b.placed() {
		full.Module = b.take(Literal(b.opt.GeoModuleFile))
	}
	for _, host := range patterns {
		about := "For the server { } of every host that no route names: all routes as locations, in NGINX's own order."
		if host != "" {
			about = "For the server { } with server_name " + host + ": its routes as locations, in NGINX's own order."
		}
		out.file(hostFile(host), "locations.conf.tmpl", locationsView{
			Stamp:     b.stamp,
			Comments:  commentLines([]string{about}),
			Locations: b.locations(groups(b.c, host)),
		})
		name, place := own("_"), Token{}
		if host != "" {
			name, place = b.take(Literal(host)), mark("routes")
		}
		full.Servers = append(full.Servers, fullServer{From: place, Name: name, Default: host == "", Locations: word(hostFile(host))})
	}
	if b.opt.Full {
		out.file("nginx.conf", "nginx.conf.tmpl", full)
	}
}

// nameBucket is server_names_hash_bucket_size for the longest of the host names:
// a power of two that it fits into, with what NGINX keeps beside it. Its own
// default is the size of a cache line, 32 at least.
func nameBucket(hosts []string) Token {
	longest := 0
	for _, h := range hosts {
		longest = max(longest, len(h))
	}
	const beside = 24 // two pointers, a length, and rounding
	if longest+beside <= 32 {
		return Token{}
	}
	size := 64
	for size < longest+beside {
		size *= 2
	}
	return number(int64(size))
}

func (b *builder) client() clientView {
	v := clientView{From: mark("client_ip"), Stamp: b.stamp, Trusted: trusted(b.c.Client.Trusted), ProxyProtocol: b.c.Client.ProxyProtocol}
	switch {
	case v.ProxyProtocol:
		v.Header = word("proxy_protocol")
	case len(v.Trusted) > 0:
		v.Header = b.take(headerName(string(b.c.Client.Header)))
	}
	return v
}

// defaults are the variables that our routes set, without the dollar, and
// what else pages read when nobody is asked.
func (b *builder) defaults(asked bool, vars []header) []Token {
	out := []Token{word("sluice_refused"), word("sluice_rule"), word("sluice_shadowed"), word("sluice_exempt"), word("sluice_route"),
		word("sluice_edge_retry"), word("sluice_edge_rate"), word("sluice_edge_conn"), word("sluice_denied")}
	if b.chained() {
		out = append(out, word("sluice_login_lost"), word("sluice_chained"))
	}
	if !asked {
		for _, v := range vars {
			out = append(out, v.Name)
		}
		out = append(out, word("sluice_failed"), word("sluice_degraded"))
	}
	return out
}

// pads are what makes keys of one zone alike in size.
func (b *builder) pads() []block {
	var out []block
	for _, p := range []struct {
		name string
		size int
	}{{"sluice_pad_49", 48}, {"sluice_pad_177", 176}} {
		if b.named[p.name] {
			m := block{Kind: word("geo"), Variable: word("$" + p.name), Comments: commentLines([]string{
				"Keys of one zone must be alike in size: a full zone drops its oldest state, which makes room for a key of the same size only."})}
			m.otherwise(own(strings.Repeat(".", p.size)))
			out = append(out, m)
		}
	}
	return out
}

// milliseconds is a duration as NGINX has it.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }
