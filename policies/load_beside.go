package policies

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// tenantFiles appends the tenants of other files to those of the policy.
func (d *decoder) tenantFiles() {
	for i, pattern := range d.policy.TenantFiles {
		path := elem("tenant_files", i)
		for _, name := range d.matching(pattern, path) {
			d.tenantFile(name, path)
		}
	}
	for _, name := range d.files.tenants {
		d.tenantFile(name, "tenant_files")
	}
}

// matching are the files that an entry of tenant_files means, sorted.
func (d *decoder) matching(pattern, path string) []FileName {
	at := func(rule, format string, args ...any) {
		d.list = append(d.list, Diagnostic{Pos: d.policy.pos(path), Path: path, Message: fmt.Sprintf(format, args...), Rule: rule})
	}
	switch {
	case d.files.read == nil:
		at(ruleRead, "%s is a file, and files cannot be read here; want the tenants themselves", show(pattern))
		return nil
	case !strings.ContainsAny(pattern, `*?[\`):
		return []FileName{FileName(pattern)}
	case d.files.glob == nil:
		at(ruleRead, "a pattern needs a directory to look into; want the name of a file")
		return nil
	}
	names, err := d.files.glob(pattern)
	if err != nil {
		at(ruleFile, "%s is no pattern of file names; want one such as tenants/*.yaml", show(pattern))
	} else if len(names) == 0 {
		at(ruleRead, "no file fits %s; want at least one, or no such entry", show(pattern))
	}
	slices.Sort(names)
	return names
}

// tenantFile reads one file of tenants.
func (d *decoder) tenantFile(name FileName, path string) {
	if slices.ContainsFunc(d.policy.sources.tenants, func(t tenantSource) bool { return t.name == d.policy.File(name) }) {
		return // two patterns that both fit
	}
	text, err := d.files.read(name)
	if err != nil {
		d.list = append(d.list, Diagnostic{Pos: d.policy.pos(path), Path: path, Message: readProblem(err), Rule: ruleRead})
		return
	}
	src, bad := readTree(d.policy.File(name), text, "a list of tenants, or [] for none")
	if len(bad) > 0 {
		d.list = append(d.list, bad...)
		return
	}
	d.src = src
	first := len(d.policy.Tenants)
	d.policy.sources.tenants = append(d.policy.sources.tenants, tenantSource{src, first})
	if !d.is(src.root, yaml.SequenceNode, reflect.TypeFor[[]TenantSpec](), "") {
		return
	}
	for i, n := range src.root.Content {
		var t TenantSpec
		d.value(n, reflect.ValueOf(&t).Elem(), elem("tenants", first+i))
		d.policy.Tenants = append(d.policy.Tenants, t)
	}
}

// keySets reads every jwks_file.
func (d *decoder) keySets() {
	if d.policy.Identity == nil || d.files.read == nil {
		return
	}
	for i, s := range d.policy.Identity.Sources {
		if s.JWT == nil || s.JWT.JWKSFile == "" {
			continue
		}
		path := field(field(elem("identity.sources", i), "jwt"), "jwks_file")
		text, err := d.files.read(s.JWT.JWKSFile)
		if err != nil {
			d.list = append(d.list, Diagnostic{Pos: d.policy.pos(path), Path: path, Message: readProblem(err), Rule: ruleRead})
			continue
		}
		d.keySet(s.JWT.JWKSFile, text, path)
	}
}

// keySet reads one set of keys. What is wrong with it stands in its own file.
func (d *decoder) keySet(name FileName, text []byte, path string) {
	src := newSource(d.policy.File(name), text)
	keys, err := parseKeySet(src.text)
	at := Diagnostic{Pos: Pos{File: src.name}, Path: path, Rule: ruleKeySet}
	if byteOf := (*offsetError)(nil); errors.As(err, &byteOf) {
		at.Pos = src.offset(byteOf.offset)
	}
	switch {
	case err != nil:
		at.Message = err.Error()
		d.list = append(d.list, at)
	case len(keys) == 0:
		at.Message, at.Warning = "it has no key that verifies signatures, so no token is ever good; want at least one", true
		d.list = append(d.list, at)
	}
	if d.policy.keySets == nil {
		d.policy.keySets = map[FileName][]VerifyKey{}
	}
	d.policy.keySets[name] = keys
}
