package lint

import (
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// formats reports log formats, in use, that write credentials down.
func (c *checker) formats() {
	secret, query := c.credentials()
	defined := map[string]*nginxconf.Directive{}
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if d.Name == "log_format" && !ours(d) {
			defined[d.Arg(0)] = d
		}
	})
	reported := map[string]bool{}
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if d.Name != "access_log" || ours(d) || d.Arg(0) == "off" {
			return
		}
		name := "combined"
		if len(d.Args) > 1 && !strings.Contains(d.Arg(1), "=") {
			name = d.Arg(1)
		}
		format := defined[name]
		switch {
		case format != nil && !reported[name]:
			reported[name] = true
			c.format(format, secret, query)
		case format == nil && name == "combined" && len(query) > 0:
			c.warnf(d, "log-leak", "the format combined holds the query, and with it the credential %s; want a format with $uri in place of $request, such as sluice_access", query[0])
		}
	})
}

func (c *checker) format(d *nginxconf.Directive, secret, query []string) {
	for _, w := range d.Args[min(1, len(d.Args)):] {
		for _, name := range nginxconf.Variables(w.Text) {
			switch {
			case slices.Contains(secret, name):
				c.errorf(d, "log-leak", "$%s is a credential, and everybody who reads the log has it; want it left out, the service logs the id of the key", name)
				return
			case strings.HasPrefix(name, "cookie_") || name == "http_cookie" || credentialLike(name):
				c.warnf(d, "log-leak", "$%s may be a credential, and everybody who reads the log has it; want it left out, or a part of it by a map", name)
				return
			case len(query) > 0 && slices.Contains([]string{"request", "request_uri", "args", "query_string", "arg_" + query[0]}, name):
				c.warnf(d, "log-leak", "$%s holds the query, and with it the credential %s; want $uri in its place, as in sluice_access", name, query[0])
				return
			}
		}
	}
}

// credentialLike tells of headers and parameters by whose name one would
// expect a credential.
func credentialLike(name string) bool {
	rest, header := strings.CutPrefix(name, "http_")
	if !header {
		if rest, header = strings.CutPrefix(name, "arg_"); !header {
			return false
		}
	}
	return slices.ContainsFunc(strings.Split(rest, "_"), func(part string) bool {
		return slices.Contains([]string{"token", "secret", "password", "apikey", "key", "auth", "signature", "jwt"}, part)
	})
}

// credentials are the variables that hold credentials, and the query
// parameters, as far as the rendered files name them.
func (c *checker) credentials() (secret, query []string) {
	secret = []string{"http_authorization", "http_x_api_key", "http_proxy_authorization"}
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if d.Name != "proxy_set_header" || !strings.HasSuffix(d.File, "sluice/ask.conf") {
			return
		}
		name := strings.ToLower(d.Arg(0))
		if parameter, ok := strings.CutPrefix(name, "x-sluice-query-"); ok {
			query = append(query, parameter)
		} else if cookie, ok := strings.CutPrefix(name, "x-sluice-cookie-"); ok {
			secret = append(secret, "cookie_"+cookie)
		} else if strings.HasPrefix(d.Arg(1), "$sluice_cred_") {
			secret = append(secret, "http_"+strings.ReplaceAll(name, "-", "_"))
		}
	})
	return secret, query
}

// injections reports $uri where it becomes a part of a header: it is decoded,
// so %0d%0a in a path begins a header of the client's own.
func (c *checker) injections() {
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if ours(d) {
			return
		}
		var text []nginxconf.Word
		switch d.Name {
		case "add_header", "proxy_set_header", "grpc_set_header":
			text = d.Args
		case "return":
			if strings.HasPrefix(d.Arg(0), "3") || len(d.Args) == 1 {
				text = d.Args
			}
		}
		for _, w := range text {
			for _, name := range nginxconf.Variables(w.Text) {
				if name == "uri" || name == "document_uri" {
					c.errorf(d, "uri-injection", "$%s is decoded: %%0d%%0a in a path begins a header of the client's own, X-Sluice-Tenant for one; want $request_uri", name)
					return
				}
			}
		}
	})
}
