package index_test

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

func Example() {
	x, err := index.Open("index", &index.Options{FS: vfs.NewMem(), Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := x.NewBatch()
	b.Set(index.SpaceRef, []byte("branch/main"), []byte("c1"))
	b.Set(index.SpaceRef, []byte("tag/v1"), []byte("c0"))
	fmt.Println(b.Commit(true)) // both or none, on disk
	b.Close()

	before := x.Snapshot()
	defer before.Close()
	b = x.NewBatch()
	b.Delete(index.SpaceRef, []byte("tag/v1"))
	fmt.Println(b.Commit(false))
	b.Close()

	for r, err := range x.Scan(index.SpaceRef, nil, nil, false) {
		fmt.Printf("%s %s %v\n", r.Key, r.Value, err)
	}
	v, err := before.Get(index.SpaceRef, []byte("tag/v1"))
	fmt.Printf("%s %v\n", v, err)
	fmt.Println(x.Close())
	// Output:
	// <nil>
	// <nil>
	// branch/main c1 <nil>
	// c0 <nil>
	// <nil>
}
