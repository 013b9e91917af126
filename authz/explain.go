package authz

import "sluice/authz/limit"

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

// Fresh is an engine that has decided nothing yet, with the policy in force of e:
// for who tries one policy many times. It shares with e what was made ready of the
// policy, which never changes, and the numbers of metrics.
func (e *Engine) Fresh(store limit.Store, o Options) *Engine {
	f := New(store, o)
	f.metrics = e.metrics
	f.state.Store(e.state.Load())
	return f
}
