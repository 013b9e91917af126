package policies

import (
	"fmt"
	"strings"
)

// Validate finds what is wrong with a policy as a whole: everything that takes
// more than one value to see. What a single value must not be was refused when
// it was read. The findings are complete and in the order of the file.
func (p *Policy) Validate() Diagnostics {
	f := &findings{policy: p}
	for _, check := range checks() {
		check(p, f)
	}
	f.list.Sort()
	return f.list
}

// checks are what Validate does, each for one part of the file. None depends on
// another having found nothing.
func checks() []func(*Policy, *findings) {
	return []func(*Policy, *findings){
		checkClientIP,
		checkTrustedProxies,
		checkTrustedAllowed,
		checkSources,
		checkHiddenSources,
		checkFallbacks,
		checkIdentityUse,
		checkParamNames,
		checkAccess,
		checkAccessEffect,
		checkAccessEntries,
		checkEdgeLimits,
		checkZoneSize,
		checkEdgeShadow,
		checkLimits,
		checkPlans,
		checkPlanLimits,
		checkTenants,
		checkTenantNames,
		checkTenantNumbers,
		checkRoutes,
		checkRouteNames,
		checkRoutesReached,
		checkSharedLocations,
		checkCatchAll,
		checkLimitNames,
		checkCosts,
		checkTenantCosts,
		checkResponses,
		checkNotifications,
	}
}

// at is a path for the middle of a message, with the line it stands on.
func (f *findings) at(path string) string {
	pos := f.policy.pos(path)
	if pos.Line == 0 {
		return path
	}
	return fmt.Sprintf("%s at %s:%d", path, pos.File, pos.Line)
}

// key is a key of a mapping and whether the file has it.
type key struct {
	name string
	set  bool
}

// one wants exactly one of some keys.
func (f *findings) one(path string, keys ...key) {
	var all, set []string
	for _, k := range keys {
		all = append(all, k.name)
		if k.set {
			set = append(set, k.name)
		}
	}
	switch {
	case len(set) == 0:
		f.errorf(path, ruleRequired, "none of %s is there; want exactly one of them", list(all))
	case len(set) > 1:
		f.errorf(path, ruleChoice, "%s stand together; want exactly one of them", list(set))
	}
}

// need wants each of some keys.
func (f *findings) need(path string, keys ...key) {
	for _, k := range keys {
		if !k.set {
			f.errorf(path, ruleRequired, "%s is missing; want it said", k.name)
		}
	}
}

// only refuses keys that belong to something else.
func (f *findings) only(path, owner string, keys ...key) {
	for _, k := range keys {
		if k.set {
			f.errorf(field(path, k.name), ruleMisplaced, "%s belongs to %s, and means nothing here; want it left out", k.name, owner)
		}
	}
}

// without refuses keys that nothing would come of, and says why.
func (f *findings) without(path, why string, keys ...key) {
	for _, k := range keys {
		if k.set {
			f.errorf(field(path, k.name), ruleNoEffect, "%s has no effect: %s; want it left out", k.name, why)
		}
	}
}

// list writes words as a sentence has them: a, b and c.
func list[T ~string](words []T) string {
	all := text(words)
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
