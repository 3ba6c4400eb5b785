package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

func ExampleDB_Import() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	store := engine.Memory("import") // any URL does: a directory, a zip, a bucket, …
	a, err := zarr.Create(ctx, store, "", zarr.Spec{Version: zarr.V2, Shape: []int64{3}, DataType: "int16"}, nil)
	if err == nil {
		err = zarr.Write(ctx, a, zarr.Sel(), []int16{7, 8, 9})
	}
	if err != nil {
		log.Fatal(err)
	}
	src, err := engine.OpenSource(ctx, "memory:import/", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	r, err := db.Import(ctx, src, engine.ImportOptions{To: "counts", Message: "import counts"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Nodes, r.Commit.Message)
	// Output: 1 import counts
}

func ExampleExport() {
	ctx := context.Background()
	db, remove := exampleDB(ctx)
	defer remove()
	// A source opens the database itself; this process has it open already.
	o := &engine.SourceOptions{Open: func(_ context.Context, _ string, o *engine.Options) (*engine.DB, error) { return db.Handle(o) }}
	src, err := engine.OpenDatabaseSource(ctx, db.Dir(), "main", "", "temp", o)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	if _, err := engine.Export(ctx, src, "memory:export/", engine.ExportOptions{Format: zarr.V2}); err != nil {
		log.Fatal(err)
	}
	a, err := zarr.OpenArray(ctx, engine.Memory("export"), "", nil)
	if err != nil {
		log.Fatal(err)
	}
	v, _, err := zarr.Read[float32](ctx, a, zarr.Sel())
	fmt.Println(a.Meta().Version, v, err)
	// Output: 2 [1 2 3 4] <nil>
}
