package policies

import "strings"

func checkTenants(p *Policy, f *findings) {
	for i := range p.Tenants {
		f.tenant(elem("tenants", i), &p.Tenants[i])
	}
}

// tenant checks what a tenant and his keys say.
func (f *findings) tenant(path string, t *TenantSpec) {
	f.need(path, key{"id", t.ID != ""}, key{"plan", t.Plan != ""})
	f.wantPlan(field(path, "plan"), t.Plan)
	repeats(f, field(path, "cidrs"), t.CIDRs)
	for j := range t.Keys {
		k, path := &t.Keys[j], elem(field(path, "keys"), j)
		f.need(path, key{"id", k.ID != ""}, key{"sha256", k.SHA256 != SHA256{}})
		f.wantPlan(field(path, "plan"), k.Plan)
		repeats(f, field(path, "cidrs"), k.CIDRs)
	}
}

// checkTenantNames wants every name and every credential to have one owner. A
// hash is never printed: the line is enough.
func checkTenantNames(p *Policy, f *findings) {
	ids, folded, claims := firsts[Name]{}, firsts[string]{}, firsts[Text]{}
	byID := map[Text]int{} // tenants that tokens name by their ids
	for i := range p.Tenants {
		if t := &p.Tenants[i]; t.Claim == "" && t.ID != "" {
			byID[Text(t.ID)] = i
		}
	}
	keys, hashes, certs := firsts[Name]{}, firsts[SHA256]{}, firsts[SHA256]{}
	for i := range p.Tenants {
		t, path := &p.Tenants[i], elem("tenants", i)
		if first, taken := ids.taken(t.ID, place{path: field(path, "id")}); taken && t.ID != "" {
			f.errorf(field(path, "id"), ruleTwice, "the id %s is taken by %s; want another", t.ID, f.where(first))
		} else if first, taken := folded.taken(strings.ToLower(string(t.ID)), place{path: field(path, "id")}); taken && t.ID != "" {
			f.warnf(field(path, "id"), ruleSimilar, "the id %s differs from %s in case alone; want names that people can tell apart", t.ID, f.where(first))
		}
		if first, taken := claims.taken(t.Claim, place{path: field(path, "claim")}); taken && t.Claim != "" {
			f.errorf(field(path, "claim"), ruleKeyTwice, "the claim %s is another tenant's too, %s; want one tenant for a claim", show(string(t.Claim)), f.where(first))
		} else if j, taken := byID[t.Claim]; taken && t.Claim != "" {
			f.errorf(field(path, "claim"), ruleKeyTwice, "the claim %s is the id of another tenant, %s, who has no claim; want one tenant for a claim",
				show(string(t.Claim)), f.where(place{path: field(elem("tenants", j), "id")}))
		}
		for j := range t.Keys {
			k, path := &t.Keys[j], elem(field(path, "keys"), j)
			if first, taken := keys.taken(k.ID, place{path: field(path, "id")}); taken && k.ID != "" {
				f.errorf(field(path, "id"), ruleTwice, "the key id %s is taken by %s; want another, for logs and tests name keys by it", k.ID, f.where(first))
			}
			if first, taken := hashes.taken(k.SHA256, place{path: field(path, "sha256")}); taken && k.SHA256 != (SHA256{}) {
				f.errorf(field(path, "sha256"), ruleKeyTwice, "the same key is in the file twice, first as %s; want each key once", f.where(first))
			}
		}
		for j, hash := range t.CertSHA256 {
			at := elem(field(path, "cert_sha256"), j)
			if first, taken := certs.taken(hash, place{path: at}); taken {
				f.errorf(at, ruleKeyTwice, "the same certificate is in the file twice, first as %s; want each once", f.where(first))
			}
		}
	}
}
