package txn

import (
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/txn/internal/care"
)

// FuzzNames reads any text as what names things in a database.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"zarrdb 1\n", "zarrdb 99", "00000000000000ff-00000001", "0123456789abcdef", "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31 12:00", "1026-01-31", "",
		"Sat, 31 Jan 2026 12:00:00 +0100", "30d", "2 days ago", "now", "main~2^2@{", "a^2~~", "keep 7 daily 4 weekly 12 monthly, tags"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseFormat([]byte(s)); err == nil && (n < 1 || n > Format) {
			t.Fatalf("%q is format %d", s, n)
		}
		if id, err := ParseSessionID(s); err == nil {
			if again, err := ParseSessionID(id.String()); err != nil || again != id {
				t.Fatalf("%q is session %v, then %v: %v", s, id, again, err)
			}
		}
		if _, ok := care.ParseCheckpoint(s); ok && len(s) != len("0000000000000000-00000000") {
			t.Fatalf("%q is taken for a checkpoint", s)
		}
		if age, err := ParseAge(s); err == nil && (age < 0 || len(s) < 2) {
			t.Fatalf("%q is %v ago", s, age)
		}
		now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		when, err := parseWhen(s, now)
		age, noAge := ParseAge(s)
		at, noTime := ParseTime(s)
		if noAge == nil {
			at, noTime = now.Add(-age), nil
		}
		if (err == nil) != (noTime == nil) || err == nil && !when.Equal(at) {
			t.Fatalf("%q is %v (%v), not %v", s, when, err, at)
		}
		if p, err := ParseKeepPolicy(s); err == nil && (p == KeepPolicy{} || min(p.Last, p.Hourly, p.Daily, p.Weekly, p.Monthly, p.Yearly) < 0) {
			t.Fatalf("%q is %+v", s, p)
		}
		if base, steps, err := parseSteps(s); err == nil && (!strings.HasPrefix(s, base) || len(steps) > len(s)) {
			t.Fatalf("%q is %q and %v", s, base, steps)
		}
		if at, err := ParseTime(s); err == nil {
			// Local time once had seconds of distance from UTC, which no format says.
			if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
				return
			}
			if again, err := ParseTime(at.Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
				t.Fatalf("%q is %v, then %v: %v", s, at, again, err)
			}
		}
	})
}
