package directory

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	keyPrefix    = "sluice:key:"
	tenantPrefix = "sluice:tenant:"
	claimPrefix  = "sluice:claim:"
	certPrefix   = "sluice:cert:"
	// maxID is the longest id, in bytes, maxClaim the longest claim, and maxNetworks
	// the most networks of a record.
	maxID, maxClaim, maxNetworks = 64, 256, 100
)

// Key is an API key as the directory has it. It does not change.
type Key struct {
	ID       string
	Tag      []byte // the ID; for who wants bytes
	TenantID string
	Disabled bool
	Networks []netip.Prefix // it counts only from here; nil: from anywhere
	Broken   bool           // the record cannot be used: nobody gets in by it
}

// Tenant is a tenant as the directory has it. It does not change.
type Tenant struct {
	ID       string
	Tag      []byte // the ID; for who wants bytes
	Plan     string // a name, of which only the policy knows whether it has it
	Claim    string // what tokens and logins call it; empty: its ID
	Disabled bool
	Networks []netip.Prefix // its keys count only from here; nil: from anywhere
	Broken   bool           // the record cannot be used: nobody gets in by it
}

// named is what tokens and logins call the tenant.
func (t *Tenant) named() string {
	if t.Claim != "" {
		return t.Claim
	}
	return t.ID
}

// Link says whose a claim or a certificate is. It does not change.
type Link struct {
	TenantID string
	ByID     bool // there is no record of the claim: it is the tenant's id
	Broken   bool // the record cannot be used: nobody gets in by it
}

// linkOf reads the record of a claim or a certificate.
func linkOf(fields map[string]string) (Link, error) {
	for name := range fields {
		if name != "tenant" {
			return Link{Broken: true}, fmt.Errorf("%.40q is no field of it; want tenant", name)
		}
	}
	if err := checkID("tenant", fields["tenant"]); err != nil {
		return Link{Broken: true}, err
	}
	return Link{TenantID: fields["tenant"]}, nil
}

// keyOf reads the record of a key.
func keyOf(fields map[string]string) (Key, error) {
	k := Key{ID: fields["id"], Tag: []byte(fields["id"]), TenantID: fields["tenant"]}
	for _, id := range []struct{ field, value string }{{"id", k.ID}, {"tenant", k.TenantID}} {
		if err := checkID(id.field, id.value); err != nil {
			return Key{Broken: true}, err
		}
	}
	var err error
	if k.Disabled, k.Networks, err = common(fields, "id", "tenant"); err != nil {
		return Key{Broken: true}, err
	}
	return k, nil
}

// tenantOf reads the record of a tenant.
func tenantOf(id string, fields map[string]string) (Tenant, error) {
	t := Tenant{ID: id, Tag: []byte(id), Plan: fields["plan"], Claim: fields["claim"]}
	if t.Plan == "" {
		return Tenant{ID: id, Broken: true}, fmt.Errorf("plan is missing; want the name of a plan of the policy")
	}
	if claim, there := fields["claim"]; there && (claim == "" || len(claim) > maxClaim) {
		return Tenant{ID: id, Broken: true}, fmt.Errorf("claim has %d bytes; want 1 to %d, or no such field for the id", len(claim), maxClaim)
	}
	var err error
	if t.Disabled, t.Networks, err = common(fields, "plan", "claim", "name"); err != nil {
		return Tenant{ID: id, Broken: true}, err
	}
	return t, nil
}

// common reads what keys and tenants both have, and wants no other fields than
// those and the record's own.
func common(fields map[string]string, own ...string) (disabled bool, networks []netip.Prefix, err error) {
	for name, value := range fields {
		switch {
		case name == "disabled":
			if value != "0" && value != "1" {
				return false, nil, fmt.Errorf("disabled is neither 1 nor 0")
			}
			disabled = value == "1"
		case name == "cidrs":
			if networks, err = networksOf(value); err != nil {
				return false, nil, err
			}
		case !contains(own, name):
			return false, nil, fmt.Errorf("%.40q is no field of it; want %s, disabled or cidrs", name, strings.Join(own, ", "))
		}
	}
	return disabled, networks, nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// networksOf reads networks and addresses. A list without any would mean nobody.
func networksOf(text string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		p, err := netip.ParsePrefix(word)
		if err != nil {
			addr, err := netip.ParseAddr(word)
			if err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("cidrs has %.50q, which is no network; want such as 192.0.2.0/24", word)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("cidrs has %s, with bits set behind its length; want %s", p, p.Masked())
		}
		out = append(out, p)
	}
	if len(out) == 0 || len(out) > maxNetworks {
		return nil, fmt.Errorf("cidrs has %d networks; want 1 to %d, or no such field for everywhere", len(out), maxNetworks)
	}
	return out, nil
}

// checkID wants a name as policies have them.
func checkID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s is missing", field)
	case len(id) > maxID || strings.IndexFunc(id, notPlain) >= 0:
		return fmt.Errorf("%s is no name; want at most %d letters, digits, dots, dashes and underscores", field, maxID)
	}
	return nil
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}
