package zarr

import (
	"context"
	"fmt"
	"slices"
)

// Append makes the array longer along axis and writes data, in C order, behind what
// is stored: as many whole layers as data has, else the error is [ErrSelection]. T is
// as for [Write]; a negative axis counts from the end. Appends through one Array, or
// Arrays that share [OpenOptions].Locks, follow each other.
//
// If writing fails, such as with [ErrValue], the array stays longer, and the new
// elements may hold anything that was to be written, or the fill value.
func Append[T any](ctx context.Context, a *Array, axis int, data []T) error {
	if err := checkWrite[T](a.Type()); err != nil {
		return a.fail("append to", err)
	}
	return a.fail("append to", a.lengthen(ctx, axis, int64(len(data)), func(sel Selection) error { return write(ctx, a, sel, data, false) }))
}

// AppendBytes is [Append] of elements in memory layout, packed. Only for fixed-size
// types.
func (a *Array) AppendBytes(ctx context.Context, axis int, data []byte) error {
	return a.fail("append to", a.appendBytes(ctx, axis, data))
}

func (a *Array) appendBytes(ctx context.Context, axis int, data []byte) error {
	size := a.Type().Size()
	if size == 0 {
		return fmt.Errorf("%w: elements of type %v have no fixed size", ErrType, a.Type())
	}
	count := int64(len(data) / size)
	if len(data)%size != 0 {
		count = -1
	}
	return a.lengthen(ctx, axis, count, func(sel Selection) error { return a.writeBytes(ctx, sel, data, false) })
}

// lengthen makes room for count elements behind those along axis, and has them
// written. A negative count is an error.
func (a *Array) lengthen(ctx context.Context, axis int, count int64, write func(Selection) error) error {
	a.change.Lock()
	defer a.change.Unlock()
	if a.readOnly != nil {
		return a.readOnly
	}
	rank := len(a.Meta().Shape)
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		return fmt.Errorf("%w: axis %d of %d dimensions", ErrSelection, axis, rank)
	}
	var from, to int64
	_, err := a.reshape(ctx, func(m *Meta) error {
		layer := slices.Clone(m.Shape)
		layer[axis] = 1
		n, ok := elements(layer)
		if !ok || n == 0 || count < 0 || count%n != 0 {
			return fmt.Errorf("%w: the data is not whole layers of shape %v", ErrSelection, layer)
		}
		from = m.Shape[axis]
		if to = from + count/n; to < 0 {
			return fmt.Errorf("%w: dimension %d", ErrTooLarge, axis)
		}
		m.Shape[axis] = to
		return m.Validate()
	})
	if err != nil || from == to {
		return err
	}
	index := make([]Index, rank)
	index[axis] = Slice(from, to, 1)
	return write(Sel(index...))
}
