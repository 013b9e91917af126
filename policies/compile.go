package policies

import (
	"slices"
	"strings"
	"time"
)

// Compile turns a policy that Validate found without errors into what the
// renderer and the service use. It decides nothing anew: a policy with errors
// is a bug of the caller.
func Compile(p *Policy) *Compiled {
	c := &Compiled{
		Hash:      p.hash(),
		Mode:      orDefault(p.Mode, ModeEnforce),
		Client:    compileClient(p.ClientIP),
		Nodes:     1,
		Responses: compileResponses(p.Responses),
	}
	for _, n := range p.Notifications {
		c.Webhooks = append(c.Webhooks, Webhook{URL: string(n.Webhook), SecretEnv: string(n.SecretEnv)})
	}
	c.compilePlans(p)
	c.Limits = compileLimits(p.Limits, false)
	c.Identity = c.compileIdentity(p)
	c.compileTenants(p)
	c.compileRoutes(p)
	if p.Edge != nil {
		c.compileEdge(p.Edge)
	}
	for i := range c.Routes {
		c.bindRoute(&c.Routes[i])
	}
	c.matcher = newMatcher(c.Routes)
	c.admits = newAdmission(p, c.LongestWait())
	return c
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// text turns named strings into plain ones; nil stays nil.
func text[T ~string](list []T) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func compileClient(s *ClientIPSpec) ClientRules {
	rules := ClientRules{IPv6Prefix: 64}
	if s == nil {
		return rules
	}
	if s.IPv6Prefix != nil {
		rules.IPv6Prefix = *s.IPv6Prefix
	}
	rules.Trusted = Networks(s.TrustedProxies)
	for _, e := range s.TrustedProxies {
		if e.File != "" {
			rules.Lists = append(rules.Lists, ListFile{string(e.File), len(e.Items)})
		}
	}
	rules.DenyDirect = s.Direct == DirectDeny
	if len(rules.Trusted) > 0 {
		rules.ProxyProtocol = s.Header == ProxyProtocol
		if !rules.ProxyProtocol {
			rules.Header = orDefault(s.Header, "X-Forwarded-For")
		}
	}
	return rules
}

func compileResponses(s *ResponsesSpec) Responses {
	if s == nil {
		s = &ResponsesSpec{}
	}
	r := Responses{
		Dialects:   s.Headers,
		Body:       orDefault(s.Body, BodyProblem),
		Languages:  s.MessageOrder,
		Messages:   map[Language]string{},
		SupportURL: string(s.SupportURL),
	}
	if r.Dialects == nil {
		r.Dialects = []Dialect{DialectRateLimit}
	}
	if s.RetryAfterJitter != nil {
		r.Jitter = int(*s.RetryAfterJitter)
	}
	for lang, msg := range s.Messages {
		r.Messages[lang] = string(msg)
	}
	return r
}

// compileIdentity comes after the plans, which it points to.
func (c *Compiled) compileIdentity(p *Policy) *Identity {
	s := p.Identity
	if s == nil {
		return nil
	}
	id := &Identity{
		Missing:  c.outcome(s.Missing, 401),
		Invalid:  c.outcome(s.Invalid, 401),
		Unlisted: c.outcome(s.Unlisted, 403),
	}
	for _, src := range s.Sources {
		if src.APIKey != nil {
			id.Sources = append(id.Sources, compileAPIKey(src.APIKey))
		}
		if src.JWT != nil {
			id.Sources = append(id.Sources, compileJWT(src.JWT, p.keySets[src.JWT.JWKSFile]))
		}
		if src.ClientCert != nil {
			id.Sources = append(id.Sources, Source{Kind: SourceCert})
		}
		if a := src.AuthRequest; a != nil {
			id.Login = &Login{Location: string(a.Location), UserHeader: string(a.UserHeader), TenantHeader: string(a.TenantHeader)}
		}
	}
	return id
}

func compileAPIKey(s *APIKeySpec) Source {
	src := Source{Kind: SourceAPIKey, Scheme: string(s.Scheme), Prefix: string(s.Prefix)}
	src.carried(s.Header, s.Query, s.Cookie)
	return src
}

func compileJWT(s *JWTSpec, keys []VerifyKey) Source {
	src := Source{Kind: SourceJWT, Token: &TokenRules{
		Issuer: string(s.Issuer), Audience: string(s.Audience), Keys: keys,
		TenantClaim: string(s.TenantClaim), UserClaim: string(s.UserClaim),
		ScopeClaim: string(s.ScopeClaim), PlanClaim: string(s.PlanClaim),
	}}
	if s.Leeway != nil {
		src.Token.Leeway = time.Duration(*s.Leeway)
	}
	src.carried(s.Header, s.Query, s.Cookie)
	if strings.EqualFold(string(s.Header), "authorization") {
		src.Scheme = "Bearer"
	}
	return src
}

// carried says which part of a request a credential is in.
func (s *Source) carried(header HeaderName, query, cookie ParamName) {
	switch {
	case header != "":
		s.Carrier, s.Name = CarrierHeader, string(header)
	case query != "":
		s.Carrier, s.Name = CarrierQuery, string(query)
	default:
		s.Carrier, s.Name = CarrierCookie, string(cookie)
	}
}

func (c *Compiled) outcome(f *Fallback, status int) Outcome {
	switch {
	case f == nil:
		return Outcome{Plan: -1, Status: status}
	case f.Plan != "":
		return Outcome{Plan: c.planIndex(f.Plan)}
	}
	return Outcome{Plan: -1, Status: int(*f.Deny)}
}

// planIndex finds a plan that Validate has seen to exist.
func (c *Compiled) planIndex(name Name) int {
	i := slices.IndexFunc(c.Plans, func(p Plan) bool { return p.Name == string(name) })
	if i < 0 {
		panic("BUG: no plan " + name)
	}
	return i
}
