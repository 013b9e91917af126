package accesslog

import (
	"bytes"
	"time"
)

const second = int64(1_000_000) // in microseconds

// readTime reads a moment in any form that logs have: 01/Dec/2026:03:04:05 +0100,
// 2026-12-01T03:04:05.678+01:00 (or Z, or without a zone: UTC), seconds since 1970
// with a fraction, or milliseconds. whole tells that it says no more than seconds.
func readTime(s []byte) (micros int64, whole, ok bool) {
	switch {
	case len(s) >= 20 && s[2] == '/':
		micros, ok = readLocal(s)
		return micros, true, ok
	case len(s) >= 19 && s[4] == '-':
		return readISO(s)
	}
	n, fraction, ok := readDecimal(s)
	if n >= 100_000_000_000 { // milliseconds: as seconds they would be the year 5138
		return n * 1000, false, ok
	}
	return n*second + fraction, bytes.IndexByte(s, '.') < 0, ok
}

// readLocal reads $time_local.
func readLocal(s []byte) (int64, bool) {
	day, ok1 := two(s[0:])
	month := monthNamed(s[3:6])
	year, ok2 := four(s[7:])
	clock, ok3 := readClock(s[12:])
	if !ok1 || month == 0 || !ok2 || !ok3 || s[6] != '/' || s[11] != ':' {
		return 0, false
	}
	offset, ok := readOffset(s[20:])
	return (daysSince1970(year, month, day)*86400 + clock - offset) * second, ok && day >= 1 && day <= 31
}

// readISO reads $time_iso8601, and what others write like it.
func readISO(s []byte) (micros int64, whole, ok bool) {
	year, ok1 := four(s[0:])
	month, ok2 := two(s[5:])
	day, ok3 := two(s[8:])
	clock, ok4 := readClock(s[11:])
	if !ok1 || !ok2 || !ok3 || !ok4 || s[7] != '-' || s[10] != 'T' && s[10] != ' ' || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false, false
	}
	rest, fraction := s[19:], int64(0)
	whole = true
	if len(rest) > 0 && (rest[0] == '.' || rest[0] == ',') {
		n := 1
		scale := second / 10
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			fraction += int64(rest[n]-'0') * scale
			scale /= 10
			n++
		}
		rest, whole = rest[n:], false
	}
	offset, ok := readOffset(rest)
	return (daysSince1970(year, month, day)*86400+clock-offset)*second + fraction, whole, ok
}

// readSyslog reads the time that syslog writes, "Dec  1 03:04:05", which has no
// year: the latest one that is not a day after now.
func readSyslog(s []byte, now time.Time) (int64, bool) {
	if len(s) < 15 || s[3] != ' ' || s[6] != ' ' {
		return 0, false
	}
	month := monthNamed(s[:3])
	tens := s[4]
	if tens == ' ' {
		tens = '0'
	}
	day, ok1 := two([]byte{tens, s[5]})
	clock, ok2 := readClock(s[7:])
	if month == 0 || !ok1 || !ok2 || day < 1 || day > 31 {
		return 0, false
	}
	micros := (daysSince1970(int64(now.Year()), month, day)*86400 + clock) * second
	if micros > now.Add(24*time.Hour).UnixMicro() {
		micros = (daysSince1970(int64(now.Year())-1, month, day)*86400 + clock) * second
	}
	return micros, true
}

// readClock reads 03:04:05. NGINX itself never writes a leap second; others do.
func readClock(s []byte) (int64, bool) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return 0, false
	}
	h, ok1 := two(s)
	m, ok2 := two(s[3:])
	sec, ok3 := two(s[6:])
	return h*3600 + m*60 + sec, ok1 && ok2 && ok3 && h < 24 && m < 60 && sec <= 60
}

// readOffset reads +0100, +01:00, Z or nothing, in seconds, blanks before it.
func readOffset(s []byte) (int64, bool) {
	s = bytes.TrimLeft(s, " ")
	if len(s) == 0 || len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') {
		return 0, true
	}
	if len(s) == 6 && s[3] == ':' {
		h, ok1 := two(s[1:])
		m, ok2 := two(s[4:])
		return signed(s[0], h*3600+m*60, ok1 && ok2)
	}
	if len(s) != 5 {
		return 0, false
	}
	h, ok1 := two(s[1:])
	m, ok2 := two(s[3:])
	return signed(s[0], h*3600+m*60, ok1 && ok2)
}

func signed(sign byte, n int64, ok bool) (int64, bool) {
	switch sign {
	case '+':
		return n, ok
	case '-':
		return -n, ok
	}
	return 0, false
}

// readDecimal reads a number such as 1764560991.123: its whole part, below 10^14,
// and millionths.
func readDecimal(s []byte) (n, fraction int64, ok bool) {
	i := 0
	for ; i < len(s) && i < 14 && '0' <= s[i] && s[i] <= '9'; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	if i == 0 || i == len(s) {
		return n, 0, i > 0
	}
	if s[i] != '.' {
		return 0, 0, false
	}
	scale := second / 10
	for i++; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, 0, false
		}
		fraction += int64(s[i]-'0') * scale
		scale /= 10
	}
	return n, fraction, true
}

func two(s []byte) (int64, bool) {
	a, b := s[0]-'0', s[1]-'0'
	return int64(a)*10 + int64(b), a <= 9 && b <= 9
}

func four(s []byte) (int64, bool) {
	high, ok1 := two(s)
	low, ok2 := two(s[2:])
	return high*100 + low, ok1 && ok2
}

// monthNamed is 1 to 12, 0 for no month: logs are in English, whatever the locale.
func monthNamed(s []byte) int64 {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if s[0] == names[i] && s[1] == names[i+1] && s[2] == names[i+2] {
			return int64(i/3) + 1
		}
	}
	return 0
}

// daysSince1970 counts days of the Gregorian calendar: years begin in March, so
// that the odd day is the last one.
func daysSince1970(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}
