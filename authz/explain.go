package authz

// Shown tells of each source of credentials, in the order of the policy, whether
// a question carries something for it. It is for people; it allocates.
func (e *Engine) Shown(req *Request) []bool {
	b := e.state.Load()
	if b == nil {
		return nil
	}
	out := make([]bool, len(b.sources))
	for i := range b.sources {
		out[i] = len(b.sources[i].credential(req)) > 0
	}
	return out
}
