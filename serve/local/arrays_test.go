package local

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
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

// What is too long at once is refused, and values are read in parts then.
func TestTooLong(t *testing.T) {
	h, c := served(t, &Options{MaxBody: 50_000}, &DialOptions{NoFiles: true})
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
