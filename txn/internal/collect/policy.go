package collect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KeepPolicy says which versions of a branch stay: the newest of each of so many last hours, days,
// weeks, months and years that have versions, in UTC, and so many of the newest. The zero policy keeps none.
type KeepPolicy struct {
	Last, Hourly, Daily, Weekly, Monthly, Yearly int
}

// ParseKeepPolicy reads a policy such as "keep 7 daily 4 weekly 12 monthly, tags". Tags are always kept;
// to name them is allowed.
func ParseKeepPolicy(s string) (p KeepPolicy, err error) {
	counts := map[string]*int{
		"last": &p.Last, "hourly": &p.Hourly, "daily": &p.Daily, "weekly": &p.Weekly, "monthly": &p.Monthly, "yearly": &p.Yearly,
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "keep" || w == "and" || w == "tags" })
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.Atoi(words[i])
		var count *int
		if i+1 < len(words) {
			count = counts[words[i+1]]
		}
		if err != nil || n < 1 || count == nil || *count > 0 {
			return p, fmt.Errorf("policy %q: %q is not a number and one of last, hourly, daily, weekly, monthly, yearly, as in \"keep 7 daily 4 weekly 12 monthly, tags\"",
				s, strings.Join(words[i:min(i+2, len(words))], " "))
		}
		*count = n
	}
	if p == (KeepPolicy{}) {
		return p, fmt.Errorf("policy %q keeps no version but heads and tags", s)
	}
	return p, nil
}

// chooser returns a function that is called with the times of versions, newest first, and reports whether each
// stays, and whether there may be more.
func (p KeepPolicy) chooser() func(time.Time) (stays, more bool) {
	rules := []struct {
		most int
		of   func(time.Time) string
	}{
		{p.Hourly, func(t time.Time) string { return t.Format("2006-01-02 15") }},
		{p.Daily, func(t time.Time) string { return t.Format(time.DateOnly) }},
		{p.Weekly, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
		{p.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
		{p.Yearly, func(t time.Time) string { return t.Format("2006") }},
	}
	last := p.Last
	seen := make([]map[string]bool, len(rules))
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	return func(t time.Time) (stays, more bool) {
		t = t.UTC()
		stays = last > 0
		last--
		more = last > 0
		for i, r := range rules {
			if period := r.of(t); len(seen[i]) < r.most && !seen[i][period] {
				seen[i][period], stays = true, true
			}
			more = more || len(seen[i]) < r.most
		}
		return stays, more
	}
}
