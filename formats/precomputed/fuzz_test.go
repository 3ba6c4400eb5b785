package precomputed

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Compressed Morton codes are those of the specification, each cell of a grid has its
// own, and the cell is found again.
func TestMorton(t *testing.T) {
	// The example of the specification: 16 bits of x, 14 of y, 24 of z.
	large := [4]int64{1 << 16, 1 << 14, 1 << 24, 1}
	for cell, want := range map[[3]int64]uint64{
		{1, 0, 0}:       1,
		{0, 1, 0}:       2,
		{0, 0, 1}:       4,
		{2, 0, 0}:       8,
		{1 << 15, 0, 0}: 1 << 44,
		{0, 1 << 13, 0}: 1 << 40,
		{0, 0, 1 << 14}: 1 << 43,
		{0, 0, 1 << 23}: 1 << 53,
	} {
		if got := morton(large, cell); got != want {
			t.Errorf("%v: %#x, want %#x", cell, got, want)
		}
	}
	if n := mortonBits(large); n != 54 {
		t.Errorf("%d bits, want 54", n)
	}
	counts := [4]int64{5, 1, 9, 1}
	seen := map[uint64]bool{}
	for x := range counts[0] {
		for z := range counts[2] {
			cell := [3]int64{x, 0, z}
			id := morton(counts, cell)
			if seen[id] || id >= 1<<mortonBits(counts) {
				t.Errorf("%v: %#x again, or too large", cell, id)
			}
			seen[id] = true
			if back := unmorton(counts, id); back != cell {
				t.Errorf("%v: %v", cell, back)
			}
		}
	}
	if cell := unmorton(counts, 1<<60); cell[0] < counts[0] {
		t.Errorf("a code that is none is %v", cell)
	}
}

// Damaged infos give an error, or documents that the parser of Zarr takes or refuses.
func FuzzInfo(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(info, oneScale("k", "")+","+oneScale("l", ""))))
	f.Add([]byte(strings.Replace(fmt.Sprintf(info, oneScale("k", "")+","+oneScale("l", "")), "{", "{\"note\":\"\xba\",", 1)))
	for _, name := range volumes {
		text := must.Get(os.ReadFile("testdata/" + name + "/vol/info"))(f)
		f.Add(text)
	}
	reg := registry()
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parseInfo(text)
		if err != nil {
			return
		}
		for _, s := range v.Scales {
			_, _ = meta.ParseV3(v.array(s, ""), reg)
			coords := []int64{0, 0, 0, 0}
			if s.counts[0] > 0 && s.counts[1] > 0 && s.counts[2] > 0 {
				if back, ok := s.parseFileName(s.fileName(coords)); !ok || !slices.Equal(back, coords) {
					t.Fatalf("file %q: %v, %v", s.fileName(coords), back, ok)
				}
			}
		}
		if len(v.Scales) > 1 {
			if _, err := meta.ParseV3(v.group(), reg); err != nil && !strings.Contains(err.Error(), "attributes") {
				t.Fatal(err)
			}
		}
	})
}

// Damaged minishard indexes give an error, or chunks in the order of their IDs.
func FuzzMinishard(f *testing.F) {
	le := binary.LittleEndian
	good := []byte{}
	for _, n := range []uint64{1, 4, 0, 16, 10, 20} {
		good = le.AppendUint64(good, n)
	}
	f.Add(good)
	f.Add([]byte("no multiple of 24"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseMinishard(b, 64)
		if err != nil {
			return
		}
		if len(p.chunks) != len(b)/24 || !slices.IsSortedFunc(p.chunks, func(a, b placed) int { return a.compare(b.id) }) {
			t.Fatalf("%+v", p)
		}
		for i, c := range p.chunks {
			if c.off+c.size > 1<<63-1 {
				t.Fatalf("chunk %d: %d bytes at %d", i, c.size, c.off)
			}
		}
	})
}

// Damaged chunks give an error, or as many bytes as a chunk has.
func FuzzDecode(f *testing.F) {
	reg := registry()
	var bound []*codecs.Bound
	for i, name := range []string{"compressed_segmentation_uint32", "compressed_segmentation_uint64", "jpeg", "png"} {
		text := must.Get(os.ReadFile("testdata/" + name + "/vol/info"))(f)
		v := must.Get(parseInfo(text))(f)
		m := must.Get(meta.ParseV3(v.array(v.Scales[0], ""), reg))(f)
		b := must.Get(m.Codecs.Bind(codecs.Rep{Type: m.Type, Shape: []int{8, 8, 8, int(m.Shape[3])}, Fill: m.Fill}))(f)
		bound = append(bound, b)
		chunk := must.Get(os.ReadFile("testdata/" + name + "/vol/k/0-8_0-8_0-8"))(f)
		f.Add(chunk, uint8(i))
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for range 8 {
			bad := slices.Clone(chunk)
			bad[r.IntN(len(bad))] ^= byte(1 << r.IntN(8))
			f.Add(bad, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		b := bound[int(which)%len(bound)]
		if out, err := b.Decode(nil, data); err == nil && int64(len(out)) != b.Rep().Size && b.Rep().Size >= 0 {
			t.Fatalf("%d bytes", len(out))
		}
	})
}
