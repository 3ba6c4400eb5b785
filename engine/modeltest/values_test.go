package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
)

// The model holds every element as an int32. A kind says how such a number is
// spelled in an array of some data type, and how the array is cut and encoded.
type kind struct {
	name   string
	limit  int32 // values are below
	chunk  []int64
	spec   func(format zarr.Version) zarr.Spec
	elems  func(v int32) any // the fill value as JSON
	write  func(ctx context.Context, a *zarr.Array, sel zarr.Selection, values []int32) error
	read   func(ctx context.Context, a *zarr.Array, sel zarr.Selection) ([]int32, error)
	shards bool // equal values may have other bytes
	plain  bool // elements are int32
}

// notAValue is what read returns for an element that is the spelling of no number.
const notAValue = math.MinInt32

// typed fills in how elements are spelled.
func typed[T comparable](k kind, to func(int32) T, from func(T) int32) *kind {
	k.elems = func(v int32) any { return to(v) }
	k.write = func(ctx context.Context, a *zarr.Array, sel zarr.Selection, values []int32) error {
		data := make([]T, len(values))
		for i, v := range values {
			data[i] = to(v)
		}
		return zarr.Write(ctx, a, sel, data)
	}
	k.read = func(ctx context.Context, a *zarr.Array, sel zarr.Selection) ([]int32, error) {
		data, _, err := zarr.Read[T](ctx, a, sel)
		values := make([]int32, len(data))
		for i, d := range data {
			if values[i] = from(d); to(values[i]) != d {
				values[i] = notAValue
			}
		}
		return values, err
	}
	return &k
}

// specOf makes a function that returns a Spec of either format.
func specOf(dataType string, v2, v3 string, chunks, shards []int64) func(zarr.Version) zarr.Spec {
	return func(format zarr.Version) zarr.Spec {
		s := zarr.Spec{DataType: dataType, Chunks: chunks}
		text := v2
		if format == zarr.V3 {
			s.Shards, text = shards, v3
		} else if shards != nil {
			s.Chunks = shards
		}
		if text != "" {
			s.Codecs = json.RawMessage(text)
		}
		return s
	}
}

const littleBytes = `{"name":"bytes","configuration":{"endian":"little"}}`

// kinds are small arrays of several types, one of so many chunks that its index
// has several pages, and one of chunks that begin at their own place of a pack.
var kinds = []*kind{
	typed(kind{name: "int32", plain: true, limit: math.MaxInt32, chunk: []int64{3, 4}, spec: specOf("int32", "", "", []int64{3, 4}, nil)},
		func(v int32) int32 { return v }, func(v int32) int32 { return v }),
	typed(kind{name: "float64", limit: math.MaxInt32, chunk: []int64{40},
		spec: specOf("float64", `{"id":"zlib","level":1}`, `[`+littleBytes+`,{"name":"gzip","configuration":{"level":1}}]`, []int64{40}, nil)},
		func(v int32) float64 { return float64(v) + 0.5 }, func(f float64) int32 { return int32(math.Floor(f)) }),
	typed(kind{name: "bool", limit: 2, chunk: []int64{8}, spec: specOf("bool", "null", `["bytes","crc32c"]`, []int64{8}, nil)},
		func(v int32) bool { return v != 0 }, func(b bool) int32 {
			if b {
				return 1
			}
			return 0
		}),
	typed(kind{name: "string", limit: math.MaxInt32, chunk: []int64{2, 3},
		spec: specOf("string", `{"filters":[{"id":"vlen-utf8"}],"compressor":null}`, `["vlen-utf8",{"name":"zstd","configuration":{"level":1}}]`, []int64{2, 3}, nil)},
		spellText, readText),
	typed(kind{name: "shards", limit: math.MaxUint16, chunk: []int64{8, 8}, shards: true,
		spec: specOf("uint16", `{"order":"F","compressor":{"id":"zstd","level":1}}`, "", []int64{2, 4}, []int64{8, 8})},
		func(v int32) uint16 { return uint16(v) }, func(v uint16) int32 { return int32(v) }),
	typed(kind{name: "long", plain: true, limit: math.MaxInt32, chunk: []int64{160},
		spec: specOf("int32", "null", `[`+littleBytes+`]`, []int64{160}, nil)},
		func(v int32) int32 { return v }, func(v int32) int32 { return v }),
	typed(kind{name: "large", plain: true, limit: math.MaxInt32, chunk: []int64{128, 160},
		spec: specOf("int32", "null", `[`+littleBytes+`]`, []int64{128, 160}, nil)},
		func(v int32) int32 { return v }, func(v int32) int32 { return v }),
}

func spellText(v int32) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint("é", v, strings.Repeat("-", int(v%7)))
}

func readText(s string) (v int32) {
	_, _ = fmt.Sscanf(s, "é%d", &v) // the caller spells the number again
	return v
}
