package authz

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard decides who may ask the admin port.
//
// A good bearer token may do what its role says, from anywhere. Without one,
// only reading is allowed, and only to somebody on this machine who speaks for
// himself: over loopback or a unix socket, to a Host that is a name of loopback
// (a page of the web whose name was made to point here has another one), and
// with no sign of a proxy, which would speak for others, or of a page of another
// site in a browser.
type guard struct {
	tokens *Tokens
	// refused hears of who was turned away; nil: nobody does.
	refused func(r *http.Request, status int)
}

// caller is who asks.
type caller struct {
	name string // of the token; empty without one
	role Role
}

type callerKey struct{}

// Caller is the name of the token that a request of the admin port came with;
// empty for who reads without one.
func Caller(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.name
}

// wrap lets those pass who may.
func (g guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if secretInQuery(r.URL.RawQuery) {
			g.refuse(w, r, http.StatusBadRequest, "a token does not belong into the URL, where logs keep it; want Authorization: Bearer TOKEN")
			return
		}
		c, problem := g.identify(r)
		need := RoleRead
		if r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != explainPath {
			need = RoleWrite
		}
		switch {
		case problem == "" && c.role >= need:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
		case problem == "" && c.name != "":
			g.refuse(w, r, http.StatusForbidden, "the token "+c.name+" may read and not write")
		default:
			if problem == "" {
				problem = "changing needs a token that may write, on this machine too; want Authorization: Bearer TOKEN"
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="sluice admin"`)
			g.refuse(w, r, http.StatusUnauthorized, problem)
		}
	})
}

func (g guard) refuse(w http.ResponseWriter, r *http.Request, status int, problem string) {
	if g.refused != nil {
		g.refused(r, status)
	}
	WriteProblem(w, status, problem)
}

// identify finds who asks; or the problem with him.
func (g guard) identify(r *http.Request) (caller, string) {
	if values := r.Header.Values("Authorization"); len(values) > 0 {
		if len(values) == 1 {
			scheme, secret, _ := strings.Cut(values[0], " ")
			if strings.EqualFold(scheme, "Bearer") {
				if name, role := g.tokens.check(strings.TrimSpace(secret)); role != RoleNone {
					return caller{name, role}, ""
				}
			}
		}
		return caller{}, "the token is not known here"
	}
	if why := notLocal(r); why != "" {
		return caller{}, why + "; want Authorization: Bearer TOKEN"
	}
	return caller{role: RoleRead}, ""
}

// notLocal says why a request is not somebody's on this machine, speaking for
// himself; empty when it is.
func notLocal(r *http.Request) string {
	switch {
	case !localConn(r):
		return "a token is needed off loopback"
	case !loopbackHost(r.Host):
		return "reading without a token is for Host names of loopback"
	case forwardedBy(r.Header):
		return "reading without a token is not for those who come through a proxy"
	case r.Header.Values("Origin") != nil || crossSite(r.Header.Get("Sec-Fetch-Site")):
		return "reading without a token is not for pages of other sites"
	}
	return ""
}

// localConn tells whether both ends of the connection are on this machine.
func localConn(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	if local.Network() == "unix" {
		return true
	}
	return loopbackAddr(local.String()) && loopbackAddr(r.RemoteAddr)
}

func loopbackAddr(hostPort string) bool {
	addr, err := netip.ParseAddrPort(hostPort)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// loopbackHost tells whether a Host, with or without a port, means this machine.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// forwardedBy tells whether a proxy says that it speaks for somebody.
func forwardedBy(h http.Header) bool {
	for name := range h {
		switch {
		case name == "Forwarded", name == "Via", name == "X-Real-Ip", strings.HasPrefix(name, "X-Forwarded-"):
			return true
		}
	}
	return false
}

func crossSite(fetch string) bool { return fetch != "" && fetch != "none" && fetch != "same-origin" }

// secretInQuery tells whether a query has a parameter that is meant for a token.
func secretInQuery(query string) bool {
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		switch strings.ToLower(name) {
		case "token", "access_token", "admin_token", "authorization", "bearer":
			return true
		}
	}
	return false
}
