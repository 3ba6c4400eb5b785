package zarr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestStrides reads into and writes from memory of random layout.
func TestStrides(t *testing.T) {
	ctx := context.Background()
	for _, seed := range seeds(t, 300) {
		c := randomConfig(seed)
		if c.typ.Variable() {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 4))
		a := c.open(t, kv.NewMem())
		m := newModel(c.shape, c.fill)
		size := c.typ.Size()
		for range 5 {
			p := pick(r, c.shape)
			// Axes in random order, with gaps, some backwards.
			mem := codecs.Dst{Strides: make([]int, len(p.shape))}
			step := size
			for _, d := range r.Perm(len(p.shape)) {
				step += r.IntN(3)
				mem.Strides[d] = step
				step *= int(max(p.shape[d], 1))
				if r.IntN(3) == 0 && p.shape[d] > 0 {
					mem.Offset += mem.Strides[d] * int(p.shape[d]-1)
					mem.Strides[d] = -mem.Strides[d]
				}
			}
			mem.Data = make([]byte, step+size)
			place := func(i int) []byte {
				off := mem.Offset
				for d := len(p.shape) - 1; d >= 0; d-- {
					off += i % int(p.shape[d]) * mem.Strides[d]
					i /= int(p.shape[d])
				}
				return mem.Data[off : off+size]
			}
			var packed []byte
			for _, f := range p.flat {
				m.elems[f] = randomElem(r, c.typ)
				packed = append(packed, m.elems[f]...)
			}
			if err := a.WriteBytes(ctx, p.sel, packed); err != nil {
				t.Fatalf("%v: write %v: %v", c, p.sel, err)
			}
			m.check(t, a, m.whole(), c.String())
			clear(mem.Data)
			if err := a.ReadInto(ctx, p.sel, mem); err != nil {
				t.Fatalf("%v: read %v: %v", c, p.sel, err)
			}
			for i, f := range p.flat {
				if !bytes.Equal(place(i), m.elems[f]) {
					t.Fatalf("%v: read %v: element %d is %x, want %x", c, p.sel, i, place(i), m.elems[f])
				}
			}
		}
	}
}

func TestMemoryErrors(t *testing.T) {
	ctx := context.Background()
	a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{3, 4}, DataType: "int16"}, nil))
	for _, n := range []int{0, 23, 25, 2} {
		if err := a.ReadBytes(ctx, Sel(), make([]byte, n)); !errors.Is(err, ErrSelection) {
			t.Errorf("reading into %d bytes: %v", n, err)
		}
	}
	for _, n := range []int{0, 1, 23, 25} {
		if err := a.WriteBytes(ctx, Sel(), make([]byte, n)); !errors.Is(err, ErrSelection) {
			t.Errorf("writing %d bytes: %v", n, err)
		}
	}
	for _, m := range []codecs.Dst{
		{Data: make([]byte, 24), Strides: []int{8}},
		{Data: make([]byte, 23), Strides: []int{8, 2}},
		{Data: make([]byte, 24), Offset: 1, Strides: []int{8, 2}},
		{Data: make([]byte, 24), Strides: []int{8, -2}},
		{Data: make([]byte, 24), Offset: -1, Strides: []int{0, 0}},
		{Data: make([]byte, 24), Strides: []int{1 << 30, 1 << 30}},
		{Strides: []int{0, 0}},
	} {
		if err := a.ReadInto(ctx, Sel(), m); !errors.Is(err, ErrSelection) {
			t.Errorf("%d bytes at %d with strides %v: %v", len(m.Data), m.Offset, m.Strides, err)
		}
	}
	must.Have(0, a.ReadInto(ctx, Sel(Slice(0, 0, 1)), codecs.Dst{Strides: []int{99, 99}}))
}

// TestCache: a chunk is decoded once, whatever part of it is read afterwards,
// and a small part of a shard does not bring in the rest.
func TestCache(t *testing.T) {
	ctx := context.Background()
	for _, shards := range []bool{false, true} {
		cache := &fullCache{}
		spec := Spec{Shape: []int64{100, 100}, Chunks: []int64{50, 50}, DataType: "uint16"}
		if shards {
			spec.Chunks, spec.Shards = []int64{10, 10}, []int64{50, 50}
		}
		a := must.Have(Create(ctx, idStore{kv.NewMem()}, "", spec, &OpenOptions{Cache: cache}))
		data := make([]uint16, 10000)
		for i := range data {
			data[i] = uint16(i)
		}
		must.Have(0, Write(ctx, a, Sel(), data))
		for i := range 100 {
			x, y := int64(i%10), int64(i/10)
			if got := mustRead(Read[uint16](ctx, a, Sel(At(x), At(y)))); got[0] != uint16(100*x+y) {
				t.Fatalf("element %d, %d is %d", x, y, got[0])
			}
		}
		if len(cache.m) != 1 || cache.hits != 99 {
			t.Errorf("shards %v: %d entries, %d hits", shards, len(cache.m), cache.hits)
		}
		mustRead(Read[uint16](ctx, a, Sel()))
		if want := map[bool]int{false: 4, true: 100}[shards]; len(cache.m) != want {
			t.Errorf("shards %v: %d entries, want %d", shards, len(cache.m), want)
		}
	}
	// Other metadata is another entry, of the same bytes.
	cache := &fullCache{}
	store := idStore{kv.NewMem()}
	for i, fill := range []string{"1", "2"} {
		path := fmt.Sprint("a", i)
		a := must.Have(Create(ctx, store, path, Spec{Shape: []int64{4}, Chunks: []int64{2}, Shards: []int64{4}, DataType: "uint8", FillValue: []byte(fill)}, &OpenOptions{Cache: cache}))
		must.Have(0, Write(ctx, a, Sel(At(0)), []uint8{9}))
	}
	must.Have(0, store.Set(ctx, "a1/c/0", must.Have(kv.Get(ctx, store, "a0/c/0"))))
	for i, want := range []uint8{1, 2} {
		a := must.Have(OpenArray(ctx, store, fmt.Sprint("a", i), &OpenOptions{Cache: cache}))
		if got := mustRead(Read[uint8](ctx, a, Sel(At(3)))); got[0] != want {
			t.Errorf("element of a missing inner chunk is %d, want %d", got[0], want)
		}
	}
}

// loader is a cache that lets one caller decode while others wait.
type loader struct {
	fullCache
	one   sync.Mutex
	loads int
}

func (l *loader) Load(_ context.Context, id kv.ID, codec [16]byte, decode func() ([]byte, error)) ([]byte, error) {
	l.one.Lock()
	defer l.one.Unlock()
	if b, ok := l.Get(id, codec); ok {
		return b, nil
	}
	l.loads++
	b, err := decode()
	if err == nil {
		l.Add(id, codec, b)
	}
	return b, err
}

func TestCacheLoader(t *testing.T) {
	ctx := context.Background()
	l := &loader{}
	a := must.Have(Create(ctx, idStore{kv.NewMem()}, "", Spec{Shape: []int64{100}, DataType: "uint16"}, &OpenOptions{Cache: l}))
	must.Have(0, Fill(ctx, a, Sel(), uint16(5)))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got := mustRead(Read[uint16](ctx, a, Sel(At(int64(i))))); got[0] != 5 {
				t.Errorf("%d", got[0])
			}
		})
	}
	wg.Wait()
	if l.loads != 1 {
		t.Errorf("decoded %d times", l.loads)
	}
}

// TestSlabs reads a shard in pieces.
func TestSlabs(t *testing.T) {
	ctx := context.Background()
	defer smallTuning()()
	tune.slab = 100
	count := &countRunner{}
	a := must.Have(Create(ctx, kv.NewMem(), "", Spec{Shape: []int64{1, 20, 10}, Chunks: []int64{1, 2, 5}, Shards: []int64{1, 20, 10}, DataType: "uint8"}, &OpenOptions{Runner: count}))
	data := make([]uint8, 200)
	for i := range data {
		data[i] = uint8(i + 1)
	}
	must.Have(0, Write(ctx, a, Sel(), data))
	if count.n != 0 {
		t.Errorf("one shard was written in %d pieces", count.n)
	}
	if got := mustRead(Read[uint8](ctx, a, Sel())); !slices.Equal(got, data) {
		t.Errorf("%v", got)
	}
	if count.n != 2 {
		t.Errorf("one shard was read in %d pieces", count.n)
	}
	got := mustRead(Read[uint8](ctx, a, Sel(At(0), Slice(12, 8, -1), At(3))))
	if want := []uint8{124, 114, 104, 94}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

type countRunner struct{ n int }

func (c *countRunner) Run(ctx context.Context, n int, fn func(context.Context, int) error) error {
	c.n = n
	return goRunner{}.Run(ctx, n, fn)
}

// TestWriters: writers of parts of one chunk do not lose each other's updates,
// through one Array or through several that share locks.
func TestWriters(t *testing.T) {
	ctx := context.Background()
	for _, shards := range [][]int64{nil, {64}} {
		store := kv.NewMem()
		o := &OpenOptions{Locks: NewChunkLocks()}
		must.Have(Create(ctx, store, "a", Spec{Shape: []int64{64}, Chunks: []int64{32}, Shards: shards, DataType: "int32"}, o))
		var wg sync.WaitGroup
		for i := range 64 {
			a := must.Have(OpenArray(ctx, store, "a", o))
			wg.Go(func() { must.Have(0, Write(ctx, a, Sel(At(int64(i))), []int32{int32(i + 1)})) })
		}
		wg.Wait()
		got := mustRead(Read[int32](ctx, must.Have(OpenArray(ctx, store, "a", nil)), Sel()))
		for i, v := range got {
			if v != int32(i+1) {
				t.Fatalf("shards %v: element %d is %d", shards, i, v)
			}
		}
	}
}

func TestEmptyChunks(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		o    *OpenOptions
		want int
	}{{nil, 0}, {&OpenOptions{WriteEmptyChunks: true}, 4}} {
		for _, shards := range [][]int64{nil, {4, 4}} {
			for _, typ := range []string{"float32", "string"} {
				store := kv.NewMem()
				spec := Spec{Shape: []int64{8, 8}, Chunks: []int64{4, 4}, Shards: shards, DataType: typ}
				if shards != nil {
					spec.Chunks = []int64{2, 2}
				}
				a := must.Have(Create(ctx, store, "a", spec, c.o))
				must.Have(0, a.WriteFill(ctx, Sel()))
				if n := must.Have(a.NChunksInitialised(ctx)); n != int64(c.want) {
					t.Errorf("%s, %+v, shards %v: %d chunks", typ, c.o, shards, n)
				}
				// In parts: the last one makes the chunk empty again.
				for i := range int64(4) {
					must.Have(0, a.WriteFill(ctx, Sel(At(i), Slice(0, 4, 1))))
				}
				if n := must.Have(a.NChunksInitialised(ctx)); n != int64(c.want) {
					t.Errorf("%s, %+v, shards %v: %d chunks", typ, c.o, shards, n)
				}
				if _, err := a.Resolve(Sel()); err != nil {
					t.Error(err)
				}
				all := must.Have(a.Resolve(Sel()))
				if !slices.Equal(all, []int64{8, 8}) {
					t.Error(all)
				}
			}
		}
	}
}

func TestChunks(t *testing.T) {
	ctx := context.Background()
	a := must.Have(Create(ctx, kv.NewMem(), "x/y", Spec{Shape: []int64{5, 7}, Chunks: []int64{2, 3}, DataType: "uint8"}, nil))
	var got []string
	for c, err := range a.Chunks(ctx, Sel(Slice(1, 3, 1), Slice(None, None, 6))) {
		must.Have(0, err)
		got = append(got, fmt.Sprintf("%s %v %v %v", c.Key, c.Coords, c.Start, c.Shape))
	}
	want := []string{
		"x/y/c/0/0 [0 0] [0 0] [2 3]", "x/y/c/0/2 [0 2] [0 6] [2 1]",
		"x/y/c/1/0 [1 0] [2 0] [2 3]", "x/y/c/1/2 [1 2] [2 6] [2 1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	n := 0
	for c, err := range a.Chunks(ctx, Points([]int64{4, 0, 4}, []int64{6, 0, 6})) {
		must.Have(0, err)
		n++
		if c.Key != "x/y/c/0/0" && c.Key != "x/y/c/2/2" {
			t.Error(c.Key)
		}
	}
	if n != 2 {
		t.Errorf("%d chunks of points", n)
	}
	for _, err := range a.Chunks(ctx, Sel(At(9))) {
		if !errors.Is(err, ErrSelection) {
			t.Error(err)
		}
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	n = 0
	for _, err := range a.Chunks(stop, Sel()) {
		if n++; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
	if n != 2 {
		t.Errorf("%d steps after the context was cancelled", n)
	}
	// Asking for the first chunks of a huge array costs nothing.
	huge := must.Have(Create(ctx, kv.NewMem(), "", Spec{Shape: []int64{1 << 62}, Chunks: []int64{3}, DataType: "uint8"}, nil))
	for c, err := range huge.Chunks(ctx, Sel()) {
		must.Have(0, err)
		if c.Coords[0] == 10 {
			break
		}
	}
}

func TestReadErrors(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	must.Have(Create(ctx, store, "a/b", Spec{Shape: []int64{4, 4}, Chunks: []int64{2, 2}, DataType: "uint8"}, nil))
	must.Have(0, store.Set(ctx, "a/b/c/1/0", []byte("not zstd")))
	for _, o := range []*OpenOptions{nil, {Runner: goRunner{}}, {Cache: &mapCache{}}} {
		a := must.Have(OpenArray(ctx, idStore{store}, "a/b", o))
		err := a.ReadBytes(ctx, Sel(), make([]byte, 16))
		var e *Error
		if !errors.As(err, &e) || e.Op != "read" || e.Path != "a/b" || !errors.Is(err, ErrCorrupt) || !errors.Is(err, codecs.ErrCorrupt) ||
			!strings.Contains(err.Error(), "chunk a/b/c/1/0: ") {
			t.Errorf("%+v: %v", o, err)
		}
		if err := a.WriteBytes(ctx, Sel(At(2), At(0)), []byte{1}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a damaged chunk was changed in part: %v", err)
		}
	}
	a := must.Have(OpenArray(ctx, struct{ kv.ReadLister }{store}, "a/b", nil))
	if err := a.WriteBytes(ctx, Sel(), make([]byte, 16)); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
	stop, cancel := context.WithCancel(ctx)
	cancel()
	for _, o := range []*OpenOptions{nil, {Runner: goRunner{}}} {
		a := must.Have(OpenArray(ctx, store, "a/b", o))
		if err := a.ReadBytes(stop, Sel(At(0)), make([]byte, 4)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	// A whole chunk is written over whatever is there.
	must.Have(0, must.Have(OpenArray(ctx, store, "a/b", nil)).WriteBytes(ctx, Sel(), make([]byte, 16)))
}

func TestLimits(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	a := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{1 << 50, 1 << 40}, Chunks: []int64{10, 10}, DataType: "int32", FillValue: []byte("5")}, nil))
	if got := mustRead(Read[int32](ctx, a, Sel(At(-1), At(-1)))); got[0] != 5 {
		t.Errorf("%v", got)
	}
	if got := mustRead(Read[int32](ctx, a, Sel(Slice(None, None, 1<<49), Slice(None, None, -(1<<39))))); !slices.Equal(got, []int32{5, 5, 5, 5}) {
		t.Errorf("%v", got)
	}
	for _, sel := range []Selection{Sel(), Sel(At(0)), Sel(Slice(0, 1<<20, 1), Slice(0, 1<<20, 1))} {
		if _, _, err := Read[int32](ctx, a, sel); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v", sel, err)
		}
	}
	small := must.Have(OpenArray(ctx, store, "a", &OpenOptions{MaxResultBytes: 40}))
	if _, _, err := Read[int32](ctx, small, Sel(At(0), Slice(0, 11, 1))); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	mustRead(Read[int32](ctx, small, Sel(At(0), Slice(0, 10, 1))))
	if _, err := OpenArray(ctx, store, "a", &OpenOptions{MaxChunkBytes: 399}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	text := must.Have(Create(ctx, store, "s", Spec{Shape: []int64{4}, DataType: "string"}, &OpenOptions{MaxResultBytes: 99}))
	must.Have(0, Fill(ctx, text, Sel(), strings.Repeat("x", 20)))
	mustRead(Read[string](ctx, text, Sel(Slice(0, 2, 1))))
	if _, _, err := Read[string](ctx, text, Sel()); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	// A value that is far longer than any encoding of a chunk is not read.
	must.Have(0, store.Set(ctx, "b/c/0", make([]byte, 1<<20)))
	b := must.Have(Create(ctx, store, "b", Spec{Shape: []int64{4}, DataType: "int8"}, &OpenOptions{Overwrite: true}))
	must.Have(0, store.Set(ctx, "b/c/0", make([]byte, 1<<20)))
	if err := b.ReadBytes(ctx, Sel(), make([]byte, 4)); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestScalars(t *testing.T) {
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		store := kv.NewMem()
		a := must.Have(Create(ctx, store, "a", Spec{Version: v, DataType: "float64", FillValue: []byte("2.5")}, nil))
		if got := mustRead(Read[float64](ctx, a, Sel())); !slices.Equal(got, []float64{2.5}) {
			t.Errorf("%v", got)
		}
		must.Have(0, Fill(ctx, a, Sel(Ellipsis()), float64(-1)))
		if got := mustRead(Read[float64](ctx, a, Points())); !slices.Equal(got, []float64{-1}) {
			t.Errorf("%v", got)
		}
		if want := map[Version]string{V2: "a/0", V3: "a/c"}[v]; a.ChunkKey(nil) != want || !must.Have(kv.Exists(ctx, store, want)) {
			t.Errorf("v%d: key %q", v, a.ChunkKey(nil))
		}
		if shape := a.Shape(); len(shape) != 0 {
			t.Error(shape)
		}
	}
}
