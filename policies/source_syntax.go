package policies

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// complaint is what the YAML parser says, taken apart.
type complaint struct {
	line    int // 0: it does not say
	message string
}

var (
	complaintShape = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// byParser are the messages of the parser, which counts lines from 0; those of
	// the scanner, which counts from 1, are all others.
	byParser = regexp.MustCompile(`^did not find expected (<|key|',' or|'-' indicator|node content)|^found (undefined tag handle|duplicate %|incompatible)`)
	// odd is a value in a line that YAML does not take without quotes.
	odd           = regexp.MustCompile(`(?:[\[{,:]|- )\s*(::|\*[^A-Za-z0-9]|\(\?)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

func complaintOf(err error) complaint {
	parts := complaintShape.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if parts == nil {
		return complaint{message: err.Error()}
	}
	line, _ := strconv.Atoi(parts[1])
	if line > 0 && byParser.MatchString(parts[2]) {
		line++
	}
	return complaint{line, parts[2]}
}

// syntax turns an error of the YAML parser into a finding: at the true line,
// and in words that say what to do.
func (s *source) syntax(err error) Diagnostic {
	c := complaintOf(err)
	out := Diagnostic{Rule: ruleSyntax}
	if name := unknownAnchor.FindStringSubmatch(c.message); name != nil {
		out.Pos = s.alias(name[1])
		out.Message = "*" + name[1] + " is an alias of an anchor that is not above it; want quotes around a value that begins with *"
		return out
	}
	line := min(max(c.line, 1), len(s.starts))
	if strings.HasPrefix(c.message, "did not find expected key") || strings.HasPrefix(c.message, "did not find expected '-'") {
		line = s.breaking(c.message, line)
	}
	if tab := s.tab(c.message, line); tab > 0 {
		line, out.Rule = tab, ruleTab
		out.Message = "a tab indents this line; want spaces"
	} else {
		out.Message = explain(c.message, string(s.line(line)))
	}
	text := s.line(line)
	out.Pos = Pos{s.name, line, len(text) - len(bytes.TrimLeft(text, " \t")) + 1}
	if at := odd.FindSubmatchIndex(text); at != nil && out.Rule == ruleSyntax && strings.Contains(c.message, "expected") {
		out.Pos.Col = at[2] + 1
	}
	return out
}

// alias is the first place that an alias of this name stands in.
func (s *source) alias(name string) Pos {
	use, err := regexp.Compile(`(?:^|[\s\[{,:-])(\*` + regexp.QuoteMeta(name) + `)(?:[\s\]},]|$)`)
	if err != nil {
		return Pos{File: s.name}
	}
	for i := 1; i <= len(s.starts); i++ {
		line, _, _ := strings.Cut(string(s.line(i)), " #")
		if at := use.FindStringSubmatchIndex(line); at != nil && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			return Pos{s.name, i, at[2] + 1}
		}
	}
	return Pos{File: s.name}
}

// breaking is the line that breaks a block, of which the parser only says where
// it begins: the shortest beginning of the file that fails alike ends with it.
func (s *source) breaking(message string, from int) int {
	lines := len(s.starts)
	n := sort.Search(lines-from, func(i int) bool {
		end := len(s.text)
		if from+i < lines {
			end = s.starts[from+i]
		}
		var doc yaml.Node
		err := decodeNode(yaml.NewDecoder(bytes.NewReader(s.text[:end])), &doc)
		return err != nil && complaintOf(err).message == message
	})
	return from + n
}

// tab is the line that a tab indents, when that is what the parser stumbled over.
func (s *source) tab(message string, line int) int {
	if !strings.Contains(message, "tab") && !strings.Contains(message, "cannot start any token") {
		return 0
	}
	for i := line; i <= len(s.starts) && i <= line+100; i++ {
		text := s.line(i)
		if indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]; bytes.IndexByte(indent, '\t') >= 0 {
			return i
		}
		if !strings.Contains(message, "tab") {
			break
		}
	}
	return 0
}

// explain says in other words what the parser found in a line.
func explain(message, line string) string {
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("unknown escape"), has("expected hexdecimal"), has("invalid Unicode"):
		return `in "double quotes" the backslash is YAML's own; want 'single quotes'`
	case has("node content") && strings.Contains(line, "::"):
		return "an address that begins with :: reads as something else inside [ ]; want it in quotes: \"::1\""
	case has("node content"):
		return "a value is missing here, or begins with what YAML reads otherwise; want a value, in quotes if need be, and a closing bracket for each [ and {"
	case has("alphabetic or numeric"):
		return "a * or & at the beginning is an alias or anchor to YAML; want such a value in quotes"
	case has("cannot start any token"):
		return "a value cannot begin with this character (@, %, ` or a tab); want it in quotes"
	case has("',' or"):
		return "a comma or the closing bracket of [ ] or { } is missing" + regexInFlow(line)
	case has("mapping values are not allowed"):
		return "a second key follows on this line, or the indentation is wrong; want {key: value} for a mapping in a line, and quotes around a value that holds \": \""
	case has("expected key"), has("'-' indicator"):
		return "this line does not fit what stands above it; want the indentation of its neighbours, and nothing behind a closing quote or bracket" + regexInFlow(line)
	case has("expected ':'"):
		return "this line is no key and value; want a colon and a space after the key"
	case has("end of stream"):
		return "a quote that opens here is never closed; want its end"
	case has("block sequence entries"):
		return "a list begins on the line of its key; want each - on a line of its own, or [ ]"
	case has("tag handle"):
		return "a ! at the beginning is a tag to YAML; want such a value in quotes"
	case has("incompatible YAML"), has("directive"):
		return "directives such as %YAML are not part of the language; want them gone"
	case has("exceeded max depth"):
		return "this is nested too deeply; want a policy that people can read"
	}
	return "this is not YAML (" + message + "); want key: value"
}

// regexInFlow is for a line on which an unquoted regular expression may stand.
func regexInFlow(line string) string {
	if strings.ContainsAny(line, `^\$(`) || strings.Contains(line, "[0-9]") || strings.Contains(line, "[a-z") {
		return "; inside [ ] and { } a regular expression stands in 'single quotes'"
	}
	return ""
}
