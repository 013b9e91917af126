package policies

import (
	"cmp"
	"slices"
)

// Rule is a kind of finding. IDs are stable: people filter by them.
type Rule struct {
	ID   string
	Says string // one sentence, what is wrong when it is broken
}

// Rules are all kinds of findings, sorted by ID.
func Rules() []Rule {
	all := append(readingRules(), checkRules()...)
	slices.SortFunc(all, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// The rules of reading a policy file. Their sentences stand in rules_table.go.
const (
	ruleRead      = "read"
	ruleSyntax    = "yaml-syntax"
	ruleTab       = "yaml-tab"
	ruleEncoding  = "yaml-encoding"
	ruleEmpty     = "empty-file"
	ruleDocuments = "one-document"
	ruleSize      = "too-large"
	ruleAlias     = "yaml-alias"
	ruleTag       = "yaml-tag"
	ruleNull      = "no-value"
	ruleShape     = "shape"
	ruleUnknown   = "unknown-key"
	ruleDuplicate = "duplicate-key"
	ruleSimilar   = "similar-names"
	ruleEmptyList = "empty-list"
	ruleChoice    = "one-of"
	ruleVersion   = "version"

	ruleName     = "name"
	ruleText     = "text"
	rulePath     = "path"
	ruleHeader   = "header-name"
	ruleParam    = "parameter-name"
	ruleToken    = "token"
	rulePrefix   = "key-prefix"
	ruleFile     = "file-name"
	ruleKeySet   = "key-set"
	ruleClaim    = "claim"
	ruleMethod   = "method"
	ruleHost     = "host"
	ruleLanguage = "language"
	ruleURL      = "url"
	ruleEnv      = "env-name"
	ruleTimezone = "timezone"
	ruleInstant  = "instant"
	ruleTest     = "test"
	ruleStatus   = "status"
	ruleNumber   = "number"
	ruleCount    = "count"
	rulePercent  = "percent"
	ruleShare    = "share"
	ruleBool     = "true-or-false"
	ruleDuration = "duration"
	ruleDate     = "date"
	ruleRate     = "rate"
	ruleWindow   = "window"
	ruleQuota    = "quota"
	ruleNetwork  = "network"
	ruleCountry  = "country"
	ruleASN      = "asn"
	ruleHash     = "sha256"
	ruleWord     = "word"
	ruleRegex    = "regex"
)
