package codecs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// counter is a Source that notes what is read of it.
type counter struct {
	codecs.Bytes
	gap    int64
	ranges [][2]int64
}

func (c *counter) Gap() int64 { return c.gap }

func (c *counter) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	c.ranges = append(c.ranges, [2]int64{off, n})
	return c.Bytes.ReadRange(ctx, off, n, fn)
}

// ramp returns the int32 numbers from 0 on.
func ramp(n int) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	return b
}

// A shard of 4 × 4 inner chunks of 4 × 4 int32, 64 bytes each, and an index of
// 260 bytes.
func rampShard(t *testing.T, location string) (*codecs.Bound, []byte) {
	b := bind(t, `[`+shard(`[4,4]`, little, indexCRC, location)+`]`, dtype.NewInt(32), []int{16, 16}, []byte{1, 0, 0, 0})
	stored := must.Get(b.Encode(nil, ramp(256)))(t)
	return b, stored
}

func TestShardReads(t *testing.T) {
	box := func(a, b, c, d int) codecs.Box {
		return codecs.Box{Start: []int{a, b}, Count: []int{c, d}}
	}
	type ranges = [][2]int64
	for _, c := range []struct {
		name, location string
		box            codecs.Box
		gap            int64
		want           ranges
	}{
		{"one element", "end", box(5, 6, 1, 1), 64, ranges{{1024, 260}, {5 * 64, 64}}},
		{"one element, index first", "start", box(5, 6, 1, 1), 64, ranges{{0, 260}, {260 + 5*64, 64}}},
		{"one element, read in part", "end", box(5, 6, 1, 1), 0, ranges{{1024, 260}, {5*64 + 6*4, 4}}},
		{"a row of inner chunks", "end", box(4, 0, 1, 16), 0, ranges{{1024, 260}, {4 * 64, 4 * 64}}},
		{"a column of inner chunks", "end", box(0, 4, 16, 1), 64, ranges{{1024, 260}, {64, 64}, {5 * 64, 64}, {9 * 64, 64}, {13 * 64, 64}}},
		{"a column, large gaps", "end", box(0, 4, 16, 1), 192, ranges{{1024, 260}, {64, 13 * 64}}},
		{"everything", "end", box(0, 0, 16, 16), 0, ranges{{1024, 260}, {0, 1024}}},
		{"nothing", "end", box(3, 3, 0, 5), 0, ranges{{1024, 260}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, stored := rampShard(t, c.location)
			src := &counter{Bytes: stored, gap: c.gap}
			must.Get(b.AppendBox(t0, nil, src, c.box))(t)
			if len(src.ranges) != len(c.want) {
				t.Fatalf("read %v, want %v", src.ranges, c.want)
			}
			for i, r := range src.ranges {
				if r != c.want[i] {
					t.Fatalf("read %v, want %v", src.ranges, c.want)
				}
			}
		})
	}
}

// With an index that is at hand, only the inner chunk is read; of a shard in a
// shard, only the index of the inner shard and what is wanted.
func TestShardIndexShared(t *testing.T) {
	b, stored := rampShard(t, "end")
	x, err := b.ReadIndex(t0, codecs.Bytes(stored))
	must.Do(t, err)
	src := &counter{Bytes: stored}
	got := make([]byte, 4)
	err = b.DecodeBoxAt(t0, src, x, codecs.Box{Start: []int{5, 6}, Count: []int{1, 1}}, codecs.Dst{Data: got, Strides: []int{4, 4}})
	if err != nil || binary.LittleEndian.Uint32(got) != 5*16+6 || len(src.ranges) != 1 {
		t.Errorf("%d after %v (%v)", got, src.ranges, err)
	}
	if x.Len() != 16 {
		t.Errorf("%d inner chunks", x.Len())
	}
	short := codecs.Bytes(stored[:len(stored)-1])
	err = b.DecodeBoxAt(t0, short, x, codecs.Box{Start: []int{5, 6}, Count: []int{1, 1}}, codecs.Dst{Data: got, Strides: []int{4, 4}})
	if !errors.Is(err, codecs.ErrCorrupt) {
		t.Errorf("an index of another shard: %v", err)
	}

	deep := bind(t, `[`+shard(`[8,8]`, shard(`[4,4]`, little, indexCRC, "start"), indexCRC, "end")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	stored = must.Get(deep.Encode(nil, ramp(256)))(t)
	src = &counter{Bytes: stored}
	if got, err = deep.AppendBox(t0, nil, src, codecs.Box{Start: []int{13, 14}, Count: []int{1, 1}}); err != nil || binary.LittleEndian.Uint32(got) != 13*16+14 {
		t.Errorf("%d (%v)", got, err)
	}
	// Inner shards have 4 × 64 bytes and an index of 68, the outer index too.
	want := [][2]int64{{4 * 324, 68}, {3 * 324, 68}, {3*324 + 68 + 3*64 + 6*4, 4}}
	for i, r := range src.ranges {
		if len(src.ranges) != 3 || r != want[i] {
			t.Fatalf("read %v, want %v", src.ranges, want)
		}
	}
	if _, err := bind(t, `[`+little+`]`, dtype.NewInt(32), []int{2}, nil).ReadIndex(t0, src); !errors.Is(err, errors.ErrUnsupported) {
		t.Error("the index of what is not a shard:", err)
	}
}

// setEntry changes an index entry of a shard without a checksum.
func setEntry(stored []byte, i int, off, n uint64) {
	index := stored[len(stored)-16*16:]
	binary.LittleEndian.PutUint64(index[16*i:], off)
	binary.LittleEndian.PutUint64(index[16*i+8:], n)
}

func TestShardHostileIndex(t *testing.T) {
	b := bind(t, `[`+shard(`[4,4]`, little, `[`+little+`]`, "end")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	good := must.Get(b.Encode(nil, ramp(256)))(t)
	const none = math.MaxUint64
	size := uint64(len(good))
	for _, c := range []struct {
		name   string
		off, n uint64
		ok     bool
	}{
		{"as it was", 5 * 64, 64, true},
		{"missing", none, none, true},
		{"the bytes of another", 7 * 64, 64, true},
		{"between others", 7*64 + 4, 64, true},
		{"offset missing", none, 64, false},
		{"length missing", 5 * 64, none, false},
		{"wraps", none - 63, 64, false},
		{"wraps to the start", none - 10, 11 + 64, false},
		{"offset at the end", size, 64, false},
		{"offset beyond", size + 1, 64, false},
		{"length beyond", 5 * 64, size, false},
		{"sign bit", 1 << 63, 64, false},
		{"length sign bit", 5 * 64, 1 << 63, false},
		{"into the index", 16*64 - 4, 64, false},
		{"the index", 16 * 64, 64, false},
		{"short", 5 * 64, 63, false},
		{"long", 5 * 64, 65, false},
		{"empty", 5 * 64, 0, false},
		{"empty at the end", size, 0, false},
		{"2^32 + 64", 5 * 64, 1<<32 + 64, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			stored := bytes.Clone(good)
			setEntry(stored, 5, c.off, c.n)
			check := func(how string, err error) {
				t.Helper()
				if c.ok != (err == nil) || err != nil && !errors.Is(err, codecs.ErrCorrupt) {
					t.Errorf("%s: %v", how, err)
				}
			}
			_, err := b.Decode(nil, stored)
			check("Decode", err)
			one := codecs.Box{Start: []int{5, 5}, Count: []int{2, 2}}
			_, err = b.AppendBox(t0, nil, &counter{Bytes: stored}, one)
			check("AppendBox", err)
			if _, err = b.EncodePartial(t0, nil, codecs.Bytes(stored), one, codecs.Src{Data: make([]byte, 16), Strides: []int{8, 4}}); c.n != 63 && c.n != 65 && c.n != 0 {
				check("EncodePartial", err)
			}
			// Elsewhere nothing is wrong.
			got, err := b.AppendBox(t0, nil, codecs.Bytes(stored), codecs.Box{Start: []int{0, 5}, Count: []int{1, 1}})
			if err != nil || binary.LittleEndian.Uint32(got) != 5 {
				t.Errorf("another inner chunk: %d (%v)", got, err)
			}
		})
	}
}

// The length of the index is known before anything is allocated for it.
func TestShardHugeIndex(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("too large a shard for 32 bits")
	}
	huge := 1 << 16
	huge *= 1 << 20
	b := bind(t, `[`+shard(`[1]`, little, indexCRC, "end")+`]`, dtype.NewInt(32), []int{huge}, nil)
	src := codecs.Bytes(make([]byte, 100))
	box := codecs.Box{Start: []int{5}, Count: []int{1}}
	if _, err := b.AppendBox(t0, nil, src, box); !errors.Is(err, codecs.ErrCorrupt) {
		t.Error(err)
	}
	if _, err := b.ReadIndex(t0, src); !errors.Is(err, codecs.ErrCorrupt) {
		t.Error(err)
	}
	if _, err := b.Decode(nil, src); !errors.Is(err, codecs.ErrCorrupt) {
		t.Error(err)
	}
}

// Entries that overlap do not let a small shard grow into a large one.
func TestShardOverlap(t *testing.T) {
	b := bind(t, `[`+shard(`[4,4]`, little+`,`+gzip5, `[`+little+`]`, "end")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	stored, err := b.Encode(make([]byte, 0, 1<<20), ramp(256))
	must.Do(t, err)
	index := bytes.Clone(stored[len(stored)-256:])
	stored = append(make([]byte, 1<<20), index...)
	for i := range 16 {
		setEntry(stored, i, 0, 1<<20)
	}
	touch := codecs.Box{Start: []int{0, 0}, Count: []int{4, 4}}
	_, err = b.EncodePartial(t0, nil, codecs.Bytes(stored), touch, codecs.Src{Data: make([]byte, 64), Strides: []int{16, 4}})
	if !errors.Is(err, codecs.ErrCorrupt) {
		t.Error(err)
	}
	if _, err = b.Decode(nil, stored); !errors.Is(err, codecs.ErrCorrupt) {
		t.Error(err)
	}
}

// Inner chunks that are replaced as a whole need not be readable.
func TestShardUpdateRepairs(t *testing.T) {
	b := bind(t, `[`+shard(`[4,4]`, little, `[`+little+`]`, "end")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	want := must.Get(b.Encode(nil, ramp(256)))(t)
	broken := bytes.Clone(want)
	setEntry(broken, 5, 1<<40, 7)
	at := codecs.Src{Data: ramp(256), Offset: 4*64 + 4*4, Strides: []int{64, 4}}
	got, err := b.EncodePartial(t0, nil, codecs.Bytes(broken), codecs.Box{Start: []int{4, 4}, Count: []int{4, 4}}, at)
	if err != nil || !bytes.Equal(got, want) {
		t.Error(err)
	}
}

// An update copies what it does not touch as it is stored, even if this
// encoder would write other bytes, and in whatever order it lies.
func TestShardUpdateKeepsNeighbours(t *testing.T) {
	const inner = little + `,` + gzip5
	b := bind(t, `[`+shard(`[4]`, inner, indexCRC, "end")+`]`, dtype.NewInt(32), []int{16}, nil)
	// Written by another level, and back to front.
	other := bind(t, `[`+little+`,{"name":"gzip","configuration":{"level":0}}]`, dtype.NewInt(32), []int{4}, nil)
	index := bind(t, indexCRC, dtype.NewUint(64), []int{4, 2}, nil)
	elems := ramp(16)
	var stored []byte
	entries := make([]byte, 64)
	parts := make([][]byte, 4)
	for i := 3; i >= 0; i-- {
		stored = append(stored, "unused"...)
		off := len(stored)
		stored = must.Get(other.Encode(stored, elems[16*i:16*i+16]))(t)
		parts[i] = bytes.Clone(stored[off:])
		binary.LittleEndian.PutUint64(entries[16*i:], uint64(off))
		binary.LittleEndian.PutUint64(entries[16*i+8:], uint64(len(stored)-off))
	}
	stored = must.Get(index.Encode(stored, entries))(t)
	next := must.Get(b.EncodePartial(t0, nil, codecs.Bytes(stored), codecs.Box{Start: []int{5}, Count: []int{2}},
		codecs.Src{Data: []byte("abcdefgh"), Strides: []int{4}}))(t)
	copy(elems[20:], "abcdefgh")
	if got, err := b.Decode(nil, next); err != nil || !bytes.Equal(got, elems) {
		t.Fatalf("wrong elements (%v)", err)
	}
	x := must.Get(b.ReadIndex(t0, codecs.Bytes(next)))(t)
	end := int64(0)
	for i := range 4 {
		off, n, ok, err := x.Chunk(i)
		if err != nil || !ok || off != end {
			t.Fatalf("inner chunk %d is at %d, want %d (%v)", i, off, end, err)
		}
		end = off + n
		if same := bytes.Equal(next[off:end], parts[i]); same != (i != 1) {
			t.Errorf("inner chunk %d: kept as it was: %v", i, same)
		}
	}
}

// Inner chunks come out of the store's memory only through callbacks: a
// canceled read ends, and an error of the source comes back as it is.
func TestShardSourceErrors(t *testing.T) {
	b, stored := rampShard(t, "end")
	ctx, cancel := context.WithCancel(t0)
	cancel()
	_, err := b.AppendBox(ctx, nil, &counter{Bytes: stored}, codecs.Box{Start: []int{0, 0}, Count: []int{16, 16}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	broken := errors.New("disk on fire")
	for k := range 3 {
		src := &failing{Bytes: stored, left: k, err: broken}
		_, err := b.AppendBox(t0, nil, src, codecs.Box{Start: []int{0, 0}, Count: []int{16, 1}})
		if !errors.Is(err, broken) || errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("read %d: %v", k, err)
		}
	}
}

// failing fails after some reads.
type failing struct {
	codecs.Bytes
	left int
	err  error
}

func (f *failing) Gap() int64 { return 0 }

func (f *failing) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	if f.left--; f.left < 0 {
		return f.err
	}
	return f.Bytes.ReadRange(ctx, off, n, fn)
}

func TestInnerShape(t *testing.T) {
	list := `[` + transpose(`[2,0,1]`) + `,` + shard(`[4,2,3]`, little, indexCRC, "end") + `]`
	b := bind(t, list, dtype.NewInt(16), []int{6, 9, 8}, nil)
	// Stored axis 0 is axis 2 of the array, and so on.
	if s := b.InnerShape(); len(s) != 3 || s[0] != 2 || s[1] != 3 || s[2] != 4 {
		t.Errorf("inner shape %v", s)
	}
	if !b.Partial() {
		t.Error("not partial")
	}
	if b := bind(t, strings.TrimSuffix(list, "]")+`,"crc32c"]`, dtype.NewInt(16), []int{6, 9, 8}, nil); b.Partial() || b.InnerShape() == nil {
		t.Error("a checksum over the shard has to be read whole")
	}
	if b := bind(t, `[`+little+`]`, dtype.NewInt(16), []int{6}, nil); b.InnerShape() != nil || !b.Partial() {
		t.Error("plain bytes")
	}
}

// FuzzShardIndex feeds any bytes as a shard whose index has no checksum.
func FuzzShardIndex(f *testing.F) {
	b := bind(f, `[`+shard(`[2,2]`, little, `[`+little+`]`, "end")+`]`, dtype.NewInt(16), []int{4, 4}, nil)
	good := must.Get(b.Encode(nil, ramp(8)))(f)
	f.Add(good)
	f.Add(good[:40])
	f.Add(bytes.Repeat([]byte{0xff}, 70))
	rest := bind(f, `[`+little+`]`, dtype.NewInt(16), []int{2, 2}, nil)
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := b.Decode(nil, stored)
		if err != nil {
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		// Fast path and slow path: every inner chunk by hand.
		if len(got) != 32 {
			t.Fatalf("%d bytes", len(got))
		}
		x := must.Get(b.ReadIndex(t0, codecs.Bytes(stored)))(t)
		for i := range 4 {
			off, n, ok, err := x.Chunk(i)
			must.Do(t, err)
			want := make([]byte, 8)
			if ok {
				want = must.Get(rest.Decode(nil, stored[off:off+n]))(t)
			}
			part, err := b.AppendBox(t0, nil, &counter{Bytes: stored}, codecs.Box{Start: []int{i / 2 * 2, i % 2 * 2}, Count: []int{2, 2}})
			if err != nil || !bytes.Equal(part, want) {
				t.Fatalf("inner chunk %d is %v, want %v (%v)", i, part, want, err)
			}
		}
		// What it holds can be written again.
		next := must.Get(b.EncodePartial(t0, nil, codecs.Bytes(stored), codecs.Box{Start: []int{0, 0}, Count: []int{0, 0}}, codecs.Src{Strides: []int{0, 0}}))(t)
		if len(next) == 0 {
			next, err = b.Encode(nil, make([]byte, 32))
		}
		again, err2 := b.Decode(nil, next)
		if err != nil || err2 != nil || !bytes.Equal(again, got) {
			t.Fatalf("rewritten to other elements (%v, %v)", err, err2)
		}
	})
}

// Random updates in random order end in the same bytes as one write.
func TestShardSameBytes(t *testing.T) {
	seed := must.Seed(t)
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b := bind(t, `[`+shard(`[4,4]`, little+`,`+zstd3, indexCRC, "start")+`]`, dtype.NewInt(32), []int{16, 16}, nil)
	elems := ramp(256)
	want := must.Get(b.Encode(nil, elems))(t)
	var stored []byte
	for _, i := range r.Perm(16) {
		var old codecs.Source
		if stored != nil {
			old = codecs.Bytes(stored)
		}
		at := []int{i / 4 * 4, i % 4 * 4}
		stored = must.Get(b.EncodePartial(t0, nil, old, codecs.Box{Start: at, Count: []int{4, 4}},
			codecs.Src{Data: elems, Offset: at[0]*64 + at[1]*4, Strides: []int{64, 4}}))(t)
	}
	if !bytes.Equal(stored, want) {
		t.Error("different bytes")
	}
}
