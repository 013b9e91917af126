package cmd

import "sluice/policies"

// paint colours text for a terminal, or leaves it as it is.
type paint bool

// paintFor colours when the output is a terminal that can, and nobody said no
// (NO_COLOR, https://no-color.org).
func paintFor(e *env) paint {
	if !onTerminal(e.Out) {
		return false
	}
	if word, _ := e.LookupEnv("NO_COLOR"); word != "" {
		return false
	}
	term, _ := e.LookupEnv("TERM")
	return term != "" && term != "dumb"
}

func (p paint) with(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) strong(s string) string { return p.with("1", s) }
func (p paint) faint(s string) string  { return p.with("2", s) }
func (p paint) good(s string) string   { return p.with("32", s) }
func (p paint) bad(s string) string    { return p.with("31", s) }
func (p paint) warn(s string) string   { return p.with("33", s) }

// effect colours text by what it means: red for tighter, green for looser,
// yellow for counters that restart.
func (p paint) effect(e policies.Effect, s string) string {
	switch e {
	case policies.EffectTightened, policies.EffectRemoved:
		return p.with("31", s)
	case policies.EffectLoosened, policies.EffectAdded:
		return p.with("32", s)
	case policies.EffectRestarts:
		return p.with("33", s)
	case policies.EffectMoved:
		return p.with("36", s)
	}
	return s
}
