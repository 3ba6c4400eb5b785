package table

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func timedelta(t *testing.T, unit string, scale int64) dtype.Type {
	t.Helper()
	out := must.Get(dtype.NewTimedelta(unit, scale))(t)
	return out
}

// Counts of times are written in a unit that all formats have, without loss.
func TestUnit(t *testing.T) {
	for _, c := range []struct {
		unit  string
		scale int64
		want  string // "" for none
		per   int64
	}{
		{"ns", 1, "ns", 1}, {"us", 10, "us", 10}, {"ms", 3, "ms", 3}, {"s", 1, "ms", 1000}, {"m", 2, "ms", 120_000},
		{"h", 1, "ms", 3_600_000}, {"D", 1, "ms", 86_400_000}, {"W", 1, "ms", 7 * 86_400_000},
		{"M", 1, "", 0}, {"Y", 1, "", 0}, {"ps", 1, "", 0}, {"generic", 1, "", 0},
	} {
		typ := timedelta(t, c.unit, c.scale)
		unit, per, ok := Unit(typ)
		if ok != (c.want != "") || ok && (unit != c.want || per != c.per) {
			t.Errorf("%d %s: %s %d %v", c.scale, c.unit, unit, per, ok)
		}
		if err := Check(typ); (err == nil) != ok || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d %s: %v", c.scale, c.unit, err)
		}
	}
}

// Elements without a form that all readers agree on are refused.
func TestCheck(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.NewInt(8), dtype.NewUint(64), dtype.NewFloat(16), dtype.NewString()} {
		if err := Check(typ); err != nil {
			t.Error(typ, err)
		}
	}
	for _, name := range []string{`"complex64"`, `"r16"`} {
		typ := must.Get(dtype.ParseV3([]byte(name)))(t)
		if err := Check(typ); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(typ, err)
		}
	}
}
