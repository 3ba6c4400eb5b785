package zarr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// largest notes the largest write.
type largest struct {
	bytes.Buffer
	most int
}

func (w *largest) Write(b []byte) (int, error) {
	w.most = max(w.most, len(b))
	return w.Buffer.Write(b)
}

// The parts of every kind of selection are that selection, and none is much larger
// than asked for.
func TestParts(t *testing.T) {
	ctx := context.Background()
	a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{5, 4, 7}, Chunks: []int64{2, 2, 3}, DataType: "uint16"}, nil))
	data := make([]uint16, 5*4*7)
	for i := range data {
		data[i] = uint16(i)
	}
	must.Have(0, Write(ctx, a, Sel(), data))
	for _, sel := range []Selection{
		{}, Sel(At(-1)), Sel(Ellipsis(), At(2)), Sel(Slice(1, 4, 1), Slice(None, None, -1), Slice(6, None, -3)),
		Sel(NewAxis(), Slice(0, 5, 2), NewAxis()), Sel(Slice(3, 3, 1)), Sel(At(1), At(2), At(3)),
		Sel(List(4, 0, 0, 2)), Orthogonal(List(1, 3), All(), List(6, 0, 1)),
		Points([]int64{0, 4, 2, 2}, []int64{1}, []int64{6, 0, 3, 3}),
	} {
		shape := must.Have(a.Resolve(sel))
		n, _ := elements(shape)
		want := make([]byte, 2*n)
		must.Have(0, a.ReadBytes(ctx, sel, want))
		for _, size := range []int64{1, 2, 3, 6, 14, 15, 28, 57, 113, 280, 1000, 0} {
			var got largest
			if err := writeParts(ctx, a, sel, &got, size); err != nil {
				t.Fatal(sel, err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%v in parts of %d bytes: % x, not % x", sel, size, got.Bytes(), want)
			}
			if size > 0 && got.most > longRows*max(int(size), 2) {
				t.Errorf("%v in parts of %d bytes: %d at once", sel, size, got.most)
			}
			for p := range a.Parts(sel, size) {
				x, y := must.Have(a.Resolve(p.Selection)), p.Shape
				if nx, _ := elements(x); nx != product64(y) {
					t.Errorf("%v: the part %v has the shape %v, not %v", sel, p.Selection, x, y)
				}
			}
		}
	}
	for _, bad := range []Selection{Sel(At(5)), Sel(All(), All(), All(), All()), Points([]int64{9}, []int64{0}, []int64{0})} {
		if err := writeParts(ctx, a, bad, &bytes.Buffer{}, 0); !errors.Is(err, ErrSelection) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// writeParts writes a selection part by part.
func writeParts(ctx context.Context, a *Array, sel Selection, w io.Writer, size int64) error {
	for p, err := range a.Parts(sel, size) {
		if err != nil {
			return err
		}
		buf := make([]byte, product64(p.Shape)*int64(a.Type().Size()))
		if err := a.ReadBytes(ctx, p.Selection, buf); err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func product64(shape []int64) int64 {
	n, _ := elements(shape)
	return n
}

// The axes of a selection tell where each element of the result lies.
func TestAxes(t *testing.T) {
	a := must.Have(Create(context.Background(), kv.NewMem(), "a", Spec{Shape: []int64{5, 4, 7}, DataType: "uint8"}, nil))
	for _, c := range []struct {
		sel  Selection
		want string
	}{
		{Sel(), "0[0 1 2 3 4]+1 1[0 1 2 3]+1 2[0 1 2 3 4 5 6]+1"},
		{Sel(At(2), NewAxis(), Slice(None, None, -2)), "-1[0]+0 1[3 1]+-2 2[0 1 2 3 4 5 6]+1"},
		{Sel(Ellipsis(), List(3, 0)), "0[0 1 2 3 4]+1 1[0 1 2 3]+1 2[3 0]+0"},
		{Sel(At(0), At(0), Slice(-3, None, 1)), "2[4 5 6]+1"},
		{Sel(At(0), Slice(9, 9, 1), At(0)), "1[]+1"},
	} {
		axes, at, err := a.Axes(c.sel)
		if err != nil || len(at) != 3 {
			t.Fatal(c.sel, err)
		}
		var got []string
		for _, x := range axes {
			index := make([]int64, x.Len)
			for i := range index {
				index[i] = x.Index(int64(i))
			}
			got = append(got, fmt.Sprintf("%d%v+%d", x.Dim, index, x.Step()))
		}
		if text := fmt.Sprint(got); text != "["+c.want+"]" {
			t.Errorf("%v: %s, want %s", c.sel, text, c.want)
		}
		same, err := a.Resolve(Orthogonal(at...))
		want := must.Have(a.Resolve(c.sel))
		if err != nil || !slices.Equal(same, slices.DeleteFunc(want, func(n int64) bool { return n == 1 })) {
			t.Errorf("%v: its indices select %v, %v", c.sel, same, err)
		}
	}
	if _, _, err := a.Axes(Points([]int64{1}, []int64{1}, []int64{1})); !errors.Is(err, ErrSelection) {
		t.Errorf("points: %v", err)
	}
}

func eachInOrder(ctx context.Context, n int, fn func(context.Context, int) error) error {
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// A copy has the chunks that a selection touches, whole, and nothing else.
func TestCopyChunks(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"int32", "string"} {
		store := kv.NewMem()
		spec := Spec{Shape: []int64{300, 3}, Chunks: []int64{7, 2}, DataType: kind}
		from := must.Have(Create(ctx, store, "from", spec, nil))
		spec.Chunks = []int64{1, 1} // more than are copied at once
		to := must.Have(Create(ctx, store, "to", spec, nil))
		read := func(a *Array, sel Selection) (got any) {
			var err error
			if kind == "string" {
				got, _, err = Read[string](ctx, a, sel)
			} else {
				got, _, err = Read[int32](ctx, a, sel)
			}
			return must.Have(got, err)
		}
		if kind == "string" {
			must.Have(0, Fill(ctx, from, Sel(), "x"))
		} else {
			must.Have(0, Fill(ctx, from, Sel(), int32(5)))
		}
		must.Have(0, CopyChunks(ctx, from, to, Sel(Slice(2, 298, 1)), eachInOrder))
		for _, s := range []struct{ lo, hi int64 }{{0, 2}, {2, 298}, {298, 300}} {
			sel, like := Sel(Slice(s.lo, s.hi, 1)), from
			if s.lo != 2 {
				like = must.Have(Create(ctx, kv.NewMem(), "", spec, nil))
			}
			if got, want := read(to, sel), read(like, sel); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %v: %v, not %v", kind, sel, got, want)
			}
		}
		failed := errors.New("no")
		err := CopyChunks(ctx, from, to, Sel(), func(context.Context, int, func(context.Context, int) error) error { return failed })
		if err != failed {
			t.Error(err)
		}
	}
}

// Chunks that a selection touches are copied whole.
func TestCopyChunksAround(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	spec := Spec{Shape: []int64{12}, Chunks: []int64{12}, DataType: "int32"}
	from := must.Have(Create(ctx, store, "from", spec, nil))
	must.Have(0, Fill(ctx, from, Sel(), int32(5)))
	spec.Chunks = []int64{4}
	for _, c := range []struct {
		index Index
		want  string
	}{
		{Slice(3, 5, 1), "[5 5 5 5 5 5 5 5 0 0 0 0]"},
		{Slice(1, 12, 8), "[5 5 5 5 0 0 0 0 5 5 5 5]"},
	} {
		to := must.Have(Create(ctx, kv.NewMem(), "to", spec, nil))
		must.Have(0, CopyChunks(ctx, from, to, Sel(c.index), eachInOrder))
		if got, _, err := Read[int32](ctx, to, Sel()); fmt.Sprint(got) != c.want || err != nil {
			t.Errorf("%v: %v %v, want %s", c.index, got, err, c.want)
		}
	}
}
