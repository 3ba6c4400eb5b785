package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// valueLines lists what differs in values between two versions.
func valueLines(t *testing.T, db *DB, from, to txn.CommitID) (lines []string) {
	t.Helper()
	list := must.Get(db.NodeChanges(bg, from, to, ""))(t)
	for _, c := range list {
		for v, err := range db.ValueChanges(bg, from, to, c) {
			must.Do(t, err)
			if v.Incomparable != "" {
				lines = append(lines, v.Path+" "+v.Incomparable)
				continue
			}
			line := fmt.Sprintf("%s %v+%v %d", v.Path, v.Start, v.Shape, v.Count)
			if v.Numbers > 0 {
				line += fmt.Sprintf(" %d: %g %g %g", v.Numbers, v.Min, v.Max, v.Mean)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestValueChangesOfTypes(t *testing.T) {
	words := func(size int, v ...uint64) (b []byte) {
		for _, x := range v {
			b = append(b, binary.LittleEndian.AppendUint64(nil, x)[:size]...)
		}
		return b
	}
	f64 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = append(b, words(8, math.Float64bits(x))...)
		}
		return b
	}
	nan, inf := math.NaN(), math.Inf(1)
	other := math.Float64frombits(0x7ff8000000000123)
	for _, c := range []struct {
		dtype    string
		was, is  []byte
		want     string
		optional bool
	}{
		{dtype: "bool", was: []byte{0, 1, 1, 0}, is: []byte{1, 1, 0, 0}, want: "[0]+[3] 2 2: -1 1 0"},
		{dtype: "int8", was: []byte{0x80, 0, 0, 1}, is: []byte{0x7f, 0, 0xff, 1}, want: "[0]+[3] 2 2: -1 255 127"},
		{dtype: "uint8", was: []byte{255, 0, 0, 1}, is: []byte{0, 0, 0, 1}, want: "[0]+[1] 1 1: -255 -255 -255"},
		{dtype: "int16", was: words(2, 1, 2, 3, 4), is: words(2, 1, 2, 3, 5), want: "[3]+[1] 1 1: 1 1 1"},
		{dtype: "uint32", was: words(4, math.MaxUint32, 0, 0, 0), is: words(4, 0, 0, 0, 0), want: "[0]+[1] 1 1: -4.294967295e+09 -4.294967295e+09 -4.294967295e+09"},
		{dtype: "int64", was: words(8, 1<<63, 1<<60, 0, 0), is: words(8, 1<<63-1, 1<<60+1, 0, 0), want: "[0]+[2] 2 2: 1 1.8446744073709552e+19 9.223372036854776e+18"},
		{dtype: "uint64", was: words(8, 0, 1<<60, 0, 0), is: words(8, 0, 1<<60-1, 0, 0), want: "[1]+[1] 1 1: -1 -1 -1"},
		{dtype: "float16", was: words(2, 0x3c00, 0, 0, 0), is: words(2, 0x4000, 0, 0, 0), want: "[0]+[1] 1 1: 1 1 1"},
		{dtype: "bfloat16", was: words(2, 0x3f80, 0, 0, 0), is: words(2, 0x4000, 0, 0, 0), want: "[0]+[1] 1 1: 1 1 1"},
		{dtype: "float64", was: f64(nan, nan, 1, inf), is: f64(other, 2, 1.5, 0), want: "[1]+[3] 3 1: 0.5 0.5 0.5"},
		{dtype: "float64", was: f64(nan, nan, inf, 0), is: f64(nan, other, inf, math.Copysign(0, -1)), want: "[3]+[1] 1 1: 0 0 0"},
		{dtype: "complex128", was: f64(0, 0, nan, 0, 1, 1, 0, nan), is: f64(3, 4, 0, nan, 1, 1, 1, 1), want: "[0]+[4] 2 1: 5 5 5"},
		{dtype: "complex64", was: words(4, 0, 0, 0, 0, 0, 0, 0, 0), is: words(4, 0, 0, 0, 0x40000000, 0, 0, 0, 0), want: "[1]+[1] 1 1: 2 2 2"},
		{dtype: `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, was: words(8, 1<<63, 10, 20, 0), is: words(8, 1, 15, 20, 0), want: "[0]+[2] 2 1: 5 5 5"},
		{dtype: `{"name":"numpy.timedelta64","configuration":{"unit":"ms","scale_factor":10}}`, was: words(8, 1, 2, 3, 4), is: words(8, 0, 2, 3, 4), want: "[0]+[1] 1 1: -1 -1 -1"},
		{dtype: "r16", was: words(2, 1, 2, 3, 4), is: words(2, 1, 3, 3, 5), want: "[1]+[3] 2"},
	} {
		t.Run(c.dtype, func(t *testing.T) {
			db := openDB(t, nil)
			spec := zarr.Spec{Shape: []int64{4}, Chunks: []int64{4}, DataType: c.dtype}
			from := commit(t, db, "", "was", func(s *Session) error {
				a, err := s.CreateArray(bg, "x", spec)
				if err != nil {
					return err
				}
				return a.WriteBytes(bg, zarr.Sel(), c.was)
			})
			to := commit(t, db, "", "is", func(s *Session) error { return array(t, s, "x").WriteBytes(bg, zarr.Sel(), c.is) })
			if got := strings.Join(valueLines(t, db, from, to), "; "); got != "x "+c.want {
				t.Errorf("%s\nwant x %s", got, c.want)
			}
			if got := valueLines(t, db, to, to); got != nil {
				t.Errorf("of a version and itself: %v", got)
			}
		})
	}
}

func TestValueChanges(t *testing.T) {
	db := openDB(t, nil)
	grid := zarr.Spec{Shape: []int64{4, 6}, Chunks: []int64{2, 3}, DataType: "int32"}
	text := zarr.Spec{Shape: []int64{3}, Chunks: []int64{2}, DataType: "string"}
	v1 := commit(t, db, "", "v1", func(s *Session) error {
		words, err := s.CreateArray(bg, "words", text)
		return errors.Join(err, create(s, "a", grid), create(s, "b", grid), create(s, "g/c", grid), create(s, "kind", grid),
			create(s, "flat", grid), create(s, "gone", grid), zarr.Write(bg, words, zarr.Sel(), []string{"one", "two", "three"}))
	})
	v2 := commit(t, db, "", "v2", func(s *Session) error {
		flat, other, finer := grid, grid, grid
		flat.Shape, flat.Chunks, other.DataType, finer.Chunks = []int64{24}, []int64{24}, "float32", []int64{4, 2}
		for path, spec := range map[string]zarr.Spec{"flat": flat, "kind": other, "b": finer} {
			if _, err := s.ReplaceArray(bg, path, spec); err != nil {
				return err
			}
		}
		b := make([]int32, 24)
		for i := range b {
			b[i] = int32(i)
		}
		b[7], b[23] = 70, 0
		return errors.Join(
			zarr.Write(bg, array(t, s, "a"), zarr.Sel(zarr.At(1), zarr.Slice(1, 5, 1)), []int32{0, 8, 109, 10}),
			array(t, s, "a").Resize(bg, []int64{3, 9}, zarr.ResizeOptions{}),
			zarr.Write(bg, array(t, s, "a"), zarr.Sel(zarr.At(0), zarr.At(8)), []int32{5}),
			zarr.Write(bg, array(t, s, "b"), zarr.Sel(), b),
			zarr.Write(bg, array(t, s, "g/c"), zarr.Sel(zarr.At(0), zarr.At(0)), []int32{9}),
			s.Rename(bg, "g/c", "h/d"),
			zarr.Write(bg, array(t, s, "words"), zarr.Sel(zarr.At(2)), []string{"drei"}),
			s.Remove(bg, "gone"),
		)
	})
	want := []string{
		"a [1 1]+[1 1] 1 1: -7 -7 -7",
		"a [1 3]+[1 1] 1 1: 100 100 100",
		"b [1 1]+[1 1] 1 1: 63 63 63",
		"b [3 5]+[1 1] 1 1: -23 -23 -23",
		"flat rank",
		"h/d [0 0]+[1 1] 1 1: 9 9 9",
		"kind data type",
		"words [2]+[1] 1",
	}
	if got := valueLines(t, db, v1, v2); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for c, err := range db.ValueChanges(bg, txn.CommitID{1}, v2, NodeChange{Path: "a", Kind: "changed"}) {
		if !errors.Is(err, txn.ErrNoRef) {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// What is told of random writes is what a comparison of all values says,
// sharded or not, and in pieces.
func TestValueChangesModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, spec := range []zarr.Spec{
		{Shape: []int64{20, 30}, Chunks: []int64{7, 11}, DataType: "int32"},
		{Shape: []int64{20, 30}, Chunks: []int64{4, 5}, Shards: []int64{8, 10}, DataType: "int32"},
		{Shape: []int64{600}, Chunks: []int64{600}, DataType: "int32"},
	} {
		db := openDB(t, nil)
		from := commit(t, db, "", "was", func(s *Session) error { return create(s, "x", spec) })
		was := ints(t, at(t, db, ""), "x")
		to := commit(t, db, "", "is", func(s *Session) error {
			a, is := array(t, s, "x"), slices.Clone(was)
			for range rng.IntN(20) {
				is[rng.IntN(len(is))] = rng.Int32N(1000)
			}
			return zarr.Write(bg, a, zarr.Sel(), is)
		})
		is := ints(t, at(t, db, ""), "x")
		var sum ValueChange
		list := must.Get(db.NodeChanges(bg, from, to, ""))(t)
		for _, c := range list {
			for v, err := range db.ValueChanges(bg, from, to, c) {
				must.Do(t, err)
				sum.Add(v)
			}
		}
		var count, total int64
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for i := range was {
			if d := int64(is[i]) - int64(was[i]); d != 0 {
				count, total, lo, hi = count+1, total+d, min(lo, d), max(hi, d)
			}
		}
		if sum.Count != count || sum.Numbers != count {
			t.Errorf("%v: %d differ, want %d", spec, sum.Count, count)
		}
		if count > 0 && (sum.Min != float64(lo) || sum.Max != float64(hi) || math.Abs(sum.Mean-float64(total)/float64(count)) > 1e-6) {
			t.Errorf("%v: %+v, want %d to %d, mean %g", spec, sum, lo, hi, float64(total)/float64(count))
		}
	}
}

func TestRenamesAreTold(t *testing.T) {
	db := openDB(t, nil)
	v1 := commit(t, db, "", "v1", func(s *Session) error {
		return errors.Join(create(s, "g/x", line(6, 2)), create(s, "g/sub/y", line(6, 2)), create(s, "a", line(6, 2)), create(s, "b", line(6, 2)),
			create(s, "p", line(6, 2)), create(s, "q", line(6, 2)), setAttr(s, "g", "title", "old"))
	})
	v2 := commit(t, db, "", "v2", func(s *Session) error {
		return errors.Join(
			s.Rename(bg, "g", "h"), put(s, "h/x", 0, 9), setAttr(s, "h", "title", "new"), setAttr(s, "h/sub/y", "units", "K"),
			s.Remove(bg, "b"), s.Rename(bg, "a", "b"),
			s.Rename(bg, "p", "tmp"), s.Rename(bg, "q", "p"), s.Rename(bg, "tmp", "q"),
		)
	})
	lines := func(path string) string {
		t.Helper()
		list := must.Get(db.NodeChanges(bg, v1, v2, path))(t)
		var out []string
		for _, c := range list {
			out = append(out, c.String())
		}
		return strings.Join(out, "\n")
	}
	want := strings.Join([]string{
		"- /b",
		"> /b renamed from /a",
		"> /h renamed from /g",
		`    attributes.title: "old" -> "new"`,
		"> /h/sub renamed from /g/sub",
		"> /h/sub/y renamed from /g/sub/y",
		`    attributes.units: (none) -> "K"`,
		"> /h/x renamed from /g/x chunks: 1 changed",
		"> /p renamed from /q",
		"> /q renamed from /p",
	}, "\n")
	if got := lines(""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := lines("q"), "> /p renamed from /q\n> /q renamed from /p"; got != want {
		t.Errorf("at q\n%s\nwant\n%s", got, want)
	}
}
