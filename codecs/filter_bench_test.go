package codecs_test

import (
	"testing"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// BenchmarkFilters encodes and decodes chunks of 2 MiB; the bytes are those of
// the elements.
func BenchmarkFilters(b *testing.B) {
	f4, i4 := dtype.NewFloat(32), dtype.NewInt(32)
	for _, c := range []struct {
		name, list string
		typ        dtype.Type
	}{
		{"delta", `[` + numcodec("delta", `"dtype":"<i4"`) + `,` + little + `]`, i4},
		{"delta_float", `[` + numcodec("delta", `"dtype":"<f4"`) + `,` + little + `]`, f4},
		{"astype", `[` + numcodec("astype", `"encode_dtype":"<f8","decode_dtype":"<i4"`) + `,` + little + `]`, i4},
		{"fixedscaleoffset", `[` + numcodec("fixedscaleoffset", `"offset":0,"scale":100,"dtype":"<f4","astype":"<i4"`) + `,` + little + `]`, f4},
		{"quantize", `[` + numcodec("quantize", `"digits":2,"dtype":"<f4"`) + `,` + little + `]`, f4},
		{"bitround", `[{"name":"bitround","configuration":{"keepbits":9}},` + little + `]`, f4},
		{"cast_value", `[{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp"}},` + little + `]`, f4},
		{"scale_offset", `[{"name":"scale_offset","configuration":{"offset":5,"scale":2}},` + little + `]`, f4},
		{"shuffle", `[` + little + `,` + numcodec("shuffle", `"elementsize":4`) + `]`, f4},
		{"crc32", `[` + little + `,` + numcodec("crc32", ``) + `]`, f4},
		{"adler32", `[` + little + `,` + numcodec("adler32", ``) + `]`, f4},
		{"fletcher32", `[` + little + `,` + numcodec("fletcher32", ``) + `]`, f4},
		{"jenkins", `[` + little + `,` + numcodec("jenkins_lookup3", ``) + `]`, f4},
		{"lz4", `[` + little + `,` + numcodec("shuffle", `"elementsize":4`) + `,` + numcodec("lz4", ``) + `]`, f4},
		{"zlib", `[` + little + `,` + numcodec("shuffle", `"elementsize":4`) + `,` + numcodec("zlib", `"level":5`) + `]`, f4},
		{"bz2", `[` + little + `,` + numcodec("bz2", ``) + `]`, f4},
		{"lzma", `[` + little + `,` + numcodec("lzma", `"preset":1`) + `]`, f4},
		{"pcodec", `[` + numcodec("pcodec", ``) + `]`, f4},
		{"packbits", `["packbits"]`, dtype.NewBool()},
	} {
		n := 2 << 20 / c.typ.Size()
		bound := bind(b, c.list, c.typ, []int{n}, nil)
		elems := waves(2 << 20)[:2<<20]
		if c.typ.Kind() == dtype.Bool {
			for i := range elems {
				elems[i] &= 1
			}
		}
		stored, err := bound.Encode(nil, elems)
		if err != nil {
			b.Fatal(c.name, err)
		}
		b.Run(c.name+"/Encode", func(b *testing.B) {
			b.SetBytes(2 << 20)
			b.ReportAllocs()
			dst := stored
			for b.Loop() {
				if dst, err = bound.Encode(dst[:0], elems); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/Decode", func(b *testing.B) {
			b.SetBytes(2 << 20)
			b.ReportAllocs()
			dst := elems
			for b.Loop() {
				if dst, err = bound.Decode(dst[:0], stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
