package policies

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrong is what a scalar type says about a text it refuses.
type wrong struct{ rule, message string }

func (w *wrong) Error() string { return w.message }

func wrongf(rule, format string, args ...any) error {
	return &wrong{rule, fmt.Sprintf(format, args...)}
}

// ruleOf is the rule that a scalar's error names.
func ruleOf(err error) string {
	var w *wrong
	if errors.As(err, &w) {
		return w.rule
	}
	return ruleShape
}

// show quotes a value for a message: short, and never what may be a secret.
func show(text string) string {
	if looksSecret(text) {
		return fmt.Sprintf("a value of %d characters", utf8.RuneCountInString(text))
	}
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}

// looksSecret tells whether a value could be a credential: a known beginning,
// or a long run of letters with digits among them.
func looksSecret(text string) bool {
	for _, begin := range []string{"sk_", "pk_", "rk_", "sk-", "ghp_", "glpat-", "xox", "eyJ", "Bearer ", "Basic "} {
		if strings.HasPrefix(text, begin) && len(text) > len(begin)+2 {
			return true
		}
	}
	const long = 20
	return len(text) >= long && only(text, opaque) && strings.ContainsAny(text, "0123456789") &&
		strings.IndexFunc(text, unicode.IsLetter) >= 0
}

func opaque(r rune) bool { return alnum(r) || strings.ContainsRune("_-+=", r) }

// alnum is a letter or digit of ASCII.
func alnum(r rune) bool { return letter(r) || digit(r) }

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func digit(r rune) bool { return r >= '0' && r <= '9' }

// only tells whether all of a text is of one kind of characters.
func only(text string, kind func(rune) bool) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !kind(r) }) < 0
}

// foreign names the first character of a text that is not of a kind.
func foreign(text string, kind func(rune) bool) string {
	for _, r := range text {
		if !kind(r) {
			return character(r)
		}
	}
	return ""
}

// character names a character for a message.
func character(r rune) string {
	switch {
	case r == ' ':
		return "a space"
	case r == '\t':
		return "a tab"
	case r == '\n':
		return "a line break"
	case r == utf8.RuneError || !unicode.IsPrint(r):
		return fmt.Sprintf("the character U+%04X", r)
	}
	return strconv.QuoteRune(r)
}

// control is a character that no value may hold.
func control(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// maxCount is the largest whole number that every part of Sluice counts exactly.
const maxCount = 1 << 53

// whole reads a plain decimal number from 0 to most.
func whole(rule, text string, most int64) (int64, error) {
	if text != "" && only(text, digit) && (text == "0" || text[0] != '0') {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n <= most {
			return n, nil
		}
		return 0, wrongf(rule, "%s is too large; want at most %d", show(text), most)
	}
	if hint := numberHint(text, most); hint != "" {
		return 0, wrongf(rule, "%s %s", show(text), hint)
	}
	return 0, wrongf(rule, "%s is no whole number; want digits only, 0 to %d", show(text), most)
}

// numberHint says what is odd about a number that is not plain decimal digits.
func numberHint(text string, most int64) string {
	digits := strings.NewReplacer("_", "", ",", "", " ", "").Replace(text)
	switch lower := strings.ToLower(text); {
	case numberInf.MatchString(lower):
		return fmt.Sprintf("is not finite; want a whole number up to %d", most)
	case text == "-1":
		return "is not how to say unlimited; leave the key out, or write a whole number"
	case strings.HasPrefix(text, "-"):
		return "is negative; want a whole number from 0"
	case strings.HasPrefix(text, "+") && only(text[1:], digit):
		return "has a sign; want digits only: " + text[1:]
	case numberBased.MatchString(lower):
		return "is not decimal; want decimal digits only"
	case text != "" && only(text, digit):
		return "has a leading zero, which some programs read as octal; want " + plain(text)
	case digits != "" && only(digits, digit):
		return "has separators; want digits only: " + plain(digits)
	case numberExponent.MatchString(lower):
		return "has an exponent; want all digits written out"
	case numberFraction.MatchString(text):
		return "has a fraction; want a whole number"
	}
	return ""
}

// plain is a run of digits without zeros in front.
func plain(digits string) string {
	if d := strings.TrimLeft(digits, "0"); d != "" {
		return d
	}
	return "0"
}

var (
	numberInf      = regexp.MustCompile(`^[-+]?\.?(inf|infinity|nan)$`)
	numberBased    = regexp.MustCompile(`^0[xob][0-9a-f_]+$`)
	numberExponent = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?e[-+]?[0-9]+$`)
	numberFraction = regexp.MustCompile(`^[0-9]*\.[0-9]*$`)
)

// among reads one of a few words.
func among[T ~string](to *T, text []byte, words ...T) error {
	known := make([]string, len(words))
	for i, w := range words {
		if string(text) == string(w) {
			*to = w
			return nil
		}
		known[i] = string(w)
	}
	return wrongf(ruleWord, "%s is none of the words here; want %s%s", show(string(text)), either(known), didYouMean(string(text), known))
}

// either joins words as a person would: a, b or c.
func either(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " or " + words[n]
	}
	return strings.Join(words, "")
}
