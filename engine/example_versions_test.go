package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// set writes one element of temp in a commit on a branch.
func set(ctx context.Context, db *engine.DB, branch string, i int64, v float32) {
	_, err := db.Update(ctx, branch, fmt.Sprintf("temp[%d] = %v", i, v), func(s *engine.Session) error {
		return write(ctx, s, i, v)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// temp reads the array temp of a version.
func temp(ctx context.Context, db *engine.DB, rev string) (v []float32) {
	err := db.View(ctx, rev, func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "temp")
		if err == nil {
			v, _, err = zarr.Read[float32](ctx, a, zarr.Sel())
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func ExampleDB_At() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	set(ctx, db, "main", 0, 10)
	set(ctx, db, "main", 0, 20)
	head, err := db.Head(ctx, "main")
	if err != nil {
		log.Fatal(err)
	}
	for c, err := range db.Versions().Log(ctx, head) {
		if err != nil {
			log.Fatal(err)
		}
		if len(c.Parents) > 0 { // the first commit of a database is empty
			fmt.Println(c.Message, temp(ctx, db, c.ID.String()))
		}
	}
	fmt.Println(temp(ctx, db, "main~1"))
	// Output:
	// temp[0] = 20 [20 2 3 4]
	// temp[0] = 10 [10 2 3 4]
	// add temp [1 2 3 4]
	// [10 2 3 4]
}

func ExampleDB_Merge() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	merge := func() error {
		fix, err := db.Head(ctx, "fix")
		if err != nil {
			return err
		}
		_, err = db.Versions().Merge(ctx, "main", fix, engine.CommitOptions{Message: "take the fix"})
		return err
	}
	head, err := db.Head(ctx, "main")
	if err == nil {
		err = db.Versions().CreateBranch(ctx, "fix", head)
	}
	if err != nil {
		log.Fatal(err)
	}
	set(ctx, db, "main", 0, 10) // in the first chunk
	set(ctx, db, "fix", 3, 40)  // in the second one
	fmt.Println(merge(), temp(ctx, db, "main"))

	set(ctx, db, "main", 2, 30)
	set(ctx, db, "fix", 3, 41)
	var c *engine.ConflictError
	if errors.As(merge(), &c) {
		fmt.Println(c.Conflicts[0].Path, c.Conflicts[0].Coords)
	}
	// Output:
	// <nil> [10 2 3 40]
	// temp/c/1 [1]
}

func ExampleDB_NodeChanges() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	before, err := db.Head(ctx, "main")
	if err != nil {
		log.Fatal(err)
	}
	c, err := db.Update(ctx, "main", "move temp", func(s *engine.Session) error {
		return s.Rename(ctx, "temp", "surface/t2m")
	})
	if err != nil {
		log.Fatal(err)
	}
	changes, err := db.NodeChanges(ctx, before, c.ID, "")
	for _, n := range changes {
		fmt.Println(n.Kind, n.Path)
	}
	fmt.Println(err)
	// Output:
	// added surface
	// renamed surface/t2m
	// <nil>
}

func ExampleDB_Begin() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	s, err := db.Begin(ctx, "main")
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Remove(ctx, "temp"); err != nil {
		log.Fatal(err)
	}
	if err := s.Detach(ctx); err != nil { // it stays in the database, for any process
		log.Fatal(err)
	}
	again, err := db.Resume(ctx, s.ID())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Abort(), temp(ctx, db, "main"))
	// Output: <nil> [1 2 3 4]
}
