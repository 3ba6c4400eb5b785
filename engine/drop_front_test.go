package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// The first steps of a dimension are dropped from all arrays that have it: what stays is as it was, in every format
// and along every axis, and no payload is stored again where whole chunks go. What others do meanwhile is a conflict.
func TestDropFront(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		t.Run(fmt.Sprint(v), func(t *testing.T) { testDropFront(t, v) })
	}
}

func testDropFront(t *testing.T, version zarr.Version) {
	db := openDB(t, nil)
	arrays := []struct {
		path string
		zarr.Spec
	}{
		{"g/time", zarr.Spec{Shape: []int64{300}, Chunks: []int64{512}, DimensionNames: []string{"time"}}},
		{"g/v", zarr.Spec{Shape: []int64{300, 7}, Chunks: []int64{2, 3}, DimensionNames: []string{"time", "x"}}},
		{"g/sub/last", zarr.Spec{Shape: []int64{3, 300}, Chunks: []int64{2, 1}, Separator: '.', DimensionNames: []string{"x", "time"}}},
		{"g/sub/sharded", zarr.Spec{Shape: []int64{300}, Chunks: []int64{2}, Shards: []int64{10}, DimensionNames: []string{"time"}}},
		{"g/other", zarr.Spec{Shape: []int64{4}, Chunks: []int64{1}, DimensionNames: []string{"x"}}},
		{"g/own/time", zarr.Spec{Shape: []int64{5}, Chunks: []int64{1}, DimensionNames: []string{"time"}}},
	}
	values := func(h hierarchy, path string, drop int64) (list []int32) {
		a := array(t, h, path)
		sel := "..."
		if d := slices.Index(a.DimensionNames(), "time"); d >= 0 && drop > 0 {
			sel = fmt.Sprintf("time=%d:", drop)
		}
		v := must.Get(zarr.ParseSelection(sel, a.DimensionNames()))(t)
		list, _, err := zarr.Read[int32](bg, a, v)
		must.Do(t, err)
		return list
	}
	s := must.Get(db.Begin(bg, ""))(t)
	for _, a := range arrays {
		a.DataType, a.Version = "int32", version
		if version == zarr.V2 {
			a.Chunks, a.Shards = slices.Concat(a.Shards, a.Chunks)[:len(a.Shape)], nil
		}
		x := must.Get(s.CreateArray(bg, a.path, a.Spec))(t)
		n := 1
		for _, l := range a.Shape {
			n *= int(l)
		}
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i)
		}
		must.Do(t, zarr.Write(bg, x, zarr.Sel(), list))
	}
	attrs := array(t, s, "g/time").Meta().Clone().Attributes
	must.Do(t, attrs.Set("units", "days since 2025-01-01"))
	must.Do(t, array(t, s, "g/time").SetAttributes(bg, attrs))
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	before := at(t, db, "")
	append1 := must.Get(db.Begin(bg, ""))(t)
	must.Do(t, array(t, append1, "g/v").Resize(bg, []int64{301, 7}, zarr.ResizeOptions{}))

	s = must.Get(db.Begin(bg, ""))(t)
	for first, want := range map[string]string{
		"0300": "none of the 300 steps", "-1": "none of", "2026": "none of", "nonsense": "nonsense",
	} {
		if _, err := s.DropFront(bg, "g", "time", first); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", first, err)
		}
	}
	if _, err := s.DropFront(bg, "g", "depth", "1"); !errors.Is(err, zarr.ErrNotFound) {
		t.Error(err)
	}
	twice := must.Get(db.Begin(bg, ""))(t)
	must.Get(twice.CreateArray(bg, "g/cov", zarr.Spec{Shape: []int64{300, 300}, DataType: "int8", Version: version, DimensionNames: []string{"time", "time"}}))(t)
	if _, err := twice.DropFront(bg, "g", "time", "10"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a dimension twice: %v", err)
	}
	twice.Abort()
	maxRewritten = 300
	_, err := s.DropFront(bg, "g", "time", "2025-01-07")
	maxRewritten = 64 << 20
	if err == nil || !strings.Contains(err.Error(), "without that: time=300") && !strings.Contains(err.Error(), "would be written again") {
		t.Error(err)
	}
	r := must.Get(s.DropFront(bg, "g/v", "time", "2025-01-11"))(t)
	if want := "g/sub/last g/sub/sharded g/v, g/time"; strings.Join(r.Moved, " ")+", "+strings.Join(r.Rewritten, " ") != want || r.Steps != 10 || r.Left != 290 {
		t.Errorf("%+v", r)
	}
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	if _, err := append1.Commit(bg, txn.CommitOptions{}); !errors.Is(err, txn.ErrConflict) {
		t.Errorf("an append meanwhile: %v", err)
	}
	now := at(t, db, "")
	for _, a := range arrays {
		drop := int64(0)
		if strings.HasPrefix(a.path, "g/") && !strings.HasPrefix(a.path, "g/own") && slices.Contains(a.DimensionNames, "time") {
			drop = 10
		}
		if got, want := values(now, a.path, 0), values(before, a.path, drop); !slices.Equal(got, want) {
			t.Errorf("%s has %d values, want %d", a.path, len(got), len(want))
		}
	}
	was, is := must.Get(before.Value(bg, array(t, before, "g/v").ChunkKey([]int64{5, 0})))(t), must.Get(now.Value(bg, array(t, now, "g/v").ChunkKey([]int64{0, 0})))(t)
	was.Key, is.Key = "", ""
	if fmt.Sprint(was) != fmt.Sprint(is) {
		t.Errorf("the chunk was stored again: %v, %v", was, is)
	}
	if n := must.Get(array(t, now, "g/v").NChunksInitialised(bg))(t); n != 145*3 {
		t.Errorf("%d chunks", n)
	}
}
