package policies

// Unenforced finds what this release reads and checks, and that neither the
// renderer nor the service does yet. A policy with such a finding must not be
// rendered or served: it would promise what nobody keeps.
func (p *Policy) Unenforced() Diagnostics {
	f := &findings{policy: p}
	unenforcedLimits(p, f)
	f.list.Sort()
	return f.list
}

// notYet reports the keys that are there.
func (f *findings) notYet(path string, keys ...key) {
	for _, k := range keys {
		if k.set {
			f.errorf(field(path, k.name), ruleNotEnforced, "not enforced yet; leave it out, or validate only")
		}
	}
}

func unenforcedLimits(p *Policy, f *findings) {
	for path, l := range limitSpecs(p) {
		f.notYet(path, key{"sync", l.Sync != ""})
	}
}
