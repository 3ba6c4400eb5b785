// Command record writes temperatures into an array, each as a commit, while command follow
// reads them from the same database:
//
//	record weather.zdb & follow weather.zdb
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func main() {
	ctx := context.Background()
	// The program that comes first has the database open; the other one joins it.
	db, err := zarrdb.Open(ctx, os.Args[1], &zarrdb.Options{Create: true})
	check(err)
	defer db.Close()
	temps := []float32{20, 20.5, 21.5, 21, 19.5}
	for i := range temps {
		_, err := db.Update(ctx, "main", fmt.Sprintf("reading %d", i), func(s *engine.Session) error {
			a, err := s.Array(ctx, "temp")
			if i == 0 { // the first reading makes the array
				a, err = s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{int64(len(temps))}, DataType: "float32"})
			}
			if err != nil {
				return err
			}
			return zarr.Write(ctx, a, zarr.Sel(zarr.At(int64(i))), temps[i:i+1])
		})
		check(err)
		time.Sleep(100 * time.Millisecond)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
