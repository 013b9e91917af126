package policies

import "strings"

func checkSources(p *Policy, f *findings) {
	if p.Identity == nil {
		return
	}
	f.need("identity", key{"sources", len(p.Identity.Sources) > 0})
	for i := range p.Identity.Sources {
		s, path := &p.Identity.Sources[i], elem("identity.sources", i)
		f.one(path, key{"api_key", s.APIKey != nil}, key{"jwt", s.JWT != nil}, key{"client_cert", s.ClientCert != nil}, key{"auth_request", s.AuthRequest != nil})
		if s.APIKey != nil {
			f.apiKey(field(path, "api_key"), s.APIKey)
		}
		if s.JWT != nil {
			f.jwt(field(path, "jwt"), s.JWT)
		}
		if s.AuthRequest != nil {
			f.authRequest(field(path, "auth_request"), s.AuthRequest)
			if i != len(p.Identity.Sources)-1 {
				f.errorf(path, ruleSourceLast, "auth_request is asked when nothing else was found; want it last, and once")
			}
		}
	}
}

func (f *findings) apiKey(path string, s *APIKeySpec) {
	f.one(path, key{"header", s.Header != ""}, key{"query", s.Query != ""}, key{"cookie", s.Cookie != ""})
	f.freeHeader(field(path, "header"), s.Header)
	switch {
	case strings.EqualFold(string(s.Header), "cookie"):
		f.errorf(field(path, "header"), ruleReserved, "Cookie holds all cookies together; want api_key: {cookie: NAME}")
	case s.Header == "":
		f.only(path, "header", key{"scheme", s.Scheme != ""})
	case !strings.EqualFold(string(s.Header), "authorization") || strings.EqualFold(string(s.Scheme), "bearer"):
	case s.Scheme == "":
		f.errorf(field(path, "header"), ruleScheme, "Authorization begins with a scheme, which is no part of a key; want scheme: Bearer beside it")
	default:
		f.errorf(field(path, "scheme"), ruleScheme, "%s is left to the application: of the schemes of Authorization only Bearer carries credentials here; want Bearer, or a header of its own", s.Scheme)
	}
}

func (f *findings) jwt(path string, s *JWTSpec) {
	f.one(path, key{"header", s.Header != ""}, key{"query", s.Query != ""}, key{"cookie", s.Cookie != ""})
	f.need(path, key{"jwks_file", s.JWKSFile != ""}, key{"issuer", s.Issuer != ""})
	f.freeHeader(field(path, "header"), s.Header)
}

func (f *findings) authRequest(path string, s *AuthRequestSpec) {
	f.need(path, key{"location", s.Location != ""})
	f.freeHeader(field(path, "user_header"), s.UserHeader)
	f.freeHeader(field(path, "tenant_header"), s.TenantHeader)
	if ours(s.Location) {
		f.errorf(field(path, "location"), ruleReservedPath, "%s lies where Sluice's own locations are; want your authenticator's", s.Location)
	}
}

// checkHiddenSources finds sources whose credentials an earlier one takes.
func checkHiddenSources(p *Policy, f *findings) {
	if p.Identity == nil {
		return
	}
	for j := range p.Identity.Sources {
		for i := range j {
			if p.Identity.Sources[i].takesAll(&p.Identity.Sources[j]) {
				f.errorf(elem("identity.sources", j), ruleSourceHidden, "nothing gets to this source: %s takes all that it would; want another place, or a prefix that tells them apart there",
					f.at(elem("identity.sources", i)))
				break
			}
		}
	}
}

// takesAll tells whether a source takes every credential that a later one could.
func (s *SourceSpec) takesAll(o *SourceSpec) bool {
	switch {
	case s.ClientCert != nil:
		return o.ClientCert != nil
	case s.APIKey != nil && o.APIKey != nil:
		return s.APIKey.place() == o.APIKey.place() && strings.HasPrefix(o.APIKey.begin(), s.APIKey.begin())
	case s.APIKey != nil && o.JWT != nil:
		begin := "" // of a token in a place of its own
		if strings.EqualFold(string(o.JWT.Header), "authorization") {
			begin = "bearer "
		}
		// A signed token begins with eyJ: {" in base64.
		return s.APIKey.place() == o.JWT.place() && strings.HasPrefix(begin+"eyJ", s.APIKey.begin())
	case s.JWT != nil && o.JWT != nil:
		return s.JWT.place() == o.JWT.place() && s.JWT.Issuer == o.JWT.Issuer
	}
	return false
}

// begin is how a value of ours begins in the request, the scheme in lower case.
func (s *APIKeySpec) begin() string {
	if s.Scheme == "" {
		return string(s.Prefix)
	}
	return strings.ToLower(string(s.Scheme)) + " " + string(s.Prefix)
}

func (s *APIKeySpec) place() string { return carrier(s.Header, s.Query, s.Cookie) }

func (s *JWTSpec) place() string { return carrier(s.Header, s.Query, s.Cookie) }

// carrier names the part of a request that a credential is in.
func carrier(header HeaderName, query, cookie ParamName) string {
	switch {
	case header != "":
		return "header " + strings.ToLower(string(header))
	case query != "":
		return "query " + string(query)
	}
	return "cookie " + string(cookie)
}

func checkFallbacks(p *Policy, f *findings) {
	if p.Identity == nil {
		return
	}
	f.fallback("identity.missing", p.Identity.Missing)
	f.fallback("identity.invalid", p.Identity.Invalid)
	f.fallback("identity.unlisted", p.Identity.Unlisted)
}

func (f *findings) fallback(path string, b *Fallback) {
	if b == nil {
		return
	}
	f.one(path, key{"plan", b.Plan != ""}, key{"deny", b.Deny != nil})
	f.wantPlan(field(path, "plan"), b.Plan)
	if b.Deny != nil && *b.Deny != 401 && *b.Deny != 403 {
		f.errorf(field(path, "deny"), ruleStatus, "%d says nothing about credentials; want 401, or 403 for who is known and unwelcome", *b.Deny)
	}
}
