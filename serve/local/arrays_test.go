package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// makeArray commits an array of n int32 in chunks of c.
func makeArray(t testing.TB, h *holder, n, c int64) {
	t.Helper()
	must.Get(h.db.Update(bg, "", "x", func(s *engine.Session) error {
		_, err := s.CreateArray(bg, "x", zarr.Spec{Shape: []int64{n}, Chunks: []int64{c}, DataType: "int32", DimensionNames: []string{"time"}})
		return err
	}))(t)
}

func elementsOf(n, first int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(first+i))
	}
	return b
}

// Attributes that are no strict JSON are those of other arrays as well.
func TestArrayInfoNaN(t *testing.T) {
	h, c := served(t, nil, nil)
	makeArray(t, h, 4, 2)
	s := begin(t, c)
	doc := must.Get(s.Get(bg, "x/zarr.json", kv.All()))(t)
	doc = bytes.Replace(doc, []byte(`"attributes": {}`), []byte(`"attributes": {"valid_max": NaN}`), 1)
	must.Do(t, s.Set(bg, "x/zarr.json", doc))
	if info, err := s.ArrayInfo(bg, "x"); err != nil || !strings.Contains(string(info.Attributes), `"NaN"`) {
		t.Errorf("%+v, %v", info, err)
	}
}

// Clients that write parts of the same chunks through one session lose nothing.
func TestArrays(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 4000}, nil)
	const n, chunk, clients = 1000, 64, 8
	makeArray(t, h, n, chunk)
	s := begin(t, c)
	var wg sync.WaitGroup
	for k := range clients {
		mine := joinSession(t, join(t, h, nil), s.ID())
		wg.Go(func() {
			for at := k * 5; at < n; at += clients * 5 {
				if err := mine.WriteArray(bg, "x", fmt.Sprintf("%d:%d", at, at+5), elementsOf(5, at)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := elementsOf(n, 0)
	got, shape, err := s.ReadArray(bg, "x", "")
	if err != nil || !slices.Equal(got, want) || !slices.Equal(shape, []int64{n}) {
		t.Errorf("%d bytes of shape %v, %v", len(got), shape, err)
	}
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	v := handles(t, c, "")
	got, shape, err = v.ReadArray(bg, "x", "time=10:20")
	if err != nil || !slices.Equal(got, want[40:80]) || !slices.Equal(shape, []int64{10}) {
		t.Errorf("%d bytes of shape %v, %v", len(got), shape, err)
	}
	info, err := v.ArrayInfo(bg, "x")
	if err != nil || info.Format != 3 || info.NumPy != "'<i4'" || info.ItemSize != 4 || info.Type != "int32" ||
		!slices.Equal(info.Chunks, []int64{chunk}) || !slices.Equal(info.Dimensions, []string{"time"}) || string(info.Attributes) != "{}" {
		t.Errorf("%+v, %v", info, err)
	}
	for sel, want := range map[string]error{"0:2,1": zarr.ErrSelection, "a": zarr.ErrSelection, "newaxis, 0:1000": nil} {
		if _, _, err := v.ReadArray(bg, "x", sel); !errors.Is(err, want) {
			t.Errorf("%s: %v", sel, err)
		}
	}
	if _, _, err := v.ReadArray(bg, "none", ""); !errors.Is(err, zarr.ErrNotFound) {
		t.Error(err)
	}
}

// Elements go through memory of the client where it passes a descriptor.
func TestArraysThroughMemory(t *testing.T) {
	h, c := served(t, nil, nil)
	if !mmap.Supported {
		t.Skip("no descriptors here")
	}
	makeArray(t, h, 1000, 100)
	s := begin(t, c)
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "memory")))(t)
	defer f.Close()
	want := elementsOf(1000, 7)
	must.Get(f.WriteAt(want, 50))(t)
	send := func(op wire.Op, at int64, pass ...wire.Descriptor) error {
		meta := must.Get(json.Marshal(wire.Array{View: s.tx.handle, Path: "x", Destination: wire.Destination{At: at}}))(t)
		reply, err := s.tx.l.call(bg, &wire.Frame{Op: op, Meta: meta, Pass: pass}, false)
		if err == nil && len(reply.Body) > 0 {
			t.Errorf("%d bytes were sent", len(reply.Body))
		}
		return err
	}
	must.Do(t, send(wire.OpWrite, 50, f))
	must.Do(t, send(wire.OpRead, 9000, f))
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 9000); err != nil || !slices.Equal(got, want) {
		t.Error("other elements", err)
	}
	if err := send(wire.OpWrite, 12000, f); err == nil {
		t.Error("elements behind the end of the file")
	}
	r, _ := pipe(t)
	if err := send(wire.OpRead, 0, r); !errors.Is(err, ErrRequest) {
		t.Error(err)
	}
	if err := send(wire.OpRead, 0, f, f); !errors.Is(err, ErrRequest) {
		t.Error(err)
	}
}

// What is too long at once is refused, and values are read in parts then.
func TestTooLong(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 50_000}, &DialOptions{NoFiles: true})
	makeArray(t, h, 100_000, 100_000)
	v := handles(t, c, "")
	if _, _, err := v.ReadArray(bg, "x", ""); !errors.Is(err, kv.ErrTooLarge) {
		t.Error(err)
	}
	if _, _, err := v.ReadArray(bg, "x", "0:12500"); err != nil {
		t.Error(err)
	}
	want := random(1, 200_000)
	put(t, h.db, map[string][]byte{"k": want})
	wantValue(t, version(t, c, ""), "k", want)
	if _, err := version(t, c, "").Get(bg, "k", kv.AtMost(100)); !errors.Is(err, kv.ErrTooLarge) {
		t.Error(err)
	}
	s := begin(t, c)
	var long *wire.TooLongError
	if err := s.Set(bg, "k", want); !errors.As(err, &long) || !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	// The connection goes on.
	wantValue(t, s, "k", want)
}

// pipe returns the ends of a pipe.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}
