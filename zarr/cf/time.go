package cf

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// spans are the units of time of a fixed length in nanoseconds, by every name
// that files give them.
var spans = func() map[string]int64 {
	all := map[string]int64{}
	for names, span := range map[string]int64{
		"nanosecond nanoseconds nsec ns":            1,
		"microsecond microseconds usec us":          1e3,
		"millisecond milliseconds millisec msec ms": 1e6,
		"second seconds sec secs s":                 1e9,
		"minute minutes min mins m":                 60e9,
		"hour hours hr hrs h":                       3600e9,
		"day days d":                                day,
		"week weeks":                                7 * day,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = span
		}
	}
	return all
}()

const day = int64(86400e9)

var (
	sinceForm = regexp.MustCompile(`^\s*(\S+)\s+since\s+(.+?)\s*$`)
	// year, month, day, hour, minute, second, fraction, zone
	timeForm = regexp.MustCompile(`^([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:(?:[Tt]|\s+)(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?$`)
)

var errTime = errors.New("cf: not a time")

// moment is a time as day and nanoseconds of the day.
type moment struct{ day, nanos int64 }

// parseTime reads a date with an optional or partial time. span is its
// precision: a month for "2020-02".
func (c *calendar) parseTime(s string) (at moment, span int64, err error) {
	p := timeForm.FindStringSubmatch(strings.TrimSpace(s))
	if p == nil {
		return at, 0, fmt.Errorf("%w: %q", errTime, s)
	}
	n := [6]int64{0, 1, 1}
	given := 0
	for i := range n {
		if p[i+1] != "" {
			n[i], _ = strconv.ParseInt(p[i+1], 10, 64) // the form allows digits only
			given = i + 1
		}
	}
	y, m, d := n[0], n[1], n[2]
	if m < 1 || m > 12 || d < 1 || d > c.length(y, m) || n[3] > 24 || n[4] > 59 || n[5] > 60 {
		return at, 0, fmt.Errorf("%w of the calendar %s: %q", errTime, c.name, s)
	}
	at = moment{c.days(y, m, d), n[3]*3600e9 + n[4]*60e9 + n[5]*1e9 + fraction(p[7])}
	switch given {
	case 1:
		span = (c.days(y+1, 1, 1) - at.day) * day
	case 2:
		span = c.length(y, m) * day
	default:
		span = [...]int64{day, 3600e9, 60e9, 1e9}[given-3]
	}
	if p[7] != "" {
		span = 1
	}
	at.nanos -= zone(p[8])
	k := floor(at.nanos, day)
	return moment{at.day + k, at.nanos - k*day}, span, nil
}

// fraction is the nanoseconds that digits behind the point are.
func fraction(digits string) int64 {
	n, _ := strconv.ParseInt((digits + "000000000")[:9], 10, 64)
	return n
}

// zone is the offset of a time zone, in nanoseconds.
func zone(s string) int64 {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0
	}
	digits := strings.ReplaceAll(s[1:], ":", "")
	h, m := digits, "0"
	if len(digits) > 2 {
		h, m = digits[:len(digits)-2], digits[len(digits)-2:]
	}
	hours, _ := strconv.ParseInt(h, 10, 64)
	minutes, _ := strconv.ParseInt(m, 10, 64)
	n := hours*3600e9 + minutes*60e9
	if s[0] == '-' {
		return -n
	}
	return n
}

// timeUnits is the meaning of the attributes units and calendar: counts of step
// nanoseconds since a moment.
type timeUnits struct {
	calendar *calendar
	step     int64
	since    moment
}

// parseUnits reads units; ok is false if they are not a time since a moment.
func parseUnits(units, calendarName string) (u timeUnits, ok bool, err error) {
	p := sinceForm.FindStringSubmatch(units)
	if p == nil {
		return u, false, nil
	}
	if calendarName == "" {
		calendarName = "standard"
	}
	if u.calendar = calendars[strings.ToLower(calendarName)]; u.calendar == nil {
		return u, true, fmt.Errorf("calendar %q: not supported: %w", calendarName, errors.ErrUnsupported)
	}
	if u.step = spans[strings.ToLower(p[1])]; u.step == 0 {
		return u, true, fmt.Errorf("units %q: %q has no fixed length, or is not known: %w", units, p[1], errors.ErrUnsupported)
	}
	if u.since, _, err = u.calendar.parseTime(p[2]); err != nil {
		return u, true, fmt.Errorf("units %q: %w", units, err)
	}
	return u, true, nil
}

// NaT is the count of a time that is missing, as numpy has it.
const NaT = math.MinInt64

// count is a moment, plus n steps, in units of res nanoseconds since 1970-01-01
// of the calendar. ok is false where that does not fit.
func (u timeUnits) count(n int64, res int64) (int64, bool) {
	// n·step = whole days and the rest of a day, all without overflow
	hi, lo := bits.Mul64(uint64(max(n, -n)), uint64(u.step))
	if n == math.MinInt64 || hi >= uint64(day) {
		return NaT, false
	}
	days, rest := bits.Div64(hi, lo, uint64(day))
	d, r := int64(days), int64(rest)
	if days > 1<<52 {
		return NaT, false
	}
	if n < 0 {
		d, r = -d, -r
	}
	return moment{u.since.day + d, u.since.nanos + r}.count(res)
}

// fractional is count for a number that need not be whole: nanoseconds are
// rounded.
func (u timeUnits) fractional(f float64, res int64) (int64, bool) {
	whole := math.Floor(f)
	if math.Abs(whole) > 1<<52 {
		return NaT, false
	}
	at := u
	rest := math.Round((f - whole) * float64(u.step) / float64(res)) // in res
	c, ok := at.count(int64(whole), res)
	if !ok || c > math.MaxInt64-int64(rest) {
		return NaT, false
	}
	return c + int64(rest), true
}

// count is a moment in units of res nanoseconds.
func (m moment) count(res int64) (int64, bool) {
	k := floor(m.nanos, day)
	m = moment{m.day + k, m.nanos - k*day}
	perDay := day / res
	if m.day >= math.MaxInt64/perDay || m.day <= math.MinInt64/perDay {
		return NaT, false
	}
	return m.day*perDay + m.nanos/res, true
}

// units of datetime64 up to seconds, in nanoseconds, and digits of the units below.
var (
	wholeUnits = map[string]int64{"W": 7 * day, "D": day, "h": 3600e9, "m": 60e9, "s": 1e9}
	fineUnits  = map[string]int{"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
)

// AppendDatetime appends an element of a datetime64 type in the form of ISO
// 8601, as precise as its unit: 2020, 2020-02, 2020-02-01, 2020-02-01T12:30:00.
// Counts beyond some million million years, and counts without a unit, are
// numbers.
func AppendDatetime(dst []byte, t dtype.Type, count int64) []byte {
	return appendDatetime(dst, t, count, &gregorian)
}

func appendDatetime(dst []byte, t dtype.Type, count int64, c *calendar) []byte {
	unit, scale := t.Unit()
	if count == NaT {
		return append(dst, "NaT"...)
	}
	hi, _ := bits.Mul64(uint64(max(count, -count)), uint64(scale))
	n := count * scale
	if hi != 0 || n/scale != count {
		return strconv.AppendInt(dst, count, 10)
	}
	const most = 1 << 50 // days, and so years, that the calendars can count
	if unit == "Y" || unit == "M" {
		if unit == "M" {
			y := floor(n, 12)
			return fmt.Appendf(dst, "%04d-%02d", 1970+y, n-12*y+1)
		}
		return fmt.Appendf(dst, "%04d", 1970+n)
	}
	if digits, ok := fineUnits[unit]; ok {
		per := int64(math.Pow10(digits))
		sec := floor(n, per)
		dst = appendSeconds(dst, c, sec)
		return fmt.Appendf(dst, ".%0*d", digits, n-sec*per)
	}
	span, ok := wholeUnits[unit]
	if !ok {
		return strconv.AppendInt(dst, count, 10)
	}
	if span >= day {
		days := n * (span / day)
		if n > most || n < -most {
			return strconv.AppendInt(dst, count, 10)
		}
		return appendDate(dst, c, days)
	}
	perDay := day / span
	d := floor(n, perDay)
	sec := (n - d*perDay) * (span / 1e9)
	dst = appendDate(dst, c, d)
	dst = fmt.Appendf(dst, "T%02d", sec/3600)
	if unit == "h" {
		return dst
	}
	if dst = fmt.Appendf(dst, ":%02d", sec/60%60); unit == "m" {
		return dst
	}
	return fmt.Appendf(dst, ":%02d", sec%60)
}

func appendDate(dst []byte, c *calendar, day int64) []byte {
	y, m, d := c.civil(day)
	return fmt.Appendf(dst, "%04d-%02d-%02d", y, m, d)
}

func appendSeconds(dst []byte, c *calendar, sec int64) []byte {
	d := floor(sec, 86400)
	sec -= d * 86400
	return fmt.Appendf(appendDate(dst, c, d), "T%02d:%02d:%02d", sec/3600, sec/60%60, sec%60)
}

// AppendTimedelta appends an element of a timedelta64 type as a number and its
// unit: 90 min, with the names of numpy but for m, which is min.
func AppendTimedelta(dst []byte, t dtype.Type, count int64) []byte {
	unit, scale := t.Unit()
	if count == NaT {
		return append(dst, "NaT"...)
	}
	n := count * scale
	if n/scale != count {
		return fmt.Appendf(dst, "%d × %d %s", count, scale, unit)
	}
	switch unit {
	case "m":
		unit = "min"
	case "D":
		unit = "d"
	case "generic":
		return strconv.AppendInt(dst, n, 10)
	}
	return fmt.Appendf(dst, "%d %s", n, unit)
}
