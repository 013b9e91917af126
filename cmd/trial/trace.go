package trial

import (
	"sluice/authz"
	"sluice/gen/edge"
)

// Trace is every step of one request, those included that did not apply.
type Trace struct {
	// Edge is what access rules and edge limits said.
	Edge edge.Trace
	// Charges are what the limits of the service said, in the order of enforcement.
	Charges []authz.Charge
}

func (t *Trace) fill(o *Outcome) {
	t.Charges = o.Charges(nil)
}
