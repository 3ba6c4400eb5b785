package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// write is set in a session.
func write(ctx context.Context, s *engine.Session, i int64, v float32) error {
	a, err := s.Array(ctx, "temp")
	if err != nil {
		return err
	}
	return zarr.Write(ctx, a, zarr.Sel(zarr.At(i)), []float32{v})
}

// A session guards the arrays that its result depends on. If another writer changes a guarded array before
// the commit, the commit is a conflict, although the session wrote elsewhere.
func ExampleSession_Guard() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	s, err := db.Begin(ctx, "main")
	if err == nil {
		err = s.Guard(ctx, "temp")
	}
	if err == nil {
		_, err = s.CreateGroup(ctx, "mean", zarr.V3, zarr.Attributes{})
	}
	if err != nil {
		log.Fatal(err)
	}
	set(ctx, db, "main", 0, 10) // another writer
	_, err = s.Commit(ctx, engine.CommitOptions{Message: "the mean of temp"})
	var c *engine.ConflictError
	fmt.Println(errors.As(err, &c), s.Abort())
	// Output: true <nil>
}

// Workers write into forks of one session, and one commit publishes what all of them wrote.
func ExampleSession_Fork() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	_, err := db.Update(ctx, "main", "two workers", func(s *engine.Session) error {
		for i := range int64(2) {
			f, err := s.Fork(ctx) // a worker in another process resumes it by f.ID()
			if err == nil {
				err = write(ctx, f, 2*i, 100)
			}
			if err == nil {
				err = s.Join(ctx, f, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(err, temp(ctx, db, "main"))
	// Output: <nil> [100 2 100 4]
}

func ExampleDB_Push() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	dir := filepath.Join(filepath.Dir(db.Dir()), "copy.zdb")
	if _, err := db.Clone(ctx, dir, txn.TransferOptions{}); err != nil {
		log.Fatal(err)
	}
	copied, err := engine.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer copied.Close()
	set(ctx, db, "main", 0, 10)
	if _, err := db.Push(ctx, copied, txn.TransferOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(temp(ctx, copied, "main"))

	set(ctx, copied, "main", 1, 20)
	_, err = db.Pull(ctx, copied, txn.TransferOptions{})
	fmt.Println(err, temp(ctx, db, "main"))
	// Output:
	// [10 2 3 4]
	// <nil> [10 20 3 4]
}

// Versions are let go by age or number, and a collection gives their space back.
func ExampleDB_Expire() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	for i := range 5 {
		set(ctx, db, "main", 0, float32(i))
	}
	r, err := db.Expire(ctx, txn.ExpireOptions{Keep: 2})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.GC(ctx, txn.GCOptions{}); err != nil {
		log.Fatal(err)
	}
	_, err = db.At(ctx, "main~3")
	fmt.Println(r.Expired > 0, errors.Is(err, engine.ErrNotFound), temp(ctx, db, "main~1"))
	// Output: true true [3 2 3 4]
}

// A reference set opens without a database: its arrays read the files that the references name.
func ExampleOpenSource() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "refs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	set := `{"version": 1, "refs": {
		".zarray": "{\"zarr_format\":2,\"shape\":[2],\"chunks\":[2],\"dtype\":\"<i2\",\"compressor\":null,\"fill_value\":0,\"filters\":null,\"order\":\"C\"}",
		"0": ["values.bin", 1, 4]}}`
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "set.json"), []byte(set), 0o600),
		os.WriteFile(filepath.Join(dir, "values.bin"), []byte{0, 7, 0, 8, 0}, 0o600))
	if err != nil {
		log.Fatal(err)
	}
	src, err := engine.OpenSource(ctx, filepath.Join(dir, "set.json"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	n, err := src.Node(ctx)
	if err != nil {
		log.Fatal(err)
	}
	a, _ := n.Array()
	v, _, err := zarr.Read[int16](ctx, a, zarr.Sel())
	fmt.Println(v, err)
	// Output: [7 8] <nil>
}
