package policies

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// WithCredentials is c with more credentials that count as API keys of the
// policy, whose own credentials nobody needs to know: for trials of a policy. c
// itself stays as it is, and so does what each key has.
func (c *Compiled) WithCredentials(credentials map[KeyRef]string) *Compiled {
	out := *c
	out.keys = maps.Clone(c.keys)
	out.Tenants = slices.Clone(c.Tenants)
	for ref, credential := range credentials {
		t := &out.Tenants[ref.Tenant]
		key := c.Tenants[ref.Tenant].Keys[ref.Key]
		key.Hash = sha256.Sum256([]byte(credential))
		out.keys[key.Hash] = KeyRef{Tenant: ref.Tenant, Key: len(t.Keys)}
		t.Keys = append(slices.Clip(t.Keys), key)
	}
	return &out
}
