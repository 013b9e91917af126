// Package policies is the language of Sluice: it reads a policy file, checks
// it, and turns it into what the renderer and the service use. It stands on
// floor 0 and imports nothing of ours; YAML is known here and nowhere else.
//
// Reading goes in steps, and none of them stops at the first mistake:
//
//  1. source.go and its neighbours make a tree of the YAML file. What the
//     parser says is put into better words, at the line where it happened.
//  2. decode.go walks the tree along the types of policy.go and fills them.
//     YAML never decides what a value is: each scalar is read from its text by
//     its type in values.go (the scalar files), which cannot hold a wrong one.
//     List files and tenant files are read on the way (listfile.go, load.go).
//  3. Validate looks at the policy as a whole. It runs on all that could be
//     read; crosscheck.go drops what it says about broken parts.
//
// A finding is a Diagnostic: file:line:col: path: what is wrong; want ...
// [rule]. Places are looked up by path when a finding is made (Policy.pos), so
// that the types carry no positions. rules.go has the table of all rules.
//
// Compile then makes the second shape, Compiled: defaults applied, names
// resolved, plans flattened. There is no third.
//
// Diff (the diff files) compares two policies by what they mean: with the numbers
// of Compiled, so that extends, overrides and grants are in it, as tightened,
// loosened, added, removed or moved, and for how many tenants and keys. Whether a
// counter starts anew it sees in the counter's own name, Limit.ID.
package policies
