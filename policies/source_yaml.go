package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// readTree reads the one YAML document of a file. The source is there even
// when the findings say that its tree is not. A file that says nothing is told
// how such a file begins.
func readTree(name string, text []byte, begin string) (*source, Diagnostics) {
	s := newSource(name, text)
	s.root = &yaml.Node{}
	file := func(rule, message string) Diagnostics {
		return Diagnostics{{Pos: Pos{File: name}, Message: message, Rule: rule}}
	}
	if len(text) > maxFile {
		return s, file(ruleSize, fmt.Sprintf("the file is larger than %d MiB; want a smaller one", maxFile>>20))
	}
	if bad := encoding8(s); bad != nil {
		return s, Diagnostics{*bad}
	}
	dec := yaml.NewDecoder(bytes.NewReader(s.text))
	var doc, more yaml.Node
	switch err := decodeNode(dec, &doc); {
	case errors.Is(err, io.EOF):
		return s, file(ruleEmpty, "the file says nothing; want "+begin)
	case err != nil:
		return s, Diagnostics{s.syntax(err)}
	}
	s.root = doc.Content[0]
	if isNull(s.root) {
		return s, file(ruleEmpty, "the file says nothing; want "+begin)
	}
	switch err := decodeNode(dec, &more); {
	case err == nil:
		return s, Diagnostics{{Pos: s.at(&more), Message: "a second document begins here and would be ignored; want one document in a file", Rule: ruleDocuments}}
	case !errors.Is(err, io.EOF):
		return s, Diagnostics{s.syntax(err)}
	}
	return s, nil
}

// decodeNode reads one document. The parser panics on some broken input; that
// is an error like others.
func decodeNode(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(into)
}
