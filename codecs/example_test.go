package codecs_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The three steps: parse what metadata say, bind it to the chunks of an array,
// run it.
func Example() {
	chain, err := builtin.Registry().ParseV3([]byte(`[
		{"name": "transpose", "configuration": {"order": [1, 0]}},
		{"name": "bytes", "configuration": {"endian": "big"}},
		"crc32c"
	]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, err := chain.Bind(codecs.Rep{Type: dtype.NewInt(16), Shape: []int{2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	elems := []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0} // 1 2 3, 4 5 6
	stored, err := bound.Encode(nil, elems)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("% x\n", stored)

	// The second column, into every other element of an array.
	column := make([]byte, 8)
	box := codecs.Box{Start: []int{0, 1}, Count: []int{2, 1}}
	err = bound.DecodeBox(context.Background(), codecs.Bytes(stored), box, codecs.Dst{Data: column, Strides: []int{4, 2}})
	fmt.Println(column, err)

	stored[3]++
	_, err = bound.Decode(nil, stored)
	fmt.Println(err)

	// Output:
	// 00 01 00 04 00 02 00 05 00 03 00 06 b8 2f 03 a6
	// [2 0 0 0 5 0 0 0] <nil>
	// codecs: corrupt data: crc32c: checksum is 523df9f0, stored is a6032fb8
}

// A program adds a codec of its own to a registry and passes that to the code
// that opens arrays.
func ExampleRegistry_Register() {
	reg := builtin.Registry()
	reg.Register(codecs.Entry{
		V3:   []string{"example.invert"},
		Kind: codecs.BytesToBytes,
		Parse: func(c codecs.Config) (codecs.Codec, error) {
			return invert{}, c.Fields().Err()
		},
	})
	chain, err := reg.ParseV3([]byte(`["bytes", "example.invert"]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, err := chain.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err := bound.Encode(nil, binary.BigEndian.AppendUint32(nil, 0x0f00ff10))
	fmt.Printf("% x %v\n", stored, err)
	// Output: f0 ff 00 ef <nil>
}
