package denial

import (
	"strings"

	"sluice/policies"
)

// Placeholder is where a message has the seconds to wait.
const Placeholder = "{retry_after}"

// Other is said where no sentence fits, in English as all sentences of ours.
const Other = "The request was refused."

// OwnLanguage is what Sentences and Other are in.
const OwnLanguage policies.Language = "en"

// Messages are the messages of a policy by language, and their languages: the first
// is the default. A policy that has none says something about waiting.
func Messages(r *policies.Responses) ([]policies.Language, map[policies.Language]string) {
	if len(r.Languages) == 0 {
		return []policies.Language{OwnLanguage}, map[policies.Language]string{OwnLanguage: "Rate limit reached. Try again in " + Placeholder + " s."}
	}
	return r.Languages, r.Messages
}

// Waits tells whether a message speaks of waiting. It is not told where waiting
// cannot help.
func Waits(message string) bool { return strings.Contains(message, Placeholder) }

// Sentence is what is said of a denial that is no limit's.
type Sentence struct {
	Pattern string // of `STATUS:REASON`; a regular expression that NGINX and Go both read
	Text    string // nothing in it wants to be escaped in JSON, HTML or a header
}

// Sentences are those of ours; the first that fits is said.
func Sentences() []Sentence {
	return []Sentence{
		{`^401:`, "A valid credential is needed."},
		{`^451:`, "This is not available where you are, for legal reasons."},
		{`:access\z`, "Your network or client is not allowed here."},
		{`:plan\z`, "Your plan does not include this."},
		{`:address\z`, "This credential may not be used from your address."},
		{`:disabled\z`, "This account is disabled."},
		{`:credential\z`, "This credential is not accepted here."},
		{`:too_large\z`, "This request costs more than its limit can ever hold."},
		{`^503:`, "The service cannot answer at the moment. Please try again."},
		{`^402:|:quota\z`, "The quota is used up."},
		{`^429:`, "There were too many requests."},
	}
}

// Limited are the patterns of `STATUS:REASON` for denials that the messages of a
// policy speak of: those of limits.
func Limited() []string {
	return []string{
		`:(?:rate|window|quota|concurrency|retries|simulate|edge_rate|edge_conn)\z`,
		`^(?:402|429):\z`,
	}
}
