package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// A damaged chunk is an error of the array that names path, chunk, version,
// pack and offset; the other chunks are read.
func TestDamagedChunkIsNamed(t *testing.T) {
	dir := t.TempDir() + "/t.zdb"
	db := must.Get(Open(bg, dir, &Options{Create: true, CacheBytes: -1, Author: "tester"}))(t)
	defer db.Close()
	id := commit(t, db, "main", "array", func(s *Session) error {
		spec := line(2048, 1024)
		spec.Codecs = []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)
		return create(s, "g/temp", spec)
	})
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	if err != nil || r.Found > 0 || r.Payloads != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	packs, err := filepath.Glob(dir + "/packs/*.pack")
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	b := must.Get(os.ReadFile(packs[0]))(t)
	// The elements 1024, 1025 … begin the second chunk.
	offset := strings.Index(string(b), "\x00\x04\x00\x00\x01\x04\x00\x00")
	if offset < 0 {
		t.Fatal("the second chunk is not in the pack")
	}
	b[offset+100] ^= 1
	must.Do(t, os.WriteFile(packs[0], b, 0o666))
	a := array(t, at(t, db, ""), "g/temp")
	if v, _, err := zarr.Read[int32](bg, a, zarr.Sel(zarr.Slice(0, 1024, 1))); err != nil || v[7] != 7 {
		t.Errorf("the first chunk: %v", err)
	}
	_, _, err = zarr.Read[int32](bg, a, zarr.Sel(zarr.Slice(1000, 1100, 1)))
	if !errors.Is(err, kv.ErrCorrupt) || !errors.Is(err, zarr.ErrCorrupt) {
		t.Fatalf("the second chunk: %v", err)
	}
	name := strings.TrimSuffix(filepath.Base(packs[0]), ".pack")
	for _, word := range []string{"g/temp", "c/1", id.Short(), name, fmt.Sprint(offset)} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
}
