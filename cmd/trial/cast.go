package trial

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"sluice/policies"
)

// Who is an identity as tests and people name it: at most one of Key, Tenant and
// Claims is set.
type Who struct {
	Key    string            // the id of a key
	Tenant string            // the id of a tenant, of whom User is one when it is set
	User   string            //
	Claims map[string]string // of a token
}

// Cast are the credentials that stand in for those of a policy.
type Cast struct {
	policy *policies.Compiled
	keys   map[string]*Key
	issuer *Issuer
	tokens map[string]*Key
	wanted map[string]string // the key of a tenant
	certs  map[policies.SHA256]int
}

// NewCast finds credentials for all of these. Trials of Cast.Policy take them.
// The error of one who cannot show anything is at his index; nil: he can.
func NewCast(c *policies.Compiled, all []Who) (*Cast, []error) {
	cast := &Cast{policy: c, tokens: map[string]*Key{}, wanted: map[string]string{}, certs: map[policies.SHA256]int{}}
	errs := make([]error, len(all))
	if c.Identity != nil && slices.ContainsFunc(c.Identity.Sources, isToken) && slices.ContainsFunc(all, func(w Who) bool { return w.Tenant != "" || w.Claims != nil }) {
		withTokens, issuer, err := Tokens(c)
		if err == nil {
			cast.policy, cast.issuer = withTokens, issuer
		}
	}
	tenants := map[string]int{}
	for i := range c.Tenants {
		tenants[c.Tenants[i].ID] = i
	}
	var ids []string
	for i := range all {
		id, err := cast.admit(&all[i], tenants)
		if errs[i] = err; id != "" {
			ids = append(ids, id)
		}
	}
	if len(cast.certs) > 0 {
		cast.policy = cast.policy.WithCertificates(cast.certs)
	}
	withKeys, keys, err := Keys(cast.policy, ids)
	if err != nil {
		for i := range all {
			if errs[i] == nil && (all[i].Key != "" || cast.wanted[all[i].Tenant] != "") {
				errs[i] = err
			}
		}
		return cast, errs
	}
	cast.policy, cast.keys = withKeys, keys
	return cast, errs
}

// Policy is the policy that takes the credentials.
func (c *Cast) Policy() *policies.Compiled { return c.policy }

// admit finds how somebody shows who he is, and the id of the key that it takes.
func (c *Cast) admit(w *Who, tenants map[string]int) (keyID string, err error) {
	switch {
	case w.Key != "":
		return w.Key, nil
	case w.Claims != nil && c.issuer == nil:
		return "", fmt.Errorf("the policy takes no tokens: identity.sources has no jwt")
	case w.Claims != nil:
		key, err := c.issuer.Token(w.Claims)
		c.tokens[claimsID(w.Claims)] = key
		return "", err
	case w.Tenant == "":
		return "", nil
	}
	i, known := tenants[w.Tenant]
	if !known {
		return "", fmt.Errorf("the policy has no tenant %q", w.Tenant)
	}
	if c.issuer != nil {
		if key, err := c.issuer.Tenant(i, w.User); err == nil {
			c.tokens[tenantID(w)] = key
			return "", nil
		}
	}
	if c.policy.Identity != nil && c.policy.Identity.Login != nil {
		return "", nil
	}
	if c.showsCert(i, w) {
		return "", nil
	}
	id, err := keyOf(&c.policy.Tenants[i], w.User)
	c.wanted[w.Tenant] = id
	return id, err
}

// showsCert gives a tenant who has certificates and no keys one that stands in
// for them: what the service is sent of it is PEM, and nothing looks inside.
func (c *Cast) showsCert(tenant int, w *Who) bool {
	t := &c.policy.Tenants[tenant]
	takes := c.policy.Identity != nil && slices.ContainsFunc(c.policy.Identity.Sources, func(s policies.Source) bool { return s.Kind == policies.SourceCert })
	if !takes || len(t.Certs) == 0 || len(t.Keys) > 0 || w.User != "" {
		return false
	}
	der := []byte("stands in for a certificate of " + t.ID)
	c.certs[sha256.Sum256(der)] = tenant
	c.tokens[tenantID(w)] = &Key{cert: "-----BEGIN%20CERTIFICATE-----%0A" + base64.StdEncoding.EncodeToString(der) + "%0A-----END%20CERTIFICATE-----%0A"}
	return true
}

func tenantID(w *Who) string { return w.Tenant + "\x00" + w.User }

// keyOf is a tenant's first key that is good and has no plan of its own.
func keyOf(t *policies.Tenant, user string) (string, error) {
	if user != "" {
		return "", fmt.Errorf("nothing in the policy says who is a user of tenant %q: identity.sources has neither jwt nor auth_request", t.ID)
	}
	for j := range t.Keys {
		if k := &t.Keys[j]; !k.Disabled && k.Plan == t.Plan {
			return k.ID, nil
		}
	}
	return "", fmt.Errorf("nobody of tenant %q could show who he is: it has no key with its plan", t.ID)
}

// Show puts an identity into a request.
func (c *Cast) Show(w *Who, r *Request) {
	switch {
	case w.Key != "":
		r.Key = c.keys[w.Key]
	case w.Claims != nil:
		r.Key = c.tokens[claimsID(w.Claims)]
	case w.Tenant == "":
	case c.tokens[tenantID(w)] != nil:
		r.Key = c.tokens[tenantID(w)]
	case c.wanted[w.Tenant] != "":
		r.Key = c.keys[c.wanted[w.Tenant]]
	default:
		i := slices.IndexFunc(c.policy.Tenants, func(t policies.Tenant) bool { return t.ID == w.Tenant })
		r.Login = &Login{User: w.User, Tenant: c.policy.Tenants[i].Claim}
	}
}
