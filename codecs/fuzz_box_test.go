package codecs_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ranges is a Source that is not in memory, so that parts are read.
type ranges []byte

func (r ranges) Size() int64 { return int64(len(r)) }
func (r ranges) Gap() int64  { return 1 }

func (r ranges) ReadRange(_ context.Context, off, n int64, fn func([]byte) error) error {
	if off < 0 || n < 0 || off > int64(len(r)) || n > int64(len(r))-off {
		panic("a range outside the value")
	}
	return fn(bytes.Clone(r[off : off+n]))
}

// farRanges is a Source of which several ranges are read at a time.
type farRanges struct{ ranges }

func (farRanges) ReadsRanges() bool { return true }

func (r farRanges) ReadRanges(ctx context.Context, list []codecs.Extent, fn func(i int, b []byte) error) error {
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, x := range list {
		wg.Go(func() {
			errs[i] = r.ReadRange(ctx, x.Off, x.N, func(b []byte) error { return fn(i, b) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// FuzzBox compares a part of a chunk, read from parts of its bytes, with the
// same part of the whole: what decodes as a whole decodes in part, to the same
// elements. What does not may still have parts that do, if they are elsewhere.
func FuzzBox(f *testing.F) {
	var bound []*codecs.Bound
	for i, list := range []string{
		`[` + little + `]`,
		`[` + big + `,"crc32c"]`,
		`[` + transpose(`[1,0]`) + `,` + big + `]`,
		`[` + little + `,` + blosc("lz4", "shuffle", 2, 128) + `]`,
		`[` + little + `,` + blosc("zstd", "bitshuffle", 2, 128) + `]`,
		`[` + shard(`[4,8]`, little+`,`+zstd3, indexCRC, "end") + `]`,
		`[` + shard(`[4,8]`, big, `[`+big+`]`, "start") + `]`,
		`[` + shard(`[8,16]`, transpose(`[1,0]`)+`,`+shard(`[4,8]`, little+`,`+blosc("lz4", "noshuffle", 2, 0), indexCRC, "start"), indexCRC, "end") + `]`,
		`[` + little + `,` + gzip5 + `]`,
	} {
		b := bind(f, list, dtype.NewInt(16), []int{16, 32}, []byte{7, 0})
		bound = append(bound, b)
		stored, err := b.Encode(nil, ramp(16*32/2))
		if err != nil {
			f.Fatal(list, err)
		}
		f.Add(byte(i), stored, byte(3), byte(5), byte(7), byte(9))
		f.Add(byte(i), stored, byte(0), byte(0), byte(15), byte(0))
		f.Add(byte(i), stored[:len(stored)-1], byte(8), byte(0), byte(2), byte(31))
	}
	f.Fuzz(func(t *testing.T, which byte, stored []byte, y, x, h, w byte) {
		b := bound[int(which)%len(bound)]
		box := codecs.Box{Start: []int{int(y) % 16, int(x) % 32}}
		box.Count = []int{int(h) % (17 - box.Start[0]), int(w) % (33 - box.Start[1])}
		whole, err := b.Decode(nil, stored)
		part, partErr := b.AppendBox(t.Context(), nil, ranges(stored), box)
		far, farErr := b.AppendBox(t.Context(), nil, farRanges{ranges(stored)}, box)
		if box.Count[0] > 0 && box.Count[1] > 0 && b.InStrips() { // whatever it finds, it ends
			_ = b.DecodeStrips(t.Context(), ranges(stored), box, 200, func(codecs.Box, codecs.Src) error { return nil })
		}
		memory, memoryErr := b.AppendBox(t.Context(), nil, codecs.Bytes(stored), box)
		for _, err := range []error{err, partErr, farErr, memoryErr} {
			if err != nil && !errors.Is(err, codecs.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		if err != nil {
			return
		}
		if partErr != nil || farErr != nil || memoryErr != nil {
			t.Fatalf("the whole can be read, the box %v not: %v, %v, %v", box, partErr, farErr, memoryErr)
		}
		var want []byte
		for r := range box.Count[0] {
			at := 2 * (32*(box.Start[0]+r) + box.Start[1])
			want = append(want, whole[at:at+2*box.Count[1]]...)
		}
		if !bytes.Equal(part, want) || !bytes.Equal(far, want) || !bytes.Equal(memory, want) {
			t.Fatalf("box %v is other elements", box)
		}
	})
}
