package policies

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// WithCertificates is c with more certificates of tenants, by the hash of each:
// for trials of a policy. c itself stays as it is.
func (c *Compiled) WithCertificates(certs map[SHA256]int) *Compiled {
	out := *c
	out.certs = maps.Clone(c.certs)
	maps.Copy(out.certs, certs)
	return &out
}

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
