package txn

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts of times: those of RFC 3339, of git, of Python, of the log and the reflog.
var layouts = func() []string {
	all := []string{"2006-01-02", time.RFC1123Z}
	for _, t := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		for _, zone := range []string{"", "Z07:00", "-0700", " Z07:00", " -0700"} {
			all = append(all, t+zone)
		}
	}
	return all
}()

// ParseTime reads a point in time as revisions and options spell it: a day as in
// "2006-01-02", or a day with a time as in "2006-01-02T15:04:05" or "2006-01-02 15:04".
// A zone may follow, such as Z, +02:00 or " -0700". The form of the log,
// "Mon, 02 Jan 2006 15:04:05 -0700", is read too. Times without a zone are local.
func ParseTime(s string) (time.Time, error) {
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z", s)
}

// units of ages. Days and weeks are 24 and 168 hours.
var units = map[string]time.Duration{
	"s": time.Second, "second": time.Second, "m": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// ParseAge reads how long ago something was: a number and s, m, h, d or w, such as
// "30d", or a word such as "2 days"; " ago" may follow. "now" is no time ago,
// "yesterday" a day.
func ParseAge(s string) (time.Duration, error) {
	switch s {
	case "now":
		return 0, nil
	case "yesterday":
		return units["day"], nil
	}
	number := strings.TrimSuffix(s, " ago")
	unit := strings.TrimLeft(number, "0123456789")
	number = number[:len(number)-len(unit)]
	unit = strings.TrimPrefix(unit, " ")
	if len(unit) > 2 {
		unit = strings.TrimSuffix(unit, "s")
	}
	v, err := strconv.ParseUint(number, 10, 31)
	each := units[unit]
	if err != nil || each == 0 || v > uint64(1<<62/each) {
		return 0, fmt.Errorf("%q is not an age such as 30d or \"2 days ago\"", s)
	}
	return time.Duration(v) * each, nil
}

// parseWhen reads a time, or an age before now.
func parseWhen(s string, now time.Time) (time.Time, error) {
	if age, err := ParseAge(s); err == nil {
		return now.Add(-age), nil
	}
	at, err := ParseTime(s)
	if err != nil {
		return at, fmt.Errorf("%w, and not an age such as 2d or \"2 days ago\"", err)
	}
	return at, nil
}
