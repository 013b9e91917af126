package gen

import (
	"regexp/syntax"

	"sluice/policies"
)

// literalPrefix is what every path begins with that an anchored expression
// matches. Empty when it may match anywhere.
func literalPrefix(re *policies.Regex) string {
	tree, err := syntax.Parse(re.Source, syntax.Perl)
	if err != nil {
		return ""
	}
	tree = tree.Simplify()
	if tree.Op != syntax.OpConcat || len(tree.Sub) < 2 || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	lit := tree.Sub[1]
	if lit.Op != syntax.OpLiteral || lit.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(lit.Rune)
}
