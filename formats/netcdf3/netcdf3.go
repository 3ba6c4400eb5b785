package netcdf3

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

const (
	// frontBytes are read at once: most headers.
	frontBytes = 64 << 10
	// keepBytes of other blocks are kept.
	keepBytes = 4 << 20

	// smallRecord is the length of a record from which it is a chunk, and inlineBytes the
	// most bytes of a variable with shorter records that are copied into one.
	smallRecord = 4 << 10
	inlineBytes = 16 << 20

	// maxDocuments bounds the bytes of all documents, maxAttribute those of the values of an
	// attribute, and maxVariables the arrays of a file.
	maxDocuments = 32 << 20
	maxAttribute = 1 << 20
	maxVariables = 1 << 14
)

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "netcdf3",
		Open:   open,
		Head:   frontBytes,
		Detect: func(e formats.Evidence) bool {
			return len(e.Head) >= 4 && string(e.Head[:3]) == "CDF" && strings.IndexByte("\x01\x02\x05", e.Head[3]) >= 0
		},
	}
}

// file is an open file.
type file struct {
	*formats.Window
	*header
	layout
	name string // the URL of references
}

// open reads the header.
func open(ctx context.Context, base formats.Base, o formats.Options) (refs.Set, error) {
	w, err := formats.OpenWindow(ctx, base.File, formats.WindowOptions{Scheme: "netcdf3", Front: frontBytes, Keep: keepBytes, Gap: 1 << 20, Most: 8 << 20})
	if err != nil {
		return nil, err
	}
	h, err := parse(ctx, w)
	if err != nil {
		return nil, err
	}
	f := &file{Window: w, header: h, name: base.Name}
	if f.layout, err = h.place(w.Size()); err != nil {
		return nil, err
	}
	if len(h.vars) > maxVariables {
		return nil, formats.Unsupported("netcdf3: more than %d variables", maxVariables)
	}
	h.attrs = short(h.attrs, "", o)
	for _, v := range h.vars {
		v.attrs = short(v.attrs, v.name, o)
	}
	t := formats.NewTree()
	root := codecs.Object("zarr_format", 3, "node_type", "group", "attributes", attributes(h.attrs, 0))
	t.Put("zarr.json", root)
	seen, bytes := map[string]bool{}, len(root)
	for _, v := range h.vars {
		if seen[v.name] {
			return nil, formats.Invalid("netcdf3: two variables have the name %q", v.name)
		}
		seen[v.name] = true
		if bytes > maxDocuments {
			return nil, formats.Unsupported("netcdf3: variables with documents of more than %d bytes", maxDocuments)
		}
		if zarrName(v.name) {
			bytes += f.add(t, v)
		} else if o.Skipped != nil {
			o.Skipped(v.name)
		}
	}
	return t, nil
}

// short returns the attributes of a variable, or of the file, without those that are too long.
func short(list []attribute, variable string, o formats.Options) []attribute {
	return slices.DeleteFunc(list, func(a attribute) bool {
		long := len(a.values) > maxAttribute
		if long {
			o.Warned("the attribute %q of /%s has %d bytes, and is left out", a.name, variable, len(a.values))
		}
		return long
	})
}

// zarrName reports whether an array can have the name.
func zarrName(s string) bool {
	return s != "" && s != "." && s != ".." && s == formats.Text([]byte(s)) && !strings.ContainsAny(s, "/\x00")
}

// add adds a variable, and returns the length of its document.
func (f *file) add(t *formats.Tree, v *variable) (bytes int) {
	item := types[v.typ].size
	shape, chunk := v.shape, []int64(nil)
	inline := false
	switch {
	case !v.record:
		chunk = formats.Contiguous(shape, item)
	case f.stride == v.bytes: // nothing lies between
		shape = append([]int64{f.records}, shape...)
		chunk = formats.Contiguous(shape, item)
	default:
		inline = v.bytes < smallRecord && f.records <= inlineBytes/v.bytes
		chunk = append([]int64{1}, formats.Limited(shape, item)...)
		shape = append([]int64{f.records}, shape...)
		if inline {
			chunk[0] = max(1, f.records)
		}
	}
	document := f.document(v, shape, chunk)
	t.Put(v.name+"/zarr.json", document)
	prefix := v.name + "/c"
	if len(shape) == 0 {
		t.PutReference(prefix, refs.Reference{URL: f.name, Offset: v.begin, Length: item})
		return len(document)
	}
	if inline {
		if f.records > 0 {
			t.PutLazy(prefix+strings.Repeat("/0", len(shape)), func(ctx context.Context) ([]byte, error) { return f.collect(ctx, v) })
		}
		return len(document)
	}
	counts := make([]int64, len(shape))
	strides := make([]int64, len(shape)) // in bytes
	stride := item
	for d := len(shape) - 1; d >= 0; d-- {
		counts[d] = (shape[d] + chunk[d] - 1) / chunk[d]
		strides[d] = stride
		stride *= shape[d]
	}
	if v.record {
		strides[0] = f.stride
	}
	t.Add(formats.Array{Prefix: prefix + "/", Separator: '/', Counts: counts, Chunk: func(_ context.Context, coords []int64) (refs.Reference, error) {
		off, n := v.begin, item
		for d, c := range coords {
			off += c * chunk[d] * strides[d]
			n *= min(chunk[d], shape[d]-c*chunk[d])
		}
		return refs.Reference{URL: f.name, Offset: off, Length: n}, nil
	}})
	return len(document)
}

// collect returns all records of a variable, one after the other.
func (f *file) collect(ctx context.Context, v *variable) ([]byte, error) {
	const batch = 4 << 10
	out := make([]byte, 0, f.records*v.bytes)
	for i := int64(0); i < f.records; i += batch {
		parts := make([]formats.Part, min(batch, f.records-i))
		for k := range parts {
			parts[k] = formats.Part{Off: v.begin + (i+int64(k))*f.stride, N: v.bytes}
		}
		list, err := f.ReadMany(ctx, parts)
		if err != nil {
			return nil, err
		}
		for _, b := range list {
			out = append(out, b...)
		}
	}
	return out, nil
}

// document is zarr.json of a variable.
func (f *file) document(v *variable, shape, chunk []int64) []byte {
	typ := types[v.typ].Type
	fill := typ.Zero()
	if i := slices.IndexFunc(v.attrs, func(a attribute) bool { return a.name == cf.FillAttribute && a.typ == v.typ }); i >= 0 && v.attrs[i].count() > 0 {
		fill = v.attrs[i].element(0)
	}
	names := make([]string, len(v.dims))
	for i, d := range v.dims {
		names[i] = formats.Text([]byte(f.dims[d].name))
	}
	name, err := typ.PrintV3()
	if err != nil {
		panic(err) // the types of the table have a name
	}
	text, err := typ.PrintFillV3(fill)
	if err != nil {
		panic(err) // and their elements a text
	}
	bytes := json.RawMessage(`{"name":"bytes"}`)
	if types[v.typ].size > 1 {
		bytes = formats.Named("bytes", codecs.Object("endian", "big"))
	}
	return codecs.Object(
		"zarr_format", 3, "node_type", "array", "shape", append([]int64{}, shape...), "data_type", name,
		"chunk_grid", formats.Grid(shape, chunk),
		"chunk_key_encoding", formats.Named("default", codecs.Object("separator", "/")),
		"fill_value", text, "codecs", []json.RawMessage{bytes}, "dimension_names", names,
		"attributes", attributes(v.attrs, v.typ))
}

// attributes returns attributes as netCDF4 shows them, and _FillValue of an array of a type
// as xarray reads it in v3. 0 is the type of no array.
func attributes(list []attribute, typ int) json.RawMessage {
	var members []any
	seen := map[string]bool{}
	for _, a := range list {
		name := formats.Text([]byte(a.name))
		if seen[name] {
			continue
		}
		seen[name] = true
		var value any
		switch n := a.count(); {
		case typ > 0 && name == cf.FillAttribute && a.typ == typ && n == 1:
			// xarray opens no array of characters with one, and a file with one not at all.
			if raw := cf.FillAttributeV3(types[typ].Type, a.element(0)); raw != nil {
				value = raw
			}
		case a.typ == typeChar:
			value = strings.ReplaceAll(formats.Text(a.values), "\x00", "")
		case n == 1:
			value = a.number(0)
		default:
			list := make([]json.RawMessage, n)
			for i := range list {
				list[i] = a.number(i)
			}
			value = list
		}
		if value != nil {
			members = append(members, name, value)
		}
	}
	return codecs.Object(members...)
}

// count returns the number of values.
func (a *attribute) count() int { return len(a.values) / int(types[a.typ].size) }

// element returns a value in memory layout.
func (a *attribute) element(i int) []byte {
	n := int(types[a.typ].size)
	b := slices.Clone(a.values[i*n : (i+1)*n])
	slices.Reverse(b)
	return b
}

// number returns a value as JSON.
func (a *attribute) number(i int) json.RawMessage {
	b, err := formats.Number(types[a.typ].Type, a.element(i))
	if err != nil {
		panic(err) // numbers have a text
	}
	return b
}
