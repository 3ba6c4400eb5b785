package npy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// layout is how elements lie in a file. A structure may have padding between
// its fields there, which the data type has not.
type layout struct {
	typ  dtype.Type
	size int64  // of an element in the file, in bytes
	keep []span // the bytes that are no padding, in order
}

// span is a part of an element, in bytes.
type span struct{ offset, size int64 }

// maxSpans bounds how often padding may interrupt an element.
const maxSpans = 1 << 16

func (l *layout) add(s span) {
	if n := len(l.keep); n > 0 && l.keep[n-1].offset+l.keep[n-1].size == s.offset {
		l.keep[n-1].size += s.size
		return
	}
	l.keep = append(l.keep, s)
}

// pack removes the padding in place.
func (l *layout) pack(data []byte) []byte {
	if int64(l.typ.Size()) == l.size {
		return data
	}
	out := data[:0]
	for at := int64(0); at < int64(len(data)); at += l.size {
		for _, s := range l.keep {
			out = append(out, data[at+s.offset:at+s.offset+s.size]...)
		}
	}
	return out
}

// parseDescr parses the member descr of a header.
func parseDescr(v any) (layout, error) {
	switch v := v.(type) {
	case string:
		t, err := typeOf(v)
		size := int64(t.Size())
		if err == nil && size == 0 {
			err = errors.New("elements without bytes")
		}
		return layout{t, size, []span{{0, size}}}, err
	case list:
		return parseFields(v)
	}
	return layout{}, fmt.Errorf("neither a type string nor a list of fields: %.80v", v)
}

// typeOf returns the data type of a type string.
func typeOf(s string) (dtype.Type, error) {
	switch {
	case strings.HasPrefix(s, "|O"):
		return dtype.Type{}, errors.New("objects are pickled, and unpickling runs code")
	case strings.HasPrefix(s, "<V"):
		s = "|" + s[1:] // types that extend numpy
	case s == "<M8", s == ">M8", s == "<m8", s == ">m8": // times without a unit
		make := dtype.NewDatetime
		if s[1] == 'm' {
			make = dtype.NewTimedelta
		}
		t, err := make("generic", 1)
		if s[0] == '>' {
			t = t.WithOrder(dtype.Big)
		}
		return t, err
	}
	return dtype.ParseV2([]byte(strconv.Quote(s)), dtype.Type{})
}

// parseFields parses a list of (name, descr) and (name, descr, shape), where the
// name may have a title before it. A void without a name is padding.
func parseFields(fields list) (layout, error) {
	var l layout
	var out []dtype.Field
	for i, v := range fields {
		f, ok := v.(tuple)
		if !ok || len(f) < 2 || len(f) > 3 {
			return layout{}, fmt.Errorf("field %d: not a name and a type", i)
		}
		if titled, ok := f[0].(tuple); ok && len(titled) == 2 {
			f[0] = titled[1]
		}
		name, ok := f[0].(string)
		if !ok {
			return layout{}, fmt.Errorf("field %d: not a name", i)
		}
		field, err := parseDescr(f[1])
		if err == nil && len(f) == 3 {
			field, err = repeat(field, f[2])
		}
		if err == nil && l.size > math.MaxInt32-field.size {
			err = errors.New("a structure of more than 2 GiB")
		}
		if err != nil {
			return layout{}, fmt.Errorf("field %q: %w", name, err)
		}
		if name != "" || field.typ.Kind() != dtype.Raw {
			for _, s := range field.keep {
				l.add(span{l.size + s.offset, s.size})
			}
			out = append(out, dtype.Field{Name: name, Type: field.typ})
		}
		if l.size += field.size; len(l.keep) > maxSpans {
			return layout{}, fmt.Errorf("field %q: more than %d gaps", name, maxSpans)
		}
	}
	var err error
	l.typ, err = dtype.NewStruct(out)
	return l, err
}

// repeat makes a subarray of a field.
func repeat(elem layout, shape any) (layout, error) {
	dims, ok := shape.(tuple)
	if n, one := shape.(int64); one {
		dims, ok = tuple{n}, true
	}
	if !ok {
		return layout{}, fmt.Errorf("shape %.80v of a subarray", shape)
	}
	count, lengths := int64(1), make([]int, len(dims))
	for i, d := range dims {
		n, ok := d.(int64)
		if !ok || n < 1 || n > math.MaxInt32 {
			return layout{}, fmt.Errorf("shape %.80v of a subarray", shape)
		}
		lengths[i] = int(n)
		if count, ok = multiply(count, n, true); !ok || count > math.MaxInt32/elem.size {
			return layout{}, errors.New("a subarray of more than 2 GiB")
		}
	}
	if len(dims) == 0 {
		return elem, nil
	}
	t, err := dtype.NewSubarray(elem.typ, lengths)
	if err != nil {
		return layout{}, err
	}
	out := layout{typ: t, size: count * elem.size}
	if int64(elem.typ.Size()) == elem.size {
		out.keep = []span{{0, out.size}}
		return out, nil
	}
	if count > maxSpans/int64(len(elem.keep)) {
		return layout{}, fmt.Errorf("more than %d gaps", maxSpans)
	}
	for i := range count {
		for _, s := range elem.keep {
			out.add(span{i*elem.size + s.offset, s.size})
		}
	}
	return out, nil
}
