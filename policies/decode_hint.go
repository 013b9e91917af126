package policies

import (
	"reflect"
	"strings"
)

// keyHint says what an unknown key may have meant: the right key at another
// level, a slip of the keyboard, or what the language calls it.
func (d *decoder) keyHint(key string) string {
	here := d.owners[len(d.owners)-1]
	if strings.HasPrefix(key, "x-") {
		return "; keys that begin with x- are free at the top level only"
	}
	var known []string
	for _, f := range d.fieldsOf(here.typ) {
		known = append(known, f.key)
	}
	if at := d.below(here, key); at != "" {
		return "; it belongs into " + at
	}
	near := nearest(key, known)
	if near != "" {
		return "; did you mean " + near + "?"
	}
	for i := len(d.owners) - 2; i >= 0; i-- {
		if find(d.fieldsOf(d.owners[i].typ), key) != nil {
			return "; it belongs into " + placeName(d.owners[i].path)
		}
	}
	if ours := translation(key); ours != "" {
		return "; here that is " + ours
	}
	if len(known) == 0 {
		return "; want {}"
	}
	return "; want " + either(known)
}

// placeName names a mapping for a message.
func placeName(path string) string {
	if path == "" {
		return "the top level"
	}
	return path
}

// below finds the one key of a mapping whose own mapping knows key.
func (d *decoder) below(here owner, key string) string {
	at := ""
	for _, f := range d.fieldsOf(here.typ) {
		t := f.typ
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || find(d.fieldsOf(t), key) == nil {
			continue
		}
		if at != "" {
			return "" // several know it
		}
		at = field(here.path, f.key)
	}
	return at
}

// translation is how the language says what other programs call key.
func translation(key string) string {
	switch fold(key) {
	case "failmode", "failopen", "failclosed", "onerror", "onfailure":
		return "on_store_down, in a route"
	case "allowcountries", "countryallow":
		return "an access rule with allow: {countries: [...]}"
	case "denycountries", "blockcountries":
		return "an access rule with deny: {countries: [...]}"
	case "whitelist", "allowlist":
		return "an access rule with allow or exempt"
	case "blacklist", "blocklist", "denylist":
		return "an access rule with deny"
	case "ips", "ip", "networks", "addresses":
		return "cidrs"
	case "agents", "useragent":
		return "user_agents"
	case "rps", "rpm", "requests", "limit":
		return "rate, such as 100/s"
	case "tier", "tiers":
		return "plan, with plans at the top level"
	case "apikeys", "apikey":
		return "keys of a tenant, and identity.sources with api_key"
	case "path", "location", "url":
		return "match, with exact, prefix or regex"
	case "weight":
		return "cost"
	case "dryrun":
		return "mode: shadow"
	case "period":
		return "the part behind the slash of a quota, such as 500/day"
	}
	return ""
}

// wantOf says what a type is written as, for whoever left it out or wrote another form.
func wantOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if words, ok := examples()[t]; ok {
		return words
	}
	switch t.Kind() {
	case reflect.Struct:
		return "a mapping" + keysOf(t)
	case reflect.Map:
		return "a mapping of names, or {} for none"
	case reflect.Slice:
		return listOf(t)
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a single value"
}

// keysOf names the keys of a mapping that has few.
func keysOf(t reflect.Type) string {
	const few = 6
	var known []string
	for _, f := range fieldsOf(t) {
		known = append(known, f.key)
	}
	if len(known) == 0 {
		return " without keys: {}"
	}
	if len(known) > few {
		return " of keys such as " + known[0] + " and " + known[1]
	}
	return " with " + either(known)
}

// listOf describes a list by its entries.
func listOf(t reflect.Type) string {
	entry := t.Elem()
	if entry.Kind() == reflect.Struct && strings.HasPrefix(entry.Name(), "Entry[") {
		entry = entry.Field(0).Type
	}
	if example, ok := examples()[entry]; ok {
		if _, last, found := strings.Cut(example, "such as "); found {
			example = last
		}
		return "a list, such as [" + example + "]"
	}
	if entry.Kind() == reflect.Struct {
		return "a list of mappings"
	}
	return "a list"
}

// examples are the forms of the scalar types and unions.
func examples() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[Name]():       "a name such as acme",
		reflect.TypeFor[Text]():       "some text",
		reflect.TypeFor[Path]():       "a path such as /v1",
		reflect.TypeFor[HeaderName](): "a header such as X-API-Key",
		reflect.TypeFor[ParamName]():  "a name such as session",
		reflect.TypeFor[Token]():      "a word such as Bearer",
		reflect.TypeFor[Prefix]():     "a beginning of keys such as sk_",
		reflect.TypeFor[FileName]():   "a file such as lists/bad.txt",
		reflect.TypeFor[Claim]():      "a claim such as org_id",
		reflect.TypeFor[Method]():     "a method such as GET",
		reflect.TypeFor[Host]():       "a host such as www.example.com",
		reflect.TypeFor[Language]():   "a language such as en",
		reflect.TypeFor[URL]():        "an address such as https://example.com/limits",
		reflect.TypeFor[EnvName]():    "the name of a variable such as SLUICE_WEBHOOK_SECRET",
		reflect.TypeFor[Timezone]():   "a time zone such as Europe/Berlin",
		reflect.TypeFor[Status]():     "a status such as 429",
		reflect.TypeFor[Count]():      "a whole number such as 100",
		reflect.TypeFor[Percent]():    "a percentage such as 10%",
		reflect.TypeFor[Share]():      "a number such as 80",
		reflect.TypeFor[Duration]():   "a duration such as 30s",
		reflect.TypeFor[Date]():       "a date such as 2026-12-31",
		reflect.TypeFor[Rate]():       "a rate such as 100/s",
		reflect.TypeFor[Window]():     "a window such as 5/15m",
		reflect.TypeFor[Quota]():      "a quota such as 500/day, or unlimited/month",
		reflect.TypeFor[Network]():    "a network such as 192.0.2.0/24",
		reflect.TypeFor[Country]():    "a country such as DE",
		reflect.TypeFor[Continent]():  "a continent such as EU",
		reflect.TypeFor[Group]():      "a group such as eu_members",
		reflect.TypeFor[ASN]():        "a number such as AS64500",
		reflect.TypeFor[SHA256]():     "the 64 hexadecimal digits of a SHA-256",
		reflect.TypeFor[Regex]():      "a regular expression such as '^/v1/'",
		reflect.TypeFor[Mode]():       "enforce, shadow or disabled",
		reflect.TypeFor[LimitMode]():  "enforce or shadow",
		reflect.TypeFor[Direct]():     "allow or deny",
		reflect.TypeFor[FailMode]():   "open, closed or local",
		reflect.TypeFor[Sync]():       "leased",
		reflect.TypeFor[Algorithm]():  "sliding, fixed or log",
		reflect.TypeFor[Accounting](): "hard or soft",
		reflect.TypeFor[Priority]():   "low, normal or high",
		reflect.TypeFor[Dialect]():    "a family of headers such as ratelimit",
		reflect.TypeFor[BodyFormat](): "problem+json, json or text",
		reflect.TypeFor[Per]():        "what to count by, such as ip, {header: X-API-Key} or [tenant, route]",
		reflect.TypeFor[Clients]():    "all, or lists of clients such as {cidrs: [192.0.2.0/24]}",
		reflect.TypeFor[Condition]():  "present, absent, a regular expression or a list of them",
		reflect.TypeFor[CountRule]():  "units, requests or {status: [401, 4xx]}",
		reflect.TypeFor[Delay]():      "none, all or a whole number",
	}
}
