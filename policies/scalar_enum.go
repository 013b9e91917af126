package policies

// UnmarshalText reads a mode of the whole policy.
func (m *Mode) UnmarshalText(text []byte) error {
	return among(m, text, ModeEnforce, ModeShadow, ModeDisabled)
}

// UnmarshalText reads a mode of one limit or access rule.
func (m *LimitMode) UnmarshalText(text []byte) error {
	return among(m, text, LimitEnforce, LimitShadow)
}

// UnmarshalText reads what happens to peers that are no trusted proxy.
func (d *Direct) UnmarshalText(text []byte) error { return among(d, text, DirectAllow, DirectDeny) }

// UnmarshalText reads what happens while the store is away.
func (f *FailMode) UnmarshalText(text []byte) error {
	return among(f, text, FailOpen, FailClosed, FailLocal)
}

// UnmarshalText reads how instances share a limit.
func (s *Sync) UnmarshalText(text []byte) error { return among(s, text, SyncLeased) }

// UnmarshalText reads how a window counts.
func (a *Algorithm) UnmarshalText(text []byte) error {
	return among(a, text, AlgorithmSliding, AlgorithmFixed, AlgorithmLog)
}

// UnmarshalText reads how a quota is charged.
func (a *Accounting) UnmarshalText(text []byte) error {
	return among(a, text, AccountingHard, AccountingSoft)
}

// UnmarshalText reads a calendar period.
func (p *Period) UnmarshalText(text []byte) error {
	return among(p, text, PeriodHour, PeriodDay, PeriodWeek, PeriodMonth)
}

// UnmarshalText reads a priority.
func (p *Priority) UnmarshalText(text []byte) error {
	return among(p, text, PriorityLow, PriorityNormal, PriorityHigh)
}

// UnmarshalText reads a family of rate limit headers.
func (d *Dialect) UnmarshalText(text []byte) error {
	return among(d, text, DialectRateLimit, DialectRateLimit12, DialectRateLimit3, DialectXRateLimit)
}

// UnmarshalText reads a format of denials.
func (b *BodyFormat) UnmarshalText(text []byte) error {
	return among(b, text, BodyProblem, BodyJSON, BodyText)
}

// UnmarshalText reads a continent; lower case is understood.
func (c *Continent) UnmarshalText(text []byte) error {
	return among(c, upper(text), "AF", "AN", "AS", "EU", "NA", "OC", "SA")
}

func (c Continent) String() string { return string(c) }

// UnmarshalText reads the name of a group of countries.
func (g *Group) UnmarshalText(text []byte) error { return among(g, text, "eu_members") }

func (g Group) String() string { return string(g) }
