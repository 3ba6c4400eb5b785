package zarrdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	db, err := zarrdb.Open(ctx, filepath.Join(dir, "weather.zdb"), &zarrdb.Options{Create: true})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	_, err = db.Update(ctx, "main", "first day", func(s *engine.Session) error {
		a, err := s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{3}, DataType: "float32"})
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(), []float32{12.5, 13, 11})
	})
	if err != nil {
		panic(err)
	}
	err = db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "temp")
		if err != nil {
			return err
		}
		temps, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
		fmt.Println(s.Commit().Message, temps)
		return err
	})
	if err != nil {
		panic(err)
	}
	// Output: first day [12.5 13 11]
}

// What README.md shows.
func Example_readme() {
	ctx := context.Background()
	defer chdirTemp()()
	db, err := zarrdb.Open(ctx, "weather.zdb", &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	for _, temps := range [][]float32{{12.5, 13, 11}, {12.5, 14, 11}} {
		_, err := db.Update(ctx, "main", "set temp", func(s *engine.Session) error { // one atomic commit
			a, err := s.Array(ctx, "temp")
			if errors.Is(err, zarrdb.ErrNotFound) {
				a, err = s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{3}, DataType: "float32"})
			}
			check(err)
			return zarr.Write(ctx, a, zarr.Sel(), temps)
		})
		check(err)
	}
	for _, rev := range []string{"main~1", "main"} { // versions never change
		check(db.View(ctx, rev, func(s *engine.Snapshot) error {
			a, err := s.Array(ctx, "temp")
			check(err)
			temps, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
			fmt.Println(rev, temps)
			return err
		}))
	}
	// Output:
	// main~1 [12.5 13 11]
	// main [12.5 14 11]
}

// chdirTemp goes to a new directory, and returns what goes back and removes it.
func chdirTemp() (back func()) {
	was, err := os.Getwd()
	check(err)
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	check(os.Chdir(dir))
	return func() { check(os.Chdir(was)); os.RemoveAll(dir) }
}

// A branch is merged by a command, wherever the database is open. Exit code 3 is a
// conflict.
func ExampleDB_Merge() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	db, err := zarrdb.Open(ctx, dir+"/weather.zdb", &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	set := func(branch string, i int64, v int32) {
		_, err := db.Update(ctx, branch, "set", func(s *engine.Session) error {
			a, err := s.Array(ctx, "n")
			if errors.Is(err, zarrdb.ErrNotFound) {
				a, err = s.CreateArray(ctx, "n", zarr.Spec{Shape: []int64{2}, Chunks: []int64{1}, DataType: "int32"})
			}
			if err != nil {
				return err
			}
			return zarr.Write(ctx, a, zarr.Sel(zarr.At(i)), []int32{v})
		})
		check(err)
	}
	set("main", 0, 1)
	check(db.CreateBranch(ctx, "trial", "main"))
	set("trial", 1, 2) // another chunk than main changes
	set("main", 0, 3)
	c, err := db.Merge(ctx, "main", "trial", engine.CommitOptions{Message: "merge trial"})
	check(err)
	fmt.Println(c.Message, len(c.Parents))
	set("trial", 0, 4) // the same chunk
	set("main", 0, 5)
	_, err = db.Merge(ctx, "main", "trial", engine.CommitOptions{}) // is refused
	var conflict *txn.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println("conflict:", conflict.Conflicts[0].Path)
	}
	c, err = db.Merge(ctx, "main", "trial", engine.CommitOptions{Message: "take trial", Choices: []txn.PathChoice{{Path: "n", Choice: txn.Theirs}}})
	check(err)
	fmt.Println(c.Message)
	// Output:
	// merge trial 2
	// conflict: n/c/0
	// take trial
}

// A selection by labels finds their elements in the coordinates beside the array.
func Example_labels() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	db, err := zarrdb.Open(ctx, dir+"/weather.zdb", &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	_, err = db.Update(ctx, "main", "three days", func(s *engine.Session) error {
		units, err := zarr.ParseAttributes([]byte(`{"units": "days since 2020-01-31"}`))
		if err != nil {
			return err
		}
		spec := zarr.Spec{Shape: []int64{3}, DataType: "int32", DimensionNames: []string{"time"}}
		temp, err := s.CreateArray(ctx, "temp", spec)
		if err != nil {
			return err
		}
		spec.Attributes = units
		time, err := s.CreateArray(ctx, "time", spec)
		if err != nil {
			return err
		}
		return errors.Join(zarr.Write(ctx, time, zarr.Sel(), []int32{0, 1, 2}), zarr.Write(ctx, temp, zarr.Sel(), []int32{280, 281, 282}))
	})
	check(err)
	check(db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "temp")
		if err != nil {
			return err
		}
		february, _, err := cf.ParseSelection(ctx, "time='2020-02'", a, engine.Beside(s, "temp"))
		if err != nil {
			return err
		}
		temps, shape, err := zarr.Read[int32](ctx, a, february)
		fmt.Println(temps, shape)
		return err
	}))
	// Output: [281 282] [2]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
