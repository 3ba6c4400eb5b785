package cf

import (
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Times that numpy counts in another way, or not at all, are refused.
func TestInNumpy(t *testing.T) {
	for _, c := range []struct{ attrs, stored, want string }{
		{`{"units":"days since 1582-10-04"}`, "1 2", ""},
		{`{"units":"days since 1582-10-04","_FillValue":7}`, "7", ""},
		{`{"units":"days since 1582-10-04"}`, "1 0", "1582-10-04"},
		{`{"units":"days since 1582-10-04","calendar":"proleptic_gregorian"}`, "0", ""},
		{`{"units":"days since 2000-01-01","calendar":"noleap"}`, "", "noleap"},
		{`{"units":"days since 2000-01-01","calendar":"julian"}`, "", "julian"},
		{`{"units":"K"}`, "1", ""},
	} {
		d, err := NewDecoder(array(t, "int32", c.attrs))
		must.Do(t, err)
		b := must.Get(d.Append(nil, elements(t, dtype.NewInt(32), c.stored)))(t)
		err = d.InNumpy(b)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v", c.attrs, c.stored, err)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]int64{
		"6h": 6 * 3600e9, "6 hours": 6 * 3600e9, "06:00:00": 6 * 3600e9, "1 days 06:00:00": 30 * 3600e9, "-1:30": -90 * 60e9, "1.5 s": 1500e6,
		"1 day, 6:00:00": 30 * 3600e9, "1d 90min": 25.5 * 3600e9, "2 weeks": 14 * day, "0.1 ns": 0, "5us": 5000, "10µs": 10000,
	} {
		if got, err := parseSpan(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "6", "h", "6 parsecs", "2020-01-01", "6h x", "1e9 h", "99999999999999999999 d", strings.Repeat("1h", 200)} {
		if got, err := parseSpan(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}
