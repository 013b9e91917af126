package directory

import (
	"encoding/hex"
	"fmt"
	"strings"

	"sluice/policies"
)

// Record is a record as it is in Redis.
type Record struct {
	// Name is what changes of it are told by: tenant:ID, key:HEX, claim:TEXT, cert:HEX.
	// In Redis it begins with sluice: besides.
	Name   string
	Fields map[string]string
}

// RecordsOf are the records of a tenant of a policy: his own first, and those that
// name him after it. It is an error when a record has no room for something.
func RecordsOf(t *policies.TenantSpec) ([]Record, error) {
	own, err := tenantRecord(t)
	if err != nil {
		return nil, fmt.Errorf("tenant %s: %w", t.ID, err)
	}
	records, link := []Record{own}, map[string]string{"tenant": string(t.ID)}
	if t.Claim != "" {
		records = append(records, Record{"claim:" + string(t.Claim), link})
	}
	for _, hash := range t.CertSHA256 {
		records = append(records, Record{"cert:" + hex.EncodeToString(hash[:]), link})
	}
	for i := range t.Keys {
		r, err := keyRecord(t, &t.Keys[i])
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", t.Keys[i].ID, err)
		}
		records = append(records, r)
	}
	return records, nil
}

func tenantRecord(t *policies.TenantSpec) (Record, error) {
	f := map[string]string{"plan": string(t.Plan)}
	set(f, "name", string(t.Name))
	set(f, "claim", string(t.Claim))
	writeCommon(f, t.Disabled, t.CIDRs)
	for limit, o := range t.Overrides {
		for number, value := range numbersOf(&o) {
			f["override:"+string(limit)+":"+number] = value
		}
	}
	if err := writeGrants(f, t.Grants); err != nil {
		return Record{}, err
	}
	// What is written can be read: the rules of both are said once.
	_, err := ReadTenant(string(t.ID), f)
	return Record{"tenant:" + string(t.ID), f}, err
}

func keyRecord(t *policies.TenantSpec, k *policies.KeySpec) (Record, error) {
	f := map[string]string{"tenant": string(t.ID), "id": string(k.ID)}
	set(f, "plan", string(k.Plan))
	set(f, "simulate", string(k.Simulate))
	writeCommon(f, k.Disabled, k.CIDRs)
	_, err := ReadKey(k.SHA256, f)
	return Record{"key:" + hex.EncodeToString(k.SHA256[:]), f}, err
}

// set writes a field that says something.
func set(f map[string]string, name, value string) {
	if value != "" {
		f[name] = value
	}
}

// writeCommon writes what tenants and keys both have.
func writeCommon(f map[string]string, disabled bool, cidrs policies.List[policies.Network]) {
	if disabled {
		f["disabled"] = "1"
	}
	if cidrs == nil {
		return
	}
	words := []string{}
	for _, n := range cidrs.All() {
		words = append(words, n.String())
	}
	f["cidrs"] = strings.Join(words, " ")
}

// numbersOf are the numbers of an override, as policies write them.
func numbersOf(o *policies.OverrideSpec) map[string]string {
	out := map[string]string{}
	spell(out, "rate", o.Rate)
	spell(out, "burst", o.Burst)
	spell(out, "wait", o.Wait)
	spell(out, "window", o.Window)
	spell(out, "quota", o.Quota)
	spell(out, "overage", o.Overage)
	spell(out, "concurrency", o.Concurrency)
	spell(out, "retries", o.Retries)
	return out
}

func spell[T fmt.Stringer](out map[string]string, name string, value *T) {
	if value != nil {
		out[name] = (*value).String()
	}
}

// writeGrants writes grants, those of the same limit and days as one.
func writeGrants(f map[string]string, grants []policies.GrantSpec) error {
	units, reasons := map[string]policies.Count{}, map[string][]string{}
	for _, g := range grants {
		if g.Add == nil {
			return fmt.Errorf("a grant of %s adds nothing", g.Limit)
		}
		name := fmt.Sprintf("grant:%s:%s:%s", g.Limit, g.From, g.Until)
		units[name] += *g.Add
		if g.Reason != "" {
			reasons[name] = append(reasons[name], string(g.Reason))
		}
	}
	for name, add := range units {
		f[name] = strings.TrimSpace(add.String() + " " + strings.Join(reasons[name], "; "))
	}
	return nil
}
