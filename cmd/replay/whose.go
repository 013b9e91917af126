package replay

import (
	"encoding/hex"
	"slices"
	"strings"

	"sluice/cmd/accesslog"
	"sluice/cmd/trial"
	"sluice/policies"
)

// whose tells by a column of the log whose a request is, in each policy.
type whose struct {
	now, before *owners
}

// owners are the tenants of one policy by what a log may call them.
type owners struct {
	policy *policies.Compiled
	column accesslog.Var
	known  map[string]owner
	issuer *trial.Issuer // of tokens; nil: the policy takes none
	// strangers are lines with a name that is no tenant's and no key's, and mute those
	// of tenants for whom nothing can be shown here.
	strangers, mute int64
	asked           bool // a column was asked for
}

// owner is how a request shows whose it is.
type owner struct {
	key   *trial.Key
	login *trial.Login
}

// maxStrangers bounds the names of a log that are remembered.
const maxStrangers = 100_000

// newWhose gives the policies credentials that stand in for the tenants' own.
func newWhose(b *builder, o *Options) (*whose, error) {
	column, asked := accesslog.VarTenant, o.Tenant != ""
	if asked {
		column = b.vars.Want(strings.TrimPrefix(o.Tenant, "$"))
	}
	w := &whose{}
	var err error
	if b.policy, w.now, err = newOwners(o.Policy, column, asked); err != nil {
		return nil, err
	}
	if o.Against != nil {
		b.against, w.before, err = newOwners(o.Against, column, asked)
	}
	return w, err
}

func newOwners(c *policies.Compiled, column accesslog.Var, asked bool) (*policies.Compiled, *owners, error) {
	w := &owners{policy: c, column: column, known: map[string]owner{}, asked: asked}
	if c.Identity == nil {
		return c, w, nil
	}
	takes := func(kind policies.SourceKind) bool {
		return slices.ContainsFunc(c.Identity.Sources, func(s policies.Source) bool { return s.Kind == kind })
	}
	out, err := c, error(nil)
	if takes(policies.SourceJWT) {
		if out, w.issuer, err = trial.Tokens(c); err != nil {
			return nil, nil, err
		}
	}
	if !takes(policies.SourceAPIKey) {
		return out, w, nil
	}
	var ids []string
	for t := range c.Tenants {
		for k := range c.Tenants[t].Keys {
			ids = append(ids, c.Tenants[t].Keys[k].ID)
		}
	}
	out, keys, err := trial.Keys(out, ids)
	if err != nil {
		return nil, nil, err
	}
	for t := range c.Tenants {
		w.tenant(&c.Tenants[t], keys)
	}
	return out, w, nil
}

// tenant makes a tenant and its keys known. A tenant shows the first of its keys
// that is not switched off.
func (w *owners) tenant(t *policies.Tenant, keys map[string]*trial.Key) {
	for i := range t.Keys {
		k := &t.Keys[i]
		o := owner{key: keys[k.ID]}
		w.known[k.ID] = o
		w.known[hex.EncodeToString(k.Hash[:])] = o
		if first, ok := w.known[t.ID]; !ok || i > 0 && t.Keys[0].Disabled && !k.Disabled && first.key == keys[t.Keys[0].ID] {
			w.known[t.ID] = o
		}
	}
}

// find is whose a request is, by the log's own word.
func (w *owners) find(e *accesslog.Entry, told []bool) (*trial.Key, *trial.Login) {
	name := e.Value(w.column)
	if name != nil {
		told[w.column] = true
	}
	if name == nil || w.policy.Identity == nil {
		return nil, nil
	}
	o, ok := w.known[string(name)]
	if !ok {
		o = w.meet(string(name))
	}
	if o.key == nil && o.login == nil {
		if _, listed := w.policy.TenantByClaim(name); listed {
			w.mute++
		} else {
			w.strangers++
		}
	}
	return o.key, o.login
}

// meet finds out about a name that was not heard before: of a tenant without a key,
// or of one that only a token or the site's own authenticator names.
func (w *owners) meet(name string) owner {
	o := w.known[strings.ToLower(name)] // a hash in capitals
	i, listed := w.policy.TenantByClaim([]byte(name))
	switch {
	case o.key != nil:
	case listed && w.known[w.policy.Tenants[i].ID].key != nil:
		o = w.known[w.policy.Tenants[i].ID]
	case w.issuer != nil:
		o.key = w.token(name)
	case w.policy.Identity.Login != nil:
		o.login = &trial.Login{Tenant: name}
	}
	if len(w.known) < maxStrangers+2*len(w.policy.Tenants) {
		w.known[name] = o
	}
	return o
}

// token is one that names the tenant, nil when no issuer names any.
func (w *owners) token(name string) *trial.Key {
	for i := range w.policy.Identity.Sources {
		s := &w.policy.Identity.Sources[i]
		if s.Kind != policies.SourceJWT || s.Token.TenantClaim == "" {
			continue
		}
		if key, err := w.issuer.Token(map[string]string{"iss": s.Token.Issuer, s.Token.TenantClaim: name}); err == nil {
			return key
		}
	}
	return nil
}
