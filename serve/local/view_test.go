package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// A version reads through the socket as it does in the process.
func TestView(t *testing.T) {
	for _, files := range []bool{true, false} {
		t.Run(fmt.Sprintf("files=%v", files), func(t *testing.T) {
			h, c := served(t, nil, &DialOptions{NoFiles: !files})
			keys := map[string][]byte{
				"zarr.json": []byte(`{}`), "a/small": random(1, 100), "a/empty": {}, "a/edge": random(2, 32<<10),
				"a/large": random(3, 2<<20), "b": random(4, 600), "b/c": random(5, 40<<10),
			}
			put(t, h.db, keys)
			v := version(t, c, "main")
			for key, want := range keys {
				wantValue(t, v, key, want)
				value, err := kv.Locate(bg, v, key)
				if err != nil || value.Size() != int64(len(want)) || value.ID() == (kv.ID{}) {
					t.Errorf("locate %s: %v, %v", key, value, err)
					continue
				}
				for _, rng := range []kv.Range{kv.All(), kv.Span(0, 0), kv.Last(int64(len(want) / 2)), kv.From(int64(len(want) / 3)), kv.AtMost(4 << 20)} {
					off, n, _ := rng.Resolve(int64(len(want)))
					got, err := kv.ReadValue(bg, value, rng)
					if err != nil || !slices.Equal(got, want[off:off+n]) {
						t.Errorf("%s %v: %d bytes, %v", key, rng, len(got), err)
					}
					got, err = v.Get(bg, key, rng)
					if err != nil || !slices.Equal(got, want[off:off+n]) {
						t.Errorf("%s %v: %d bytes, %v", key, rng, len(got), err)
					}
				}
				for _, rng := range []kv.Range{kv.Span(0, int64(len(want))+1), kv.Span(-1, 2), kv.Last(int64(len(want)) + 1)} {
					if _, err := v.Get(bg, key, rng); !errors.Is(err, kv.ErrRange) {
						t.Errorf("%s %v: %v", key, rng, err)
					}
				}
			}
			if _, err := v.Get(bg, "none", kv.All()); err != kv.ErrNotFound {
				t.Error(err)
			}
			if _, err := v.Locate(bg, "none"); err != kv.ErrNotFound {
				t.Error(err)
			}
			if _, err := v.Get(bg, "a/small", kv.AtMost(99)); !errors.Is(err, kv.ErrTooLarge) {
				t.Error(err)
			}
			got, err := kv.Keys(bg, v, "a")
			if err != nil || !slices.Equal(got, []string{"a/edge", "a/empty", "a/large", "a/small"}) {
				t.Errorf("%q, %v", got, err)
			}
			many, err := kv.GetMany(bg, v, []kv.Request{{Key: "a/small"}, {Key: "none"}, {Key: "a/empty"}, {Key: "b", Range: kv.Last(3)}})
			if err != nil || !slices.Equal(many[0], keys["a/small"]) || many[1] != nil || many[2] == nil || !slices.Equal(many[3], keys["b"][597:]) {
				t.Errorf("%q, %v", many, err)
			}
			if _, err := viewOf(t, c, "nothing"); !errors.Is(err, txn.ErrNoRef) {
				t.Error(err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			if _, err := v.Get(bg, "b", kv.All()); !errors.Is(err, kv.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// A view that its client has closed is not taken for a session.
func TestClosedVersion(t *testing.T) {
	_, c := served(t, nil, nil)
	for range 3 {
		out, err := ask[wire.Lease](bg, c.l, wire.OpLease, wire.Open{Rev: "main"})
		if err == nil {
			_, err = ask[none](bg, c.l, wire.OpClose, wire.Handle{View: out.View})
		}
		must.Do(t, err)
		_, err = ask[none](bg, c.l, wire.OpDiscard, wire.Handle{View: out.View})
		if !errors.Is(err, kv.ErrClosed) || errors.Is(err, txn.ErrSessionClosed) {
			t.Errorf("the view of a version that was closed: %v", err)
		}
	}
}

// Long listings come page by page.
func TestListings(t *testing.T) {
	h, c := served(t, nil, nil)
	keys := map[string][]byte{}
	for i := range 2*5000 + 10 {
		keys[fmt.Sprintf("k%05d/x", i)] = []byte{1}
		if i%100 == 0 {
			keys[fmt.Sprintf("k%05d", i)] = []byte{1}
		}
	}
	put(t, h.db, keys)
	snap := must.Get(h.db.At(bg, ""))(t)
	defer snap.Close()
	v := version(t, c, "")
	want := must.Get(kv.Keys(bg, snap, ""))(t)
	if got, err := kv.Keys(bg, v, ""); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d keys, %v, want %d", len(got), err, len(want))
	}
	dir := func(l kv.Lister) (list []kv.DirEntry) {
		for e, err := range kv.ListDir(bg, l, "") {
			must.Do(t, err)
			list = append(list, e)
		}
		return list
	}
	if got, want := dir(v), dir(snap); !slices.Equal(got, want) {
		t.Errorf("%d children, want %d", len(got), len(want))
	}
}

// A session is a store like any other.
func TestSessionConformance(t *testing.T) {
	_, c := served(t, nil, nil)
	kvtest.Run(t, func(t *testing.T) kv.Reader {
		s := must.Get(beginOn(c))(t)
		t.Cleanup(func() {
			if err := errors.Join(s.Abort(), s.Close()); err != nil {
				t.Error(err)
			}
		})
		return s
	}, kvtest.Options{Steps: 300})
}

// A client finds the server by the directory, and a directory that is not served is an error.
func TestDialDir(t *testing.T) {
	h, _ := served(t, nil, nil)
	c := must.Get(DialDir(bg, h.db.Dir(), nil))(t)
	defer c.Close()
	if dir := c.l.hello.Dir; dir != h.db.Dir() {
		t.Error(dir)
	}
	if _, err := DialDir(bg, filepath.Dir(h.db.Dir()), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
