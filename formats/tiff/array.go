package tiff

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// array is an array to be: pages of one form along leading dimensions.
//
//	one page      [y, x, channel]
//	OME-TIFF      [t, c, z, y, x] or [t, c, z, y, x, channel]
type array struct {
	form
	path  string // "" is the root
	lead  []int64
	pages []*page // of the leading dimensions, C order; nil for a missing page
	attrs object
}

func (a *array) rank() int {
	if len(a.lead) > 0 && a.samples == 1 {
		return len(a.lead) + 2
	}
	return len(a.lead) + 3
}

// cut returns the dimensions that an array has of lead, y, x and channel.
func (a *array) cut(y, x, channel int64) []int64 {
	return append(slices.Clone(a.lead), y, x, channel)[:a.rank()]
}

// counts are the chunks along each dimension.
func (a *array) counts() []int64 {
	return a.cut(a.down(), a.across(), a.samples/a.tileSamples())
}

// grid returns the chunk grid: a regular one, unless the last strip is short.
func (a *array) grid() object {
	shape := a.cut(a.tileHeight, a.tileWidth, a.tileSamples())
	for i := range a.lead {
		shape[i] = 1
	}
	if !a.short() {
		return named("regular", object{"chunk_shape": shape})
	}
	edges := make([]any, len(shape))
	for i, n := range shape {
		edges[i] = n
	}
	last := a.height % a.tileHeight
	edges[len(a.lead)] = []any{[]int64{a.tileHeight, a.down() - 1}, last}
	return named("rectilinear", object{"kind": "inline", "chunk_shapes": edges})
}

// document is zarr.json of the array.
func (a *array) document(order binary.ByteOrder) object {
	typ, _ := a.dataType()
	names := []string{"y", "x", "channel"}
	if len(a.lead) > 0 {
		names = append([]string{"t", "c", "z"}, names...)
	}
	return object{
		"zarr_format":        3,
		"node_type":          "array",
		"shape":              a.cut(a.height, a.width, a.samples),
		"data_type":          typ,
		"chunk_grid":         a.grid(),
		"chunk_key_encoding": named("default", object{"separator": "/"}),
		"fill_value":         a.fill(typ),
		"codecs":             a.codecs(order, a.rank()),
		"dimension_names":    names[:a.rank()],
		"attributes":         a.attrs,
	}
}

// fill is the value of missing tiles: GDAL's no data value, else zero.
func (a *array) fill(typ string) any {
	s := strings.TrimSpace(a.nodata)
	switch {
	case typ == "bool":
		return false
	case strings.HasPrefix(typ, "complex"):
		return []any{0, 0}
	case strings.HasPrefix(typ, "float"):
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return 0
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 0):
			return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
		}
		return v
	case strings.HasPrefix(typ, "uint"):
		if v, err := strconv.ParseUint(s, 10, min(64, 8*((a.bits+7)/8))); err == nil {
			return v
		}
	default:
		if v, err := strconv.ParseInt(s, 10, a.bits); err == nil {
			return v
		}
	}
	return 0
}

// add adds the array to a tree.
func (a *array) add(t *formats.Tree, f *file, name string) error {
	prefix := ""
	if a.path != "" {
		prefix = a.path + "/"
	}
	if err := put(t, prefix+"zarr.json", a.document(f.order)); err != nil {
		return err
	}
	t.Add(formats.Array{
		Prefix: prefix + "c/", Separator: '/', Counts: a.counts(),
		Chunk: func(ctx context.Context, coords []int64) (refs.Reference, error) {
			return a.chunk(ctx, f, name, coords)
		},
	})
	return nil
}

// chunk finds the tile at some coordinates.
func (a *array) chunk(ctx context.Context, f *file, name string, coords []int64) (refs.Reference, error) {
	at := int64(0)
	for i, n := range a.lead {
		at = at*n + coords[i]
	}
	p := a.pages[at]
	if p == nil {
		return refs.Reference{}, kv.ErrNotFound
	}
	y, x := coords[len(a.lead)], coords[len(a.lead)+1]
	i := y*a.across() + x
	if a.planar {
		i += coords[len(a.lead)+2] * a.across() * a.down()
	}
	off, err := f.number(ctx, p.offsets, uint64(i))
	if err != nil {
		return refs.Reference{}, err
	}
	if off > math.MaxInt64 {
		return refs.Reference{}, formats.Invalid("tiff: tile %d is at %d", i, off)
	}
	off += uint64(p.shift)
	rows := a.tileHeight
	if a.short() && y == a.down()-1 {
		rows = a.height % a.tileHeight
	}
	whole := uint64(rows * a.rowBytes())
	n := whole
	if p.counts.count > 0 {
		if n, err = f.number(ctx, p.counts, uint64(i)); err != nil {
			return refs.Reference{}, err
		}
	}
	switch {
	case n == 0:
		return refs.Reference{}, kv.ErrNotFound
	case off > math.MaxInt64 || n > math.MaxInt64-off:
		return refs.Reference{}, formats.Invalid("tiff: tile %d has %d bytes at %d", i, n, off)
	case a.compression == 1: // a last strip may be stored with rows that are not of the page
		n = min(n, whole)
	}
	return refs.Reference{URL: name, Offset: int64(off), Length: int64(n)}, nil
}
