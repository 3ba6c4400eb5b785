package zarr

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// TestSliceGolden compares slices with what CPython makes of them.
func TestSliceGolden(t *testing.T) {
	f := must.Get(os.Open("testdata/slices.txt"))(t)
	defer f.Close()
	lines := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		lines++
		head, tail, _ := strings.Cut(sc.Text(), ":")
		var v [4]int64
		for i, s := range strings.Fields(head) {
			v[i] = None
			if s != "_" {
				v[i] = must.Get(strconv.ParseInt(s, 10, 64))(t)
			}
		}
		want := []int64{}
		for _, s := range strings.Fields(tail) {
			n, _ := strconv.ParseInt(s, 10, 64)
			want = append(want, n)
		}
		got, shape := spanElements(t, Sel(Slice(v[1], v[2], v[3])), v[0])
		if !slices.Equal(got, want) || shape != int64(len(want)) {
			t.Errorf("%s: got %v of length %d, want %v", head, got, shape, want)
		}
	}
	if lines < 1000 {
		t.Errorf("only %d lines", lines)
	}
}

// spanElements resolves a selection of one dimension to its elements.
func spanElements(t *testing.T, s Selection, n int64) (list []int64, shape int64) {
	t.Helper()
	var r region
	must.Do(t, r.resolve(s, []int64{n}))
	sp := r.dims[0]
	list = []int64{}
	for i := range sp.n {
		list = append(list, sp.start+i*sp.step)
	}
	if sp.flip {
		slices.Reverse(list)
	}
	return list, r.shape[0]
}

// TestSliceExtremes checks that nothing wraps around at the ends of int64.
func TestSliceExtremes(t *testing.T) {
	const huge = math.MaxInt64
	for _, c := range []struct {
		lo, hi, step, n int64
		start, by, want int64
		flip            bool
	}{
		{None, None, 1, huge, 0, 1, huge, false},
		{None, None, -1, huge, 0, 1, huge, true},
		{None, None, huge, huge, 0, 1, 1, false},
		{None, None, math.MinInt64, huge, huge - 1, 1, 1, false},
		{None, None, math.MinInt64 + 1, huge, huge - 1, 1, 1, false},
		{-huge, huge, huge - 1, huge, 0, huge - 1, 2, false},
		{huge, None, -(huge - 1), huge, 0, huge - 1, 2, true},
		{huge, None, -1, 3, 0, 1, 3, true},
		{-huge, None, 1, 3, 0, 1, 3, false},
		{huge, huge, 1, huge, 0, 1, 0, false},
	} {
		start, by, n, flip := slice(c.lo, c.hi, c.step, c.n)
		if start != c.start || by != c.by || n != c.want || flip != c.flip {
			t.Errorf("slice(%d, %d, %d, %d) = %d %d %d %v", c.lo, c.hi, c.step, c.n, start, by, n, flip)
		}
	}
}

func TestResolveShape(t *testing.T) {
	shape := []int64{4, 5, 6}
	for _, c := range []struct {
		sel  Selection
		want []int64
	}{
		{Selection{}, []int64{4, 5, 6}},
		{Sel(), []int64{4, 5, 6}},
		{Sel(At(1)), []int64{5, 6}},
		{Sel(At(-4), At(4), At(-1)), []int64{}},
		{Sel(Ellipsis(), At(0)), []int64{4, 5}},
		{Sel(At(0), Ellipsis(), At(0)), []int64{5}},
		{Sel(All(), All(), All(), Ellipsis()), []int64{4, 5, 6}},
		{Sel(NewAxis(), At(0), NewAxis()), []int64{1, 1, 5, 6}},
		{Sel(Ellipsis(), NewAxis()), []int64{4, 5, 6, 1}},
		{Sel(Slice(1, 100, 2), Slice(None, None, -2), Slice(3, 3, 1)), []int64{2, 3, 0}},
		{Sel(List(3, 0, 3)), []int64{3, 5, 6}},
		{Sel(List()), []int64{0, 5, 6}},
		{Orthogonal(List(0, 1), At(2), List(-1, -2, -3)), []int64{2, 3}},
		{Points([]int64{0, 3}, []int64{0}, []int64{5, -6}), []int64{2}},
		{Points([]int64{}, []int64{0}, []int64{}), []int64{0}},
	} {
		got, err := c.sel.Resolve(shape)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v %v, want %v", c.sel, got, err, c.want)
		}
	}
	if got, err := Points().Resolve(nil); err != nil || !slices.Equal(got, []int64{1}) {
		t.Errorf("a point of a rank-0 array: %v %v", got, err)
	}
}

func TestResolveErrors(t *testing.T) {
	shape := []int64{4, 5, 0}
	for _, c := range []struct {
		sel  Selection
		text string
	}{
		{Sel(At(4)), "index 4 of dimension 0, which has length 4"},
		{Sel(At(-5)), "index -5 of dimension 0"},
		{Sel(All(), All(), At(0)), "index 0 of dimension 2, which has length 0"},
		{Sel(All(), All(), All(), All()), "4 indices for 3 dimensions"},
		{Sel(Ellipsis(), Ellipsis()), "more than one ellipsis"},
		{Sel(Slice(0, 1, 0)), "step 0"},
		{Sel(List(0, 4)), "index 4 of dimension 0"},
		{Sel(List(0), List(0)), "more than one list"},
		{Orthogonal(List(0), List(5)), "index 5 of dimension 1"},
		{Points([]int64{0}), "1 coordinates, the array 3 dimensions"},
		{Points([]int64{0, 1}, []int64{0, 1, 2}, []int64{0}), "along another"},
		{Points([]int64{0}, []int64{5}, []int64{0}), "index 5 of dimension 1"},
	} {
		_, err := c.sel.Resolve(shape)
		if !errors.Is(err, ErrSelection) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v, want %q", c.sel, err, c.text)
		}
	}
	huge := []int64{math.MaxInt64, math.MaxInt64}
	if _, err := Sel().Resolve(huge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("2^126 elements: %v", err)
	}
	if got, err := Sel(All(), At(7)).Resolve(huge); err != nil || got[0] != math.MaxInt64 {
		t.Errorf("2^63-1 elements: %v %v", got, err)
	}
	if got, err := Sel().Resolve([]int64{math.MaxInt64, math.MaxInt64, 0}); err != nil || len(got) != 3 {
		t.Errorf("no elements: %v %v", got, err)
	}
}

func TestParseSelection(t *testing.T) {
	names := []string{"time", "lat=itude", "lon"}
	for _, c := range []struct {
		text string
		want Selection
	}{
		{"", Sel()},
		{" [ ] ", Sel()},
		{"5", Sel(At(5))},
		{"-1,", Sel(At(-1))},
		{"0:24,::2,5", Sel(Slice(0, 24, 1), Slice(None, None, 2), At(5))},
		{"...,3", Sel(Ellipsis(), At(3))},
		{"[ 1 : , :-2, : , :: , ::-1 ]", Sel(Slice(1, None, 1), Slice(None, -2, 1), All(), All(), Slice(None, None, -1))},
		{"newaxis,None,0", Sel(NewAxis(), NewAxis(), At(0))},
		{"1:2:", Sel(Slice(1, 2, 1))},
		{"-9223372036854775808:9223372036854775807", Sel(Slice(-math.MaxInt64, math.MaxInt64, 1))},
		{"time=0:24,lat=itude=::2", Sel(Slice(0, 24, 1), Slice(None, None, 2), All())},
		{" lon = -1 ", Sel(All(), All(), At(-1))},
	} {
		got, err := ParseSelection(c.text, names)
		if err != nil || got.mode != c.want.mode || !slices.EqualFunc(got.index, c.want.index, sameIndex) {
			t.Errorf("%q: %v %v, want %v", c.text, got, err, c.want)
		}
	}
	for text, part := range map[string]string{
		"x":                    `"x" is not an integer`,
		"1:2:3:4":              "two colons",
		"::0":                  "step 0",
		"1,,2":                 `"" is not an integer`,
		",":                    `"" is not an integer`,
		"1.5":                  "not an integer",
		"time=0,1":             "mixes",
		"1,time=0":             "mixes",
		"depth=0":              `no dimension is named "depth"`,
		"=0":                   `no dimension is named ""`,
		"time=0,time=1":        "twice",
		"time=...":             "selects nothing",
		"time=newaxis":         "selects nothing",
		"time=":                `"" is not an integer`,
		"99999999999999999999": "not an integer",
		"(1,2)":                "not an integer",
	} {
		if _, err := ParseSelection(text, names); !errors.Is(err, ErrSelection) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", text, err, part)
		}
	}
	if _, err := ParseSelection("a=0", []string{"a", "a", ""}); !errors.Is(err, ErrSelection) {
		t.Errorf("two dimensions of one name: %v", err)
	}
}

func sameIndex(a, b Index) bool { return reflect.DeepEqual(a, b) }

func TestSelectionString(t *testing.T) {
	for want, s := range map[string]Selection{
		"":                          {},
		"0:24,::2,5":                Sel(Slice(0, 24, 1), Slice(None, None, 2), At(5)),
		"...,newaxis,:,-1":          Sel(Ellipsis(), NewAxis(), All(), At(-1)),
		"orthogonal 2 indices,::-1": Orthogonal(List(1, 2), Slice(None, None, -1)),
		"3 points":                  Points([]int64{1}, []int64{1, 2, 3}),
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzParseSelection(f *testing.F) {
	for _, s := range []string{"0:24,::2,5", "...,3", "time=0:24,lat=::2", "[::-1]", "1:2:", "newaxis", "-9223372036854775808:", ",", ""} {
		f.Add(s)
	}
	names := []string{"time", "lat", ""}
	shape := []int64{7, 1, 1 << 40}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelection(text, names)
		if err != nil {
			if !errors.Is(err, ErrSelection) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseSelection(s.String(), nil)
		if err != nil || again.String() != s.String() || !slices.EqualFunc(again.index, s.index, sameIndex) {
			t.Fatalf("%q printed as %q is %q, %v", text, s, again, err)
		}
		var r region
		if err := r.resolve(s, shape); err != nil {
			if !errors.Is(err, ErrSelection) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for d, sp := range r.dims {
			if sp.n > 0 && (sp.start < 0 || sp.step < 1 || sp.start+(sp.n-1)*sp.step >= shape[d]) {
				t.Fatalf("%q: dimension %d selects %+v of %d", text, d, sp, shape[d])
			}
		}
	})
}

// TestPlan compares the parts of random plans, each computed on its own, with
// a walk over all elements.
func TestPlan(t *testing.T) {
	runs := must.Get(meta.RectilinearGrid([]meta.Edges{{Runs: [][2]int64{{3, 2}, {1, 3}, {7, 1}, {2, 9}}}}))(t)
	for _, grid := range []Grid{meta.RegularGrid([]int{1}), meta.RegularGrid([]int{3}), meta.RegularGrid([]int{10}), meta.RegularGrid([]int{100}), runs} {
		for _, s := range []Selection{
			Sel(), Sel(At(17)), Sel(Slice(5, 29, 1)), Sel(Slice(None, None, -1)), Sel(Slice(1, 30, 2)), Sel(Slice(30, 2, -3)),
			Sel(Slice(0, 31, 11)), Sel(Slice(None, None, 40)), Sel(Slice(None, None, -13)), Sel(Slice(4, 4, 1)), Sel(List()),
			Sel(List(0, 1, 2, 9, 10, 30)), Sel(List(30, 0, 7, 7, 8, 0, -1)), Sel(List(5)),
		} {
			name := fmt.Sprintf("%s of chunks %s", s, grid)
			const n = 31
			var p plan
			st := &arrayState{meta: &Meta{Shape: []int64{n}, Grid: grid}, lens: grid.Regular()}
			if err := p.prepare(st, s, false); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := make([]int64, p.total)
			for i := range got {
				got[i] = -1
			}
			last := int64(-1)
			for i := range p.chunks {
				x := p.axes[0].part(i)
				if x.chunk <= last {
					t.Errorf("%s: chunk %d after %d", name, x.chunk, last)
				}
				last = x.chunk
				lo, hi := grid.Start(0, x.chunk), grid.Start(0, x.chunk+1)
				a := &p.axes[0]
				for k := x.k; k < x.k+int64(x.n); k++ {
					e := a.start + k*a.step
					if a.list != nil {
						e = a.element(int(k))
					}
					if e < lo+int64(x.from) || e >= lo+int64(x.from+x.span) || e >= hi {
						t.Errorf("%s: element %d in part %+v of chunk %d to %d", name, e, x, lo, hi)
					}
					if k == x.k && e != lo+int64(x.from) || k == x.k+int64(x.n)-1 && e != lo+int64(x.from+x.span-1) {
						t.Errorf("%s: part %+v is not tight", name, x)
					}
					if got[a.place(k)] != -1 {
						t.Errorf("%s: place %d twice", name, a.place(k))
					}
					got[a.place(k)] = e
				}
			}
			var want []int64
			if len(s.index) == 1 && s.index[0].kind == indexList {
				for _, e := range s.index[0].list {
					want = append(want, (e+n)%n)
				}
			} else if len(s.index) == 1 && s.index[0].kind == indexAt {
				want = []int64{s.index[0].lo}
			} else {
				want, _ = spanElements(t, s, n)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
}
