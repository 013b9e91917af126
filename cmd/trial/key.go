package trial

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// Key is a key of a policy with a credential that stands in for its own, which
// nobody knows here.
type Key struct {
	ID    string
	field edge.Field // what shows it; empty when the target does
	query string     // NAME=VALUE for the target
	cert  string     // a certificate, as NGINX sends it
}

// Keys gives keys of a policy credentials that stand in for theirs, and returns
// the policy that takes them for good. Everything else of it is as it was: use it
// for a Trial. Of a key that is asked for twice there is one.
func Keys(c *policies.Compiled, ids []string) (*policies.Compiled, map[string]*Key, error) {
	if len(ids) == 0 {
		return c, nil, nil
	}
	source, ok := firstKeySource(c)
	if !ok {
		return nil, nil, fmt.Errorf("the policy takes no API keys: identity.sources has no api_key")
	}
	refs := map[string]policies.KeyRef{}
	for t := range c.Tenants {
		for k := range c.Tenants[t].Keys {
			refs[c.Tenants[t].Keys[k].ID] = policies.KeyRef{Tenant: t, Key: k}
		}
	}
	keys, credentials := map[string]*Key{}, map[policies.KeyRef]string{}
	for _, id := range ids {
		ref, known := refs[id]
		if !known {
			return nil, nil, fmt.Errorf("the policy has no key %q", id)
		}
		if keys[id] == nil {
			credentials[ref] = source.Prefix + "stands-in-for-" + id
			keys[id] = newKey(id, credentials[ref], source)
		}
	}
	return c.WithCredentials(credentials), keys, nil
}

// firstKeySource is where clients show API keys first.
func firstKeySource(c *policies.Compiled) (*policies.Source, bool) {
	if c.Identity == nil {
		return nil, false
	}
	for i := range c.Identity.Sources {
		if s := &c.Identity.Sources[i]; s.Kind == policies.SourceAPIKey {
			return s, true
		}
	}
	return nil, false
}

func newKey(id, credential string, s *policies.Source) *Key {
	switch s.Carrier {
	case policies.CarrierQuery:
		return &Key{ID: id, query: s.Name + "=" + credential}
	case policies.CarrierCookie:
		return &Key{ID: id, field: edge.Field{Name: "Cookie", Value: s.Name + "=" + credential}}
	}
	if s.Scheme != "" {
		credential = s.Scheme + " " + credential
	}
	return &Key{ID: id, field: edge.Field{Name: s.Name, Value: credential}}
}

// show puts the credential into a request, where clients show it.
func (k *Key) show(r *edge.Request) {
	switch {
	case k.cert != "":
		r.Cert = k.cert
		return
	case k.query != "":
		sep := "?"
		if strings.Contains(r.URI, "?") {
			sep = "&"
		}
		r.URI += sep + k.query
		return
	}
	r.Header = append(r.Header[:len(r.Header):len(r.Header)], k.field)
}

// From says who connects and who the client is. Without a peer the client comes
// by himself, or, where only trusted proxies may connect, through the first of
// them, unless the request already says so.
func From(c *policies.Compiled, r *edge.Request, client, peer netip.Addr) {
	name := string(c.Client.Header)
	if c.Client.ProxyProtocol {
		name = edge.ProxyProtocol
	}
	if !peer.IsValid() && c.Client.DenyDirect && len(c.Client.Trusted) > 0 && r.Get(name) == "" {
		peer = c.Client.Trusted[0].Addr()
	}
	if r.Peer = client; !peer.IsValid() || peer == client {
		return
	}
	r.Peer = peer
	if client.IsValid() && name != "" {
		r.Header = append(slices.Clip(r.Header), edge.Field{Name: name, Value: client.String()})
	}
}
