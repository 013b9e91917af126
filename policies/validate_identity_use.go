package policies

// checkIdentityUse finds what needs to know who asks where nobody does.
func checkIdentityUse(p *Policy, f *findings) {
	if p.Identity == nil {
		checkNobody(p, f)
		return
	}
	var keys, claims, certs, users, scopes bool
	for _, s := range p.Identity.Sources {
		keys = keys || s.APIKey != nil
		claims = claims || s.JWT != nil || s.AuthRequest != nil && s.AuthRequest.TenantHeader != ""
		certs = certs || s.ClientCert != nil
		users = users || s.JWT != nil && s.JWT.UserClaim != "" || s.AuthRequest != nil && s.AuthRequest.UserHeader != ""
		scopes = scopes || s.JWT != nil && s.JWT.ScopeClaim != ""
	}
	f.unusedCredentials(keys, claims, certs)
	f.unusedPlanClaim(p.Identity)
	for path, spec := range limitSpecs(p) {
		for _, d := range spec.Per {
			switch {
			case d.Kind == DimUser && !users:
				f.warnf(field(path, "per"), rulePerNever, "no source names a user, so this counts by key; want per: key, or a user_claim or user_header")
			case d.Kind == DimScope && !scopes:
				f.warnf(field(path, "per"), rulePerNever, "no source names a scope, so this counts by key; want per: key, or a scope_claim")
			}
		}
	}
}

// unusedPlanClaim warns of a claim that nobody looks at: the plans of listed
// tenants stand in the file.
func (f *findings) unusedPlanClaim(id *IdentitySpec) {
	if id.Unlisted != nil && id.Unlisted.Plan != "" {
		return
	}
	for i, s := range id.Sources {
		if s.JWT != nil && s.JWT.PlanClaim != "" {
			f.warnf(field(field(elem("identity.sources", i), "jwt"), "plan_claim"), ruleNoEffect, "it is for tenants that are not in this file, and unlisted refuses those; want unlisted: {plan: …} for tokens that name no plan")
		}
	}
}

// checkNobody is for policies without identity.
func checkNobody(p *Policy, f *findings) {
	if len(p.Plans) > 0 {
		f.errorf("plans", ruleNoIdentity, "no request ever has a plan: identity is missing, so nobody is identified; want identity with sources, and `missing: {plan: …}` for everybody else")
	}
	if len(p.Tenants) > 0 {
		f.errorf("tenants", ruleNoIdentity, "no request ever has a tenant: identity is missing, so nobody is identified; want identity with sources")
	}
	for i := range p.Routes {
		if p.Routes[i].Plans != nil {
			f.errorf(field(elem("routes", i), "plans"), ruleNoIdentity, "nobody would be let in: identity is missing, so no request has a plan; want identity with sources")
		}
	}
	for path, spec := range limitSpecs(p) {
		for _, d := range spec.Per {
			switch d.Kind {
			case DimKey, DimTenant, DimUser, DimScope:
				f.warnf(field(path, "per"), ruleNoIdentity, "identity is missing, so no request has a %s and this counts by ip; want per: ip, or identity with sources", d.Kind)
			}
		}
	}
}

// unusedCredentials warns of tenants' credentials that no source looks for:
// once for each kind, as tenants are many.
func (f *findings) unusedCredentials(keys, claims, certs bool) {
	for i := range f.policy.Tenants {
		t, path := &f.policy.Tenants[i], elem("tenants", i)
		if len(t.Keys) > 0 && !keys {
			f.warnf(field(path, "keys"), ruleNoSource, "no source looks for API keys; want an api_key among identity.sources")
			keys = true
		}
		if t.Claim != "" && !claims {
			f.warnf(field(path, "claim"), ruleNoSource, "no source names a tenant by claim; want a jwt among identity.sources, or an auth_request with tenant_header")
			claims = true
		}
		if len(t.CertSHA256) > 0 && !certs {
			f.warnf(field(path, "cert_sha256"), ruleNoSource, "no source looks at certificates; want client_cert among identity.sources")
			certs = true
		}
	}
}
