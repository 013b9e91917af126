package policies

import "reflect"

// schemaForms are the schemas of the scalar types and unions. YAML makes numbers
// of some texts, so a name, which may look like one, is allowed to be one; a
// pattern is asked of texts only, a minimum of numbers only.
//
// They may be wider than the types (no schema knows the countries), never
// narrower: tests hold them against what the types read.
func schemaForms() map[reflect.Type]schema {
	const length = `[0-9]+(\.[0-9]{1,9})?(ms|s|m|h|d|w)`
	regex := schema{"type": []string{"string", "number"}, "minLength": 1}
	return map[reflect.Type]schema{
		reflect.TypeFor[Name]():       nameForm(nameShape.String()),
		reflect.TypeFor[Text]():       {"type": []string{"string", "number", "boolean"}, "minLength": 1, "maxLength": 4096},
		reflect.TypeFor[Path]():       textForm(`^/`),
		reflect.TypeFor[HeaderName](): nameForm(`^[A-Za-z0-9-]{1,64}$`),
		reflect.TypeFor[ParamName]():  nameForm(`^[A-Za-z0-9_-]{1,64}$`),
		reflect.TypeFor[Token]():      nameForm("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$"),
		reflect.TypeFor[Prefix]():     nameForm(`^[!#-&(-\[\]-_a-~]{1,64}$`),
		reflect.TypeFor[FileName]():   {"type": []string{"string", "number"}, "pattern": `^[^~]`, "maxLength": 1024},
		reflect.TypeFor[Claim]():      nameForm(`^[!#-\[\]-~]{1,128}$`),
		reflect.TypeFor[Method]():     textForm(methodShape.String()),
		reflect.TypeFor[Host]():       nameForm(`^(\*\.)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$`),
		reflect.TypeFor[Language]():   textForm(languageShape.String()),
		reflect.TypeFor[URL]():        textForm(`^[Hh][Tt][Tt][Pp][Ss]?://[^ ]+$`),
		reflect.TypeFor[EnvName]():    textForm(envShape.String()),
		reflect.TypeFor[Timezone]():   textForm(`^[A-Za-z][A-Za-z0-9/_+-]*$`),
		reflect.TypeFor[Status]():     wholeForm(400, 599),
		reflect.TypeFor[Count]():      wholeForm(0, maxCount),
		reflect.TypeFor[Percent]():    textForm(`^(100|[1-9]?[0-9])%$`),
		reflect.TypeFor[Share]():      wholeForm(1, 100),
		reflect.TypeFor[Duration]():   textForm("^" + length + "$"),
		reflect.TypeFor[Date]():       textForm(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
		reflect.TypeFor[Rate]():       textForm(`^[0-9]+(\.[0-9]+)?r?/[smhd]$`),
		reflect.TypeFor[Window]():     textForm(`^(0|[1-9][0-9]*)/` + length + `$`),
		reflect.TypeFor[Quota]():      textForm(`^(0|[1-9][0-9]*|unlimited)/(hour|day|week|month)$`),
		reflect.TypeFor[Network]():    nameForm(`^(private|[0-9A-Fa-f:.]+(/[0-9]{1,3})?)$`),
		reflect.TypeFor[Country]():    textForm(`^([A-Za-z]{2}|[Uu][Nn][Kk][Nn][Oo][Ww][Nn])$`),
		reflect.TypeFor[Continent]():  textForm(`^([Aa][FfNnSs]|[Ee][Uu]|[Nn][Aa]|[Oo][Cc]|[Ss][Aa])$`),
		reflect.TypeFor[Group]():      textForm(`^[A-Za-z_]+$`),
		reflect.TypeFor[ASN]():        {"type": []string{"string", "number"}, "pattern": `^(([Aa][Ss])? *[0-9]+(\.[0-9]+)?|unknown)$`},
		reflect.TypeFor[SHA256]():     nameForm(`^[0-9A-Fa-f]{64}$`),
		reflect.TypeFor[Regex]():      regex,

		reflect.TypeFor[Mode]():       wordForm(ModeEnforce, ModeShadow, ModeDisabled),
		reflect.TypeFor[LimitMode]():  wordForm(LimitEnforce, LimitShadow),
		reflect.TypeFor[Direct]():     wordForm(DirectAllow, DirectDeny),
		reflect.TypeFor[FailMode]():   wordForm(FailOpen, FailClosed, FailLocal),
		reflect.TypeFor[Sync]():       wordForm(SyncLeased),
		reflect.TypeFor[Algorithm]():  wordForm(AlgorithmSliding, AlgorithmFixed, AlgorithmLog),
		reflect.TypeFor[Accounting](): wordForm(AccountingHard, AccountingSoft),
		reflect.TypeFor[Priority]():   wordForm(PriorityLow, PriorityNormal, PriorityHigh),
		reflect.TypeFor[Dialect]():    wordForm(DialectRateLimit, DialectRateLimit12, DialectRateLimit3, DialectXRateLimit),
		reflect.TypeFor[BodyFormat](): wordForm(BodyProblem, BodyJSON, BodyText),

		reflect.TypeFor[Offset]():      textForm(`^(0(ms|s|m)|` + length + `)$`),
		reflect.TypeFor[Instant]():     textForm(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`),
		reflect.TypeFor[Address]():     textForm(`^[0-9A-Fa-f:.]+$`),
		reflect.TypeFor[Target]():      textForm(`^(/|[Hh][Tt][Tt][Pp][Ss]?://[^ ])[^ ]*$`),
		reflect.TypeFor[TestStatus]():  wholeForm(100, 599),
		reflect.TypeFor[ReasonWord]():  wordForm(Reasons()...),
		reflect.TypeFor[DeciderWord](): wordForm(Deciders()...),

		reflect.TypeFor[Condition](): {"anyOf": []schema{
			{"enum": []string{"present", "absent"}}, regex,
			{"type": "array", "items": regex, "minItems": 1},
		}},
		reflect.TypeFor[CountRule](): {"anyOf": []schema{
			{"enum": []string{"units", "requests"}},
			objectForm([]string{"status"}, schema{"status": schema{
				"type": "array", "minItems": 1,
				"items": schema{"type": []string{"integer", "string"}, "minimum": 100, "maximum": 599, "pattern": "^([1-5][0-9]{2}|[1-5][Xx]{2})$"},
			}}),
		}},
		reflect.TypeFor[Delay](): {"anyOf": []schema{wordForm("none", "all"), wholeForm(1, maxCount)}},
		reflect.TypeFor[Per]():   {"anyOf": []schema{dimForm(regex), {"type": "array", "minItems": 1, "items": dimForm(regex)}}},
	}
}

// dimForm is one dimension to count by.
func dimForm(regex schema) schema {
	name := schema{"type": []string{"string", "integer"}, "pattern": `^[A-Za-z0-9_-]{1,64}$`}
	return schema{"anyOf": []schema{
		{"enum": dimWords()},
		objectForm([]string{"header"}, schema{"header": name}),
		objectForm([]string{"cookie"}, schema{"cookie": name}),
		objectForm([]string{"query"}, schema{"query": name, "capture": regex}),
	}}
}

// textForm is a text of some shape.
func textForm(pattern string) schema { return schema{"type": "string", "pattern": pattern} }

// nameForm is a text of some shape that YAML may take for a number.
func nameForm(pattern string) schema {
	return schema{"type": []string{"string", "number"}, "pattern": pattern}
}

// wholeForm is a whole number, quoted or not.
func wholeForm(least, most int64) schema {
	return schema{"type": []string{"integer", "string"}, "minimum": least, "maximum": most, "pattern": "^(0|[1-9][0-9]*)$"}
}

// wordForm is one of some words.
func wordForm[T ~string](words ...T) schema { return schema{"enum": words} }

// objectForm is a mapping with fixed keys that has no type of its own.
func objectForm(required []string, properties schema) schema {
	return schema{"type": "object", "required": required, "properties": properties, "additionalProperties": false}
}
