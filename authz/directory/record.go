package directory

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sluice/authz/memo"
	"sluice/policies"
)

const (
	keyPrefix    = "sluice:key:"
	tenantPrefix = "sluice:tenant:"
	claimPrefix  = "sluice:claim:"
	certPrefix   = "sluice:cert:"
	// maxID is the longest id, in bytes, maxClaim the longest claim, and maxNetworks
	// the most networks of a record.
	maxID, maxClaim, maxNetworks = 64, 256, 1000
)

// Key is an API key as the directory has it. It does not change.
type Key struct {
	ID       string
	Tag      []byte // the ID; for who wants bytes
	TenantID string
	Disabled bool
	Networks []netip.Prefix // it counts only from here; nil: from anywhere
	Broken   bool           // the record cannot be used: nobody gets in by it
	// Spec is the key as a policy would have it, of which only the policy knows
	// whether its plan and its limit are there; nil when it is Broken.
	Spec *policies.KeySpec
}

// Tenant is a tenant as the directory has it. It does not change.
type Tenant struct {
	ID       string
	Tag      []byte   // the ID; for who wants bytes
	Hash     memo.Key // of the ID
	Claim    string   // what tokens and logins call it; empty: its ID
	Disabled bool
	Networks []netip.Prefix // its credentials count only from here; nil: from anywhere
	Broken   bool           // the record cannot be used: nobody gets in by it
	// Spec is the tenant as a policy would have it, but for its keys and certificates,
	// of which only the policy knows whether its plan and limits are there; nil when it
	// is Broken.
	Spec *policies.TenantSpec
}

// Named is what tokens and logins call the tenant.
func (t *Tenant) Named() string {
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

// ReadLink reads the record of a claim or a certificate. With an error it is Broken.
func ReadLink(fields map[string]string) (Link, error) {
	var tenant policies.Name
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "tenant" {
			return Link{Broken: true}, unknown(name, "tenant")
		}
		if err := parse(name, fields[name], &tenant); err != nil {
			return Link{Broken: true}, err
		}
	}
	return Link{TenantID: string(tenant)}, nil
}

// ReadKey reads the record of a key, known by its hash. With an error it is Broken.
func ReadKey(hash memo.Key, fields map[string]string) (Key, error) {
	spec := &policies.KeySpec{SHA256: policies.SHA256(hash)}
	var tenant policies.Name
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var err error
		switch value := fields[name]; name {
		case "id":
			err = parse(name, value, &spec.ID)
		case "tenant":
			err = parse(name, value, &tenant)
		case "plan":
			err = parse(name, value, &spec.Plan)
		case "simulate":
			err = parse(name, value, &spec.Simulate)
		case "disabled":
			spec.Disabled, err = readSwitch(value)
		case "cidrs":
			spec.CIDRs, err = readNetworks(value)
		default:
			err = unknown(name, "tenant, id, plan, simulate, disabled or cidrs")
		}
		if err != nil {
			return Key{Broken: true}, err
		}
	}
	for _, need := range []struct {
		field string
		value policies.Name
	}{{"tenant", tenant}, {"id", spec.ID}} {
		if need.value == "" {
			return Key{Broken: true}, fmt.Errorf("%s is missing", need.field)
		}
	}
	return Key{
		ID: string(spec.ID), Tag: []byte(spec.ID), TenantID: string(tenant),
		Disabled: spec.Disabled, Networks: policies.Networks(spec.CIDRs), Spec: spec,
	}, nil
}

// ReadTenant reads the record of a tenant. With an error it is Broken.
func ReadTenant(id string, fields map[string]string) (Tenant, error) {
	spec := &policies.TenantSpec{}
	err := parse("the id", id, &spec.ID)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err == nil {
			err = readTenantField(spec, name, fields[name])
		}
	}
	if err == nil && spec.Plan == "" {
		err = fmt.Errorf("plan is missing; want the name of a plan of the policy")
	}
	if err != nil {
		return Tenant{ID: id, Broken: true}, err
	}
	return Tenant{
		ID: id, Tag: []byte(id), Hash: tenantKey(id), Claim: string(spec.Claim),
		Disabled: spec.Disabled, Networks: policies.Networks(spec.CIDRs), Spec: spec,
	}, nil
}

func readTenantField(spec *policies.TenantSpec, name, value string) (err error) {
	switch kind, rest, _ := strings.Cut(name, ":"); {
	case name == "name": // nobody reads it here
	case name == "plan":
		err = parse(name, value, &spec.Plan)
	case name == "claim" && len(value) > maxClaim:
		err = fmt.Errorf("claim has %d bytes; want at most %d", len(value), maxClaim)
	case name == "claim":
		err = parse(name, value, &spec.Claim)
	case name == "disabled":
		spec.Disabled, err = readSwitch(value)
	case name == "cidrs":
		spec.CIDRs, err = readNetworks(value)
	case kind == "override":
		err = readOverride(spec, rest, value)
	case kind == "grant":
		err = readGrant(spec, rest, value)
	default:
		err = unknown(name, "plan, claim, disabled, cidrs, name, override:LIMIT:NUMBER or grant:LIMIT:FROM:UNTIL")
	}
	return err
}

// readOverride reads a number of the tenant's own, named LIMIT:NUMBER.
func readOverride(spec *policies.TenantSpec, name, value string) error {
	limit, number, _ := strings.Cut(name, ":")
	var of policies.Name
	if err := parse("the limit of an override", limit, &of); err != nil {
		return err
	}
	o := spec.Overrides[of]
	into := numberOf(&o, number)
	if into == nil {
		return unknown("override:LIMIT:"+number, strings.Join(numbers(), ", "))
	}
	if err := parse(number, value, into); err != nil {
		return err
	}
	if spec.Overrides == nil {
		spec.Overrides = map[policies.Name]policies.OverrideSpec{}
	}
	spec.Overrides[of] = o
	return nil
}

// numbers are the numbers of a limit that a tenant may have of his own.
func numbers() []string {
	return []string{"rate", "burst", "wait", "window", "quota", "overage", "concurrency", "retries"}
}

// numberOf makes room for a number of an override; nil when it has none by that name.
func numberOf(o *policies.OverrideSpec, name string) encoding.TextUnmarshaler {
	switch name {
	case "rate":
		return made(&o.Rate)
	case "burst":
		return made(&o.Burst)
	case "wait":
		return made(&o.Wait)
	case "window":
		return made(&o.Window)
	case "quota":
		return made(&o.Quota)
	case "overage":
		return made(&o.Overage)
	case "concurrency":
		return made(&o.Concurrency)
	case "retries":
		return made(&o.Retries)
	}
	return nil
}

func made[T any](p **T) *T {
	*p = new(T)
	return *p
}

// readGrant reads a grant, named LIMIT:FROM:UNTIL. Behind its units a reason may stand.
func readGrant(spec *policies.TenantSpec, name, value string) error {
	parts := strings.Split(name, ":")
	if len(parts) != 3 {
		return fmt.Errorf("a grant is named grant:LIMIT:FROM:UNTIL, both days included")
	}
	units, reason, _ := strings.Cut(value, " ")
	g := policies.GrantSpec{Add: new(policies.Count)}
	for _, part := range []struct {
		what, text string
		into       encoding.TextUnmarshaler
	}{{"the limit of a grant", parts[0], &g.Limit}, {"from", parts[1], &g.From}, {"until", parts[2], &g.Until}, {"the units of a grant", units, g.Add}} {
		if err := parse(part.what, part.text, part.into); err != nil {
			return err
		}
	}
	if reason != "" {
		if err := parse("the reason of a grant", reason, &g.Reason); err != nil {
			return err
		}
	}
	spec.Grants = append(spec.Grants, g)
	return nil
}

// parse reads a value as policies write it. Its error shows no value that could be a secret.
func parse(what, value string, into encoding.TextUnmarshaler) error {
	if err := into.UnmarshalText([]byte(value)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// unknown is the error about a field that a record has not. Its name is shown when it
// is a plain word: anything may have been written in the wrong place.
func unknown(name, want string) error {
	const most = 32
	if name == noHash {
		return errors.New("it is no hash")
	}
	if len(name) > most || strings.IndexFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && r != ':' && r != '_' && (r < 'A' || r > 'Z') }) >= 0 {
		return fmt.Errorf("a field of %d bytes is none of it; want %s", len(name), want)
	}
	return fmt.Errorf("%q is no field of it; want %s", name, want)
}

func readSwitch(value string) (on bool, err error) {
	if value != "0" && value != "1" {
		return false, fmt.Errorf("disabled is neither 1 nor 0")
	}
	return value == "1", nil
}

// readNetworks reads networks and addresses. A list without any would mean nobody.
func readNetworks(text string) (policies.List[policies.Network], error) {
	var out policies.List[policies.Network]
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		var n policies.Network
		if err := parse("cidrs", word, &n); err != nil {
			return nil, err
		}
		out = append(out, policies.Entry[policies.Network]{Value: n})
	}
	if len(out) == 0 || len(out) > maxNetworks {
		return nil, fmt.Errorf("cidrs has %d networks; want 1 to %d, or no such field for everywhere", len(out), maxNetworks)
	}
	return out, nil
}
