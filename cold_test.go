package zarrdb_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkCold reads many nodes, chunks and differences with empty caches, in the process
// that has a database open and in another one.
func BenchmarkCold(b *testing.B) {
	const nodes, side, commits = 10_000, 1000, 20_000
	dir := filepath.Join(b.TempDir(), "w.zdb")
	db, err := zarrdb.Open(bg, dir, &zarrdb.Options{Create: true, Engine: engine.Options{Durability: txn.DurabilityNone}})
	if err != nil {
		b.Fatal(err)
	}
	update := func(fn func(s *zarrdb.Session) error) {
		if _, err := db.Update(bg, "", "more", fn); err != nil {
			b.Fatal(err)
		}
	}
	spec := zarr.Spec{Shape: []int64{side, side}, Chunks: []int64{1, 1}, DataType: "uint8"}
	update(func(s *zarrdb.Session) error {
		for i := range nodes {
			if _, err := s.CreateArray(bg, fmt.Sprintf("many/a%05d", i), spec); err != nil {
				return err
			}
		}
		a, err := s.CreateArray(bg, "grid", spec)
		if err != nil {
			return err
		}
		v := make([]uint8, side*side)
		for i := range v {
			v[i] = uint8(1 + i%200)
		}
		return zarr.Write(bg, a, zarr.Sel(), v)
	})
	update(func(s *zarrdb.Session) error {
		a, err := s.Array(bg, "grid")
		for i := int64(0); i < side && err == nil; i += side / 10 {
			err = zarr.Write(bg, a, zarr.Sel(zarr.All(), zarr.At(i)), bytes.Repeat([]byte{250}, side))
		}
		return err
	})
	work := map[string]func(db *zarrdb.DB, s *zarrdb.Snapshot) (n int, err error){
		"walk": func(_ *zarrdb.DB, s *zarrdb.Snapshot) (n int, err error) {
			for _, err := range s.Walk(bg, "many") {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n - nodes - 1, nil
		},
		"list": func(_ *zarrdb.DB, s *zarrdb.Snapshot) (n int, err error) {
			for _, err := range s.List(bg, kv.ListOptions{Prefix: "many/"}) {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n - nodes - 1, nil
		},
		"chunks": func(_ *zarrdb.DB, s *zarrdb.Snapshot) (n int, err error) {
			for _, err := range s.List(bg, kv.ListOptions{Prefix: "grid/c/"}) {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n - side*side, nil
		},
		"diff": func(db *zarrdb.DB, s *zarrdb.Snapshot) (n int, err error) {
			for _, err := range db.Diff(bg, "main~1", "main", "") {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n - 10*side, nil
		},
		"log": func(db *zarrdb.DB, _ *zarrdb.Snapshot) (n int, err error) {
			for _, err := range db.Log(bg, "long") {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n - commits - 3, nil
		},
	}
	run := func(b *testing.B) {
		for _, name := range []string{"walk", "list", "chunks", "diff", "log"} {
			b.Run(name, func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					db, err := zarrdb.Open(bg, dir, nil)
					if err != nil {
						b.Fatal(err)
					}
					s, err := db.At(bg, "main")
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					if n, err := work[name](db, s); err != nil || n != 0 {
						b.Fatal(n, err)
					}
					b.StopTimer()
					_ = s.Close()
					_ = db.Close()
					b.StartTimer()
				}
			})
		}
	}
	if err := db.CreateBranch(bg, "long", "main"); err != nil {
		b.Fatal(err)
	}
	for i := range commits {
		if _, err := db.Update(bg, "long", "more", func(s *zarrdb.Session) error { return s.Set(bg, "n", []byte{byte(i), byte(i >> 8)}) }); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("holder", run)
	_, end := holder(b, dir)
	defer end()
	b.Run("beside", run)
}
