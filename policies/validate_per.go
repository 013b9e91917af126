package policies

import (
	"slices"
	"strings"
)

// per checks what a limit counts by; edge tells whether NGINX does the counting.
func (f *findings) per(path string, per Per, edge bool) {
	seen := map[string]bool{}
	for i, d := range per {
		at := path
		if len(per) > 1 {
			at = elem(path, i)
		}
		if seen[d.key()] {
			f.errorf(at, rulePerTwice, "%s is here twice; want each dimension once", d.label())
		}
		seen[d.key()] = true
		switch d.Kind {
		case DimGlobal:
			if len(per) > 1 {
				f.errorf(at, rulePerGlobal, "global is one counter for everybody, and the others split it; want global alone, or without it")
			}
		case DimKey, DimTenant, DimUser, DimScope:
			if edge {
				f.errorf(at, ruleEdgePer, "%s is not known yet when NGINX counts: limits come before the service is asked; want this limit in limits, plans or a route, or a header such as per: {header: X-API-Key} here", d.Kind)
			}
		case DimHeader:
			f.perHeader(at, d.Name)
		}
	}
}

// key tells dimensions apart. Header names know no case.
func (d Dim) key() string {
	name := d.Name
	if d.Kind == DimHeader {
		name = strings.ToLower(name)
	}
	return string(d.Kind) + " " + name
}

func (d Dim) label() string {
	if d.Name == "" {
		return string(d.Kind)
	}
	return string(d.Kind) + " " + d.Name
}

// perHeader refuses headers in which a client would choose its own counter.
func (f *findings) perHeader(path, name string) {
	lower := strings.ToLower(name)
	forwarded := lower == "x-forwarded-for" || lower == "forwarded"
	named := f.policy.ClientIP != nil && strings.EqualFold(string(f.policy.ClientIP.Header), name)
	switch {
	case forwarded || addressHeader(lower) && !named:
		f.errorf(path, rulePerForwarded, "%s holds what the client writes into it, so everybody could have a fresh counter each time; want per: ip, and the proxies that may name clients in client_ip.trusted_proxies", name)
	case lower == "cookie":
		f.errorf(path, ruleReserved, "Cookie holds all cookies together; want per: {cookie: NAME}")
	default:
		f.freeHeader(path, HeaderName(name))
	}
}

// addressHeader tells of headers in which proxies hand on one client address.
func addressHeader(lower string) bool {
	return slices.Contains([]string{"x-real-ip", "cf-connecting-ip", "true-client-ip", "x-client-ip", "x-cluster-client-ip", "fastly-client-ip"}, lower)
}

// freeHeader refuses headers that say something about the connection, and ours.
func (f *findings) freeHeader(path string, name HeaderName) {
	lower := strings.ToLower(string(name))
	hop := []string{"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
		"transfer-encoding", "upgrade", "host", "content-length", "expect"}
	switch {
	case strings.HasPrefix(lower, "x-sluice-"):
		f.errorf(path, ruleReserved, "%s is Sluice's own, and never arrives from a client; want another header", name)
	case slices.Contains(hop, lower):
		f.errorf(path, ruleReserved, "%s is about the connection or the message, and never arrives as it was sent; want another header", name)
	}
}
