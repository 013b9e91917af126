package policies

import (
	"regexp"
	"strconv"
	"strings"
)

var parserLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax turns an error of the YAML parser into a finding.
func (s *source) syntax(err error) Diagnostic {
	parts := parserLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, _ := strconv.Atoi(parts[1])
	return Diagnostic{Pos: Pos{File: s.name, Line: max(line, 1), Col: 1}, Message: parts[2], Rule: ruleSyntax}
}
