package cf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// counts is the metadata of an array of v3 that counts times.
func counts(t testing.TB, typ dtype.Type, units, calendar string) *zarr.Meta {
	t.Helper()
	m := &zarr.Meta{Version: zarr.V3, Array: true, Type: typ, Fill: typ.Zero()}
	for name, value := range map[string]string{"units": units, "calendar": calendar} {
		if value == "" {
			continue
		}
		must.Do(t, m.Attributes.Set(name, value))
	}
	return m
}

// A converted count is decoded to the same time, or is refused.
func TestRecodeTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	r := rand.New(rand.NewPCG(1, 2))
	units := []string{"days since 2001-01-01", "days since 1850-01-01", "hours since 2001-02-01 06:00:00", "seconds since 1970-01-01", "minutes since 1999-12-31T23:59:30", "milliseconds since 2020-01-01"}
	calendars := []string{"", "standard", "gregorian", "proleptic_gregorian"}
	types := []dtype.Type{dtype.NewInt(32), dtype.NewInt(64), dtype.NewFloat(64), dtype.NewFloat(32), dtype.NewUint(16)}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	converted := 0
	for range 20000 {
		from := counts(t, types[r.IntN(len(types))], pick(units), pick(calendars))
		to := counts(t, types[r.IntN(len(types))], pick(units), pick(calendars))
		rec := must.Get(NewRecoder(from, to))(t)
		n := r.Int64N(1 << (3 + r.UintN(12)))
		var bits uint64
		if from.Type.Kind() == dtype.Float {
			bits, _ = from.Type.RoundFloat(float64(n) + float64(r.IntN(8))/8)
		} else {
			bits = uint64(n)
		}
		elem := binary.LittleEndian.AppendUint64(nil, bits)[:from.Type.Size()]
		out, err := rec.Append(nil, elem)
		if errors.Is(err, ErrInexact) {
			continue
		}
		must.Do(t, err)
		converted++
		if got, want := textOf(t, to, out), textOf(t, from, elem); got != want {
			t.Fatalf("%s of %v %s is %s, and %s as %v %s", want, from.Type, from.Attributes.Text(), textOf(t, from, elem), got, to.Type, to.Attributes.Text())
		}
	}
	if converted < 2000 {
		t.Errorf("only %d counts were converted", converted)
	}
}

func textOf(t testing.TB, m *zarr.Meta, elem []byte) string {
	t.Helper()
	d := must.Get(NewDecoder(m))(t)
	b := must.Get(d.Append(nil, elem))(t)
	text := must.Get(d.AppendText(nil, b))(t)
	return string(text)
}

// Missing values stay missing, and no other value becomes one.
func TestRecodeMissing(t *testing.T) {
	masked := func(typ dtype.Type, fill float64) *zarr.Meta {
		m := counts(t, typ, "days since 2001-01-01", "")
		m.Version = zarr.V2
		m.DimensionNames = []*string{new(string)}
		m.Shape = []int64{1}
		bits, _ := typ.RoundFloat(fill)
		if typ.Kind() != dtype.Float {
			bits = uint64(int64(fill))
		}
		m.Fill = binary.LittleEndian.AppendUint64(nil, bits)[:typ.Size()]
		return m
	}
	i8, f8, i2 := dtype.NewInt(64), dtype.NewFloat(64), dtype.NewInt(16)
	for _, c := range []struct {
		from, to *zarr.Meta
		in, want float64 // NaN: the least int64
		inexact  bool
	}{
		{masked(i8, -1), masked(i8, -9), -1, -9, false},
		{masked(i8, -1), masked(i8, -9), 3, 3, false},
		{masked(i8, -1), masked(i8, 3), 3, 0, true},
		{masked(i8, -1), masked(f8, -9), -1, -9, false},
		{masked(i2, -1), masked(i8, 5), -1, 5, false},
	} {
		r := must.Get(NewRecoder(c.from, c.to))(t)
		number := func(typ dtype.Type, f float64) []byte {
			bits, _ := typ.RoundFloat(f)
			if typ.Kind() != dtype.Float {
				bits = uint64(int64(f))
			}
			return binary.LittleEndian.AppendUint64(nil, bits)[:typ.Size()]
		}
		out, err := r.Append(nil, number(c.from.Type, c.in))
		if c.inexact != errors.Is(err, ErrInexact) || err == nil && string(out) != string(number(c.to.Type, c.want)) {
			t.Errorf("%v: %x, %v", c.in, out, err)
		}
	}
	// NaT of int64 becomes NaN, and back.
	r := must.Get(NewRecoder(counts(t, i8, "days since 2001-01-01", ""), counts(t, f8, "days since 2001-01-01", "")))(t)
	out, err := r.Append(nil, binary.LittleEndian.AppendUint64(nil, 1<<63))
	if f := math.Float64frombits(binary.LittleEndian.Uint64(out)); err != nil || f == f {
		t.Errorf("NaT is %v, %v", f, err)
	}
}

// The common type of two arrays holds the elements of both.
func TestCommonType(t *testing.T) {
	text := func(n int) dtype.Type {
		u := must.Get(dtype.NewFixedUTF32(n))(t)
		return u
	}
	i, u, f := dtype.NewInt, dtype.NewUint, dtype.NewFloat
	for _, c := range []struct {
		a, b dtype.Type
		want string
	}{
		{i(32), i(64), "int64"}, {i(64), i(32), "int64"}, {i(8), u(8), "int16"}, {u(32), i(32), "int64"}, {u(8), u(16), "uint16"},
		{f(32), f(64), "float64"}, {i(16), f(32), "float32"}, {i(32), f(32), "float64"}, {i(64), f(64), "float64"},
		{text(2), text(5), text(5).String()}, {text(2), i(8), ""}, {dtype.NewBool(), i(8), ""},
	} {
		got, ok := CommonType(c.a, c.b)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%v and %v: %v, %v", c.a, c.b, got, ok)
		}
	}
}

func TestCountOf(t *testing.T) {
	for _, c := range []struct {
		units, calendar, text string
		want                  int64
		err                   error
	}{
		{"days since 1970-01-01", "", "1970-02", 31, nil},
		{"seconds since 1970-01-01", "proleptic_gregorian", "1970-01-02T00:00:01", 86401, nil},
		{"days since 1970-01-01", "", "1970-01-02T06", 0, ErrInexact},
		{"days since 1970-01-01", "", "soon", 0, errTime},
		{"days", "", "1970-02", 0, ErrAttribute},
		{"days since 0001-01-01", "", "2020-02-01", 737457, nil}, // of cftime
		{"days since 0001-01-01", "proleptic_gregorian", "2020-02-01", 737455, nil},
		{"weeks since 1970-01-02", "", "1969-12-26", -1, nil},
		{"weeks since 1970-01-02", "", "1970-01-03", 0, ErrInexact},
		{"days since 1970-01-02T12:00:00", "", "1969-12-31T12", -2, nil},
		{"seconds since 0001-01-01", "proleptic_gregorian", "2020-02-01T00:00:01", 63716112001, nil},
		{"nanoseconds since 0001-01-01", "", "2020-02-01", 0, errTime},
		{"days since 1970-01-01", "360_day", "1971-02-30", 419, nil},
		{"days since 1970-01-01", "noleap", "1972-02-29", 0, errTime},
		{"days since 1970-01-01", "none", "1970-02", 0, ErrAttribute},
	} {
		if got, err := CountOf(c.units, c.calendar, c.text); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", fmt.Sprint(c.units, c.calendar, c.text), got, err)
		}
	}
}

// NaN stays the NaN that every format can name, and infinity that means a missing value in
// the other array is refused.
func TestRecodeNaN(t *testing.T) {
	narrow, wide := dtype.NewFloat(32), dtype.NewFloat(64)
	from, to := counts(t, narrow, "", ""), counts(t, wide, "", "")
	rec := must.Get(NewRecoder(from, to))(t)
	const numpy = 0x7ff8 << 48
	out, err := rec.Append(nil, binary.LittleEndian.AppendUint32(nil, 0x7fc00000))
	if got := binary.LittleEndian.Uint64(out); err != nil || got != numpy {
		t.Errorf("NaN is %#x, %v", got, err)
	}
	must.Do(t, from.Attributes.Set("missing_value", -1))
	rec = must.Get(NewRecoder(from, to))(t)
	out, err = rec.Append(nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(-1)))
	if got := binary.LittleEndian.Uint64(out); err != nil || got != numpy {
		t.Errorf("a missing value is %#x, %v", got, err)
	}
	must.Do(t, to.Attributes.Set(FillAttribute, "Infinity"))
	rec = must.Get(NewRecoder(from, to))(t)
	if _, err := rec.Append(nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(1))))); !errors.Is(err, ErrInexact) {
		t.Errorf("infinity: %v", err)
	}
}

// The least count of 64 bits does not wrap around where another moment is earlier.
func TestRecodeLeastCount(t *testing.T) {
	from := counts(t, dtype.NewUint(64), "seconds since 1970-01-01", "")
	must.Do(t, from.Attributes.Set("_Unsigned", "false"))
	rec := must.Get(NewRecoder(from, counts(t, dtype.NewInt(64), "seconds since 1970-01-02", "")))(t)
	out, err := rec.Append(nil, binary.LittleEndian.AppendUint64(nil, 1<<63))
	if !errors.Is(err, ErrInexact) {
		t.Errorf("%x, %v", out, err)
	}
}
