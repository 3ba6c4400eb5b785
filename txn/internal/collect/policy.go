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

// chooser returns a function that is called with the times of versions, newest first, and reports whether each stays.
func (p KeepPolicy) chooser() func(time.Time) bool {
	type rule struct {
		most int
		of   func(time.Time) string
		last string
	}
	rules := []rule{
		{most: p.Hourly, of: func(t time.Time) string { return t.Format("2006-01-02 15") }},
		{most: p.Daily, of: func(t time.Time) string { return t.Format(time.DateOnly) }},
		{most: p.Weekly, of: func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
		{most: p.Monthly, of: func(t time.Time) string { return t.Format("2006-01") }},
		{most: p.Yearly, of: func(t time.Time) string { return t.Format("2006") }},
	}
	last := p.Last
	return func(t time.Time) bool {
		t = t.UTC()
		stays := last > 0
		last--
		for i := range rules {
			r := &rules[i]
			if period := r.of(t); r.most > 0 && period != r.last {
				r.last, stays = period, true
				r.most--
			}
		}
		return stays
	}
}
