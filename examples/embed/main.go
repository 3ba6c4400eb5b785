// Command embed keeps a versioned array in a database of its own.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func main() {
	dir, err := os.MkdirTemp("", "embed-")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := zarrdb.Open(ctx, dir+"/weather.zdb", &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	for day, temps := range [][]float32{{12.5, 13, 11}, {14, 15.5, 13}} {
		_, err := db.Update(ctx, "main", fmt.Sprintf("day %d", day), func(s *engine.Session) error {
			a, err := s.Array(ctx, "temp")
			if day == 0 { // the first day makes the array
				a, err = s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{2, 3}, DataType: "float32"})
			}
			if err != nil {
				return err
			}
			return zarr.Write(ctx, a, zarr.Sel(zarr.At(int64(day))), temps)
		})
		check(err)
	}
	for _, rev := range []string{"main~1", "main"} { // yesterday's version and today's
		check(db.View(ctx, rev, func(s *engine.Snapshot) error {
			a, err := s.Array(ctx, "temp")
			check(err)
			temps, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
			fmt.Println(rev, temps)
			return err
		}))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
