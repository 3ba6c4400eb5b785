package hdf5

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// attribute is an attribute with its elements as they are stored.
type attribute struct {
	name  string
	typ   *datatype
	space space
	data  []byte
	err   error // why it is not read; then it has only its name
}

// readAttribute reads an attribute message.
func (f *file) readAttribute(ctx context.Context, d *dec) (*attribute, error) {
	version, flags := d.u8(), d.u8()
	if d.err == nil && (version < 1 || version > 3) {
		return nil, formats.Unsupported("hdf5: attributes of version %d", version)
	}
	if version == 1 {
		flags = 0
	}
	nameBytes, typeBytes, spaceBytes := d.u16(), d.u16(), d.u16()
	if version == 3 {
		d.skip(1)
	}
	pad := func(n int) int {
		if version == 1 {
			return (n + 7) &^ 7
		}
		return n
	}
	name, _, _ := bytes.Cut(d.take(pad(nameBytes)), []byte{0})
	a := &attribute{name: formats.Text(name)}
	part := func(n int, typ int) *dec {
		at := d.off
		return &dec{f: f, b: d.take(pad(n)), what: messageNames[typ], addr: d.addr + int64(at)}
	}
	typ, extent := part(typeBytes, msgType), part(spaceBytes, msgSpace)
	if d.err != nil {
		return nil, d.err
	}
	if err := f.charge(int64(len(d.b))); err != nil {
		return nil, err
	}
	var err error
	if flags&1 != 0 {
		if typ, err = f.sharedMessage(ctx, msgType, typ); err != nil {
			return nil, err
		}
	}
	if flags&2 != 0 {
		if extent, err = f.sharedMessage(ctx, msgSpace, extent); err != nil {
			return nil, err
		}
	}
	if err := f.charge(int64(len(typ.b))); err != nil {
		return nil, err
	}
	if a.typ, err = readType(typ, 0); err == nil {
		a.space, err = readSpace(extent)
	}
	if err != nil {
		a.err = err
		return a, nil // its neighbours can be read
	}
	n, ok := a.space.count()
	size, fits := product(n, int64(a.typ.size))
	if !ok || !fits || size > int64(d.left()) {
		return nil, formats.Invalid("hdf5: the attribute %q of %v elements has %d bytes", a.name, a.space.dims, d.left())
	}
	a.data = d.take(int(size))
	return a, d.err
}

// attributes returns the attributes of an object.
func (f *file) attributes(ctx context.Context, o *object) ([]*attribute, error) {
	var list []*attribute
	add := func(d *dec) error {
		a, err := f.readAttribute(ctx, d)
		if err == nil {
			list = append(list, a)
		}
		return err
	}
	for i := range o.msgs {
		m := &o.msgs[i]
		switch m.typ {
		case msgAttribute:
			d, err := f.resolve(ctx, m)
			if err == nil {
				err = add(d)
			}
			if err != nil {
				return nil, err
			}
		case msgAttrInfo:
			d := f.message(m)
			heap, names := infoAddresses(d, msgAttrInfo)
			if d.err != nil {
				return nil, d.err
			}
			if heap == undefined {
				continue
			}
			err := f.dense(ctx, heap, names, 0, func(record, id []byte, h *fractalHeap) error {
				var b []byte
				var err error
				if len(record) > 8 && record[8]&flagShared != 0 {
					b, err = f.sharedObject(ctx, msgAttribute, record[:8])
				} else {
					b, err = h.object(ctx, id)
				}
				if err != nil {
					return err
				}
				return add(&dec{f: f, b: bytes.Clone(b), what: "an attribute", addr: heap})
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// values makes JSON of elements of attributes.
type values struct {
	f     *file
	ctx   context.Context
	paths map[int64]string // of objects
	used  int              // bytes of texts and lists of variable length
}

const (
	// maxAttribute bounds the elements of one attribute, in bytes.
	maxAttribute = 1 << 20
	// maxAttributes bounds the attributes of one object, in bytes of their text.
	maxAttributes = 16 << 20
)

// json returns the value of an attribute: one element alone, others as lists. It is nil if
// the elements have no form.
func (v *values) json(a *attribute) (any, error) {
	if a.err != nil {
		return nil, a.err
	}
	n, _ := a.space.count()
	switch {
	case a.space.null:
		return "", nil
	case len(a.data) > maxAttribute:
		return nil, formats.Unsupported("hdf5: attributes of %d bytes are too long", len(a.data))
	}
	if n == 1 {
		return v.element(a.typ, a.data)
	}
	return v.list(a.typ, a.space.dims, a.data)
}

// list returns elements as nested lists.
func (v *values) list(t *datatype, dims []int64, b []byte) (any, error) {
	if len(dims) == 0 {
		return v.element(t, b)
	}
	out := []any{}
	n, _ := product(dims[1:]...)
	step := int(n) * t.size
	for i := 0; i < int(dims[0]) && step > 0; i++ {
		x, err := v.list(t, dims[1:], b[i*step:(i+1)*step])
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// element returns one element.
func (v *values) element(t *datatype, b []byte) (any, error) {
	switch t.class {
	case classInt, classBits, classFloat, classEnum, classComplex:
		return v.number(t, b)
	case classText:
		return t.fixedText(b), nil
	case classOpaque:
		return hex.EncodeToString(b), nil
	case classArray:
		return v.list(t.base, t.dims, b)
	case classReference:
		if t.bits&15 == 0 && t.size == v.f.addrSize {
			if path, ok := v.paths[int64(number(b))]; ok {
				return "/" + path, nil
			}
		}
		return nil, nil
	case classVariable:
		return v.variable(t, b)
	case classCompound:
		if e, err := t.element(); err == nil && e.typ.Kind() == dtype.Complex {
			return v.number(t, b)
		}
		members := []any{}
		for _, x := range t.fields {
			value, err := v.element(x.typ, b[x.offset:x.offset+x.typ.size])
			if err != nil {
				return nil, err
			}
			members = append(members, formats.Text([]byte(x.name)), value)
		}
		return codecs.Object(members...), nil
	}
	return nil, unsupported("%s", classNames[t.class])
}

// variable returns a text or a list of variable length.
func (v *values) variable(t *datatype, b []byte) (any, error) {
	r, err := v.f.pointer(b)
	if err != nil {
		return nil, err
	}
	var data []byte
	if r.n > 0 {
		if data, err = v.f.globalObject(v.ctx, r.addr, r.index); err != nil {
			return nil, err
		}
		if v.used += min(len(data), int(r.n)*t.base.size) + 16; v.used > maxAttributes {
			return nil, formats.Unsupported("hdf5: texts of more than %d MiB in attributes", maxAttributes>>20)
		}
	}
	if t.isText() {
		return text(data, r.n), nil
	}
	if int64(r.n)*int64(t.base.size) > int64(len(data)) {
		return nil, formats.Invalid("hdf5: a sequence of %d elements has %d bytes", r.n, len(data))
	}
	return v.list(t.base, []int64{int64(r.n)}, data)
}

// pointer is a place in the global heap, with the length of the elements there.
type pointer struct {
	n     uint32
	addr  int64
	index uint32
}

func (f *file) pointer(b []byte) (pointer, error) {
	d := &dec{f: f, b: b, what: "an element of variable length"}
	p := pointer{n: d.u32()}
	p.addr, p.index = d.address(), d.u32()
	if p.addr == undefined || p.addr == 0 {
		p.n = 0
	}
	return p, d.err
}

// text is a text of variable length, up to its NUL.
func text(b []byte, n uint32) string {
	b = b[:min(uint64(len(b)), uint64(n))]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return formats.Text(b)
}

// number returns a number, see [formats.Number].
func (v *values) number(t *datatype, b []byte) (any, error) {
	e, err := t.element()
	if err != nil {
		return nil, err
	}
	b = e.memory(b)
	switch e.typ.Kind() {
	case dtype.Complex:
		part := dtype.NewFloat(e.typ.Bits() / 2)
		re, _ := formats.Number(part, b[:part.Size()])
		im, err := formats.Number(part, b[part.Size():])
		return []any{re, im}, err
	case dtype.Bool:
		return b[0] != 0, nil
	}
	return formats.Number(e.typ, b)
}

// bookkeeping are attributes that say how a file is made, and nothing of its content.
var bookkeeping = map[string]bool{
	"CLASS": true, "NAME": true, "REFERENCE_LIST": true, "DIMENSION_LIST": true, "DIMENSION_LABELS": true,
	"_Netcdf4Dimid": true, "_Netcdf4Coordinates": true, "_nc3_strict": true, "_NCProperties": true,
}

// members returns the attributes of an object as members of a JSON object. elem is the type
// of an array, for _FillValue.
func (v *values) members(path string, list []*attribute, elem *dtype.Type) ([]any, error) {
	out, size := []any{}, 0
	for _, a := range list {
		if bookkeeping[a.name] {
			continue
		}
		value, err := v.json(a)
		if err == nil && a.name == cf.FillAttribute && elem != nil {
			value, err = v.fill(a, value, *elem)
		}
		if err != nil && !formats.IsKnown(err) {
			return nil, err
		}
		if err != nil || value == nil {
			if err == nil {
				err = unsupported("%s", classNames[a.typ.class])
			}
			if formats.IsDamage(err) {
				return nil, err
			}
			v.f.o.Warned("%s: the attribute %q is left out: %v", orRoot(path), a.name, err)
			continue
		}
		text := codecs.Object("", value)
		text = text[len(`{"":`) : len(text)-1]
		if size += len(a.name) + len(text); size > maxAttributes {
			v.f.o.Warned("%s: the attribute %q and those after it are left out: more than %d MiB", orRoot(path), a.name, maxAttributes>>20)
			break
		}
		out = append(out, a.name, text)
	}
	return out, nil
}

// fill returns _FillValue as xarray reads it in Zarr v3: a float as base64 of the float64
// that equals it. It is nil where xarray opens no array with one.
func (v *values) fill(a *attribute, value any, t dtype.Type) (any, error) {
	n, _ := a.space.count()
	e, err := a.typ.element()
	if err != nil || n != 1 || len(e.dims) > 0 {
		return value, nil
	}
	switch k := t.Kind(); {
	case k == dtype.Float:
		number, ok := value.(json.RawMessage)
		if !ok {
			return value, nil
		}
		elem, err := dtype.NewFloat(64).ParseFillV3(number)
		if err != nil {
			return nil, err
		}
		return cf.FillAttributeV3(dtype.NewFloat(64), elem), nil
	case k == dtype.Complex && e.typ.Kind() == dtype.Complex:
		return cf.FillAttributeV3(e.typ, e.memory(a.data)), nil
	case k == dtype.FixedBytes || k == dtype.Raw || k == dtype.Struct:
		return nil, formats.Unsupported("hdf5: xarray opens no array of %v with it; it is the fill value of the array", t)
	}
	return value, nil
}
