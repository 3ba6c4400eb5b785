package zarrdb_test

import (
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkBeside reads in the process that has a database open, and in another one.
func BenchmarkBeside(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "w.zdb")
	db, err := zarrdb.Open(bg, dir, &zarrdb.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	shape := []int64{64, 256, 256} // 16 MiB of float32
	_, err = db.Update(bg, "", "field", func(s *zarrdb.Session) error {
		a, err := s.CreateArray(bg, "t", zarr.Spec{Shape: shape, Chunks: []int64{64, 32, 32}, DataType: "float32"})
		if err != nil {
			return err
		}
		v := make([]float32, 64*256*256)
		for i := range v {
			v[i] = float32(i % 1000)
		}
		return zarr.Write(bg, a, zarr.Sel(), v)
	})
	if err != nil {
		b.Fatal(err)
	}
	reads := func(b *testing.B, db *zarrdb.DB) {
		s, err := db.At(bg, "main")
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		a, err := s.Array(bg, "t")
		if err != nil {
			b.Fatal(err)
		}
		for name, sel := range map[string]zarr.Selection{
			"series": zarr.Sel(zarr.All(), zarr.At(100), zarr.At(100)), "element": zarr.Sel(zarr.At(1), zarr.At(100), zarr.At(100)), "all": zarr.Sel(),
		} {
			b.Run(name, func(b *testing.B) {
				for range b.N {
					if _, _, err := zarr.Read[float32](bg, a, sel); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run("open", func(b *testing.B) {
			for range b.N {
				s, err := db.At(bg, "main")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Array(bg, "t"); err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
			}
		})
	}
	b.Run("holder", func(b *testing.B) { reads(b, db) })
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	_, end := holder(b, dir)
	defer end()
	if db, err = zarrdb.Open(bg, dir, nil); err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.Run("beside", func(b *testing.B) { reads(b, db) })
}
