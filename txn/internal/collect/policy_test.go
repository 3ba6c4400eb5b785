package collect

import (
	"slices"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestChooser gives policies the same versions, newest first, and lists those that stay.
func TestChooser(t *testing.T) {
	versions := []string{
		"2026-03-02 18:30", "2026-03-02 18:10", "2026-03-02 06:00", "2026-03-01 12:00", // a Monday, and the Sunday before
		"2026-02-28 12:00", "2026-02-20 12:00", "2026-01-31 12:00", "2025-12-31 12:00", "2025-12-29 12:00",
	}
	for policy, want := range map[string][]int{
		"keep 2 last":                 {0, 1},
		"keep 2 hourly":               {0, 2},
		"keep 3 daily":                {0, 3, 4},
		"keep 3 weekly":               {0, 3, 5},
		"keep 3 monthly":              {0, 4, 6},
		"keep 9 yearly":               {0, 7},
		"keep 1 last and 2 yearly":    {0, 7},
		"2 daily, 2 monthly and tags": {0, 3, 4},
	} {
		stays := must.Get(ParseKeepPolicy(policy))(t).chooser()
		var got []int
		for i, v := range versions {
			// The zone of a version does not move it into another day.
			at := must.Get(time.Parse("2006-01-02 15:04", v))(t).In(time.FixedZone("", -11*3600))
			if stays(at) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: versions %v stay, want %v", policy, got, want)
		}
	}
	for _, bad := range []string{"", "tags", "keep", "7", "keep daily", "keep 0 daily", "keep -1 daily", "keep 2 daily 3 daily", "keep 2 fortnightly"} {
		if p, err := ParseKeepPolicy(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, p)
		}
	}
}
