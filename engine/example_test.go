package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// exampleDB makes a database with the array temp, and returns what removes it.
func exampleDB(ctx context.Context) (*engine.DB, func()) {
	dir, err := os.MkdirTemp("", "zarrdb")
	if err != nil {
		log.Fatal(err)
	}
	db, err := engine.Open(ctx, filepath.Join(dir, "weather.zdb"), &engine.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	_, err = db.Update(ctx, "main", "add temp", func(s *engine.Session) error {
		a, err := s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{4}, Chunks: []int64{2}, DataType: "float32"})
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(), []float32{1, 2, 3, 4})
	})
	if err != nil {
		log.Fatal(err)
	}
	return db, func() { db.Close(); os.RemoveAll(dir) }
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "zarrdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := engine.Open(ctx, filepath.Join(dir, "weather.zdb"), &engine.Options{Create: true, LockWait: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	_, err = engine.Open(ctx, db.Dir(), nil) // one process, one DB
	fmt.Println(errors.Is(err, engine.ErrLocked))
	// Output: true
}

func ExampleDB_Update() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	c, err := db.Update(ctx, "main", "correct one value", func(s *engine.Session) error {
		a, err := s.Array(ctx, "temp")
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(zarr.At(3)), []float32{5})
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := db.Versions().Lookup(ctx, c.ID)
	fmt.Println(found.Message, len(found.Parents), err)
	// Output: correct one value 1 <nil>
}

func ExampleDB_Retry() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	calls := 0
	add := func(s *engine.Session) error {
		calls++
		a, err := s.Array(ctx, "temp")
		if err != nil {
			return err
		}
		v, _, err := zarr.Read[float32](ctx, a, zarr.Sel(zarr.At(0)))
		if err != nil {
			return err
		}
		if calls == 1 { // another program is faster
			if _, err := db.Retry(ctx, "main", "theirs", func(s *engine.Session) error {
				a, err := s.Array(ctx, "temp")
				if err != nil {
					return err
				}
				return zarr.Write(ctx, a, zarr.Sel(zarr.At(0)), []float32{v[0] + 10})
			}); err != nil {
				return err
			}
		}
		return zarr.Write(ctx, a, zarr.Sel(zarr.At(0)), []float32{v[0] + 100})
	}
	_, err := db.Update(ctx, "main", "mine", add)
	fmt.Println(errors.Is(err, engine.ErrConflict))
	_, err = db.Retry(ctx, "main", "mine", add)
	fmt.Println(err)
	err = db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "temp")
		if err != nil {
			return err
		}
		v, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
		fmt.Println(v)
		return err
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
	// [111 2 3 4]
	// <nil>
}
