package policies

import (
	"fmt"
	"strconv"
	"strings"
)

// UnmarshalText reads an HTTP status. NGINX answers limits with 4xx and 5xx only.
func (s *Status) UnmarshalText(text []byte) error {
	n, err := whole(ruleStatus, string(text), 599)
	if err != nil || n < 400 {
		return wrongf(ruleStatus, "%s is no status of a refusal; want a number from 400 to 599", show(string(text)))
	}
	*s = Status(n)
	return nil
}

func (s Status) String() string { return strconv.Itoa(int(s)) }

// UnmarshalText reads a count.
func (c *Count) UnmarshalText(text []byte) error {
	if s := string(text); s == "unlimited" || s == "none" || s == "inf" {
		return wrongf(ruleCount, "%s is no number; leave the key out where nothing shall be limited", show(s))
	}
	n, err := whole(ruleCount, string(text), maxCount)
	*c = Count(n)
	return err
}

func (c Count) String() string { return strconv.FormatInt(int64(c), 10) }

// UnmarshalText reads a percentage.
func (p *Percent) UnmarshalText(text []byte) error {
	digits, found := strings.CutSuffix(string(text), "%")
	n, err := whole(rulePercent, digits, 100)
	switch {
	case err == nil && !found:
		return wrongf(rulePercent, "%s lacks its sign; want %s%%", show(digits), digits)
	case err != nil:
		return wrongf(rulePercent, "%s is no percentage; want a whole one from 0%% to 100%%", show(string(text)))
	}
	*p = Percent(n)
	return nil
}

func (p Percent) String() string { return fmt.Sprintf("%d%%", int(p)) }

// UnmarshalText reads a step of a quota.
func (s *Share) UnmarshalText(text []byte) error {
	if strings.HasSuffix(string(text), "%") {
		return wrongf(ruleShare, "%s needs no sign here; want a number from 1 to 100", show(string(text)))
	}
	n, err := whole(ruleShare, string(text), 100)
	if err == nil && n == 0 {
		err = wrongf(ruleShare, "0 is reached at once; want a percentage of the quota, 1 to 100")
	}
	*s = Share(n)
	return err
}

func (s Share) String() string { return strconv.Itoa(int(s)) }
