package zarr

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrValue means that the array's data type cannot represent a Go value: a text
// that is too long, a number out of range.
var ErrValue = errors.New("zarr: value does not fit")

// TypeOf returns the data type that holds a Go type without loss, for [Spec]:
// beyond what [dtype.Of] knows, structs, arrays ([N]byte is raw bytes), slices
// (ragged arrays), times as datetime64[ns] and durations as timedelta64[ns].
// The error is [ErrType].
func TypeOf[T any]() (dtype.Type, error) {
	t, err := typeOf(reflect.TypeFor[T](), false)
	if err != nil {
		return t, fmt.Errorf("%w: %v: %w", ErrType, reflect.TypeFor[T](), err)
	}
	return t, nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// typeOf is TypeOf; fixed means that the type is part of one that needs parts of
// fixed size, which also excludes recursive types.
func typeOf(g reflect.Type, fixed bool) (dtype.Type, error) {
	switch g {
	case timeType:
		return dtype.NewDatetime("ns", 1)
	case durationType:
		return dtype.NewTimedelta("ns", 1)
	}
	if k := g.Kind(); fixed && (k == reflect.String || k == reflect.Slice) {
		return dtype.Type{}, fmt.Errorf("%v has no fixed size", g)
	}
	if t, ok := dtype.OfType(g); ok {
		return t, nil
	}
	switch g.Kind() {
	case reflect.Slice:
		elem, err := typeOf(g.Elem(), true)
		if err != nil {
			return elem, err
		}
		return dtype.NewRagged(elem)
	case reflect.Array:
		return typeOfArray(g)
	case reflect.Struct:
		var fields []dtype.Field
		for _, f := range goFields(g) {
			t, err := typeOf(f.typ, true)
			if err != nil {
				return t, fmt.Errorf("field %s: %w", f.name, err)
			}
			fields = append(fields, dtype.Field{Name: f.name, Type: t})
		}
		return dtype.NewStruct(fields)
	}
	return dtype.Type{}, fmt.Errorf("no data type holds %v", g)
}

// typeOfArray makes arrays of arrays one subarray.
func typeOfArray(g reflect.Type) (dtype.Type, error) {
	if g.Elem().Kind() == reflect.Uint8 {
		return dtype.NewRaw(g.Len())
	}
	var shape []int
	for g.Kind() == reflect.Array {
		shape = append(shape, g.Len())
		g = g.Elem()
	}
	elem, err := typeOf(g, true)
	if err != nil {
		return elem, err
	}
	return dtype.NewSubarray(elem, shape)
}

// goField is a field of a Go struct and its field of the data type.
type goField struct {
	name   string
	typ    reflect.Type
	offset uintptr
}

func goFields(g reflect.Type) []goField {
	var list []goField
	for f := range g.Fields() {
		name, ok := f.Tag.Lookup("zarr")
		if !ok {
			name = f.Name
		}
		if f.IsExported() && name != "-" {
			list = append(list, goField{name, f.Type, f.Offset})
		}
	}
	return list
}

// conv converts one element between a Go value and memory layout. The pointers
// are to values of the Go type that it was made for.
type conv struct {
	// get sets the value from an element.
	get func(p unsafe.Pointer, elem []byte) error
	// put appends the element of a value; nil if the Go type has not all of it.
	put func(dst []byte, p unsafe.Pointer) ([]byte, error)
}

// readConverted reads elements that have another form in Go than in memory.
// mismatch is the error if they cannot be converted. dst is made if it is nil.
func readConverted[T any](ctx context.Context, a *Array, sel Selection, dst []T, mismatch error) ([]T, error) {
	t := a.Type()
	p, err := convOf(reflect.TypeFor[T](), t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mismatch, err)
	}
	shape, err := a.resolve(sel)
	if err != nil {
		return nil, err
	}
	var zero T
	n, ok := elements(shape)
	if width := max(int64(t.Size()), int64(unsafe.Sizeof(zero)), 1); !ok || n > a.opts.MaxResultBytes/width {
		return nil, fmt.Errorf("%w: shape %v of %T", ErrTooLarge, shape, zero)
	}
	if dst == nil {
		dst = make([]T, n)
	} else if int64(len(dst)) != n {
		return nil, fmt.Errorf("%w: memory for %d elements, the selection has %d", ErrSelection, len(dst), n)
	}
	var at func(i int) []byte
	if t.Variable() {
		v, err := a.readVar(ctx, sel, a.opts.MaxResultBytes)
		if err != nil {
			return nil, err
		}
		at = v.At
	} else {
		raw := mmap.Make[byte](int(n) * t.Size())
		if err := a.readBytes(ctx, sel, raw); err != nil {
			return nil, err
		}
		at = func(i int) []byte { return raw[i*t.Size() : (i+1)*t.Size()] }
	}
	for i := range dst {
		if err := p.get(unsafe.Pointer(&dst[i]), at(i)); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return dst, nil
}

// writeConv is convOf for writing.
func writeConv[T any](t dtype.Type, mismatch error) (conv, error) {
	p, err := convOf(reflect.TypeFor[T](), t)
	if err == nil && p.put == nil {
		err = errors.New("the Go type is wider, or has not all fields")
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", mismatch, err)
	}
	return p, err
}

// checkWrite reports whether elements of a Go type can be written.
func checkWrite[T any](t dtype.Type) error {
	err := checkType[T](t, true)
	if err != nil {
		_, err = writeConv[T](t, err)
	}
	return err
}

// writeConverted is the opposite of readConverted.
func writeConverted[T any](ctx context.Context, a *Array, sel Selection, data []T, every bool, mismatch error) error {
	t := a.Type()
	p, err := writeConv[T](t, mismatch)
	if err != nil {
		return err
	}
	if !t.Variable() {
		mem := make([]byte, 0, len(data)*t.Size())
		for i := range data {
			if mem, err = p.put(mem, unsafe.Pointer(&data[i])); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return a.writeBytes(ctx, sel, mem, every)
	}
	b, err := dtype.NewBuilder(nil, len(data))
	var elem []byte
	for i := range data {
		if err == nil {
			elem, err = p.put(elem[:0], unsafe.Pointer(&data[i]))
		}
		if err == nil {
			err = b.Append(elem)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %d elements: %w", ErrTooLarge, len(data), err)
	}
	mem, err := b.Finish()
	if err != nil {
		return err
	}
	v, err := dtype.OpenVariable(mem, len(data))
	if err != nil {
		return err
	}
	return a.writeVar(ctx, sel, v, every)
}

// convOf makes the conv for a Go type and a data type.
func convOf(g reflect.Type, t dtype.Type) (conv, error) {
	switch g {
	case timeType:
		return timeConv(t)
	case durationType:
		return durationConv(t)
	}
	switch g.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return numberConv(g, t)
	case reflect.String:
		return textConv(t)
	case reflect.Slice:
		return sliceConv(g, t)
	case reflect.Array:
		return arrayConv(g, t)
	case reflect.Struct:
		return structConv(g, t)
	}
	return conv{}, noConv(g, t)
}

func noConv(g reflect.Type, t dtype.Type) error {
	return fmt.Errorf("%v does not hold %v", g, t)
}

// sliceConv is for ragged arrays and byte strings.
func sliceConv(g reflect.Type, t dtype.Type) (conv, error) {
	bytes := g.Elem().Kind() == reflect.Uint8
	switch k := t.Kind(); {
	case bytes && (k == dtype.Bytes || k == dtype.FixedBytes || k == dtype.Raw):
		return bytesConv(t), nil
	case k != dtype.Ragged:
		return conv{}, noConv(g, t)
	}
	elem, _ := t.Elem()
	one, err := convOf(g.Elem(), elem)
	if err != nil {
		return conv{}, err
	}
	size, step := elem.Size(), g.Elem().Size()
	p := conv{get: func(p unsafe.Pointer, b []byte) error {
		n := len(b) / size
		s := reflect.MakeSlice(g, n, n)
		if err := getRow(one, s.UnsafePointer(), step, b, size); err != nil {
			return err
		}
		reflect.NewAt(g, p).Elem().Set(s)
		return nil
	}}
	if one.put != nil {
		p.put = func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			s := reflect.NewAt(g, p).Elem()
			return putRow(one, dst, s.UnsafePointer(), step, s.Len())
		}
	}
	return p, nil
}

// arrayConv is for raw bytes and subarrays.
func arrayConv(g reflect.Type, t dtype.Type) (conv, error) {
	n := g.Len()
	if g.Elem().Kind() == reflect.Uint8 && t.Kind() == dtype.Raw && t.Size() == n {
		return conv{
			get: func(p unsafe.Pointer, elem []byte) error {
				copy(unsafe.Slice((*byte)(p), n), elem)
				return nil
			},
			put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
				return append(dst, unsafe.Slice((*byte)(p), n)...), nil
			},
		}, nil
	}
	elem, shape := t.Elem()
	if t.Kind() != dtype.Subarray || shape[0] != n {
		return conv{}, noConv(g, t)
	}
	if len(shape) > 1 {
		var err error
		if elem, err = dtype.NewSubarray(elem, shape[1:]); err != nil {
			return conv{}, err
		}
	}
	one, err := convOf(g.Elem(), elem)
	if err != nil {
		return conv{}, err
	}
	size, step := elem.Size(), g.Elem().Size()
	p := conv{get: func(p unsafe.Pointer, b []byte) error { return getRow(one, p, step, b, size) }}
	if one.put != nil {
		p.put = func(dst []byte, p unsafe.Pointer) ([]byte, error) { return putRow(one, dst, p, step, n) }
	}
	return p, nil
}

// getRow sets values that lie step bytes apart.
func getRow(one conv, p unsafe.Pointer, step uintptr, b []byte, size int) error {
	for i := 0; len(b) >= size; i++ {
		if err := one.get(unsafe.Add(p, uintptr(i)*step), b[:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

func putRow(one conv, dst []byte, p unsafe.Pointer, step uintptr, n int) ([]byte, error) {
	var err error
	for i := range n {
		if dst, err = one.put(dst, unsafe.Add(p, uintptr(i)*step)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// structConv matches fields by name.
func structConv(g reflect.Type, t dtype.Type) (conv, error) {
	if t.Kind() != dtype.Struct {
		return conv{}, noConv(g, t)
	}
	byName := make(map[string]goField)
	for _, f := range goFields(g) {
		byName[f.name] = f
	}
	type step struct {
		conv
		from     uintptr
		off, end int
	}
	var steps []step
	complete := true
	for _, f := range t.Fields() {
		to, ok := byName[f.Name]
		if !ok {
			complete = false
			continue
		}
		delete(byName, f.Name)
		one, err := convOf(to.typ, f.Type)
		if err != nil {
			return conv{}, fmt.Errorf("field %s: %w", f.Name, err)
		}
		complete = complete && one.put != nil
		steps = append(steps, step{one, to.offset, f.Offset, f.Offset + f.Type.Size()})
	}
	for name := range byName {
		return conv{}, fmt.Errorf("%v has no field %q", t, name)
	}
	p := conv{get: func(p unsafe.Pointer, elem []byte) error {
		for _, s := range steps {
			if err := s.get(unsafe.Add(p, s.from), elem[s.off:s.end]); err != nil {
				return err
			}
		}
		return nil
	}}
	if complete {
		// Fields are packed, so that appending puts each at its offset.
		p.put = func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			var err error
			for _, s := range steps {
				if dst, err = s.put(dst, unsafe.Add(p, s.from)); err != nil {
					return dst, err
				}
			}
			return dst, nil
		}
	}
	return p, nil
}
