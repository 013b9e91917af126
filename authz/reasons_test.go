package authz

import (
	"slices"
	"testing"

	"sluice/policies"
)

// TestReasonWords: the words that policy tests may expect are those that the
// service says, and the one that only NGINX has.
func TestReasonWords(t *testing.T) {
	t.Parallel()
	words := policies.Reasons()
	for r := ReasonNone + 1; r < reasons; r++ {
		if r != ReasonShadow && !slices.Contains(words, r.String()) {
			t.Errorf("policies.Reasons has no %s", r)
		}
	}
	if want := int(reasons) - 2 + len([]string{"edge_conn"}); len(words) != want {
		t.Errorf("policies.Reasons has %d words; want %d", len(words), want)
	}
}
