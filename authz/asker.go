package authz

import "crypto/sha256"

// asker is for whom something was let pass. Names of requests that NGINX makes are
// unlike all others; those that workers choose are two things when they were taken
// for two tenants.
type asker struct {
	tenant string // its id
	claim  string // how an application named it
	key    [sha256.Size]byte
	user   string
	ip     string
}

// askerOf is for whom a question was asked, once it is known who that is.
func askerOf(req *Request, d *Decision) asker {
	a := asker{tenant: d.Tenant, ip: string(req.IP)}
	if req.app != nil {
		a.claim, a.user, a.key = string(req.app.tenant), string(req.app.user), keyHash(string(req.app.key))
	}
	return a
}

// keyHash is how a key is remembered; the zero hash when there is none.
func keyHash(key string) (hash [sha256.Size]byte) {
	if key != "" {
		hash = sha256.Sum256([]byte(key))
	}
	return hash
}

// is tells whether it is the one that somebody means, who may say less.
func (a *asker) is(by *asker) bool {
	return (by.tenant == "" || by.tenant == a.tenant || by.tenant == a.claim) &&
		(by.key == [sha256.Size]byte{} || by.key == a.key) &&
		(by.user == "" || by.user == a.user) &&
		(by.ip == "" || by.ip == a.ip)
}

// appendTo appends what tells askers apart.
func (a *asker) appendTo(dst []byte) []byte {
	for _, part := range []string{a.tenant, a.claim, a.user, a.ip, string(a.key[:])} {
		dst = appendPart(dst, []byte(part))
	}
	return dst
}
