package ocdbt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// use opens a store and reads all there is: the first error ends it.
func use(ctx context.Context, files kv.Reader, version string, most int) (entries []refs.Entry, err error) {
	set, err := Open(ctx, files, &formats.Options{Version: version})
	if err != nil {
		return nil, err
	}
	for e, err := range set.Entries(ctx) {
		if err != nil {
			return entries, err
		}
		if entries = append(entries, e); len(entries) == most {
			break
		}
	}
	for _, err := range set.History(ctx) {
		if err != nil {
			return entries, err
		}
	}
	for c, err := range set.Changes(ctx, "v1") {
		if err != nil {
			return entries, err
		}
		if most--; most == 0 {
			_ = c
			break
		}
	}
	return entries, nil
}

// A store with any byte of a manifest or node changed, or cut off, gives an error that
// says that it is damaged, or what it gave before: never less.
func TestDamage(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			files := load(t, "testdata/"+name+"/db")
			want := must.Get(use(t.Context(), files, "", -1))(t)
			damaged := 0
			check := func(what string, off int) {
				t.Helper()
				got, err := use(t.Context(), files, "", -1)
				switch {
				case err == nil:
					if !slices.EqualFunc(got, want, func(a, b refs.Entry) bool {
						return a.Key == b.Key && a.URL == b.URL && a.Offset == b.Offset && bytes.Equal(a.Data, b.Data)
					}) {
						t.Fatalf("%s at %d gives other entries", what, off)
					}
				case !errors.Is(err, formats.ErrFormat) || errors.Is(err, kv.ErrNotFound):
					t.Fatalf("%s at %d: %v", what, off, err)
				default:
					damaged++
				}
			}
			for path, err := range files.List(t.Context(), kv.ListOptions{}) {
				must.Do(t, err)
				good := must.Get(files.Get(t.Context(), path, kv.All()))(t)
				set := func(b []byte) {
					must.Do(t, files.Set(t.Context(), path, b))
				}
				for i := 0; i < len(good); i += 1 + len(good)/12 {
					bad := slices.Clone(good)
					bad[i] ^= 0x10
					set(bad)
					check(path+" changed", i)
					set(good[:i])
					check(path+" cut", i)
				}
				must.Do(t, files.Delete(t.Context(), path))
				if path != manifestName && !strings.HasPrefix(path, numberedName) {
					check(path+" deleted", 0)
				}
				set(good)
			}
			if damaged < 20 {
				t.Errorf("only %d of the changes are an error", damaged)
			}
		})
	}
}

// A numbered manifest may be gone when it is read.
func TestNumberedManifestRemoved(t *testing.T) {
	files := load(t, "testdata/any_keys/db")
	removing := &removingFiles{Mem: files, name: "manifest.000000000000000c"}
	set, err := Open(t.Context(), removing, nil)
	if err != nil || set.Version().ID != "v11" {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := Open(t.Context(), readerOnly{files}, nil); !errors.Is(err, formats.ErrUnsupported) {
		t.Errorf("without a list: %v", err)
	}
	for path := range files.List(t.Context(), kv.ListOptions{Prefix: "manifest.0"}) {
		must.Do(t, files.Delete(t.Context(), path))
	}
	set, err = Open(t.Context(), files, nil)
	if err != nil || set.Version().ID != "" || len(contents(t, files, set)) != 0 {
		t.Errorf("a store without generations: %v, %v", set, err)
	}
	if _, err := Open(t.Context(), files, &formats.Options{Version: "v1"}); !errors.Is(err, formats.ErrNoVersion) {
		t.Error(err)
	}
	if _, err := Open(t.Context(), kv.NewMem(), nil); !errors.Is(err, formats.ErrFormat) {
		t.Error(err)
	}
}

type removingFiles struct {
	*kv.Mem
	name string
}

func (f *removingFiles) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if key == f.name {
		if err := f.Delete(ctx, key); err != nil {
			return nil, err
		}
	}
	return f.Mem.Get(ctx, key, rng)
}

type readerOnly struct{ kv.Reader }

// A few bytes that stand for keys, paths or values of gigabytes are refused before
// memory is reserved.
func TestBombs(t *testing.T) {
	const n = 60_000
	number := binary.AppendUvarint
	column := func(b []byte, n int, v uint64) []byte {
		for range n {
			b = number(b, v)
		}
		return b
	}
	// Keys that share 65,000 bytes with the one before, but for the last.
	keys := number([]byte{0, 0}, n)
	keys = number(column(keys, n-2, 65_000), 0) // prefixes
	keys = number(keys, 65_000)
	keys = column(keys, n-1, 2)
	keys = append(keys, make([]byte, 65_000)...)
	for i := range n - 1 {
		keys = append(keys, byte(i>>8), byte(i))
	}
	keys[len(keys)-2] = 0xff
	paths := number([]byte{0}, n)
	paths = number(column(paths, n-1, 65_000), 65_000)
	paths = column(paths, n-1, 1)
	paths = column(paths, n, 0)
	paths = append(paths, make([]byte, 65_000+n)...)
	zeros, err := zstd.NewWriter(nil)
	must.Do(t, err)
	for name, frame := range map[string][]byte{
		"keys":    encodeFrame(magicNode, keys, nil),
		"paths":   encodeFrame(magicNode, paths, nil),
		"zeros":   encodeFrame(magicNode, make([]byte, 64<<20), zeros),
		"entries": encodeFrame(magicNode, []byte{0, 0, 0xff, 0xff, 0x3f, 0, 0}, nil),
		"values":  encodeFrame(magicNode, append([]byte{0, 0, 1, 1, 'k'}, 0xff, 0xff, 0x3f, 0), nil),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeNode(frame, "", leastNode)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, formats.ErrFormat) || strings.Contains(err.Error(), "inconsistent") {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 8*leastNode {
			t.Errorf("%s: %d bytes for a limit of %d: %v", name, got, leastNode, err)
		}
	}
}
