package replay

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unsafe"

	"sluice/cmd/accesslog"
	"sluice/policies"
	"sluice/policies/edge"
)

// builder makes requests of entries.
type builder struct {
	policy, against *policies.Compiled // with credentials that stand in for the tenants'
	vars            *accesslog.Vars
	headers         []want
	cookies, args   []want
	costs           []want // headers of answers
	header          string // of the policy's proxies
	forwarded       accesslog.Var
	proxied         netip.Addr // one of the policy's proxies, where only they may connect
	whose           *whose
	told            []bool // by variable: some line says it
	queries         bool   // some target has a query

	direct int64 // lines that do not say whether the client came through a proxy
}

// want is a value of requests that a policy looks at.
type want struct {
	name string // of the header, cookie or parameter
	v    accesslog.Var
	why  []string // places of the policy that look at it
}

// span is a piece of an item's buffer.
type span struct {
	name     string
	from, to int
}

func newBuilder(o *Options) (*builder, error) {
	b := &builder{policy: o.Policy, against: o.Against, vars: accesslog.NewVars()}
	b.wants(o.Policy)
	if o.Against != nil {
		b.wants(o.Against)
	}
	b.header = string(o.Policy.Client.Header)
	if o.Policy.Client.ProxyProtocol {
		b.header = edge.ProxyProtocol
	}
	b.forwarded = b.vars.Want(headerVariable(b.header))
	if b.header == edge.ProxyProtocol {
		b.forwarded = accesslog.VarProxyProtocolAddr
	}
	if o.Policy.Client.DenyDirect && len(o.Policy.Client.Trusted) > 0 {
		b.proxied = o.Policy.Client.Trusted[0].Addr()
	}
	var err error
	if b.whose, err = newWhose(b, o); err != nil {
		return nil, err
	}
	b.told = make([]bool, b.vars.Len())
	return b, nil
}

// wantCosts collects the headers of answers that tell a cost: as the application
// sent them, since the client does not get to see them.
func (b *builder) wantCosts(c *policies.Compiled) {
	for i := range c.Routes {
		if r := &c.Routes[i]; r.Asked && r.CostHeader != "" {
			b.costs = addWant(b.costs, r.CostHeader, b.vars.Want("upstream_"+headerVariable(r.CostHeader)), "routes."+r.Name+".cost_from")
		}
	}
}

// costsOf are what an answer told, nil when it told nothing.
func (b *builder) costsOf(e *accesslog.Entry) map[string]string {
	var out map[string]string
	for i := range b.costs {
		if value := b.value(e, b.costs[i].v); value != nil {
			if out == nil {
				out = map[string]string{}
			}
			out[b.costs[i].name] = string(value)
		}
	}
	return out
}

// headerVariable is NGINX's variable for a header.
func headerVariable(name string) string {
	return "http_" + strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// wants collects what a policy looks at.
func (b *builder) wants(c *policies.Compiled) {
	b.wantCosts(c)
	for where, carrier := range lookedAt(c) {
		name := carrier.name
		switch carrier.from {
		case policies.CarrierCookie:
			b.cookies = addWant(b.cookies, name, b.vars.Want("cookie_"+name), where)
		case policies.CarrierQuery:
			b.args = addWant(b.args, name, b.vars.Want("arg_"+name), where)
		default:
			b.headers = addWant(b.headers, name, b.vars.Want(headerVariable(name)), where)
		}
	}
}

func addWant(list []want, name string, v accesslog.Var, why string) []want {
	i := slices.IndexFunc(list, func(w want) bool { return w.v == v })
	if i < 0 {
		return append(list, want{name, v, []string{why}})
	}
	if !slices.Contains(list[i].why, why) {
		list[i].why = append(list[i].why, why)
	}
	return list
}

// build makes the item's requests.
func (b *builder) build(it *item, e *accesslog.Entry) {
	it.buf, it.header = it.buf[:0], it.header[:0]
	it.buf = e.AppendTarget(it.buf)
	target := len(it.buf)
	if bytes.IndexByte(it.buf, '?') < 0 {
		b.appendArgs(it, e)
		target = len(it.buf)
	} else {
		b.queries = true
	}
	method := it.put("", e.Method())
	host := it.put("", e.Host())
	for i := range b.headers {
		if w := &b.headers[i]; w.v != b.forwarded {
			b.putHeader(it, w.name, w.v, e)
		}
	}
	b.putCookies(it, e)
	peer := b.client(it, e)

	// From here on the buffer stays where it is.
	r := &it.now
	r.Method, r.URI, r.Host = it.text(method), unsafeText(it.buf[:target]), it.text(host)
	r.Header = r.Header[:0]
	for _, s := range it.header {
		if s.name != "" {
			r.Header = append(r.Header, edge.Field{Name: s.name, Value: it.text(s)})
		}
	}
	r.Peer, r.At, r.Takes, r.Status = peer, time.UnixMicro(it.at), time.Duration(e.End-e.Start)*time.Microsecond, e.Status()
	r.ID, r.Costs = "", b.costsOf(e)
	it.http10 = string(e.Protocol()) == "HTTP/1.0"
	r.Key, r.Login = b.whose.now.find(e, b.told)
	if b.against != nil {
		header := append(it.before.Header[:0], r.Header...)
		it.before = *r
		it.before.Header = header
		it.before.Key, it.before.Login = b.whose.before.find(e, b.told)
	}
}

// put keeps a value in the buffer.
func (it *item) put(name string, value []byte) span {
	from := len(it.buf)
	it.buf = append(it.buf, value...)
	return span{name, from, len(it.buf)}
}

func (it *item) text(s span) string { return unsafeText(it.buf[s.from:s.to]) }

// unsafeText is bytes as a string that lives as long as they do not change: until
// the item's outcome is told.
func unsafeText(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

func (b *builder) value(e *accesslog.Entry, v accesslog.Var) []byte {
	value := e.Value(v)
	if value != nil {
		b.told[v] = true
	}
	return value
}

func (b *builder) putHeader(it *item, name string, v accesslog.Var, e *accesslog.Entry) {
	if value := b.value(e, v); value != nil {
		it.header = append(it.header, it.put(name, value))
	}
}

// putCookies puts in the cookies of $http_cookie, or those of $cookie_NAME.
func (b *builder) putCookies(it *item, e *accesslog.Entry) {
	if len(b.cookies) == 0 {
		return
	}
	if value := b.value(e, accesslog.VarCookies); value != nil {
		it.header = append(it.header, it.put("Cookie", value))
		return
	}
	s := span{name: "Cookie", from: len(it.buf)}
	for i := range b.cookies {
		if value := b.value(e, b.cookies[i].v); value != nil {
			if len(it.buf) > s.from {
				it.buf = append(it.buf, "; "...)
			}
			it.buf = append(append(append(it.buf, b.cookies[i].name...), '='), value...)
		}
	}
	if s.to = len(it.buf); s.to > s.from {
		it.header = append(it.header, s)
	}
}

// appendArgs adds parameters that the log has in variables of their own.
func (b *builder) appendArgs(it *item, e *accesslog.Entry) {
	sep := byte('?')
	for i := range b.args {
		if value := b.value(e, b.args[i].v); value != nil {
			it.buf = append(append(append(append(it.buf, sep), b.args[i].name...), '='), value...)
			sep = '&'
		}
	}
}

// client finds who connected. $realip_remote_addr is the peer where NGINX has put
// the client into $remote_addr; without what the proxy sent, that is the client.
// Else $remote_addr is the peer: and when it is the client after all, it is no
// trusted proxy, and the policy takes it for the client too.
func (b *builder) client(it *item, e *accesslog.Entry) netip.Addr {
	remote, peer := e.Value(accesslog.VarRemoteAddr), e.Value(accesslog.VarRealipRemoteAddr)
	var sent []byte
	if b.header != "" {
		sent = b.value(e, b.forwarded)
	}
	it.forwarded = sent != nil
	if sent != nil {
		it.header = append(it.header, it.put(b.header, sent))
	}
	switch {
	case peer != nil && (sent != nil || b.header == ""):
		return parseAddr(peer)
	case peer == nil && remote == nil:
		return parseAddr(e.Value(accesslog.VarProxyProtocolAddr))
	case sent == nil && b.proxied.IsValid():
		// Nobody can tell whether this client came directly: he is taken to have come
		// through a proxy, as most do.
		b.direct++
		it.header = append(it.header, it.put(b.header, remote))
		return b.proxied
	}
	return parseAddr(remote)
}

// parseAddr reads an address; what is none ("unix:") is the zero value.
func parseAddr(s []byte) netip.Addr {
	addr, err := netip.ParseAddr(unsafeText(s))
	if err != nil {
		return netip.Addr{}
	}
	return addr.WithZone("")
}

// ours tells of requests that NGINX itself made: those that ask the service, and,
// in the log of a server that it asks, what comes over HTTP/1.0 from this machine.
func (b *builder) ours(it *item) bool {
	if strings.HasPrefix(it.now.URI, policies.AuthPrefix) {
		return true
	}
	return it.http10 && it.now.Peer.IsLoopback() && !it.forwarded
}

// isDatagram tells of the lines that tell the service of ends of requests.
func isDatagram(e *accesslog.Entry) bool {
	return e.Value(accesslog.VarRemoteAddr) == nil && e.Method() == nil &&
		bytes.HasPrefix(e.Value(accesslog.VarRequestURI), []byte(policies.AuthPrefix))
}
