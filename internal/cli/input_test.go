package cli

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

// What is written layer by layer is what is written at once, and layers end where
// chunks do.
func TestEachLayer(t *testing.T) {
	db := must.Get(engine.Create(context.Background(), filepath.Join(t.TempDir(), "w.zdb"), nil))(t)
	defer db.Close()
	must.Get(db.Update(t.Context(), "", "array", func(s *engine.Session) error {
		a, err := s.CreateArray(t.Context(), "a", zarr.Spec{Shape: []int64{300, 4}, Chunks: []int64{4, 3}, DataType: "uint16"})
		if err != nil {
			return err
		}
		for text, layers := range map[string]int{
			"": 3, "0:1": 1, "1:299": 3, "3:130,2": 1, "-297:": 3, "...,1": 1, "7": 1, "newaxis,0:200": 2,
			"::2": 1, "::-1": 1, "[5,3]": 1, "4:4": 1,
		} {
			sel, err := zarr.ParseSelection(text, a.DimensionNames())
			if err != nil {
				return err
			}
			shape, err := a.Resolve(sel)
			if err != nil {
				return err
			}
			data := make([]uint16, product(shape))
			for i := range data {
				data[i] = uint16(i + 1)
			}
			parts, told, rest := 0, int64(0), data
			err = eachLayer(t.Context(), a, sel, shape, 128*4*2, func(p engine.Progress) { told = p.Keys }, func(layer zarr.Selection, n int64) error {
				parts++
				part := rest[:n]
				rest = rest[n:]
				return zarr.Write(t.Context(), a, layer, part)
			})
			if err != nil {
				return err
			}
			got, _, err := zarr.Read[uint16](t.Context(), a, sel)
			if err != nil || !slices.Equal(got, data) || parts != layers || told != int64(len(data)) {
				t.Errorf("%q: %d layers, %d of %d elements: %v, %v", text, parts, told, len(data), got, err)
			}
		}
		return nil
	}))(t)
}

// Numbers and dates of a .npy file keep their values, or are refused.
func TestConverted(t *testing.T) {
	days, f32, f64 := must.Get(dtype.ParseV2([]byte(`"<M8[D]"`), dtype.Type{}))(t), dtype.NewFloat(32), dtype.NewFloat(64)
	narrow := must.Get(dtype.NewNarrowFloat("float8_e4m3fn"))(t)
	const since1 = `{"units":"days since 0001-01-01"}`
	float := func(v float64) uint64 { return math.Float64bits(v) }
	single := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	before := int64(-171000) // 1501-10-24
	for _, c := range []struct {
		from  dtype.Type
		bits  uint64
		to    dtype.Type
		attrs string
		want  string // "" is an error
	}{
		{days, 18293, f64, `{"units":"K"}`, ""},
		{days, 18293, dtype.NewInt(32), ``, ""},
		{days, 18293, dtype.NewInt(64), `{"units":"days since 1970-01-01","calendar":"360_day"}`, ""},
		{days, 18293, dtype.NewInt(64), `{"units":"days since 1970-01-01","calendar":"noleap"}`, ""},
		{days, 18293, dtype.NewInt(64), `{"units":"days since 1970-01-01","scale_factor":2}`, ""},
		{days, 18293, dtype.NewInt(16), `{"units":"days since 2020-01-01"}`, "31"},
		{days, 18293, dtype.NewInt(64), since1, "737457"},
		{days, 18293, dtype.NewInt(64), `{"units":"days since 0001-01-01","calendar":"proleptic_gregorian"}`, "737455"},
		{days, uint64(before), dtype.NewInt(64), since1, ""},
		{f32, single(0.1), f64, ``, "0.10000000149011612"},
		{f32, single(123456792), dtype.NewInt(32), ``, "123456792"},
		{f64, float(1 << 60), dtype.NewInt(64), ``, "1152921504606846976"},
		{f64, float(1 << 63), dtype.NewInt(64), ``, ""},
		{f64, float(1 << 63), dtype.NewUint(64), ``, "9223372036854775808"},
		{f64, float(-1), dtype.NewUint(64), ``, ""},
		{f64, float(2.5), dtype.NewInt(64), ``, ""},
		{f64, float(math.NaN()), dtype.NewInt(64), ``, ""},
		{f64, float(math.Inf(1)), dtype.NewInt(64), ``, ""},
		{f64, float(math.NaN()), f32, ``, `"NaN"`},
		{f64, float(math.Inf(-1)), f32, ``, `"-Infinity"`},
		{f64, float(0.1), f32, ``, "0.1"},
		{f64, float(1e300), f32, ``, ""},
		{f32, single(0.3), narrow, ``, "0.3"},
		{dtype.NewInt(64), 1<<24 + 1, f32, ``, ""},
		{dtype.NewInt(64), 17, narrow, ``, ""},
		{dtype.NewInt(64), 16, narrow, ``, "16.0"},
	} {
		m := &zarr.Meta{Version: zarr.V3, Array: true, Type: c.to, Fill: c.to.Zero()}
		if c.attrs != "" {
			m.Attributes = must.Get(zarr.ParseAttributes([]byte(c.attrs)))(t)
		}
		elem := binary.LittleEndian.AppendUint64(nil, c.bits)[:c.from.Size()]
		v := &values{file: &npy.File{Type: c.from, Shape: []int64{1}, Data: elem}}
		data, err := v.elements(m, []int64{1})
		var got []byte
		if err == nil {
			got = must.Get(c.to.AppendJSON(nil, data))(t)
		}
		if string(got) != c.want {
			t.Errorf("%v %#x as %v %s: %s, %v, want %q", c.from, c.bits, c.to, c.attrs, got, err, c.want)
		}
	}
}
