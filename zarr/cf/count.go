package cf

import "fmt"

// CountOf returns the count for text, a date with an optional time, in units such as "days since
// 1970-01-01" of a calendar, where "" is standard. A time between two counts is [ErrInexact];
// units that are not times are [ErrAttribute].
func CountOf(units, calendar, text string) (int64, error) {
	u, ok, err := parseUnits(units, calendar)
	if err != nil || !ok {
		return 0, fmt.Errorf("%w: units: %q", ErrAttribute, units)
	}
	at, _, err := u.calendar.parseTime(text)
	if err != nil {
		return 0, err
	}
	after := moment{at.day - u.since.day, at.nanos - u.since.nanos}
	k := floor(after.nanos, day)
	after = moment{after.day + k, after.nanos - k*day}
	// A step divides a day, or is whole days.
	perStep := max(u.step/day, 1)
	if after.nanos%u.step != 0 || after.day%perStep != 0 {
		return 0, fmt.Errorf("%w: %q in %s", ErrInexact, text, units)
	}
	n, ok := moment{after.day / perStep, after.nanos}.count(min(u.step, day))
	if !ok {
		return 0, fmt.Errorf("%w: %q is too far away", errTime, text)
	}
	return n, nil
}
