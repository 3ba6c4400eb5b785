package cf

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Every day is the one after the day before, and is counted as it was named.
func TestCalendarsCount(t *testing.T) {
	for _, c := range []*calendar{&gregorian, &julian, &mixed, &noleap, &days360, &allLeap} {
		var y, m, d int64
		for n := int64(-900_000); n < 200_000; n++ {
			y2, m2, d2 := c.civil(n)
			if c.days(y2, m2, d2) != n {
				t.Fatalf("%s: day %d is %d-%d-%d, which is day %d", c.name, n, y2, m2, d2, c.days(y2, m2, d2))
			}
			next := d2 == d+1 && m2 == m && y2 == y || d == c.length(y+0, max(m, 1)) && d2 == 1 && (m2 == m+1 && y2 == y || m == 12 && m2 == 1 && y2 == y+1)
			if n > -900_000 && !next && (c != &mixed || n != reform) {
				t.Fatalf("%s: %d-%d-%d follows %d-%d-%d", c.name, y2, m2, d2, y, m, d)
			}
			y, m, d = y2, m2, d2
		}
		if y, m, d := c.civil(0); c != &julian && (y != 1970 || m != 1 || d != 1) {
			t.Errorf("%s: day 0 is %d-%d-%d", c.name, y, m, d)
		}
	}
	// 1582-10-04 Julian is the day before 1582-10-15 Gregorian.
	if julian.days(1582, 10, 4)+1 != gregorian.days(1582, 10, 15) {
		t.Error("the calendars do not meet")
	}
}

func array(t *testing.T, dataType, attrs string) *zarr.Meta {
	t.Helper()
	m := must.Get(meta.ParseV3([]byte(`{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"`+dataType+`",
		"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},"chunk_key_encoding":{"name":"default"},
		"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":`+attrs+`}`), builtin.Registry()))(t)
	return m
}

// elements packs values of a data type.
func elements(t *testing.T, typ dtype.Type, values string) (b []byte) {
	t.Helper()
	for v := range strings.FieldsSeq(values) {
		e := must.Get(typ.ParseFillV3(json.RawMessage(v)))(t)
		b = append(b, e...)
	}
	return b
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ dataType, attrs, stored, want string }{
		{"int16", `{"scale_factor":0.5,"add_offset":10,"_FillValue":-1}`, "-1 0 3", `"NaN" 10.0 11.5`},
		{"int16", `{"scale_factor":[0.5]}`, "3", "1.5"},
		{"int32", `{"missing_value":[7,8]}`, "7 8 9", `"NaN" "NaN" 9.0`},
		{"float32", `{"missing_value":[NaN,7]}`, "7 8", `"NaN" 8.0`},
		{"int32", `{"_FillValue":null,"long_name":"x"}`, "7 8", "7 8"},
		{"int8", `{"_Unsigned":"true","_FillValue":-1}`, "-1 -2 3", `"NaN" 254.0 3.0`},
		{"int8", `{"_Unsigned":"true","_FillValue":255}`, "-1 -2", `"NaN" 254.0`},
		{"uint8", `{"_Unsigned":"false"}`, "255 1", "-1 1"},
		{"float32", `{"_FillValue":1e20}`, "1e20 1.5", `"NaN" 1.5`},
		{"float32", `{"_FillValue":"AAAAAAAA+H8="}`, `"NaN" 1.5`, `"NaN" 1.5`},
		{"float16", `{"scale_factor":2}`, `1.5 -0.25 "-Infinity" "NaN" 6e-8`, `3.0 -0.5 "-Infinity" "NaN" 1.1920928955078125e-07`},
		{"float64", `{"units":"K"}`, "1.5", "1.5"},
		{"int64", `{"_FillValue":9007199254740993}`, "9007199254740993 9007199254740992", `"NaN" 9007199254740992.0`},
		// No int16 is -99999 or 65535, and none is taken for one.
		{"int16", `{"missing_value":-99999}`, "31073 1", "31073.0 1.0"},
		{"int16", `{"missing_value":[-99999,65535,1e30,7]}`, "31073 -1 7", `31073.0 -1.0 "NaN"`},
		// xarray's NaT.
		{"int64", `{"units":"days since 2020-01-01","_FillValue":-9223372036854775808}`, "-9223372036854775808 1", "NaT 2020-01-02T00:00:00"},
		{"int64", `{"units":"days since 2020-01-01","_FillValue":-9.223372036854775808e18}`, "-9223372036854775808 1", "NaT 2020-01-02T00:00:00"},
		{"int64", `{"units":"days since 2020-01-01"}`, "-9223372036854775808 1", "NaT 2020-01-02T00:00:00"},
		{"int64", `{"units":"days since 2020-01-01","scale_factor":2}`, "-9223372036854775808 1", "NaT 2020-01-03T00:00:00"},
		{"int32", `{"units":"days since 2020-01-01","_FillValue":-9223372036854775808}`, "0 1", "2020-01-01T00:00:00 2020-01-02T00:00:00"},

		{"int32", `{"units":"days since 2020-01-01"}`, "0 31 -1", "2020-01-01T00:00:00 2020-02-01T00:00:00 2019-12-31T00:00:00"},
		{"int32", `{"units":"hours since 1900-1-1 0:0:0","_FillValue":-5}`, "-5 1051896", "NaT 2020-01-01T00:00:00"},
		{"float64", `{"units":"days since 2000-01-01 12:00","calendar":"proleptic_gregorian"}`, `0.25 "NaN" -0.5`, "2000-01-01T18:00:00 NaT 2000-01-01T00:00:00"},
		{"int64", `{"units":"seconds since 1970-01-01T00:00:00+01:00"}`, "0", "1969-12-31T23:00:00"},
		{"int64", `{"units":"nanoseconds since 1970-01-01T00:00:00Z"}`, "1", "1970-01-01T00:00:00.000000001"},
		{"int32", `{"units":"days since 2001-02-28","calendar":"noleap"}`, "0 1 366", "2001-02-28T00:00:00 2001-03-01T00:00:00 2002-03-01T00:00:00"},
		{"int32", `{"units":"days since 2000-02-29","calendar":"360_day"}`, "1 2", "2000-02-30T00:00:00 2000-03-01T00:00:00"},
		// The standard calendar leaves out ten days of 1582.
		{"int32", `{"units":"days since 1582-10-04"}`, "0 1", "1582-10-04T00:00:00 1582-10-15T00:00:00"},
		{"int32", `{"units":"days since 1582-10-04","calendar":"proleptic_gregorian"}`, "0 1", "1582-10-04T00:00:00 1582-10-05T00:00:00"},
		{"int32", `{"units":"days since 1-1-1","calendar":"gregorian"}`, "0 737426", "0001-01-01T00:00:00 2020-01-01T00:00:00"},
	} {
		d, err := NewDecoder(array(t, c.dataType, c.attrs))
		if err != nil {
			t.Errorf("%s: %v", c.attrs, err)
			continue
		}
		in, _ := dtype.Named(c.dataType)
		out, err := d.Append(nil, elements(t, in, c.stored))
		if err != nil {
			t.Errorf("%s: %v", c.attrs, err)
			continue
		}
		var got []string
		for size := d.Type().Size(); len(out) > 0; out = out[size:] {
			text := must.Get(d.AppendText(nil, out[:size]))(t)
			got = append(got, string(text))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s of %s: %s, want %s", c.attrs, c.stored, s, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ attrs, names string }{
		{`{"scale_factor":"2"}`, "scale_factor"},
		{`{"add_offset":[1,2]}`, "add_offset"},
		{`{"_FillValue":"abc"}`, "_FillValue"},
		{`{"_FillValue":[1,"abc"]}`, "_FillValue"},
		{`{"missing_value":{"a":1}}`, "missing_value"},
		{`{"_Unsigned":"yes"}`, "_Unsigned"},
		{`{"units":"months since 2000-01-01"}`, "months"},
		{`{"units":"days since yesterday"}`, "yesterday"},
		{`{"units":"days since 2001-02-29"}`, "2001-02-29"},
		{`{"units":"days since 2000-01-01","calendar":"lunar"}`, "lunar"},
	} {
		_, err := NewDecoder(array(t, "int32", c.attrs))
		if !errors.Is(err, ErrAttribute) && !errors.Is(err, errors.ErrUnsupported) || err != nil && !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.attrs, err)
		}
	}
	d := must.Get(NewDecoder(array(t, "int64", `{"units":"days since 2000-01-01"}`)))(t)
	for _, n := range []int64{math.MaxInt64, math.MinInt64 + 1, 1 << 40} {
		if _, err := d.Append(nil, binary.LittleEndian.AppendUint64(nil, uint64(n))); !errors.Is(err, ErrAttribute) {
			t.Errorf("%d days: %v", n, err)
		}
	}
}

func TestAppendDatetime(t *testing.T) {
	for _, c := range []struct {
		unit  string
		scale int64
		count int64
		want  string
	}{
		{"Y", 1, 50, "2020"}, {"M", 1, -1, "1969-12"}, {"M", 3, 200, "2020-01"}, {"W", 1, 1, "1970-01-08"}, {"D", 1, -1, "1969-12-31"},
		{"h", 1, -1, "1969-12-31T23"}, {"m", 1, 61, "1970-01-01T01:01"}, {"s", 10, 6, "1970-01-01T00:01:00"}, {"ms", 1, -1, "1969-12-31T23:59:59.999"},
		{"ns", 1, math.MaxInt64, "2262-04-11T23:47:16.854775807"}, {"as", 1, 1, "1970-01-01T00:00:00.000000000000000001"},
		{"D", 1, NaT, "NaT"}, {"D", 1, math.MaxInt64, "9223372036854775807"}, {"s", math.MaxInt32, math.MaxInt64, "9223372036854775807"}, {"generic", 1, 5, "5"},
	} {
		typ := must.Get(dtype.NewDatetime(c.unit, c.scale))(t)
		if got := string(AppendDatetime(nil, typ, c.count)); got != c.want {
			t.Errorf("%d × %d %s: %s, want %s", c.count, c.scale, c.unit, got, c.want)
		}
	}
	for want, c := range map[string][2]any{"90 min": {"m", int64(90)}, "NaT": {"s", int64(NaT)}, "-3 d": {"D", int64(-3)}} {
		typ := must.Get(dtype.NewTimedelta(c[0].(string), 1))(t)
		if got := string(AppendTimedelta(nil, typ, c[1].(int64))); got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	d := must.Get(NewDecoder(array(t, "int32", `{"units":"days since 2000-01-01"}`)))(t)
	for text, days := range map[string]int64{"2020": 366, "2020-02": 29, "2020-02-03": 1} {
		first, end, _, err := d.parseTime(text)
		if err != nil || end-first != days*86400e6 {
			t.Errorf("%s: %d to %d, %v", text, first, end, err)
		}
	}
	for _, text := range []string{"", "today", "2020-13", "2021-02-29", "999999-01-01"} {
		if _, _, _, err := d.parseTime(text); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}

// Whatever the attributes and units hold: an error or a decoder, never a panic,
// and times keep to their order.
func FuzzUnits(f *testing.F) {
	for _, s := range []string{"days since 2000-01-01", "hours since 1-1-1 00:00:0.0 +01:00", "s since 1970", "weeks since 0000-02-30", "ms since 9999-12-31T24:59:60.999999999Z"} {
		f.Add(s, "standard", int64(5))
		f.Add(s, "360_day", int64(-1e12))
	}
	f.Add("2020-02-01T12", "noleap", int64(0))
	f.Fuzz(func(t *testing.T, units, cal string, n int64) {
		u, ok, err := parseUnits(units, cal)
		if err != nil || !ok || n == math.MaxInt64 {
			return
		}
		a, ok1 := u.count(n, 1e3)
		b, ok2 := u.count(n+1, 1e3)
		if ok1 && ok2 && (b < a || u.step >= 1e3 && b-a != u.step/1e3) {
			t.Errorf("%q, %q: %d is %d, %d is %d", units, cal, n, a, n+1, b)
		}
		if ok1 {
			appendDatetime(nil, mustDatetime(t), a, u.calendar)
		}
		d := &Decoder{out: mustDatetime(t), time: &u}
		if first, end, _, err := d.parseTime(units); err == nil && first >= end {
			t.Errorf("%q, %q: from %d to %d", units, cal, first, end)
		}
	})
}

// FuzzSpan checks that any text is an error, or a span whose counts have its value.
func FuzzSpan(f *testing.F) {
	for _, s := range []string{"6h", "1 day 12 hours", "-06:30:00.5", "1.5e3 us", "292 years", "1/3 s", "-106751 days 23:47:16.854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ := must.Get(dtype.NewTimedelta("us", 1))(t)
		d := &Decoder{out: typ}
		nanos, err := parseSpan(text)
		if err != nil {
			return
		}
		first, end, whole, err := d.parseSpan(text)
		if err == nil && (first > end || first < nanos/1000 || first > nanos/1000+1 || whole != (first*1000 == nanos)) {
			t.Errorf("%q, %d ns: from %d to %d us, whole %v", text, nanos, first, end, whole)
		}
	})
}

func mustDatetime(t *testing.T) dtype.Type {
	typ := must.Get(dtype.NewDatetime("us", 1))(t)
	return typ
}
