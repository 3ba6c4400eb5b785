package codecs_test

import (
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/codectest"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// numcodec returns a codec of numcodecs in v3.
func numcodec(name, config string) string {
	return `{"name":"numcodecs.` + name + `","configuration":{` + config + `}}`
}

func filters(list string) *codecs.V2 { return &codecs.V2{Filters: json.RawMessage(list)} }

func compressor(item string) *codecs.V2 { return &codecs.V2{Compressor: json.RawMessage(item)} }

// TestByteFilters runs the suite on what turns bytes into bytes.
func TestByteFilters(t *testing.T) {
	i2, f4 := dtype.NewInt(16), dtype.NewFloat(32)
	v3 := func(codec string) string { return `[` + little + `,` + codec + `]` }
	for name, c := range map[string]codectest.Case{
		"lz4":               {V3: v3(numcodec("lz4", `"acceleration":3`)), Type: f4, Shape: []int{9, 40}},
		"lz4_empty":         {V2: compressor(`{"id":"lz4"}`), Type: i2, Shape: []int{0}},
		"lz4_text":          {V3: `["vlen-utf8",` + numcodec("lz4", `"acceleration":0`) + `]`, Type: dtype.NewString(), Shape: []int{30}},
		"bz2":               {V3: v3(numcodec("bz2", `"level":1`)), Type: i2, Shape: []int{40, 9}},
		"bz2_text":          {V3: `["vlen-bytes",` + numcodec("bz2", `"level":9`) + `]`, Type: dtype.NewBytes(), Shape: []int{30}},
		"lzma":              {V3: v3(numcodec("lzma", `"preset":1`)), Type: i2, Shape: []int{40, 9}},
		"lzma_text":         {V3: `["vlen-utf8",` + numcodec("lzma", ``) + `]`, Type: dtype.NewString(), Shape: []int{30}},
		"lzma_alone":        {V2: compressor(`{"id":"lzma","format":2,"preset":0}`), Type: i2, Shape: []int{20}},
		"lzma_raw":          {V2: compressor(`{"id":"lzma","format":3,"filters":[{"id":3,"dist":2},{"id":33,"preset":0}]}`), Type: i2, Shape: []int{20}},
		"lzma_raw1":         {V2: compressor(`{"id":"lzma","format":3,"filters":[{"id":3},{"id":4611686018427387905,"dict_size":4096,"lc":0,"lp":1,"pb":0}]}`), Type: i2, Shape: []int{20}},
		"lzma_xz_delta":     {V2: compressor(`{"id":"lzma","format":1,"check":10,"filters":[{"id":3,"dist":4},{"id":33}]}`), Type: f4, Shape: []int{20}},
		"shuffle":           {V3: v3(numcodec("shuffle", `"elementsize":2`)), Type: i2, Shape: []int{6, 7}},
		"shuffle_wide":      {V3: v3(numcodec("shuffle", `"elementsize":12`) + `,` + zstd3), Type: f4, Shape: []int{6, 7}},
		"shuffle_none":      {V2: filters(`[{"id":"shuffle","elementsize":0}]`), Type: i2, Shape: []int{6, 7}},
		"base64":            {V2: filters(`[{"id":"base64"}]`), Type: i2, Shape: []int{6, 7}},
		"base64_text":       {V2: filters(`[{"id":"vlen-utf8"},{"id":"base64"}]`), Type: dtype.NewString(), Shape: []int{6, 7}},
		"adler32":           {V3: v3(numcodec("adler32", ``)), Type: i2, Shape: []int{6, 7}},
		"adler32_end":       {V2: filters(`[{"id":"adler32","location":"end"}]`), Type: i2, Shape: []int{6, 7}},
		"crc32":             {V3: v3(numcodec("crc32", `"location":"start"`)), Type: i2, Shape: []int{6, 7}},
		"fletcher32":        {V3: v3(numcodec("fletcher32", ``)), Type: dtype.NewInt(8), Shape: []int{31, 47}},
		"jenkins":           {V3: v3(numcodec("jenkins_lookup3", `"initval":7`)), Type: i2, Shape: []int{6, 7}},
		"jenkins_prefix":    {V2: filters(`[{"id":"jenkins_lookup3","initval":4294967295,"prefix":[1,2,255]}]`), Type: i2, Shape: []int{6, 7}},
		"jenkins_no_prefix": {V2: filters(`[{"id":"jenkins_lookup3","initval":0,"prefix":null}]`), Type: dtype.NewInt(8), Shape: []int{13}},
		"checksums":         {V2: filters(`[{"id":"crc32"},{"id":"adler32"},{"id":"fletcher32"},{"id":"jenkins_lookup3"},{"id":"crc32c"}]`), Type: i2, Shape: []int{6, 7}},
	} {
		t.Run(name, func(t *testing.T) { codectest.Run(t, c) })
	}
}
