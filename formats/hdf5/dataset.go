package hdf5

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// dataset is a dataset, which may have several names.
type dataset struct {
	f       *file
	o       *object
	path    string // its first name
	group   *node  // that has this name
	hidden  bool   // a dimension without a variable
	refused error  // why it is not read

	space   space
	typ     *datatype
	elem    element
	layout  layout
	filter  *pipeline // nil without filters
	fill    json.RawMessage
	fillRaw []byte // as it is stored, nil for zeros
	attrs   []*attribute
	scale   *scale   // what it is as a dimension
	dims    []*scale // of its dimensions, nil without one

	shape []int64 // with the lengths of dimensions, and those of an array type
	names []string
	chunk []int64 // the shape of chunks

	grid  *grid
	open  formats.Lazy[index]
	plan  formats.Lazy[uint32] // the filters that the codecs leave out
	texts formats.Lazy[map[uint64][]byte]
	finds atomic.Int64
}

// dataset reads the header of a dataset. What is wrong or has no form is its refusal.
func (f *file) dataset(ctx context.Context, n *node) (*dataset, error) {
	ds := &dataset{f: f, o: n.o, path: n.path, group: n.parent}
	d, err := f.resolve(ctx, n.o.find(msgSpace))
	if err == nil {
		ds.space, err = readSpace(d)
	}
	if err != nil {
		if !formats.IsKnown(err) {
			return nil, err
		}
		ds.space, ds.refused = space{}, err
		return ds, nil
	}
	ds.attrs, err = f.attributes(ctx, n.o)
	for _, e := range []error{n.o.odd, err, ds.read(ctx)} {
		if e != nil && !formats.IsKnown(e) {
			return nil, e
		}
		if ds.refused == nil {
			ds.refused = e
		}
	}
	return ds, nil
}

// read reads what describes the elements.
func (ds *dataset) read(ctx context.Context) error {
	f, o := ds.f, ds.o
	var err error
	if ds.layout, err = readLayout(f.message(o.find(msgLayout))); err != nil {
		ds.layout = layout{class: compact}
		return err
	}
	m := o.find(msgType)
	if m == nil {
		return formats.Invalid("hdf5: a dataset without a data type")
	}
	if ds.typ, err = f.datatype(ctx, m); err != nil {
		return err
	}
	if m := o.find(msgFilters); m != nil && ds.layout.class == chunked {
		d, err := f.resolve(ctx, m)
		if err != nil {
			return err
		}
		p, err := readPipeline(d)
		if err != nil {
			return err
		}
		if len(p.filters) > 0 {
			ds.filter = p
		}
	}
	if err := ds.place(); err != nil {
		return err
	}
	if o.find(msgExternal) != nil {
		return formats.Unsupported("hdf5: its raw data are in other files (external)")
	}
	if ds.elem, err = ds.typ.element(); err != nil {
		return err
	}
	if _, err := ds.filter.chain(nil, ds.typ.size, 0); err != nil {
		return err
	}
	b, err := f.fillBytes(ctx, o, ds.typ.size)
	if err != nil {
		return err
	}
	ds.fillRaw = b
	if ds.isText() {
		ds.fill, err = ds.textFill(ctx, b)
	} else {
		ds.fill, err = ds.elem.fillJSON(b)
	}
	return err
}

func (ds *dataset) isText() bool { return ds.elem.typ.Kind() == dtype.String }

// place checks where the elements are.
func (ds *dataset) place() error {
	l, f := &ds.layout, ds.f
	size := int64(ds.typ.size)
	if l.class != chunked {
		n, ok := ds.space.count()
		need, fits := product(n, size)
		switch {
		case !ok || !fits:
			return formats.Invalid("hdf5: an array of the shape %v", ds.space.dims)
		case l.addr == undefined || need == 0:
			l.addr = undefined
			return nil
		case l.size >= 0 && l.size < need:
			return formats.Invalid("hdf5: %v elements of %d bytes in %d bytes", ds.space.dims, size, l.size)
		}
		return f.inside("an array", l.addr, need)
	}
	rank := len(ds.space.dims)
	if len(l.chunk) != rank+1 || rank == 0 {
		return formats.Invalid("hdf5: chunks of %d dimensions in an array of %d", len(l.chunk)-1, rank)
	}
	if l.chunk[rank] != size {
		return formats.Invalid("hdf5: chunks with elements of %d bytes, where the data type has %d", l.chunk[rank], size)
	}
	bytes, ok := product(l.chunk...)
	if !ok {
		return formats.Invalid("hdf5: chunks of the shape %v", l.chunk[:rank])
	}
	g := &grid{f: f, addr: l.addr, chunk: l.chunk[:rank], bytes: bytes, filtered: ds.filter != nil}
	for i, c := range g.chunk {
		g.counts = append(g.counts, divide(ds.space.dims[i], c))
		if m := ds.space.max[i]; m == unlimited {
			g.max = append(g.max, unlimited)
		} else {
			g.max = append(g.max, divide(m, c))
		}
	}
	ds.grid = g
	return nil
}

// divide divides and rounds up.
func divide(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return (n-1)/by + 1
}

// layOut fixes the chunks, when the shape is known.
func (ds *dataset) layOut() {
	if ds.grid != nil {
		ds.chunk = slices.Concat(ds.grid.chunk, ds.elem.dims)
		for i := range ds.chunk {
			ds.chunk[i] = max(1, ds.chunk[i])
		}
		return
	}
	size := int64(1)
	if ds.typ != nil {
		size = int64(ds.typ.size)
	}
	if n := ds.elem.typ.Size(); n > 0 {
		size = int64(n)
	}
	ds.chunk = formats.Contiguous(ds.shape, size)
}

// counts are the chunks along each dimension; [1] for an array without dimensions.
func (ds *dataset) counts() []int64 {
	if len(ds.shape) == 0 {
		return []int64{1}
	}
	n := make([]int64, len(ds.shape))
	for i := range n {
		n[i] = divide(ds.shape[i], ds.chunk[i])
	}
	return n
}

// document returns the Zarr document of the array.
func (ds *dataset) document(ctx context.Context, v *values) ([]byte, error) {
	b, err := ds.describe(ctx, v)
	if err != nil && formats.IsKnown(err) {
		return ds.refusal(err), nil
	}
	return b, err
}

func (ds *dataset) describe(ctx context.Context, v *values) ([]byte, error) {
	if ds.refused != nil {
		return nil, ds.refused
	}
	mask, err := ds.planned(ctx)
	if err != nil {
		return nil, err
	}
	if ds.isText() && ds.f.whole.Load() {
		if _, err := ds.allTexts(ctx); errors.Is(err, formats.ErrUnsupported) {
			return nil, err
		}
	}
	typ, err := ds.elem.typ.PrintV3()
	if err != nil {
		return nil, unsupported("%v", err)
	}
	chain, err := ds.filter.chain(ds.first(), ds.typ.size, mask)
	if err != nil {
		return nil, err
	}
	if ds.isText() {
		chain = chain[:1]
	}
	attrs, err := v.members(ds.path, ds.attrs, &ds.elem.typ)
	if err != nil {
		return nil, err
	}
	if ds.typ.class == classEnum && !ds.typ.isBool() {
		attrs = ds.flags(attrs)
	}
	grid := formats.Named("regular", codecs.Object("chunk_shape", ds.chunk))
	if ds.grid == nil {
		grid = formats.Grid(ds.shape, ds.chunk)
	}
	return codecs.Object(
		"zarr_format", 3, "node_type", "array", "shape", ds.shape, "data_type", json.RawMessage(typ),
		"chunk_grid", grid, "chunk_key_encoding", keys, "fill_value", ds.fill,
		"codecs", chain, "attributes", codecs.Object(attrs...), "dimension_names", ds.names), nil
}

var keys = formats.Named("v2", codecs.Object("separator", "/"))

// first is the codec that makes bytes of elements.
func (ds *dataset) first() json.RawMessage {
	switch {
	case ds.isText():
		return codecs.Object("name", "vlen-utf8")
	case ds.elem.order == dtype.Big:
		return formats.Named("bytes", codecs.Object("endian", "big"))
	case ds.elem.order == dtype.Little, ds.elem.typ.Kind() == dtype.Struct:
		return formats.Named("bytes", codecs.Object("endian", "little"))
	}
	return codecs.Object("name", "bytes")
}

// flags adds the names of an enum to attributes, as CF has them.
func (ds *dataset) flags(attrs []any) []any {
	for i := 0; i < len(attrs); i += 2 {
		if attrs[i] == "flag_values" || attrs[i] == "flag_meanings" {
			return attrs
		}
	}
	v, names, meanings := values{f: ds.f}, []any{}, ""
	for _, x := range ds.typ.fields {
		n, err := v.number(ds.typ.base, x.value)
		if err != nil {
			return attrs
		}
		names = append(names, n)
		if meanings != "" {
			meanings += " "
		}
		meanings += flagName(x.name)
	}
	return append(attrs, "flag_values", names, "flag_meanings", meanings)
}

// flagName is a name as a word.
func flagName(s string) string {
	b := []byte(formats.Text([]byte(s)))
	for i, c := range b {
		if c <= ' ' {
			b[i] = '_'
		}
	}
	return string(b)
}

// refusal returns the document of an array that is not read.
func (ds *dataset) refusal(err error) []byte {
	return formats.Refusal{Scheme: scheme, Err: withPath(ds.path, err), Shape: ds.shape, Chunks: ds.chunk}.Document()
}

// reference returns the reference of a chunk.
func (ds *dataset) reference(ctx context.Context, coords []int64) (refs.Reference, error) {
	r, err := ds.locate(ctx, coords)
	return r, withPath(ds.path, err)
}

func (ds *dataset) locate(ctx context.Context, coords []int64) (refs.Reference, error) {
	if ds.isText() && ds.refused == nil {
		return ds.text(ctx, coords)
	}
	if ds.grid == nil {
		return ds.at(ds.slab(coords)), nil
	}
	coords = coords[:len(ds.grid.chunk)]
	if !ds.grid.inside(coords) {
		return refs.Reference{}, kv.ErrNotFound
	}
	c, err := ds.find(ctx, coords)
	if err != nil {
		return refs.Reference{}, err
	}
	if c.addr == undefined {
		return refs.Reference{}, kv.ErrNotFound
	}
	if err := ds.f.inside("a chunk", c.addr, c.size); err != nil {
		return refs.Reference{}, err
	}
	if ds.refused == nil {
		switch mask, err := ds.planned(ctx); {
		case errors.Is(err, formats.ErrUnsupported): // the document refuses the array: its chunks are what is stored
		case err != nil:
			return refs.Reference{}, err
		case c.mask != mask || ds.short(coords):
			return ds.inline(ctx, coords, c, mask)
		}
	}
	return ds.at(c.addr, c.size), nil
}

func (ds *dataset) at(addr, n int64) refs.Reference {
	return refs.Reference{URL: ds.f.name, Offset: ds.f.base + addr, Length: n}
}

// slab is where a chunk of a compact or contiguous array lies.
func (ds *dataset) slab(coords []int64) (addr, n int64) {
	size := int64(ds.typ.size)
	for _, d := range ds.elem.dims {
		size /= max(1, d)
	}
	start, n := int64(0), size
	for i := range ds.shape {
		from := coords[i] * ds.chunk[i]
		start = start*ds.shape[i] + from
		n *= min(ds.chunk[i], ds.shape[i]-from)
	}
	return ds.layout.addr + start*size, n
}
