package zarrdb_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkWriteBeside writes in the process that has a database open, and in another one.
func BenchmarkWriteBeside(b *testing.B) {
	const side = 64 << 20 // float32: 256 MiB
	v := make([]float32, side)
	for i := range v {
		v[i] = float32(i*7919%100003) / 3
	}
	codecs := map[string][]byte{
		"raw": []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`),
		"lz4": []byte(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"numcodecs.lz4"}]`),
	}
	work := func(b *testing.B, db *zarrdb.DB, where string) {
		update := func(b *testing.B, fn func(s *zarrdb.Session) error) {
			b.Helper()
			if _, err := db.Update(bg, "", "more", fn); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		b.Run("commit", func(b *testing.B) {
			for range b.N {
				n++
				update(b, func(s *zarrdb.Session) error { return s.Set(bg, "k", fmt.Appendf(nil, "%01024d", n)) })
			}
		})
		for name, codec := range codecs {
			b.Run(name, func(b *testing.B) {
				b.SetBytes(4 * side)
				for range b.N {
					n++
					v[0] = float32(n)
					for i := 0; i < side; i += 1 << 20 {
						v[i] += 0.5
					}
					update(b, func(s *zarrdb.Session) error {
						a, err := s.CreateArray(bg, fmt.Sprint(where, name, n), zarr.Spec{Shape: []int64{side}, Chunks: []int64{1 << 20}, DataType: "float32", Codecs: codec})
						if err != nil {
							return err
						}
						return zarr.Write(bg, a, zarr.Sel(), v)
					})
				}
			})
		}
		b.Run("parts", func(b *testing.B) { // of chunks
			for range b.N {
				n++
				update(b, func(s *zarrdb.Session) error {
					a, err := s.CreateArray(bg, fmt.Sprint(where, "p", n), zarr.Spec{Shape: []int64{1 << 20}, Chunks: []int64{1 << 16}, DataType: "float32"})
					if err != nil {
						return err
					}
					for i := int64(0); i < 1<<20; i += 1 << 14 {
						if err := zarr.Write(bg, a, zarr.Sel(zarr.Slice(i, i+1<<14, 1)), v[:1<<14]); err != nil {
							return err
						}
					}
					return nil
				})
			}
		})
		b.Run("link", func(b *testing.B) { // a million references
			for range b.N {
				n++
				update(b, func(s *zarrdb.Session) error {
					path := fmt.Sprint(where, "l", n)
					if _, err := s.CreateArray(bg, path, zarr.Spec{Shape: []int64{1000, 1000}, Chunks: []int64{1, 1}, DataType: "uint8"}); err != nil {
						return err
					}
					w, err := s.Bulk(bg, path, true)
					if err != nil {
						return err
					}
					for i := range uint64(1_000_000) {
						if err := w.SetVirtual(bg, fmt.Sprintf("c/%d/%d", i/1000, i%1000), tree.Source{URL: "file:///data/x.bin"}, i, 1); err != nil {
							return err
						}
					}
					return w.Finish(bg)
				})
			}
		})
		s, err := db.Begin(bg, "")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = s.Abort() }()
		a, err := s.CreateArray(bg, "read", zarr.Spec{Shape: []int64{4 << 20}, Chunks: []int64{1 << 18}, DataType: "float32"})
		if err == nil {
			err = zarr.Write(bg, a, zarr.Sel(), v[:4<<20])
		}
		if err != nil {
			b.Fatal(err)
		}
		for name, sel := range map[string]zarr.Selection{"read all": zarr.Sel(), "read element": zarr.Sel(zarr.At(77))} {
			b.Run(name, func(b *testing.B) {
				for range b.N {
					if _, _, err := zarr.Read[float32](bg, a, sel); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	dir := filepath.Join(b.TempDir(), "w.zdb")
	db, err := zarrdb.Open(bg, dir, &zarrdb.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("holder", func(b *testing.B) { work(b, db, "h") })
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	_, end := holder(b, dir)
	defer end()
	if db, err = zarrdb.Open(bg, dir, nil); err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.Run("beside", func(b *testing.B) { work(b, db, "p") })
}
