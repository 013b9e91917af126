package policies

import (
	"fmt"
	"time"
)

// admission is what a policy keeps of its file for tenants who come later.
type admission struct {
	policy *Policy                     // plans and limits alone
	plans  map[Name]map[Name]LimitSpec // their limits, with what they inherit
	wait   time.Duration               // the longest that NGINX was told of
}

func newAdmission(p *Policy, wait time.Duration) admission {
	return admission{&Policy{Plans: p.Plans, Limits: p.Limits}, effectivePlans(p), wait}
}

// Admit makes a tenant ready who is not in the policy, with his keys, as if he were.
// He is checked as the file's are: a plan or a limit that the policy lacks, and numbers
// of another kind, are errors. So is a wait longer than any of the policy: NGINX would
// not wait for the answer. Whether his names and credentials are his alone is for
// whoever keeps him to know.
func (c *Compiled) Admit(s *TenantSpec) (Tenant, error) {
	f := &findings{policy: c.admits.policy}
	f.tenant("", s)
	f.tenantNumbers("", s, c.admits.plans)
	for _, found := range f.list {
		if !found.Warning {
			return Tenant{}, fmt.Errorf("%s: %s", found.Path, found.Message)
		}
	}
	t := c.compileTenant(s)
	for i := range t.Limits {
		if l := &t.Limits[i]; l.Wait > c.admits.wait {
			return Tenant{}, fmt.Errorf("overrides.%s.wait: %s is longer than any limit of the policy waits, and so than NGINX does; want no more than those", l.Name, Duration(l.Wait))
		}
	}
	return t, nil
}
