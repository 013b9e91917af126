package policies

import (
	"fmt"
	"reflect"
	"strconv"
)

// everybody notes a change that is for every request.
func (d *differ) everybody(scope Scope, path string, f diffFields, effects ...Effect) {
	if len(f) > 0 {
		d.note(scope, "", "", path, f, effects...).Everybody = true
	}
}

// site compares the mode, and what clients and receivers of events see.
func (d *differ) site() {
	var f diffFields
	f.word("mode", string(d.from.Mode), string(d.to.Mode), EffectTightened, string(ModeDisabled), string(ModeShadow), string(ModeEnforce))
	d.everybody(ScopePolicy, "mode", f)

	o, n := d.from.Responses, d.to.Responses
	f = nil
	f.value("headers", listed(text(o.Dialects)), listed(text(n.Dialects)), EffectChanged)
	f.value("retry_after_jitter", percentWord(int64(o.Jitter)), percentWord(int64(n.Jitter)), EffectChanged)
	f.value("body", string(o.Body), string(n.Body), EffectChanged)
	f.value("support_url", o.SupportURL, n.SupportURL, EffectChanged)
	for _, lang := range n.Languages {
		f.value("messages."+string(lang), o.Messages[lang], n.Messages[lang], EffectChanged)
	}
	for _, lang := range o.Languages {
		if n.Messages[lang] == "" {
			f.add("messages."+string(lang), o.Messages[lang], "", EffectChanged)
		}
	}
	if sameSet(text(o.Languages), text(n.Languages)) { // the first is the default
		f.value("languages", listed(text(o.Languages)), listed(text(n.Languages)), EffectChanged)
	}
	d.everybody(ScopeResponses, "responses", f)
	d.notifications()
}

func (d *differ) notifications() {
	was := map[URL]NotificationSpec{}
	for _, o := range d.old.Notifications {
		was[o.Webhook] = o
	}
	for i, n := range d.new.Notifications {
		path := elem("notifications", i)
		o, ok := was[n.Webhook]
		delete(was, n.Webhook)
		if !ok {
			d.note(ScopeNotifications, n.Webhook.Shown(), "", path, nil, EffectAdded)
			continue
		}
		var f diffFields
		f.value("secret_env", string(o.SecretEnv), string(n.SecretEnv), EffectChanged)
		if len(f) > 0 {
			d.note(ScopeNotifications, n.Webhook.Shown(), "", path, f)
		}
	}
	for i, o := range d.old.Notifications {
		if _, gone := was[o.Webhook]; gone {
			d.note(ScopeNotifications, o.Webhook.Shown(), "", elem("notifications", i), nil, EffectRemoved)
		}
	}
}

// client compares who the client is.
func (d *differ) client() {
	o, n := d.from.Client, d.to.Client
	var f diffFields
	f.entries("trusted_proxies", orNone(words(o.Trusted)), orNone(words(n.Trusted)), "", EffectChanged)
	f.value("header", clientHeader(o), clientHeader(n), EffectChanged)
	f.toggle("direct: deny", o.DenyDirect, n.DenyDirect, EffectTightened)
	f.number("ipv6_prefix", int64(o.IPv6Prefix), int64(n.IPv6Prefix), EffectLoosened, plainNumber)
	d.everybody(ScopeClient, "client_ip", f)
}

// orNone is an empty list for nil, which would be all.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func clientHeader(c ClientRules) string {
	if c.ProxyProtocol {
		return string(ProxyProtocol)
	}
	return string(c.Header)
}

// identity compares who the tenant is.
func (d *differ) identity() {
	o, n := d.from.Identity, d.to.Identity
	var f diffFields
	switch {
	case o == nil && n == nil:
		return
	case o == nil:
		f.add("sources", "", listed(sourceNames(d.new.Identity.Sources)), EffectTightened)
		d.everybody(ScopeIdentity, "identity", f, EffectAdded)
		return
	case n == nil:
		f.add("sources", listed(sourceNames(d.old.Identity.Sources)), "", EffectLoosened)
		d.everybody(ScopeIdentity, "identity", f, EffectRemoved)
		return
	}
	f = d.sourceFields(d.old.Identity.Sources, d.new.Identity.Sources)
	f = append(f, d.outcome("missing", o.Missing, n.Missing)...)
	f = append(f, d.outcome("invalid", o.Invalid, n.Invalid)...)
	f = append(f, d.outcome("unlisted", o.Unlisted, n.Unlisted)...)
	d.everybody(ScopeIdentity, "identity", f)
}

// outcome compares what those get who show no good credential.
func (d *differ) outcome(name string, o, n Outcome) diffFields {
	var f diffFields
	word := func(c *Compiled, x Outcome) string {
		if x.Plan < 0 {
			return "deny " + strconv.Itoa(x.Status)
		}
		return "plan " + c.Plans[x.Plan].Name
	}
	old, new := word(d.from, o), word(d.to, n)
	switch {
	case old == new:
	case o.Plan >= 0 && n.Plan < 0:
		f.add(name, old, new, EffectTightened)
	case o.Plan < 0 && n.Plan >= 0:
		f.add(name, old, new, EffectLoosened)
	case o.Plan >= 0:
		f.add(name, old, new, EffectMoved)
		f = append(f, d.moving(o.Plan, n.Plan).within(name)...)
	default:
		f.add(name, old, new, EffectChanged)
	}
	return f
}

// sourceFields compares where credentials are looked for.
func (d *differ) sourceFields(old, new []SourceSpec) diffFields {
	var f diffFields
	was := map[string]SourceSpec{}
	for _, s := range old {
		was[sourceName(s)] = s
	}
	for _, s := range new {
		name := sourceName(s)
		o, ok := was[name]
		delete(was, name)
		if !ok {
			f.add(name, "", "looked for", EffectLoosened, EffectAdded)
			continue
		}
		before, after := sourceDetails(o), sourceDetails(s)
		for i := range after {
			f.value(name+" "+after[i][0], before[i][1], after[i][1], EffectChanged)
		}
		if s.JWT != nil {
			f.verifyKeys(name, d.old.keySets[o.JWT.JWKSFile], d.new.keySets[s.JWT.JWKSFile])
		}
	}
	for _, s := range old {
		if _, gone := was[sourceName(s)]; gone {
			f.add(sourceName(s), "looked for", "", EffectTightened, EffectRemoved)
		}
	}
	names := sourceNames(new)
	for _, name := range displaced(sourceNames(old), names) {
		f.add(name+" order", "", "another", EffectMoved)
	}
	return f
}

// verifyKeys compares the keys that signatures are held against. What they are is
// never shown, for some are secrets.
func (f *diffFields) verifyKeys(source string, old, new []VerifyKey) {
	name := func(i int, k VerifyKey) string {
		if k.ID != "" {
			return "key " + k.ID
		}
		return "key #" + strconv.Itoa(i+1)
	}
	names := func(keys []VerifyKey) ([]string, map[string]VerifyKey) {
		list, by := []string{}, map[string]VerifyKey{}
		for i, k := range keys {
			list = append(list, name(i, k))
			by[list[i]] = k
		}
		return list, by
	}
	before, was := names(old)
	after, is := names(new)
	f.entries(source+" keys", before, after, "", EffectLoosened)
	for _, k := range after {
		if o, ok := was[k]; ok && !reflect.DeepEqual(o, is[k]) {
			f.add(source+" "+k, "", "another", EffectTightened, EffectLoosened)
		}
	}
}

func sourceNames(list []SourceSpec) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = sourceName(s)
	}
	return out
}

// sourceName is the kind of a source, the place that it looks into, and what
// tells apart those that look into one place.
func sourceName(s SourceSpec) string {
	place := func(header HeaderName, query, cookie ParamName) string {
		switch {
		case header != "":
			return "header " + string(header)
		case query != "":
			return "query " + string(query)
		}
		return "cookie " + string(cookie)
	}
	switch {
	case s.APIKey != nil:
		return fmt.Sprintf("api_key in %s%s%s", place(s.APIKey.Header, s.APIKey.Query, s.APIKey.Cookie),
			after(" scheme ", string(s.APIKey.Scheme)), after(" prefix ", string(s.APIKey.Prefix)))
	case s.JWT != nil:
		return fmt.Sprintf("jwt in %s%s", place(s.JWT.Header, s.JWT.Query, s.JWT.Cookie), after(" of ", string(s.JWT.Issuer)))
	case s.ClientCert != nil:
		return "client_cert"
	}
	return "auth_request"
}

func after(word, value string) string {
	if value == "" {
		return ""
	}
	return word + value
}

// sourceDetails are the further values of a source, always the same ones for
// one kind.
func sourceDetails(s SourceSpec) [][2]string {
	switch {
	case s.JWT != nil:
		leeway := ""
		if s.JWT.Leeway != nil {
			leeway = s.JWT.Leeway.String()
		}
		return [][2]string{
			{"jwks_file", string(s.JWT.JWKSFile)}, {"audience", string(s.JWT.Audience)}, {"tenant_claim", string(s.JWT.TenantClaim)},
			{"user_claim", string(s.JWT.UserClaim)}, {"scope_claim", string(s.JWT.ScopeClaim)}, {"plan_claim", string(s.JWT.PlanClaim)}, {"leeway", leeway},
		}
	case s.AuthRequest != nil:
		return [][2]string{
			{"location", string(s.AuthRequest.Location)}, {"user_header", string(s.AuthRequest.UserHeader)}, {"tenant_header", string(s.AuthRequest.TenantHeader)},
		}
	}
	return nil
}
