package zarr_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

func Example() {
	ctx := context.Background()
	store := kv.NewMem()
	a, err := zarr.Create(ctx, store, "weather/temp", zarr.Spec{
		Shape:          []int64{4, 6},
		Chunks:         []int64{2, 3},
		DataType:       "float32",
		DimensionNames: []string{"time", "lon"},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	row := []float32{1, 2, 3, 4, 5, 6}
	if err := zarr.Write(ctx, a, zarr.Sel(zarr.At(1)), row); err != nil {
		log.Fatal(err)
	}
	sel, err := zarr.ParseSelection("time=:2,lon=::-2", a.DimensionNames())
	if err != nil {
		log.Fatal(err)
	}
	values, _, err := zarr.Read[float32](ctx, a, sel)
	if err != nil {
		log.Fatal(err)
	}
	shape, err := a.Resolve(sel)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shape, values)
	stored, err := a.NChunksInitialised(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored, "chunks are stored")
	// Output:
	// [2 3] [0 0 0 6 4 2]
	// 2 chunks are stored
}

func ExampleWalk() {
	ctx := context.Background()
	store := kv.NewMem()
	for _, path := range []string{"a/x", "a/y", "b"} {
		if _, err := zarr.Create(ctx, store, path, zarr.Spec{Shape: []int64{3}, DataType: "int8"}, nil); err != nil {
			log.Fatal(err)
		}
	}
	for n, err := range zarr.Walk(ctx, store, "", nil) {
		if err != nil {
			log.Fatal(err)
		}
		if a, ok := n.Array(); ok {
			fmt.Printf("/%s: %v of shape %v\n", n.Path(), a.Type(), a.Shape())
		} else {
			fmt.Printf("/%s: group\n", n.Path())
		}
	}
	// Output:
	// /: group
	// /a: group
	// /a/x: int8 of shape [3]
	// /a/y: int8 of shape [3]
	// /b: int8 of shape [3]
}

func ExampleOrthogonal() {
	ctx := context.Background()
	a, err := zarr.Create(ctx, kv.NewMem(), "a", zarr.Spec{Shape: []int64{3, 4}, DataType: "int16"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := zarr.Write(ctx, a, zarr.Sel(), []int16{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}); err != nil {
		log.Fatal(err)
	}
	outer, _, err := zarr.Read[int16](ctx, a, zarr.Orthogonal(zarr.List(2, 0), zarr.List(1, 1, 3)))
	if err != nil {
		log.Fatal(err)
	}
	points, _, err := zarr.Read[int16](ctx, a, zarr.Points([]int64{2, 0}, []int64{1, 3}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outer, points)
	// Output:
	// [21 21 23 1 1 3] [21 3]
}

func ExampleArray_Resize() {
	ctx := context.Background()
	a, err := zarr.Create(ctx, kv.NewMem(), "a", zarr.Spec{Shape: []int64{2}, DataType: "int8"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.Resize(ctx, []int64{5}, zarr.ResizeOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Shape())
	_, _, err = zarr.Read[int8](ctx, a, zarr.Sel(zarr.At(5)))
	fmt.Println(errors.Is(err, zarr.ErrSelection), err)
	// Output:
	// [5]
	// true read a: zarr: bad selection: index 5 of dimension 0, which has length 5
}

// Read gives the shape of what was read, and numbers of fewer bits as wider ones.
func ExampleRead() {
	ctx := context.Background()
	a, err := zarr.Create(ctx, kv.NewMem(), "a", zarr.Spec{Shape: []int64{2, 3}, DataType: "int16"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := zarr.Write(ctx, a, zarr.Sel(), []int16{0, 1, 2, 10, 11, 12}); err != nil {
		log.Fatal(err)
	}
	data, shape, err := zarr.Read[float64](ctx, a, zarr.Sel(zarr.All(), zarr.Slice(1, 3, 1)))
	fmt.Println(data, shape, err)
	_, _, err = zarr.Read[int8](ctx, a, zarr.Sel())
	fmt.Println(errors.Is(err, zarr.ErrType))
	// Output:
	// [1 2 11 12] [2 2] <nil>
	// true
}

// A selection is read part by part, so that it may be larger than memory.
func ExampleArray_Parts() {
	ctx := context.Background()
	a, err := zarr.Create(ctx, kv.NewMem(), "a", zarr.Spec{Shape: []int64{2, 3}, DataType: "int16"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for p, err := range a.Parts(zarr.Sel(), 6) {
		fmt.Println(p.Selection, p.Shape, err)
	}
	// Output:
	// orthogonal 0:1,0:3 [1 3] <nil>
	// orthogonal 1:2,0:3 [1 3] <nil>
}
