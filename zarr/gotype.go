package zarr

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrValue means that the array's data type cannot represent a Go value: a text
// that is too long, a number out of range.
var ErrValue = errors.New("zarr: value does not fit")

// durationType counts in a unit of its own, unlike a timedelta.
var durationType = reflect.TypeFor[time.Duration]()

// conv converts one element between a Go value and memory layout. The pointers
// are to values of the Go type that it was made for.
type conv struct {
	// get sets the value from an element.
	get func(p unsafe.Pointer, elem []byte) error
	// put appends the element of a value; nil if most values would not fit.
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

// writeConverted is the opposite of readConverted.
func writeConverted[T any](ctx context.Context, a *Array, sel Selection, data []T, every bool, mismatch error) error {
	t := a.Type()
	p, err := convOf(reflect.TypeFor[T](), t)
	if err == nil && p.put == nil {
		err = errors.New("the Go type is wider")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", mismatch, err)
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
	switch k := g.Kind(); {
	case g == durationType:
	case k == reflect.String:
		return textConv(t)
	case k == reflect.Slice && g.Elem().Kind() == reflect.Uint8:
		switch t.Kind() {
		case dtype.Bytes, dtype.FixedBytes, dtype.Raw:
			return bytesConv(t), nil
		}
	case k >= reflect.Bool && k <= reflect.Float64:
		return numberConv(g, t)
	}
	return conv{}, noConv(g, t)
}

func noConv(g reflect.Type, t dtype.Type) error {
	return fmt.Errorf("%v does not hold %v", g, t)
}

// loadLE and appendLE read and write a scalar of up to eight bytes.
func loadLE(elem []byte) uint64 {
	var v uint64
	for i, b := range elem {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func appendLE(dst []byte, v uint64, size int) []byte {
	for range size {
		dst, v = append(dst, byte(v)), v>>8
	}
	return dst
}

// numberConv is for numbers that have the same kind and, floats aside, width.
func numberConv(g reflect.Type, t dtype.Type) (conv, error) {
	size, k := t.Size(), t.Kind()
	switch {
	case g.Kind() == reflect.Bool && k == dtype.Bool:
		return conv{
			get: func(p unsafe.Pointer, elem []byte) error { *(*bool)(p) = elem[0] != 0; return nil },
			put: func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*byte)(p)), nil },
		}, nil
	case g.Kind() >= reflect.Int8 && g.Kind() <= reflect.Int64 && int(g.Size()) == size && (k == dtype.Int || k == dtype.Datetime || k == dtype.Timedelta),
		g.Kind() >= reflect.Uint8 && g.Kind() <= reflect.Uint64 && int(g.Size()) == size && k == dtype.Uint:
		return integerConv(g, t), nil
	case (g.Kind() == reflect.Float32 || g.Kind() == reflect.Float64) && k == dtype.Float && t.Bits() <= g.Bits():
		return floatConv(g.Bits(), t), nil
	}
	if widens(g, t) {
		return wideConv(g, t), nil
	}
	return conv{}, noConv(g, t)
}

// widens reports whether a Go number holds every integer of a type.
func widens(g reflect.Type, t dtype.Type) bool {
	signed := t.Kind() == dtype.Int
	if !signed && t.Kind() != dtype.Uint {
		return false
	}
	switch k := g.Kind(); {
	case k >= reflect.Int8 && k <= reflect.Int64:
		return t.Bits() < g.Bits() || signed && t.Bits() == g.Bits()
	case k >= reflect.Uint8 && k <= reflect.Uint64:
		return !signed && t.Bits() <= g.Bits()
	case k == reflect.Float32:
		return t.Bits() <= 24
	case k == reflect.Float64:
		return t.Bits() <= 53
	}
	return false
}

// wideConv reads integers as a number that holds them. It has no put: most values of
// a wider Go type would not fit.
func wideConv(g reflect.Type, t dtype.Type) conv {
	kind, unused := g.Kind(), 64-8*t.Size()
	signed := t.Kind() == dtype.Int
	return conv{get: func(p unsafe.Pointer, elem []byte) error {
		v := loadLE(elem)
		if signed {
			v = uint64(int64(v<<unused) >> unused)
		}
		switch kind {
		case reflect.Int8, reflect.Uint8:
			*(*uint8)(p) = uint8(v)
		case reflect.Int16, reflect.Uint16:
			*(*uint16)(p) = uint16(v)
		case reflect.Int32, reflect.Uint32:
			*(*uint32)(p) = uint32(v)
		case reflect.Float32:
			*(*float32)(p) = float32(int64(v)) // of at most 24 bits
		case reflect.Float64:
			*(*float64)(p) = float64(int64(v)) // of at most 53 bits
		default:
			*(*uint64)(p) = v
		}
		return nil
	}}
}

// integerConv is for integers of the width of the Go type, or of fewer bits in
// the same number of bytes.
func integerConv(g reflect.Type, t dtype.Type) conv {
	size, narrow := t.Size(), t.Kind() != dtype.Datetime && t.Kind() != dtype.Timedelta && t.Bits() < 8
	load := func(p unsafe.Pointer) uint64 {
		switch size {
		case 1:
			return uint64(*(*uint8)(p))
		case 2:
			return uint64(*(*uint16)(p))
		case 4:
			return uint64(*(*uint32)(p))
		}
		return *(*uint64)(p)
	}
	return conv{
		get: wideConv(g, t).get,
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			v := load(p)
			if narrow {
				if s := 8 - t.Bits(); t.Kind() == dtype.Int && int8(v<<s)>>s != int8(v) || t.Kind() == dtype.Uint && v>>t.Bits() != 0 {
					return dst, fmt.Errorf("%w: beyond the range of %v", ErrValue, t)
				}
			}
			return appendLE(dst, v, size), nil
		},
	}
}

// floatConv is for a Go float of width bits and a float of as many or fewer.
func floatConv(width int, t dtype.Type) conv {
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			switch v := loadLE(elem); {
			case width == 32 && t.Bits() == 32:
				*(*uint32)(p) = uint32(v) // a signalling NaN stays one
			case width == 32:
				*(*float32)(p) = float32(t.FloatValue(v))
			default:
				*(*float64)(p) = t.FloatValue(v)
			}
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			if width == t.Bits() {
				if width == 32 {
					return appendLE(dst, uint64(*(*uint32)(p)), 4), nil
				}
				return appendLE(dst, *(*uint64)(p), 8), nil
			}
			v := 0.0
			if width == 32 {
				v = float64(*(*float32)(p))
			} else {
				v = *(*float64)(p)
			}
			b, ok := t.RoundFloat(v)
			if !ok {
				return dst, fmt.Errorf("%w: %v is no %v", ErrValue, v, t)
			}
			return appendLE(dst, b, t.Size()), nil
		},
	}
}

// textConv is for strings.
func textConv(t dtype.Type) (conv, error) {
	get := func(p unsafe.Pointer, elem []byte) error { *(*string)(p) = string(elem); return nil }
	put := func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*string)(p)...), nil }
	switch t.Kind() {
	case dtype.String, dtype.JSON:
	case dtype.FixedBytes:
		get = func(p unsafe.Pointer, elem []byte) error {
			*(*string)(p) = strings.TrimRight(string(elem), "\x00")
			return nil
		}
		put = func(dst []byte, p unsafe.Pointer) ([]byte, error) { return padded(dst, *(*string)(p), t) }
	case dtype.FixedUTF32:
		get = func(p unsafe.Pointer, elem []byte) error {
			var b strings.Builder
			zeros := 0
			for ; len(elem) > 0; elem = elem[4:] {
				r := binary.LittleEndian.Uint32(elem)
				if r == 0 {
					zeros++
					continue
				}
				if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
					return fmt.Errorf("%w: %#x is not a code point", codecs.ErrCorrupt, r)
				}
				b.WriteString(strings.Repeat("\x00", zeros))
				b.WriteRune(rune(r))
				zeros = 0
			}
			*(*string)(p) = b.String()
			return nil
		}
		put = func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			s, end := *(*string)(p), len(dst)+t.Size()
			if !utf8.ValidString(s) || utf8.RuneCountInString(s) > t.Size()/4 {
				return dst, fmt.Errorf("%w: %.40q is not text of at most %d code points", ErrValue, s, t.Size()/4)
			}
			for _, r := range s {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(r))
			}
			return append(dst, make([]byte, end-len(dst))...), nil
		}
	default:
		return conv{}, noConv(reflect.TypeFor[string](), t)
	}
	return conv{get, put}, nil
}

// bytesConv is for byte strings, of a fixed length too.
func bytesConv(t dtype.Type) conv {
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			if t.Kind() == dtype.FixedBytes {
				for len(elem) > 0 && elem[len(elem)-1] == 0 {
					elem = elem[:len(elem)-1]
				}
			}
			*(*[]byte)(p) = append([]byte{}, elem...)
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			b := *(*[]byte)(p)
			if t.Kind() == dtype.Raw && len(b) != t.Size() {
				return dst, fmt.Errorf("%w: %d bytes, not %d", ErrValue, len(b), t.Size())
			}
			if t.Variable() {
				return append(dst, b...), nil
			}
			return padded(dst, string(b), t)
		},
	}
}

// padded appends s and zeros up to the size of an element.
func padded(dst []byte, s string, t dtype.Type) ([]byte, error) {
	if len(s) > t.Size() {
		return dst, fmt.Errorf("%w: %d bytes are more than %d", ErrValue, len(s), t.Size())
	}
	return append(append(dst, s...), make([]byte, t.Size()-len(s))...), nil
}
