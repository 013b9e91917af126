package policies

import "strings"

// checkParamNames finds query parameters and cookies whose names differ in case
// alone. To applications they are two; each reaches the service in a header
// named after it, and to headers they are one.
func checkParamNames(p *Policy, f *findings) {
	seen := map[string]carried{}
	look := func(c carried) {
		if c.name == "" {
			return
		}
		at := c.kind + " " + strings.ToLower(string(c.name))
		before, known := seen[at]
		if !known {
			seen[at] = c
		} else if before.name != c.name {
			f.errorf(c.path, ruleNameClash, "%s %s and %s at %s differ in case alone, and would reach the service as one; want one spelling",
				c.kind, c.name, before.name, f.at(before.path))
		}
	}
	if p.Identity != nil {
		for i := range p.Identity.Sources {
			for _, c := range p.Identity.Sources[i].carried(elem("identity.sources", i)) {
				look(c)
			}
		}
	}
	for path, spec := range limitSpecs(p) {
		for _, d := range spec.Per {
			if d.Kind == DimQuery || d.Kind == DimCookie {
				look(carried{path: field(path, "per"), kind: string(d.Kind), name: ParamName(d.Name)})
			}
		}
	}
}

// carried is the name of a query parameter or cookie, and where it stands.
type carried struct {
	path, kind string
	name       ParamName
}

// carried are the names that a source takes credentials from.
func (s *SourceSpec) carried(path string) []carried {
	switch {
	case s.APIKey != nil:
		path = field(path, "api_key")
		return []carried{{field(path, "query"), "query", s.APIKey.Query}, {field(path, "cookie"), "cookie", s.APIKey.Cookie}}
	case s.JWT != nil:
		path = field(path, "jwt")
		return []carried{{field(path, "query"), "query", s.JWT.Query}, {field(path, "cookie"), "cookie", s.JWT.Cookie}}
	}
	return nil
}
