package zarr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// statusTypes returns a data type of each family.
func statusTypes(t *testing.T) []dtype.Type {
	t.Helper()
	configs := map[string]string{
		"null_terminated_bytes": `{"length_bytes":4}`, "fixed_length_utf32": `{"length_bytes":8}`,
		"numpy.datetime64": `{"unit":"s","scale_factor":1}`, "numpy.timedelta64": `{"unit":"s","scale_factor":1}`,
		"struct": `{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"float64"}]}`,
	}
	var list []dtype.Type
	for _, name := range append(dtype.Names(), "r24") {
		raw := `"` + name + `"`
		if c := configs[name]; c != "" {
			raw = `{"name":"` + name + `","configuration":` + c + `}`
		}
		typ := must.Get(dtype.ParseV3(json.RawMessage(raw)))(t)
		list = append(list, typ)
	}
	ragged := must.Get(dtype.NewRagged(dtype.NewInt(32).WithOrder(dtype.Little)))(t)
	return append(list, dtype.NewJSON(), ragged)
}

// sampleConfigs are configurations of codecs that need one, by name or id: %n is
// the bytes of an element, %t its numpy type string.
var sampleConfigs = map[string]string{
	"bytes":            `"endian":"little"`,
	"transpose":        `"order":[1,0]`,
	"reshape":          `"shape":[-1]`,
	"sharding_indexed": `"chunk_shape":[1,3],"codecs":[%s],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]`,
	"n5_default":       `"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}}]`,
	"conditional":      `"codecs":["crc32c"]`,
	"cast_value":       `"data_type":"float64"`,
	"bitround":         `"keepbits":1`,
	"gzip":             `"level":1`,
	"zstd":             `"level":1`,
	"blosc":            `"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":%n,"blocksize":0`,
	"shuffle":          `"elementsize":%n`,
	"delta":            `"dtype":"%t"`,
	"astype":           `"encode_dtype":"<f8","decode_dtype":"%t"`,
	"fixedscaleoffset": `"scale":1,"offset":0,"dtype":"%t"`,
	"quantize":         `"digits":1,"dtype":"%t"`,
	"categorize":       `"labels":["a"],"dtype":"%t","astype":"|u1"`,
	"vlen-array":       `"dtype":"<i4"`,
	"fill_hdf_strings": `"dtype":"S1","id_map":{"a":""}`,

	"imagecodecs_delta":     `"dtype":"%t"`,
	"imagecodecs_floatpred": `"dtype":"%t"`,
}

// takes tries a codec on a chunk of zeros.
func takes(t *testing.T, reg *codecs.Registry, v Version, row codecRow, typ dtype.Type) bool {
	t.Helper()
	numpy, serial := "", ""
	if v == V2 {
		typ = typ.WithOrder(dtype.Little)
	}
	if raw, err := typ.WithOrder(dtype.Little).PrintV2(); err == nil {
		numpy = strings.Trim(string(raw), `"`)
	}
	switch {
	case v == V2 && (numpy == "" || row.name == plain && typ.Variable()):
		return false
	case typ.Kind() == dtype.String:
		serial = "vlen-utf8"
	case typ.Kind() == dtype.Bytes:
		serial = "vlen-bytes"
	case typ.Kind() == dtype.JSON:
		serial = "json2"
	case typ.Kind() == dtype.Ragged:
		serial = "vlen-array"
	}
	form := func(name string) string {
		key := "name"
		if v == V2 {
			key = "id"
		}
		config, ok := sampleConfigs[name]
		if !ok {
			config = sampleConfigs[strings.TrimPrefix(name, "numcodecs.")]
		}
		if v == V3 && strings.HasPrefix(name, "imagecodecs_") {
			config = "" // the elements are those of the array
		}
		if v == V2 || strings.HasPrefix(name, "numcodecs.") {
			config = strings.Replace(config, `"shuffle":"shuffle"`, `"shuffle":1`, 1)
			if v == V2 {
				config = strings.Replace(config, `,"typesize":%n`, "", 1)
			}
		}
		inner := `{"name":"bytes","configuration":{"endian":"little"}}`
		if serial != "" {
			inner = `"` + serial + `"`
		}
		config = strings.NewReplacer("%n", fmt.Sprint(max(1, typ.Size())), "%t", numpy, "%s", inner).Replace(config)
		switch {
		case config == "":
			return `{"` + key + `":"` + name + `"}`
		case v == V2:
			return `{"id":"` + name + `",` + config + `}`
		}
		return `{"name":"` + name + `","configuration":{` + config + `}}`
	}
	var chain codecs.Chain
	var err error
	if v == V2 {
		var filters []string
		if serial != "" && row.kind != codecs.ArrayToBytes && row.name != "categorize" {
			filters = append(filters, form(serial))
		}
		if row.name != plain {
			filters = append(filters, form(row.name))
		}
		chain, err = reg.ParseV2(codecs.V2{Type: typ, Order: "C", Rank: 2, Filters: json.RawMessage(`[` + strings.Join(filters, ",") + `]`)})
	} else {
		if _, err := typ.PrintV3(); err != nil {
			return false
		}
		bytes := `{"name":"bytes","configuration":{"endian":"little"}}`
		if serial != "" {
			bytes = form(serial)
		}
		list := form(row.name)
		switch row.kind {
		case codecs.ArrayToArray:
			list += "," + bytes
		case codecs.BytesToBytes:
			list = bytes + "," + list
		}
		chain, err = reg.ParseV3(json.RawMessage(`[` + list + `]`))
	}
	if err != nil {
		return false
	}
	bound, err := chain.Bind(codecs.Rep{Type: typ, Shape: []int{2, 3}})
	if err != nil {
		return false
	}
	elems := make([]byte, 6*typ.Size())
	if typ.Variable() {
		w, err := dtype.NewBuilder(nil, 6)
		for range 6 {
			item := typ.Zero()
			if row.name == "categorize" {
				item = []byte("a")
			}
			if err == nil {
				err = w.Append(item)
			}
		}
		if err == nil {
			elems, err = w.Finish()
		}
		must.Do(t, err)
	}
	stored, err := bound.Encode(nil, elems)
	if err == nil {
		var back []byte
		if back, err = bound.Decode(nil, stored); err == nil && !bytes.Equal(back, elems) {
			t.Errorf("%v of %v: zeros do not come back", row.name, typ)
		}
	}
	if err != nil {
		t.Errorf("%v of %v: %v", row.name, typ, err)
	}
	return err == nil
}
