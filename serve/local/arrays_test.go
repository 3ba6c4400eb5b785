package local

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
)

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
