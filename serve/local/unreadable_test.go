//go:build unix

package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A value whose file was cut is an error of the request, and the connection goes on.
func TestUnreadablePage(t *testing.T) {
	h, _ := served(t, nil, nil)
	want := random(1, 1<<20)
	put(t, h.db, map[string][]byte{"k": want, "small": []byte("v")})
	w, _ := rawConn(t, h)
	must.Do(t, w.Send(&wire.Frame{ID: 1, Op: wire.OpOpen, Meta: []byte(`{}`)}))
	must.Get(w.Receive())(t)
	get := func(key string) ([]byte, error) {
		in := wire.Get{View: 1, Key: key}
		must.Do(t, w.Send(&wire.Frame{ID: 2, Op: wire.OpGet, Flags: wire.FlagBytes, Meta: in.Append(nil)}))
		f := must.Get(w.Receive())(t)
		if f.Flags&wire.FlagError != 0 {
			return nil, remote(f.Meta)
		}
		return f.Body, nil
	}
	if got := must.Get(get("k"))(t); !bytes.Equal(got, want) { // from here on its checksums are not compared
		t.Fatal("other bytes")
	}
	for _, name := range must.Get(filepath.Glob(filepath.Join(h.db.Dir(), "packs", "*.pack")))(t) {
		sound := must.Get(os.ReadFile(name))(t)
		must.Do(t, os.Truncate(name, 300<<10))
		defer func() { must.Do(t, os.WriteFile(name, sound, 0o666)) }() // the database is checked at the end
	}
	for range 3 {
		if _, err := get("k"); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%v, want ErrCorrupt", err)
		}
	}
	if got := must.Get(get("small"))(t); string(got) != "v" {
		t.Errorf("%q", got)
	}
}
