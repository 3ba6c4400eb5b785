package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// callJSON sends a request of a view and parses the reply.
func callJSON[Out any](t *testing.T, s *session, op wire.Op, in any, pass ...wire.Descriptor) (out Out, body []byte, err error) {
	t.Helper()
	meta := must.Get(json.Marshal(in))(t)
	reply, err := s.tx.l.call(bg, &wire.Frame{Op: op, Meta: meta, Pass: pass}, false)
	if err != nil {
		return out, nil, err
	}
	defer reply.Close()
	return out, slices.Clone(reply.Body), wire.ParseJSON(op, reply.Meta, &out)
}

// Several selections come with one reply, one after the other.
func TestReadMany(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 1000}, nil)
	makeArray(t, h, 1000, 64)
	s := begin(t, c)
	for at := 0; at < 1000; at += 200 {
		must.Do(t, s.WriteArray(bg, "x", fmt.Sprintf("%d:%d", at, at+200), elementsOf(200, at)))
	}
	sels := []string{"60:70", "time=999", "5:5", "3:0:-1"}
	out, body, err := callJSON[wire.ElementsMany](t, s, wire.OpReadMany, wire.ArrayMany{View: s.tx.handle, Path: "x", Selects: sels})
	want := slices.Concat(elementsOf(10, 60), elementsOf(1, 999), elementsOf(1, 3), elementsOf(1, 2), elementsOf(1, 1))
	if err != nil || !slices.Equal(body, want) || out.ItemSize != 4 || out.NumPy != "'<i4'" ||
		fmt.Sprint(out.Shapes) != "[[10] [] [0] [3]]" {
		t.Errorf("%+v, %v, %v", out, body, err)
	}
	for sel, want := range map[string]error{"0:251": zarr.ErrTooLarge, "1,2": zarr.ErrSelection} {
		_, _, err := callJSON[wire.ElementsMany](t, s, wire.OpReadMany, wire.ArrayMany{View: s.tx.handle, Path: "x", Selects: []string{"0", sel}})
		if code := failure(err).Code; err == nil || want == zarr.ErrSelection && !errors.Is(err, want) || want == zarr.ErrTooLarge && code != "too_large" {
			t.Errorf("%s: %v", sel, err)
		}
	}
}

// Labels of coordinates select what lies between them.
func TestSelectLabels(t *testing.T) {
	h, c := served(t, nil, nil)
	makeArray(t, h, 4, 4)
	must.Get(h.db.Update(bg, "", "coordinate", func(s *engine.Session) error {
		a, err := s.CreateArray(bg, "time", zarr.Spec{
			Shape: []int64{4}, Chunks: []int64{4}, DataType: "int32", DimensionNames: []string{"time"},
			Attributes: attributes(t, `{"units":"days since 2020-01-30"}`),
		})
		if err != nil {
			return err
		}
		return a.WriteBytes(bg, zarr.Sel(), elementsOf(4, 0))
	}))(t)
	s := begin(t, c)
	for sel, want := range map[string]string{
		"time='2020-02'": "2:4 [2]", "time='2020-01-31'": "1 []", "time='2020-01-31':'2020-02-01'": "1:3 [2]", "1:3": "1:3 [2]", "": " [4]",
	} {
		out, _, err := callJSON[wire.Selected](t, s, wire.OpSelect, wire.Array{View: s.tx.handle, Path: "x", Select: sel})
		if err != nil || fmt.Sprint(out.Select, " ", out.Shape) != want {
			t.Errorf("%s: %+v, %v; want %s", sel, out, err, want)
		}
	}
	out, _, err := callJSON[wire.Selected](t, s, wire.OpSelect, wire.Array{View: s.tx.handle, Path: "x", Select: "time='2021':'2022'"})
	if err != nil || len(out.Empty) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	for sel, want := range map[string]error{"time='2021-01-01'": zarr.ErrNotFound, "lat='1'": zarr.ErrNotFound} {
		if _, _, err := callJSON[wire.Selected](t, s, wire.OpSelect, wire.Array{View: s.tx.handle, Path: "x", Select: sel}); !errors.Is(err, want) {
			t.Errorf("%s: %v", sel, err)
		}
	}
}

func attributes(t *testing.T, text string) zarr.Attributes {
	t.Helper()
	attrs := must.Get(zarr.ParseAttributes([]byte(text)))(t)
	return attrs
}

// Elements of variable length are offsets and bytes.
func TestVariableElements(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 300}, nil)
	must.Get(h.db.Update(bg, "", "text", func(s *engine.Session) error {
		_, err := s.CreateArray(bg, "text", zarr.Spec{Shape: []int64{6}, Chunks: []int64{4}, DataType: "string"})
		return err
	}))(t)
	s := begin(t, c)
	b, err := dtype.NewBuilder(nil, 3)
	for _, text := range []string{"zwei", "", "drei und vier"} {
		err = errors.Join(err, b.AppendString(text))
	}
	buf, failed := b.Finish()
	must.Do(t, errors.Join(err, failed, s.WriteArray(bg, "text", "2:5", buf)))
	got, shape, err := s.ReadArray(bg, "text", "::-1")
	if err != nil || !slices.Equal(shape, []int64{6}) {
		t.Fatal(shape, err)
	}
	v, err := dtype.OpenVariable(got, 6)
	if err != nil || string(v.At(1)) != "drei und vier" || string(v.At(2)) != "" || string(v.At(3)) != "zwei" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.WriteArray(bg, "text", "2:4", buf); !errors.Is(err, ErrRequest) {
		t.Errorf("another number of elements: %v", err)
	}
	b, _ = dtype.NewBuilder(nil, 1)
	_ = b.AppendString(string(make([]byte, 290)))
	long, _ := b.Finish()
	must.Do(t, s.WriteArray(bg, "text", "0", long))
	if _, _, err := s.ReadArray(bg, "text", ""); err == nil || failure(err).Code != "too_large" {
		t.Error(err)
	}
	f := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer f.Close()
	if mmap.Supported {
		if _, _, err := callJSON[wire.Elements](t, s, wire.OpRead, wire.Array{View: s.tx.handle, Path: "text"}, f); !errors.Is(err, ErrRequest) {
			t.Error(err)
		}
	}
}

// A version keeps few arrays open, each with its own metadata.
func TestManyArraysOfAVersion(t *testing.T) {
	h, c := served(t, nil, nil)
	const n = maxArrays + 6
	must.Get(h.db.Update(bg, "", "many", func(s *engine.Session) error {
		for i := range n {
			if _, err := s.CreateArray(bg, fmt.Sprintf("a%d", i), zarr.Spec{Shape: []int64{int64(i)}, Chunks: []int64{8}, DataType: "int8"}); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	v := handles(t, c, "")
	for round := range 2 {
		for i := range n {
			if b, shape, err := v.ReadArray(bg, fmt.Sprintf("a%d", i), ""); err != nil || len(b) != i || shape[0] != int64(i) {
				t.Fatalf("round %d, array %d: %d bytes of shape %v, %v", round, i, len(b), shape, err)
			}
		}
	}
}
