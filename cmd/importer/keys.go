package importer

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// counted is what a zone counts: per, and which requests.
type counted struct {
	per          []string // YAML of each dimension
	only, except clients
	when         []string // YAML of each line
}

// many tells whether there are as many counters as clients.
func (c counted) many() bool {
	return slices.ContainsFunc(c.per, func(d string) bool { return d != "global" && d != "server" })
}

// keyOf says in the language what a key counts, or why it cannot be said.
func (im *importer) keyOf(text string, at *nginxconf.Directive) (counted, string) {
	if name := nginxconf.Lone(text); name != "" {
		if _, isTable := im.tables[name]; isTable {
			return im.tableKey(name, at)
		}
	}
	per, why := im.dims(text, at)
	return counted{per: per}, why
}

// dims are the dimensions of a key without conditions.
func (im *importer) dims(text string, at *nginxconf.Directive) ([]string, string) {
	var per []string
	for _, name := range nginxconf.Variables(text) {
		dim, why := im.dim(name, at)
		if why != "" {
			return nil, why
		}
		if !slices.Contains(per, dim) {
			per = append(per, dim)
		}
	}
	if len(per) == 0 {
		per = []string{"global"}
	}
	return per, ""
}

// dim is the dimension that a variable is.
func (im *importer) dim(name string, at *nginxconf.Directive) (string, string) {
	switch name {
	case "binary_remote_addr", "remote_addr":
		return "ip", ""
	case "server_name", "host", "http_host":
		if name != "server_name" {
			im.note(at.Place, "$%s is counted by server: hosts that one server takes share a counter", name)
		}
		return "server", ""
	case "http_x_forwarded_for", "proxy_add_x_forwarded_for", "http_forwarded", "http_x_real_ip", "http_cf_connecting_ip", "http_true_client_ip", "http_x_client_ip", "proxy_protocol_addr":
		im.note(at.Place, "$%s is counted by ip: clients could write it themselves; want the proxies that may in client_ip.trusted_proxies", name)
		return "ip", ""
	}
	if kind := im.located[name]; kind != "" {
		return kind, ""
	}
	if _, isTable := im.tables[name]; isTable {
		return "", "a map or geo stands beside another variable"
	}
	return valueDim(name)
}

// valueDim is the dimension of a value that the client sends.
func valueDim(name string) (string, string) {
	if rest, ok := strings.CutPrefix(name, "http_"); ok {
		header := headerName(rest)
		if header == "Cookie" {
			return "", "all cookies together; want {cookie: NAME}"
		}
		if err := new(policies.HeaderName).UnmarshalText([]byte(header)); err != nil || forbidden(header) {
			return "", "no header that can be counted by"
		}
		return "{header: " + header + "}", ""
	}
	for prefix, key := range map[string]string{"cookie_": "cookie", "arg_": "query"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if err := new(policies.ParamName).UnmarshalText([]byte(rest)); err != nil {
				return "", err.Error()
			}
			return fmt.Sprintf("{%s: %s}", key, scalar(rest)), ""
		}
	}
	return "", "$" + name + " is nothing that the language counts by"
}

// forbidden are headers about the connection, which no policy counts by.
func forbidden(header string) bool {
	return slices.Contains([]string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Expect", "X-Cluster-Client-Ip", "Fastly-Client-Ip"}, header) || strings.HasPrefix(header, "X-Sluice")
}

// headerName is the header that a variable is of: x_api_key is X-Api-Key.
func headerName(variable string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(variable, "_", "-"))
}

// tableKey says what a key counts that a map or geo makes: of the values that
// are not empty there must be one, and who has an empty one is not counted.
func (im *importer) tableKey(name string, at *nginxconf.Directive) (counted, string) {
	c, why := im.cases(name, 0)
	if why != "" {
		return counted{}, why
	}
	keys := c.values()
	if missing, own := c.fallsBack(); missing {
		// The address where the header is missing: so the language does it anyway.
		keys, c = []string{own}, cases{base: c.base, otherwise: own}
	}
	switch len(keys) {
	case 0:
		return counted{}, "it is always empty, so nothing is counted"
	case 1:
	default:
		return counted{}, "it counts by different things, " + strings.Join(keys, " and ") + "; want a limit for each, or plans"
	}
	if out, ok := captured(c, keys[0]); ok {
		return out, ""
	}
	per, why := im.dims(keys[0], at)
	if why != "" {
		return counted{}, why
	}
	out := counted{per: per}
	return out, im.condition(&out, c, func(value string) bool { return value != "" })
}

// captured is a part of a query parameter, which a map takes by one expression:
// who does not fit it is not counted.
func captured(c cases, value string) (counted, bool) {
	name, query := strings.CutPrefix(c.base, "arg_")
	if !query || c.geo || c.otherwise != "" {
		return counted{}, false
	}
	key := ""
	for _, k := range c.list {
		if k.value == value && key == "" {
			key = k.key
		} else if k.value != "" {
			return counted{}, false
		}
	}
	group := firstGroup.FindStringSubmatch(key)
	if group == nil || value != "$1" && (group[1] == "" || value != "$"+group[1]) {
		return counted{}, false
	}
	re, why := pattern(key)
	if err := new(policies.ParamName).UnmarshalText([]byte(name)); why != "" || err != nil {
		return counted{}, false
	}
	return counted{
		per:  []string{fmt.Sprintf("{query: %s, capture: %s}", scalar(name), single(re))},
		when: []string{fmt.Sprintf("query: {%s: %s}", scalar(name), single(re))},
	}, true
}

var firstGroup = regexp.MustCompile(`^~[^(]*\((?:\?P?<([A-Za-z_][A-Za-z0-9_]*)>)?[^?]`)

// fallsBack tells of a map by a header, cookie or parameter that gives the
// address where it is missing, and the value itself else.
func (c cases) fallsBack() (bool, string) {
	if c.geo || len(c.list) != 1 || c.list[0].key != "" || c.otherwise != "$"+c.base {
		return false, ""
	}
	return c.list[0].value == "$binary_remote_addr" || c.list[0].value == "$remote_addr", c.otherwise
}
