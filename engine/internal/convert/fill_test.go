package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// FuzzFillAttribute reads any JSON as the _FillValue that xarray writes; what is
// written is read as the same.
func FuzzFillAttribute(f *testing.F) {
	for _, s := range []string{`"AAAAAAAA+H8="`, `"NaN"`, `1e300`, `-5`, `"x"`, `null`, `"AAA="`} {
		f.Add([]byte(s))
	}
	types := []dtype.Type{dtype.NewFloat(64), dtype.NewFloat(32), dtype.NewInt(16)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		for _, typ := range types {
			m := &zarr.Meta{Version: zarr.V3, Array: true, Type: typ, Fill: typ.Zero()}
			if err := m.Attributes.Set(cf.FillAttribute, json.RawMessage(raw)); err != nil {
				return
			}
			elem, ok := cf.MissingElement(m)
			if !ok {
				continue
			}
			text := cf.FillAttributeV3(typ, elem)
			must.Do(t, m.Attributes.Set(cf.FillAttribute, text))
			again, ok := cf.MissingElement(m)
			if printed := cf.FillAttributeV3(typ, again); !ok || len(elem) != typ.Size() || !bytes.Equal(printed, text) {
				t.Fatalf("%s as %v is %x, written as %s, read as %x", raw, typ, elem, text, again)
			}
		}
	})
}

// NaN is that of numpy, in base64 and as a word: Zarr v2 has a form for no other.
func TestNaNAttribute(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.NewFloat(64), dtype.NewFloat(32), dtype.NewFloat(16)} {
		for raw, version := range map[string]zarr.Version{`"AAAAAAAA+H8="`: zarr.V3, `"NaN"`: zarr.V3, `NaN`: zarr.V2} {
			m := &zarr.Meta{Version: version, Array: true, Type: typ}
			must.Do(t, m.Attributes.Set(cf.FillAttribute, json.RawMessage(raw)))
			elem, ok := cf.MissingElement(m)
			if text, err := typ.PrintFillV2(elem); !ok || err != nil || string(text) != `"NaN"` {
				t.Errorf("%s as %v: %x, %s, %v", raw, typ, elem, text, err)
			}
		}
	}
}

// The rules of fill values, both ways.
func TestConvertFill(t *testing.T) {
	const nan = `"AAAAAAAA+H8="`
	fill := func(m *zarr.Meta) string {
		if m.NullFill {
			return "null"
		}
		text := must.Get(m.Type.PrintFillV2(m.Fill))(t)
		return string(text)
	}
	attribute := func(m *zarr.Meta) string {
		raw, _ := m.Attributes.Get(cf.FillAttribute)
		return string(raw)
	}
	for _, c := range []struct{ to, dataType, fill, attr, wantFill, wantAttr string }{
		{"v3", "<f4", "7", "", "7.0", `"AAAAAAAAHEA="`},
		{"v3", "<f4", "7", "3", "7.0", `"AAAAAAAAHEA="`}, // the attribute does not count beside a fill value
		{"v3", "<f4", `"NaN"`, "", `"NaN"`, nan},
		{"v3", "<i2", "0", "", "0", "0"},
		{"v3", "<i2", "null", "", "0", ""},
		{"v3", "<i2", "null", "-9", "0", "-9"},
		{"v3", "<i2", "null", "-99999", "0", ""}, // no element is missing
		{"v3", "<f4", "null", "1.0000000200408773e20", "0.0", `"AAAAgB2vFUQ="`},
		{"v3", "<f4", "null", "1e20", "0.0", ""},  // which no float32 is
		{"v3", "<f4", "null", `"NaN"`, "0.0", ""}, // a text
		{"v3", "<f4", "null", "NaN", "0.0", nan},
		{"v3", "<f4", "null", `"x"`, "0.0", ""},
		{"v3", "<i2", "null", "[5]", "0", "5"},
		{"v3", "<i2", "null", "true", "0", "1"},
		{"v3", "<c8", "[0.0, 1.0]", "", "[0.0,1.0]", `["AAAAAAAAAAA=","AAAAAAAA8D8="]`},
		{"v3", "<c8", "null", "", "[0.0,0.0]", ""},
		{"v3", "|b1", "false", "", "false", "false"},
		{"v3", "|S2", `"YWI="`, "", `"YWI="`, ""},
		{"v3", "<U2", `"ab"`, "", `"ab"`, ""},

		{"v2", "float32", `"NaN"`, "", `"NaN"`, ""},
		{"v2", "float32", `"NaN"`, nan, `"NaN"`, ""},
		{"v2", "float32", `"NaN"`, `"AAAAgB2vFUQ="`, "100000000000000000000.0", ""},
		{"v2", "float32", "0.0", `"AAAAgB2vFUQ="`, "null", "1.0000000200408773e+20"},
		{"v2", "float32", "0.0", nan, "null", ""},
		{"v2", "float32", "0.0", "", "null", ""},
		{"v2", "float32", "7.0", "", "null", ""},
		{"v2", "float32", "7.0", `"AAAAAAAAHEA="`, "7.0", ""},
		{"v2", "float32", "7.0", "7", "7.0", ""},
		{"v2", "int16", "0", "0", "0", ""},
		{"v2", "int16", "0", "5", "null", "5"},
		{"v2", "complex64", `[0.0, "NaN"]`, "", `[0.0,"NaN"]`, ""},
		{"v2", "complex64", "[0.0, 0.0]", `["AAAAAAAAAAA=","AAAAAAAAAAA="]`, "[0.0,0.0]", ""},
		{"v2", "bool", "false", "", "null", ""},
	} {
		doc, convert := `{"zarr_format":2,"shape":[],"chunks":[],"dtype":"`+c.dataType+`","compressor":null,"filters":null,"order":"C","fill_value":`+c.fill+`}`, zarr.V3
		attrs := "{}"
		if c.attr != "" {
			attrs = fmt.Sprintf(`{"_FillValue":%s}`, c.attr)
		}
		m, err := meta.ParseV2Array([]byte(doc), []byte(attrs), builtin.Registry())
		if c.to == "v2" {
			doc, convert = `{"zarr_format":3,"node_type":"array","shape":[],"data_type":"`+c.dataType+`","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[]}},
				"chunk_key_encoding":{"name":"default"},"fill_value":`+c.fill+`,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":`+attrs+`}`, zarr.V2
			m, err = meta.ParseV3([]byte(doc), builtin.Registry())
		}
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		out := must.Get(convertMeta(m, convert, builtin.Registry(), nil, false))(t)
		if fill(out) != c.wantFill || attribute(out) != c.wantAttr {
			t.Errorf("%s with fill %s, attribute %s, to %s: fill %s, attribute %s, want %s and %s", c.dataType, c.fill, c.attr, c.to, fill(out), attribute(out), c.wantFill, c.wantAttr)
		}
		again := must.Get(convertMeta(out, m.Version, builtin.Registry(), nil, false))(t)
		before, ok := cf.MissingElement(m)
		if cf.FillIsMissing(m) {
			before, ok = m.Fill, true
		}
		after, ok2 := cf.MissingElement(again)
		if cf.FillIsMissing(again) {
			after, ok2 = again.Fill, true
		}
		if isNaN(m.Type, m.Fill) && !ok || ok && isNaN(m.Type, before) && !ok2 || m.Type.Kind() == dtype.FixedBytes || m.Type.Kind() == dtype.FixedUTF32 {
			continue // no value is missing, or v3 cannot say it
		}
		if ok != ok2 || !bytes.Equal(before, after) {
			t.Errorf("%s with fill %s, attribute %s, there and back: missing %x %v, then %x %v", c.dataType, c.fill, c.attr, before, ok, after, ok2)
		}
	}
}

// Missing values that are not a single element are named by missing_value, for which xarray shows the same.
func TestConvertFillLists(t *testing.T) {
	for _, c := range []struct{ to, attributes, want string }{
		{"v3", `{"_FillValue":[5,-1]}`, "[5,-1]"},
		{"v3", `{"_FillValue":[[5],[-1]],"missing_value":7}`, "[7,5,-1]"},
		{"v3", `{"_FillValue":5.5}`, "5.5"},
		{"v3", `{"_FillValue":"abc"}`, `"abc"`},
		{"v3", `{"_FillValue":"abc","missing_value":7}`, "7"},
		{"v3", `{"_FillValue":[5,-1],"missing_value":"abc"}`, "[5,-1]"},
		{"v3", `{"_FillValue":null,"missing_value":7}`, "7"},
		{"v2", `{"_FillValue":[5,-1]}`, "[5,-1]"},
		{"v2", `{"_FillValue":[5,-1],"missing_value":null}`, "[5,-1]"},
	} {
		doc, to := `{"zarr_format":2,"shape":[],"chunks":[],"dtype":"<i2","compressor":null,"filters":null,"order":"C","fill_value":null}`, zarr.V3
		m, err := meta.ParseV2Array([]byte(doc), []byte(c.attributes), builtin.Registry())
		if c.to == "v2" {
			doc, to = `{"zarr_format":3,"node_type":"array","shape":[],"data_type":"int16","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[]}},
				"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":`+c.attributes+`}`, zarr.V2
			m, err = meta.ParseV3([]byte(doc), builtin.Registry())
		}
		must.Do(t, err)
		out := must.Get(convertMeta(m, to, builtin.Registry(), nil, false))(t)
		got, _ := out.Attributes.Get("missing_value")
		if fill, has := out.Attributes.Get(cf.FillAttribute); string(got) != c.want || has {
			t.Errorf("%s to %s: missing_value %s, want %s; _FillValue %s", c.attributes, c.to, got, c.want, fill)
		}
	}
}
