package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// DroppedFront says what [Session.DropFront] did.
type DroppedFront struct {
	// Steps were dropped, and Left stay.
	Steps, Left int64
	// Moved are the arrays whose chunks got other numbers, and Rewritten those whose elements were written again.
	Moved, Rewritten []string
}

// maxRewritten bounds the bytes of an array that is written again because the steps end inside a chunk.
var maxRewritten int64 = 64 << 20

// DropFront drops the steps along a dimension before first, which is an index or a label of the dimension's
// coordinate: from the arrays with the dimension in the group at path, or in the group of the array at path, and from those
// in the groups below that have no coordinate of their own. Chunks that stay keep their bytes and get other
// numbers: the cost is that of their entries. Where the steps end inside a chunk, an array of at most 64 MiB, such as a coordinate, is
// written again; a larger one is [zarr.ErrSelection], and the error names the steps that are possible.
//
// For merges, the arrays are new ones: what others change at the same time in the arrays that were is a conflict.
func (s *Session) DropFront(ctx context.Context, path, dim, first string) (*DroppedFront, error) {
	path = names.Clean(path)
	if n, err := s.Node(ctx, path); err != nil {
		return nil, err
	} else if _, ok := n.Array(); ok {
		path = names.Parent(path)
	}
	f := &front{s: s, group: path, dim: dim, r: &DroppedFront{}}
	fail := func(err error) error { return fmt.Errorf("drop the steps along %s before %s: %w", dim, first, err) }
	err := f.find(ctx)
	if err == nil {
		err = f.choose(ctx, first)
	}
	if err == nil && f.r.Steps > 0 {
		err = f.plan()
	}
	if err != nil {
		return nil, fail(err)
	}
	for _, a := range f.arrays {
		if f.r.Steps > 0 {
			if err := f.drop(ctx, a); err != nil {
				return nil, fail(err)
			}
		}
	}
	return f.r, nil
}

// front is a DropFront under way.
type front struct {
	s          *Session
	group, dim string
	labels     *cf.Labels // nil without a coordinate
	arrays     []frontArray
	r          *DroppedFront
}

type frontArray struct {
	*zarr.Array
	axis  int
	chunk int64 // length along the dimension, 0 if chunks differ
	moves bool  // whole chunks are dropped
}

// find finds the arrays with the dimension.
func (f *front) find(ctx context.Context) error {
	own := "" // a group below with a coordinate of its own, as a prefix
	for n, err := range f.s.Walk(ctx, f.group) {
		if err != nil {
			return err
		}
		if own != "" && strings.HasPrefix(n.Path(), own) {
			continue
		}
		a, ok := n.Array()
		if !ok {
			if n.Path() != f.group {
				if c, err := f.s.Array(ctx, names.Join(n.Path(), f.dim)); err == nil && slices.Equal(c.DimensionNames(), []string{f.dim}) {
					own = names.Dir(n.Path())
				}
			}
			continue
		}
		axis := slices.Index(a.DimensionNames(), f.dim)
		if axis < 0 {
			continue
		}
		if slices.Contains(a.DimensionNames()[axis+1:], f.dim) {
			return fmt.Errorf("/%s has this dimension twice: %w", a.Path(), errors.ErrUnsupported)
		}
		x := frontArray{Array: a, axis: axis}
		if chunks := a.Meta().Grid.Regular(); chunks != nil {
			x.chunk = int64(chunks[axis])
		}
		if f.arrays = append(f.arrays, x); a.Shape()[axis] != f.arrays[0].length() {
			return fmt.Errorf("/%s has %d steps, and /%s %d: %w", f.arrays[0].Path(), f.arrays[0].length(), a.Path(), a.Shape()[axis], zarr.ErrSelection)
		}
		if a.Path() == names.Join(f.group, f.dim) {
			f.labels, _ = cf.ReadLabels(ctx, n) // without labels, steps have numbers
		}
	}
	if len(f.arrays) == 0 {
		return fmt.Errorf("no array of /%s has this dimension: %w", f.group, zarr.ErrNotFound)
	}
	return nil
}

func (a *frontArray) length() int64 { return a.Shape()[a.axis] }

// choose sets how many steps go: first is their number, or a label of the first step that stays.
func (f *front) choose(ctx context.Context, first string) error {
	n, length := int64(0), f.arrays[0].length()
	if i, err := strconv.ParseInt(first, 10, 64); err == nil {
		n = i
	} else if f.labels == nil {
		return fmt.Errorf("/%s has no labels, give the number of steps: %w", names.Join(f.group, f.dim), zarr.ErrSelection)
	} else if n, err = f.labels.From(strings.Trim(first, `'"`)); err != nil {
		return err
	}
	if n < 0 || n >= length {
		return fmt.Errorf("none of the %d steps would stay: %w", length, zarr.ErrSelection)
	}
	f.r.Steps, f.r.Left = n, length-n
	return ctx.Err()
}

// plan decides which arrays are written again.
func (f *front) plan() error {
	whole, bad := int64(1), ""
	for i := range f.arrays {
		a := &f.arrays[i]
		a.moves = a.chunk > 0 && f.r.Steps%a.chunk == 0
		bytes, size := f.r.Left, int64(a.Type().Size())
		for d, n := range a.Shape() {
			if d != a.axis && n > 0 && bytes > maxRewritten/n {
				bytes = maxRewritten + 1
			} else if d != a.axis {
				bytes *= n
			}
		}
		if size == 0 {
			size = variableSize
		}
		if bytes <= maxRewritten/size {
			continue
		}
		if a.chunk > 0 {
			whole = lcm(whole, a.chunk)
		}
		if !a.moves && bad == "" {
			bad = a.Path()
		}
	}
	if bad == "" {
		return nil
	}
	if whole == 1 || whole >= f.r.Left+f.r.Steps {
		return fmt.Errorf("/%s would be written again, which a copy of what stays does: %w", bad, errors.ErrUnsupported)
	}
	down := f.r.Steps / whole * whole
	var list []string
	if down > 0 {
		list = append(list, f.step(down))
	}
	if up := down + whole; up < f.r.Left+f.r.Steps {
		list = append(list, f.step(up))
	}
	return fmt.Errorf("/%s would be written again, because chunks begin elsewhere; without that: %s: %w", bad, strings.Join(list, " or "), zarr.ErrSelection)
}

// step names a step for people.
func (f *front) step(n int64) string {
	if f.labels == nil {
		return fmt.Sprintf("%s=%d", f.dim, n)
	}
	return fmt.Sprintf("%s=%d (%s)", f.dim, n, f.labels.Text(n))
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	if a/x > 1<<40 {
		return 1 << 40
	}
	return a / x * b
}

// drop drops the steps of an array.
func (f *front) drop(ctx context.Context, a frontArray) error {
	k, shape, chunks := a.Meta().Keys, a.Shape(), int64(0)
	if a.moves {
		chunks = f.r.Steps / a.chunk
		f.r.Moved = append(f.r.Moved, a.Path())
	} else {
		f.r.Rewritten = append(f.r.Rewritten, a.Path())
		if err := f.rewrite(ctx, a); err != nil {
			return err
		}
	}
	form := txn.Form{Prefix: k.Prefix(), Sep: k.Separator(), Rank: k.Rank()}
	if err := f.s.tx.ShiftChunks(ctx, a.Path(), form, a.axis, chunks); err != nil {
		return err
	}
	shape[a.axis] = f.r.Left
	return a.Resize(ctx, shape, zarr.ResizeOptions{KeepChunks: a.moves})
}

// rewrite moves the elements that stay to the front.
func (f *front) rewrite(ctx context.Context, a frontArray) error {
	from, to := make([]zarr.Index, len(a.Shape())), make([]zarr.Index, len(a.Shape()))
	count := int64(1)
	for d, n := range a.Shape() {
		from[d], to[d] = zarr.Slice(0, n, 1), zarr.Slice(0, n, 1)
		if d == a.axis {
			from[d], to[d], n = zarr.Slice(f.r.Steps, n, 1), zarr.Slice(0, f.r.Left, 1), f.r.Left
		}
		count *= n
	}
	if a.Type().Variable() {
		values, err := a.ReadVar(ctx, zarr.Sel(from...))
		if err != nil {
			return err
		}
		return a.WriteVar(ctx, zarr.Sel(to...), values)
	}
	values := make([]byte, count*int64(a.Type().Size()))
	if err := a.ReadBytes(ctx, zarr.Sel(from...), values); err != nil {
		return err
	}
	return a.WriteBytes(ctx, zarr.Sel(to...), values)
}
