package txn

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"now": 0, "yesterday": 24 * time.Hour, "0s": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "12h": 12 * time.Hour,
		"30d": 720 * time.Hour, "2w": 336 * time.Hour, "30d ago": 720 * time.Hour, "1 day ago": 24 * time.Hour, "2 days ago": 48 * time.Hour,
		"3 weeks": 504 * time.Hour, "1 second ago": time.Second, "7 minutes ago": 7 * time.Minute, "1hour": time.Hour, "2147483647s": 2147483647 * time.Second,
	} {
		if got, err := ParseAge(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "d", "30", "-1d", "1.5h", "1 month ago", "2147483648s", "2147483647w", "1  day", "ago", " ago", "3 ago", "1ss", "2026-01-31", "+1d", "1D"} {
		if got, err := ParseAge(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// TestParseTime reads each form with each zone, and what is not a time.
func TestParseTime(t *testing.T) {
	local := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	east := time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("", 2*3600))
	for s, want := range map[string]time.Time{
		"2026-01-31":                       local.Add(-12 * time.Hour),
		"2026-01-31 12:00":                 local,
		"2026-01-31T12:00":                 local,
		"2026-01-31 12:00:00":              local,
		"2026-01-31 12:00Z":                time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31 12:00+02:00":           east,
		"2026-01-31 12:00 +02:00":          east,
		"2026-01-31T12:00:00+02:00":        east,
		"2026-01-31 12:00:00+02:00":        east,
		"2026-01-31 12:00:00 +0200":        east,
		"2026-01-31 12:00:00.000250+02:00": east.Add(250 * time.Microsecond),
		"Sat, 31 Jan 2026 12:00:00 +0200":  east,
	} {
		if got, err := ParseTime(s); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "2026", "2026-01-32", "12:00", "2026-01-31 12:00 CET"} {
		if got, err := ParseTime(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}
