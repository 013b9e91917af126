package accesslog

import (
	"bytes"
	"errors"
	"time"
)

// detectLines is how many lines tell how a log is written.
const detectLines = 64

// errUnknownFormat tells what to do about a log that nobody can read.
var errUnknownFormat = errors.New("its lines are in no format that is known; say it by --log-format, as the text of your log_format")

// detect finds the format that fits most of the first lines; of several, the one
// that says most. Blank lines are in any of them.
func detect(text []byte, now time.Time) (*Format, error) {
	sample, lines := firstLines(text)
	formats := named()
	if lines == 0 {
		return formats[0], nil
	}
	var best *Format
	most := 0
	for _, f := range formats {
		// Values are decoded in place: each format has lines of its own.
		b := batch{layout: newLayout(f, NewVars(), now), text: bytes.Clone(sample)}
		b.parseAll()
		if len(b.entries) > most {
			best, most = f, len(b.entries)
		}
	}
	if 2*most < lines {
		return nil, errUnknownFormat
	}
	return best, nil
}

// firstLines cuts text down to its first lines, and counts those with something in them.
func firstLines(text []byte) (sample []byte, lines int) {
	at := 0
	for at < len(text) && lines < detectLines {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if len(bytes.TrimSpace(text[at:end])) > 0 {
			lines++
		}
		at = end
	}
	return text[:at], lines
}
