package zarr

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrType means that a Go type does not hold the elements of an array.
var ErrType = errors.New("zarr: wrong type")

// Read returns the elements of sel in C order, and the shape of the result: the
// dimensions of sel. The caller owns both. T is a Go type for the array's data type:
//
//	bool, int8 … uint64, complex128     the same; also integers and complex numbers of fewer bits
//	float32, float64                    floats of as many bits or fewer, bfloat16 and the like too;
//	                                    integers of at most 24 and 53 bits
//	string                              strings, JSON, fixed_length_utf32, null_terminated_bytes
//	[]byte                              byte strings, of a fixed length too, and raw bytes
//	int64                               the counts of datetimes and timedeltas
//
// or a type made of one of these. The first line, and floats of their own width, cost no
// conversion. Any other T is [ErrType]: structs, subarrays and ragged arrays are read with
// [Array.ReadBytes] and [Array.ReadVar]. A result larger than [OpenOptions].MaxResultBytes is
// [ErrTooLarge].
func Read[T any](ctx context.Context, a *Array, sel Selection) (data []T, shape []int64, err error) {
	if shape, err = a.resolve(sel); err == nil {
		data, err = read[T](ctx, a, sel)
	}
	if n, _ := elements(shape); err == nil && n != int64(len(data)) {
		err = fmt.Errorf("%w: the array was resized while it was read", ErrSelection)
	}
	if err != nil {
		return nil, nil, a.fail("read", err)
	}
	return data, shape, nil
}

func read[T any](ctx context.Context, a *Array, sel Selection) ([]T, error) {
	if err := checkType[T](a.Type(), false); err != nil {
		return readConverted[T](ctx, a, sel, nil, err)
	}
	if a.Type().Variable() {
		v, err := a.readVar(ctx, sel, a.opts.MaxResultBytes)
		if err != nil {
			return nil, err
		}
		out := make([]T, v.Len())
		setItems(out, v)
		return out, nil
	}
	shape, err := a.resolve(sel)
	if err != nil {
		return nil, err
	}
	n, ok := elements(shape)
	if size := int64(a.Type().Size()); !ok || n > a.opts.MaxResultBytes/size {
		return nil, fmt.Errorf("%w: shape %v of %v", ErrTooLarge, shape, a.Type())
	}
	out := mmap.Make[T](int(n)) // readInto writes every element
	return out, readInto(ctx, a, sel, out)
}

// ReadInto is [Read] into memory of the caller, which has as many elements as
// the selection. After an error they may hold anything.
func ReadInto[T any](ctx context.Context, a *Array, sel Selection, dst []T) error {
	if err := checkType[T](a.Type(), false); err != nil {
		if dst == nil {
			dst = []T{} // of no length, and not to be made
		}
		_, err = readConverted(ctx, a, sel, dst, err)
		return a.fail("read", err)
	}
	if !a.Type().Variable() {
		return a.fail("read", readInto(ctx, a, sel, dst))
	}
	v, err := a.readVar(ctx, sel, a.opts.MaxResultBytes)
	if err == nil && v.Len() != len(dst) {
		err = fmt.Errorf("%w: memory for %d elements, the selection has %d", ErrSelection, len(dst), v.Len())
	}
	if err == nil {
		setItems(dst, v)
	}
	return a.fail("read", err)
}

func readInto[T any](ctx context.Context, a *Array, sel Selection, dst []T) error {
	mem := memory(dst)
	if err := a.readBytes(ctx, sel, mem); err != nil {
		return err
	}
	if a.Type().Kind() == dtype.Bool {
		// A Go bool must be 0 or 1; other bytes, which only damaged chunks have,
		// become true as in C.
		for i, b := range mem {
			if b > 1 {
				mem[i] = 1
			}
		}
	}
	if !littleEndian {
		swapScalars(mem, a.Type())
	}
	return nil
}

// Write stores data, in C order, in the elements of sel: as many as the
// selection has, else the error is [ErrSelection]; [Fill] writes one value
// everywhere. T is as for [Read], but an integer has the width of the array's.
// Floats are rounded to the nearest. A value that the data type cannot
// represent, such as a text that is too long, is [ErrValue], and nothing is
// written. For the rest see [Array.WriteBytes].
func Write[T any](ctx context.Context, a *Array, sel Selection, data []T) error {
	return a.fail("write", write(ctx, a, sel, data, false))
}

// Fill is [Write] of one value to every element of sel.
func Fill[T any](ctx context.Context, a *Array, sel Selection, value T) error {
	return a.fail("write", write(ctx, a, sel, []T{value}, true))
}

func write[T any](ctx context.Context, a *Array, sel Selection, data []T, every bool) error {
	if err := checkType[T](a.Type(), true); err != nil {
		return writeConverted(ctx, a, sel, data, every, err)
	}
	if a.Type().Variable() {
		v, err := getItems(data)
		if err != nil {
			return err
		}
		return a.writeVar(ctx, sel, v, every)
	}
	mem := memory(data)
	if !littleEndian {
		mem = append([]byte(nil), mem...)
		swapScalars(mem, a.Type())
	}
	return a.writeBytes(ctx, sel, mem, every)
}

// checkType reports whether a T is an element of type t in memory, or holds its
// bytes; convOf handles other conversions.
func checkType[T any](t dtype.Type, exact bool) error {
	g, ok := dtype.Of[T]()
	var zero T
	if reflect.TypeFor[T]() == durationType {
		ok = false // counts in a unit of its own
	}
	if !ok {
		return fmt.Errorf("%w: %T is the type of no element, the array's is %v", ErrType, zero, t)
	}
	// A stored byte order changes nothing in memory.
	if g.Equal(t.WithOrder(g.Order())) {
		return nil
	}
	k := t.Kind()
	switch g.Kind() {
	case dtype.Int:
		ok = k == dtype.Int && !exact || k == dtype.Datetime || k == dtype.Timedelta
		ok = ok && t.Size() == g.Size()
	case dtype.Uint:
		ok = k == dtype.Uint && !exact && t.Size() == g.Size()
	case dtype.String:
		ok = k == dtype.String || k == dtype.JSON
	case dtype.Bytes:
		ok = k == dtype.Bytes
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: %T for elements of type %v", ErrType, zero, t)
	}
	return nil
}

// memory returns the bytes that s lies in.
func memory[T any](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// littleEndian means that Go's scalars have the memory layout of dtype.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// swapScalars reverses the bytes of every scalar of elements of type t.
func swapScalars(mem []byte, t dtype.Type) {
	n := t.Size()
	if t.Kind() == dtype.Complex {
		n /= 2
	}
	switch n {
	case 2:
		for ; len(mem) >= 2; mem = mem[2:] {
			binary.BigEndian.PutUint16(mem, binary.LittleEndian.Uint16(mem))
		}
	case 4:
		for ; len(mem) >= 4; mem = mem[4:] {
			binary.BigEndian.PutUint32(mem, binary.LittleEndian.Uint32(mem))
		}
	case 8:
		for ; len(mem) >= 8; mem = mem[8:] {
			binary.BigEndian.PutUint64(mem, binary.LittleEndian.Uint64(mem))
		}
	}
}

// recast returns the same slice with elements of another name for their type.
func recast[U, T any](s []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// setItems copies elements of variable length into dst, whose type has passed
// checkType: it is a string or a []byte, perhaps by another name.
func setItems[T any](dst []T, v dtype.Variable) {
	if g, _ := dtype.Of[T](); g.Kind() == dtype.Bytes {
		for i, out := 0, recast[[]byte](dst); i < len(out); i++ {
			out[i] = append([]byte{}, v.At(i)...)
		}
		return
	}
	// Strings share one allocation.
	n := 0
	for i := range dst {
		n += len(v.At(i))
	}
	all := make([]byte, 0, n)
	for i := range dst {
		all = append(all, v.At(i)...)
	}
	text := unsafe.String(unsafe.SliceData(all), len(all))
	for i, out := 0, recast[string](dst); i < len(out); i++ {
		k := len(v.At(i))
		out[i], text = text[:k], text[k:]
	}
}

// getItems is the opposite of setItems.
func getItems[T any](src []T) (dtype.Variable, error) {
	if _, ok := dtype.VariableHeader(len(src)); !ok {
		return dtype.Variable{}, fmt.Errorf("%w: %d elements of variable length", ErrTooLarge, len(src))
	}
	b, err := dtype.NewBuilder(nil, len(src))
	if err != nil {
		return dtype.Variable{}, err
	}
	add := func(i int) error { return b.AppendString(recast[string](src)[i]) }
	if g, _ := dtype.Of[T](); g.Kind() == dtype.Bytes {
		add = func(i int) error { return b.Append(recast[[]byte](src)[i]) }
	}
	for i := range src {
		if err := add(i); err != nil {
			return dtype.Variable{}, err
		}
	}
	buf, err := b.Finish()
	if err != nil {
		return dtype.Variable{}, err
	}
	return dtype.OpenVariable(buf, len(src))
}
