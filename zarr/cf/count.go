package cf

import "fmt"

// CountOf returns the count for text, a date with an optional time, in units such as "days since
// 1970-01-01" of the calendar proleptic_gregorian. A time between two counts is [ErrInexact];
// units that are not times are [ErrAttribute].
func CountOf(units, text string) (int64, error) {
	u, ok, err := parseUnits(units, "proleptic_gregorian")
	if err != nil || !ok {
		return 0, fmt.Errorf("%w: units: %q", ErrAttribute, units)
	}
	at, _, err := u.calendar.parseTime(text)
	if err != nil {
		return 0, err
	}
	nanos, ok := moment{at.day - u.since.day, at.nanos - u.since.nanos}.count(1)
	if !ok {
		return 0, fmt.Errorf("%w: %q is too far away", errTime, text)
	}
	if nanos%u.step != 0 {
		return 0, fmt.Errorf("%w: %q in %s", ErrInexact, text, units)
	}
	return nanos / u.step, nil
}
