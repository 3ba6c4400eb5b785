// Command follow prints each version of an array that command record writes, until the array is
// full.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func main() {
	ctx := context.Background()
	db, err := zarrdb.Open(ctx, os.Args[1], &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	last, full := "", false
	for !full {
		var fresh []string // commits since the last one, newest first
		for c, err := range db.Log(ctx, "main") {
			check(err)
			if len(c.Parents) == 0 || c.ID.String() == last {
				break
			}
			fresh = append(fresh, c.ID.String())
		}
		for _, id := range slices.Backward(fresh) {
			check(db.View(ctx, id, func(s *engine.Snapshot) error {
				a, err := s.Array(ctx, "temp")
				check(err)
				temps, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
				fmt.Println(s.Commit().Message, temps)
				full = !slices.Contains(temps, 0)
				return err
			}))
			last = id
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
