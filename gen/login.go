package gen

import "strings"

// login is how a site's own authenticator is asked before the service is: a
// location has room for one auth_request. The subrequest of a client without
// another credential goes to a server of ours on a unix socket, whose location
// asks the authenticator, and then the service, who it is.
type login struct {
	Socket   Token // listen and proxy_pass
	Location Token // of the authenticator
	// Forward are headers of the client's that the authenticator may need.
	Forward []header
	// Sent is what the service is told, as it came from the outer server.
	Sent []header
	// User and Tenant are what the authenticator's answer names; empty: nothing.
	User, Tenant Token
	// Wanted is the map that tells whether the authenticator is asked.
	Wanted block
	// Failed is the map that tells who may be let in while the service is away.
	Failed block
}

// loginView is for login.conf and chain.conf.
type loginView struct {
	Stamp   Token
	Headers []header
	Timeout Token
	Login   login
}

// chained tells whether the site's own authenticator is asked.
func (b *builder) chained() bool { return b.c.Identity != nil && b.c.Identity.Login != nil }

// serverLogin fills a login; it is empty when the policy has none.
func (b *builder) serverLogin(a asking) login {
	if !b.chained() {
		return login{}
	}
	from := b.c.Identity.Login
	l := login{
		Socket:   b.take(address(b.opt.LoginSocket)),
		Location: b.take(Quote(from.Location)),
		Wanted:   b.loginWanted(a),
		Failed:   loginFailed(),
		Forward: []header{
			{word("Host"), word("$http_host")},
			{word("Cookie"), word("$http_cookie")},
			{word("Authorization"), word("$http_authorization")},
			{word("User-Agent"), word("$http_user_agent")},
			{word("Accept"), word("$http_accept")},
			{word("Accept-Language"), word("$http_accept_language")},
			{word("X-Forwarded-For"), word("$remote_addr")},
			{word("X-Forwarded-Proto"), word("$scheme")},
			{word("X-Forwarded-Host"), word("$host")},
			{word("X-Original-URI"), word("$request_uri")},
			{word("X-Original-Method"), word("$request_method")},
		},
	}
	for _, h := range a.headers {
		if name := h.Name.String(); strings.HasPrefix(name, "X-Sluice-") {
			l.Sent = append(l.Sent, header{h.Name, headerVariable("http_", name)})
		}
	}
	if from.UserHeader != "" {
		l.User = headerVariable("upstream_http_", from.UserHeader)
	}
	if from.TenantHeader != "" {
		l.Tenant = headerVariable("upstream_http_", from.TenantHeader)
	}
	return l
}

// loginWanted is 1 when no credential of the policy is shown.
func (b *builder) loginWanted(a asking) block {
	shown := &text{}
	for _, name := range a.credentials {
		shown.v(name)
	}
	source := none()
	if len(shown.parts) > 0 {
		source = shown.mustToken()
	}
	m := newMap(source, "sluice_login_wanted", "No other credential is shown: your own authenticator says who it is.")
	m.otherwise(none())
	m.line(none(), word("1"))
	return m
}

// loginFailed keeps everybody out of whom the authenticator was not asked, or did
// not answer: no status alone says that it did.
func loginFailed() block {
	m := newMap(word("$upstream_http_x_sluice_login"), "sluice_login_failed", "The service is away: its fail mode is for who is logged in.")
	m.Volatile = true
	m.otherwise(word("@sluice_login_away"))
	m.line(word("1"), word("@sluice_fail_open"))
	return m
}

// loginFiles writes what a chained authenticator needs.
func (b *builder) loginFiles(out *output, a asking, l login) {
	if l.Location == (Token{}) {
		return
	}
	var forwarded []header
	for _, h := range a.headers {
		if strings.HasPrefix(h.Name.String(), "X-Sluice-") {
			forwarded = append(forwarded, h)
		}
	}
	view := loginView{Stamp: b.stamp, Headers: forwarded, Timeout: word(milliseconds(b.c.LongestWait() + waitMargin)), Login: l}
	out.file("sluice/login.conf", "login.conf.tmpl", view)
	out.file("sluice/chain.conf", "chain.conf.tmpl", view)
}
