package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// SchemaOf is what a schema describes.
type SchemaOf int

// What there are schemas of.
const (
	SchemaPolicy  SchemaOf = iota // a policy
	SchemaTenants                 // a file that tenant_files names: a list of tenants
	SchemaTests                   // a file of policy tests
)

// Schema is the JSON Schema (draft 7, which editors read) of a file of the
// language: an indented document with a newline at its end, the same at each call.
//
// It is made of the types that the decoder walks along, so a key that one of them
// knows the other knows, too. What a schema cannot say (references, numbers that
// depend on each other) is validate's alone.
func Schema(of SchemaOf) []byte {
	words := schemaWords()
	maps.Copy(words, schemaTestWords())
	w := schemaWriter{definitions: map[string]schema{}, forms: schemaForms(), words: words}
	var root schema
	var title string
	switch of {
	case SchemaPolicy:
		root, title = w.mapping(reflect.TypeFor[Policy]()), "A policy of Sluice"
	case SchemaTenants:
		root, title = w.of(reflect.TypeFor[[]TenantSpec]()), "Tenants of a policy of Sluice"
	case SchemaTests:
		root, title = w.mapping(reflect.TypeFor[TestFile]()), "Tests of a policy of Sluice"
	}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = title
	root["definitions"] = w.definitions
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("BUG: the schema is no JSON: %v", err))
	}
	return append(text, '\n')
}

// schema is a part of a JSON Schema.
type schema map[string]any

// schemaWriter walks the types of the language.
type schemaWriter struct {
	definitions map[string]schema
	forms       map[reflect.Type]schema
	words       map[string]string
}

// of is the schema of a type: a reference where the type has a name.
func (w *schemaWriter) of(t reflect.Type) schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if form, ok := w.forms[t]; ok {
		return w.refer(t, form)
	}
	if t == reflect.TypeFor[Clients]() {
		return w.clients(t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.defined(t)
	case reflect.Map:
		return schema{"type": "object", "propertyNames": w.of(t.Key()), "additionalProperties": w.of(t.Elem())}
	case reflect.Slice:
		return w.list(t)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int:
		return wholeForm(0, 1<<31-1)
	case reflect.String:
		return schema{"type": "string"}
	}
	panic("BUG: a type without a schema: " + t.String())
}

// refer defines a type by a form, once.
func (w *schemaWriter) refer(t reflect.Type, form schema) schema {
	if _, known := w.definitions[t.Name()]; !known {
		with := schema{"description": wantOf(t)}
		for k, v := range form {
			with[k] = v
		}
		w.definitions[t.Name()] = with
	}
	return schema{"$ref": "#/definitions/" + t.Name()}
}

// defined is a mapping with fixed keys under its own name.
func (w *schemaWriter) defined(t reflect.Type) schema {
	if _, known := w.definitions[t.Name()]; !known {
		w.definitions[t.Name()] = nil // it may hold itself
		w.definitions[t.Name()] = w.mapping(t)
	}
	return schema{"$ref": "#/definitions/" + t.Name()}
}

// mapping is a mapping with fixed keys.
func (w *schemaWriter) mapping(t reflect.Type) schema {
	properties := schema{}
	for _, f := range fieldsOf(t) {
		value := w.of(f.typ)
		at := t.Name() + "." + f.key
		switch at {
		case "Policy.version":
			value = schema{"enum": []any{1, "1"}}
		case "ClientIPSpec.header":
			value = schema{"anyOf": []schema{value, {"const": string(ProxyProtocol)}}}
		}
		// Beside $ref draft 7 reads nothing, but in allOf it does.
		if _, ref := value["$ref"]; ref {
			value = schema{"allOf": []schema{value}}
		}
		value["description"] = w.words[at]
		properties[f.key] = value
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if t == reflect.TypeFor[Policy]() {
		s["patternProperties"] = schema{"^x-": schema{"description": "free space, for anchors"}}
	}
	if keys := schemaRequired()[t]; keys != nil {
		s["required"] = keys
	}
	if keys := schemaChoices()[t]; keys != nil {
		var one []schema
		for _, k := range keys {
			one = append(one, schema{"required": []string{k}})
		}
		s["oneOf"] = one
	}
	return s
}

// clients is the word all, or a mapping of lists.
func (w *schemaWriter) clients(t reflect.Type) schema {
	if _, known := w.definitions[t.Name()]; !known {
		lists := w.mapping(t)
		lists["minProperties"] = 1
		w.definitions[t.Name()] = schema{"description": wantOf(t), "anyOf": []schema{{"const": "all"}, lists}}
	}
	return schema{"$ref": "#/definitions/" + t.Name()}
}

// list is a list, or one whose entries may be files.
func (w *schemaWriter) list(t reflect.Type) schema {
	entry := t.Elem()
	s := schema{"type": "array"}
	if entry.Kind() == reflect.Struct && strings.HasPrefix(entry.Name(), "Entry[") {
		file := schema{
			"type": "object", "required": []string{"file"}, "additionalProperties": false,
			"properties": schema{"file": w.of(reflect.TypeFor[FileName]())},
		}
		s["items"] = schema{"anyOf": []schema{w.of(entry.Field(0).Type), file}}
		s["minItems"] = 1
		return s
	}
	s["items"] = w.of(entry)
	if selects(entry) {
		s["minItems"] = 1
	}
	return s
}

// schemaRequired are the keys that a mapping must have wherever it stands.
func schemaRequired() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[Policy]():           {"version"},
		reflect.TypeFor[IdentitySpec]():     {"sources"},
		reflect.TypeFor[JWTSpec]():          {"issuer", "jwks_file"},
		reflect.TypeFor[AuthRequestSpec]():  {"location"},
		reflect.TypeFor[AccessSpec]():       {"name"},
		reflect.TypeFor[EdgeLimitSpec]():    {"per"},
		reflect.TypeFor[TenantSpec]():       {"id", "plan"},
		reflect.TypeFor[KeySpec]():          {"id", "sha256"},
		reflect.TypeFor[GrantSpec]():        {"add", "from", "limit", "until"},
		reflect.TypeFor[RouteSpec]():        {"match", "name"},
		reflect.TypeFor[CostFromSpec]():     {"max"},
		reflect.TypeFor[NotificationSpec](): {"secret_env", "webhook"},
		reflect.TypeFor[TestFile]():         {"tests"},
		reflect.TypeFor[TestSpec]():         {"name", "requests"},
		reflect.TypeFor[TestRequest]():      {"url"},
	}
}

// schemaChoices are keys of which a mapping has exactly one.
func schemaChoices() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[SourceSpec]():    {"api_key", "jwt", "client_cert", "auth_request"},
		reflect.TypeFor[APIKeySpec]():    {"header", "query", "cookie"},
		reflect.TypeFor[Fallback]():      {"plan", "deny"},
		reflect.TypeFor[AccessSpec]():    {"exempt", "allow", "deny"},
		reflect.TypeFor[EdgeLimitSpec](): {"rate", "connections"},
		reflect.TypeFor[MatchSpec]():     {"exact", "prefix", "regex"},
		reflect.TypeFor[CostFromSpec]():  {"response_header", "report"},
	}
}
