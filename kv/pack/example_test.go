package pack_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/pack"
)

func Example() {
	ctx := context.Background()
	o := &pack.Options{FS: vfs.NewMem(), Incarnation: [8]byte{1}}
	s, err := pack.Open("packs", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := s.Append(ctx, pack.Owner{Key: []byte("temp/c/0/0")}, []byte("bytes of a chunk"))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The ends go into the index together with the address.
	infos, err := s.Sync(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Recorded(infos)
	err = s.View(ctx, a, 9, 7, func(b []byte) error {
		fmt.Printf("%s\n", b)
		return nil
	})
	fmt.Println(err, s.Durable(a))
	for r, err := range s.Records(ctx, a.Pack, 0) {
		fmt.Printf("%s %v\n", r.Owner.Key, err)
	}
	fmt.Println(s.Close())
	// Output:
	// a chunk
	// <nil> true
	// temp/c/0/0 <nil>
	// <nil>
}
