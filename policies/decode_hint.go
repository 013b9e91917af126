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
	for i := len(d.owners) - 2; i >= 0; i-- {
		if find(d.fieldsOf(d.owners[i].typ), key) != nil {
			return "; it belongs into " + placeName(d.owners[i].path)
		}
	}
	if at := d.below(here, key, false); len(at) > 0 {
		return "; it belongs into " + either(at)
	}
	var known []string
	for _, f := range d.fieldsOf(here.typ) {
		known = append(known, f.key)
	}
	if near := nearest(key, known); near != "" {
		return "; did you mean " + near + "?"
	}
	if ours := translation(key); ours != "" {
		return "; here that is " + ours
	}
	if at := d.below(owner{"", reflect.TypeFor[Policy]()}, key, true); len(at) == 1 && here.path != "" {
		return "; it belongs into " + at[0]
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

// below finds the mappings below one that know a key: all of them, or only the nearest.
func (d *decoder) below(from owner, key string, all bool) []string {
	const deep = 4
	level := []owner{from}
	var found []string
	for range deep {
		var next []owner
		for _, o := range level {
			for _, f := range d.fieldsOf(o.typ) {
				in := inside(owner{field(o.path, f.key), f.typ})
				if in.typ == nil {
					continue
				}
				next = append(next, in)
				if find(d.fieldsOf(in.typ), key) != nil {
					found = append(found, in.path)
				}
			}
		}
		if len(found) > 0 && !all {
			break
		}
		level = next
	}
	return found
}

// inside is the mapping with fixed keys that a value is, or that its entries
// are. Its type is nil when there is none.
func inside(o owner) owner {
	for {
		switch o.typ.Kind() {
		case reflect.Pointer:
			o.typ = o.typ.Elem()
		case reflect.Slice:
			o = owner{o.path + "[]", o.typ.Elem()}
		case reflect.Map:
			o = owner{o.path + ".NAME", o.typ.Elem()}
		case reflect.Struct:
			if len(fieldsOf(o.typ)) > 0 {
				return o
			}
			return owner{}
		default:
			return owner{}
		}
	}
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
	if selects(entry) {
		return "a list of mappings"
	}
	if entry.Kind() == reflect.Struct {
		return "a list of mappings, or [] for none"
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

		reflect.TypeFor[Offset]():      "a time such as 0s or 30s",
		reflect.TypeFor[Instant]():     "a moment such as 2026-12-01T09:00:00Z",
		reflect.TypeFor[Address]():     "an address such as 192.0.2.7",
		reflect.TypeFor[Target]():      "a target such as /v1/search?q=x",
		reflect.TypeFor[TestStatus]():  "a status such as 200",
		reflect.TypeFor[ReasonWord]():  "a reason such as rate",
		reflect.TypeFor[DeciderWord](): "nginx, access, edge, service or login",
	}
}
