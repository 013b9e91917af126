package policies

import (
	"testing"
	"time"
)

// exampleLimits are the limits of a plan of the whole example, by name.
func exampleLimits(t *testing.T, plan Name) map[string]Limit {
	t.Helper()
	p, ds := Load("testdata/example/policy.yaml")
	if ds.HasErrors() {
		t.Fatalf("findings: %v", ds)
	}
	c := Compile(p)
	limits := map[string]Limit{}
	for _, l := range c.Plans[c.planIndex(plan)].Limits {
		limits[l.Name] = l
	}
	return limits
}

func TestEveryKindCompiles(t *testing.T) {
	pro := exampleLimits(t, "pro")
	if l := pro["speed"]; l.Kind != KindRate || l.Wait != 250*time.Millisecond || l.Burst != 200 || l.Status != 429 {
		t.Errorf("speed = %+v", l)
	}
	if l := pro["smooth"]; l.Kind != KindWindow || l.Window != (Window{30000, time.Minute}) || l.Algorithm != AlgorithmSliding {
		t.Errorf("smooth = %+v", l)
	}
	if l := pro["monthly"]; l.Kind != KindQuota || l.Quota != (Quota{Limit: 1000000, Period: PeriodMonth}) || l.Zone.String() != "Europe/Berlin" ||
		l.AnchorDay != 15 || l.Overage != 50000 || !l.Soft || l.Status != 402 {
		t.Errorf("monthly = %+v; want what pro says laid over what free says", l)
	}
	if l := pro["jobs"]; l.Kind != KindConcurrency || l.Concurrency != 10 || l.Lease != 2*time.Minute || !l.Requests {
		t.Errorf("jobs = %+v", l)
	}
	if l := pro["retries"]; l.Kind != KindRetries || l.Burst != 60 || l.Rate != (Rate{60e6, time.Minute}) || !l.Requests {
		t.Errorf("retries = %+v", l)
	}
	if l := exampleLimits(t, "enterprise")["monthly"]; !l.Quota.Unlimited { // C101
		t.Errorf("enterprise.monthly = %+v; want unlimited", l)
	}
	if l := exampleLimits(t, "anonymous")["daily"]; l.Status != 429 || l.Zone != time.UTC || l.AnchorDay != 1 { // C098
		t.Errorf("daily = %+v; want status 429, UTC, anchor 1", l)
	}
}

func TestTenantsNumbersAndGrants(t *testing.T) {
	p, ds := Load("testdata/example/policy.yaml")
	if ds.HasErrors() {
		t.Fatalf("findings: %v", ds)
	}
	c := Compile(p)
	for _, l := range c.Tenants[0].Limits {
		switch l.Name {
		case "speed":
			if l.Burst != 400 || l.Rate.Micro != 100e6 || l.Wait != 250*time.Millisecond {
				t.Errorf("acme's speed = %+v", l)
			}
		case "monthly":
			if len(l.Grants) != 1 || l.Grants[0].Add != 250000 || l.Grants[0].Until != (Date{2026, 12, 31}) {
				t.Errorf("acme's monthly = %+v", l)
			}
		default:
			if l.Grants != nil {
				t.Errorf("%s has grants", l.Name)
			}
		}
	}
}

// TestCounterStartsAnewWithItsTime: a window's length and a quota's calendar
// make another counter, their numbers do not.
func TestCounterStartsAnewWithItsTime(t *testing.T) {
	id := func(limit string) string {
		t.Helper()
		return compileText(t, "version: 1\nlimits: {x: {per: ip, "+limit+"}}\n").Limits[0].ID
	}
	for _, tc := range []struct {
		name, a, b string
		same       bool
	}{
		{"a window's number", "window: 5/15m", "window: 9/15m", true},
		{"a window's length", "window: 5/15m", "window: 5/1h", false},
		{"a window's algorithm", "window: 5/15m", "window: 5/15m, algorithm: log", false},
		{"sliding is the default", "window: 5/15m", "window: 5/15m, algorithm: sliding", true},
		{"a quota's number", "quota: 5/day", "quota: unlimited/day", true},
		{"a quota's period", "quota: 5/day", "quota: 5/month", false},
		{"a quota's zone", "quota: 5/day", "quota: 5/day, timezone: Asia/Tokyo", false},
		{"a quota's anchor", "quota: 5/month", "quota: 5/month, anchor_day: 15", false},
		{"another kind", "rate: 5/s, burst: 5", "concurrency: 5", false},
	} {
		if got := id(tc.a) == id(tc.b); got != tc.same {
			t.Errorf("%s: one counter %t; want %t", tc.name, got, tc.same)
		}
	}
}
