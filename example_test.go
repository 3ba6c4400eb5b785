package zarrdb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/zarr"
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
	_, err = db.Update(ctx, "main", "first day", func(s *zarrdb.Session) error {
		a, err := s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{3}, DataType: "float32"})
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(), []float32{12.5, 13, 11})
	})
	if err != nil {
		panic(err)
	}
	err = db.View(ctx, "main", func(s *zarrdb.Snapshot) error {
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
