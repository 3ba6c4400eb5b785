package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// This file holds the model that arrays are compared with: a plain array in
// memory, selections that are worked out element by element, and random
// configurations.

// model is an array in memory.
type model struct {
	shape []int64
	elems [][]byte // C order
}

func newModel(shape []int64, fill []byte) *model {
	n := int64(1)
	for _, l := range shape {
		n *= l
	}
	m := &model{shape: slices.Clone(shape)}
	for range n {
		m.elems = append(m.elems, fill)
	}
	return m
}

// resize keeps the elements that are in both shapes; others become fill.
func (m *model) resize(shape []int64, fill []byte) {
	next := newModel(shape, fill)
	for i := range next.elems {
		from, rest, inside := int64(0), int64(i), true
		step := int64(1)
		for d := len(shape) - 1; d >= 0; d-- {
			c := rest % shape[d]
			rest /= shape[d]
			inside = inside && c < m.shape[d]
			from += c * step
			step *= m.shape[d]
		}
		if inside {
			next.elems[i] = m.elems[from]
		}
	}
	*m = *next
}

// picked is a selection and, independently of it, what it selects: the flat
// numbers of the elements in the order of the result, and its shape.
type picked struct {
	sel   Selection
	shape []int64
	flat  []int64
}

// pick makes a random selection of an array.
func pick(r *rand.Rand, shape []int64) picked {
	switch {
	case r.IntN(8) == 0:
		return pickPoints(r, shape)
	case r.IntN(4) == 0:
		return pickDims(r, shape, Orthogonal, len(shape))
	}
	return pickDims(r, shape, Sel, 1)
}

func pickPoints(r *rand.Rand, shape []int64) picked {
	p := picked{}
	n := r.IntN(20)
	for _, l := range shape {
		if l == 0 {
			n = 0
		}
	}
	if len(shape) == 0 {
		n = 1
	}
	p.shape = []int64{int64(n)}
	p.flat = make([]int64, n)
	var coords [][]int64
	for _, l := range shape {
		c := make([]int64, n)
		for i := range c {
			c[i] = r.Int64N(l)
			p.flat[i] = p.flat[i]*l + c[i]
			if r.IntN(4) == 0 {
				c[i] -= l
			}
		}
		coords = append(coords, c)
	}
	p.sel = Points(coords...)
	return p
}

// pickDims selects along each dimension on its own, at most lists of them by list.
func pickDims(r *rand.Rand, shape []int64, make func(...Index) Selection, lists int) picked {
	var index []Index
	var each [][]int64
	p := picked{}
	skip := -1
	if r.IntN(4) == 0 {
		skip = r.IntN(len(shape) + 1) // dimensions from here on are left to an ellipsis
	}
	cut := len(shape)
	for d, l := range shape {
		if d >= cut {
			break
		}
		if skip == d {
			if r.IntN(2) == 0 {
				index = append(index, Ellipsis())
			}
			break
		}
		if r.IntN(10) == 0 {
			index = append(index, NewAxis())
			p.shape = append(p.shape, 1)
		}
		x, list, drop := pickOne(r, l, lists > 0)
		if x.kind == indexList {
			lists--
		}
		index = append(index, x)
		each = append(each, list)
		if !drop {
			p.shape = append(p.shape, int64(len(list)))
		}
	}
	for _, l := range shape[len(each):] {
		list := []int64{}
		for i := range l {
			list = append(list, i)
		}
		each = append(each, list)
		p.shape = append(p.shape, l)
	}
	p.sel = make(index...)
	p.flat = []int64{0}
	for d, list := range each {
		var next []int64
		for _, f := range p.flat {
			for _, i := range list {
				next = append(next, f*shape[d]+i)
			}
		}
		p.flat = next
	}
	return p
}

// pickOne selects along one dimension of n elements.
func pickOne(r *rand.Rand, n int64, list bool) (x Index, elements []int64, drop bool) {
	elements = []int64{}
	switch k := r.IntN(6); {
	case k == 0:
		for i := range n {
			elements = append(elements, i)
		}
		return All(), elements, false
	case k == 1 && n > 0:
		i := r.Int64N(n)
		if r.IntN(2) == 0 {
			return At(i - n), []int64{i}, true
		}
		return At(i), []int64{i}, true
	case k == 2 && n > 0 && list:
		var names []int64
		for range r.IntN(6) {
			i := r.Int64N(n)
			elements = append(elements, i)
			if r.IntN(3) == 0 {
				i -= n
			}
			names = append(names, i)
		}
		if r.IntN(2) == 0 {
			slices.Sort(elements)
			names = elements
		}
		return List(names...), elements, false
	}
	lo, hi := r.Int64N(n+3)-1, r.Int64N(n+3)-1
	step := []int64{1, 1, 1, 2, 3, 7, -1, -2, -5}[r.IntN(9)]
	if (step > 0) != (lo < hi) {
		lo, hi = hi, lo
	}
	lo, hi = max(lo, 0), max(hi, 0)
	if r.IntN(5) == 0 {
		lo = None
	}
	if r.IntN(5) == 0 {
		hi = None
	}
	// What TestSliceGolden has shown to be right.
	start, by, count, flip := slice(lo, hi, step, n)
	for k := range count {
		elements = append(elements, start+k*by)
	}
	if flip {
		slices.Reverse(elements)
	}
	return Slice(lo, hi, step), elements, false
}

// config is a random array.
type config struct {
	seed    uint64
	version Version
	shape   []int64
	grid    Grid
	typ     dtype.Type
	fill    []byte
	codecs  string // v3 JSON, or v2 {"order", "filters", "compressor"}
	runner  Runner
	cache   ChunkCache
	empty   bool // WriteEmptyChunks
}

func (c config) String() string {
	return fmt.Sprintf("seed %d: v%d shape %v chunks %s type %v fill %x codecs %s cache %v runner %v empty %v",
		c.seed, c.version, c.shape, c.grid, c.typ, c.fill, c.codecs, c.cache != nil, c.runner != nil, c.empty)
}

// mustRead is must for [Read], without the shape.
func mustRead[T any](v []T, _ []int64, err error) []T { return must.Have(v, err) }

// randomConfig makes a random array of a few hundred elements.
func randomConfig(seed uint64) config {
	r := rand.New(rand.NewPCG(seed, 1))
	c := config{seed: seed, version: V3}
	if r.IntN(4) == 0 {
		c.version = V2
	}
	rank := []int{0, 1, 1, 1, 2, 2, 2, 3, 3, 4}[r.IntN(10)]
	most := []int64{1, 60, 17, 8, 5}[rank]
	chunk := make([]int, rank)
	for d := range rank {
		c.shape = append(c.shape, r.Int64N(most+1))
		chunk[d] = 1 + r.IntN(int(most)+2)
		if r.IntN(2) == 0 {
			chunk[d] = 1 + r.IntN(4)
		}
	}
	c.typ = []dtype.Type{
		dtype.NewUint(8), dtype.NewInt(16), dtype.NewFloat(32), dtype.NewFloat(64), dtype.NewComplex(128),
		must.Have(dtype.NewRaw(3)), must.Have(dtype.NewStruct([]dtype.Field{{Name: "a", Type: dtype.NewInt(32)}, {Name: "b", Type: dtype.NewInt(8)}})),
		dtype.NewString(), dtype.NewBytes(),
	}[r.IntN(9)]
	if !c.typ.Variable() {
		c.fill = make([]byte, c.typ.Size())
		if r.IntN(2) == 0 {
			c.fill = randomElem(r, c.typ)
		}
	} else if r.IntN(2) == 0 {
		c.fill = []byte("fill")
	}
	c.grid = meta.RegularGrid(chunk)
	c.empty = r.IntN(5) == 0
	if c.version == V2 {
		c.codecs = randomV2(r, c.typ)
		return c
	}
	if rank > 0 && r.IntN(6) == 0 {
		c.grid = randomRuns(r, c.shape)
		chunk = nil
	}
	c.codecs = randomV3(r, c.typ, chunk, rank)
	return c
}

func randomRuns(r *rand.Rand, shape []int64) Grid {
	var dims []meta.Edges
	for _, n := range shape {
		e := meta.Edges{}
		for end := int64(0); end < n || len(e.Runs) == 0; {
			x := [2]int64{1 + r.Int64N(5), 1 + r.Int64N(3)}
			end += x[0] * x[1]
			e.Runs = append(e.Runs, x)
		}
		if r.IntN(4) == 0 {
			e = meta.Edges{Step: 1 + r.Int64N(5)}
		}
		dims = append(dims, e)
	}
	return must.Have(meta.RectilinearGrid(dims))
}

func randomV2(r *rand.Rand, t dtype.Type) string {
	filters := "null"
	switch t.Kind() {
	case dtype.String:
		filters = `[{"id":"vlen-utf8"}]`
	case dtype.Bytes:
		filters = `[{"id":"vlen-bytes"}]`
	}
	order := []string{"C", "F"}[r.IntN(2)]
	compressor := []string{"null", `{"id":"zlib","level":1}`, `{"id":"zstd","level":1}`}[r.IntN(3)]
	return fmt.Sprintf(`{"order":%q,"filters":%s,"compressor":%s}`, order, filters, compressor)
}

// randomV3 makes a chain; chunk is nil for grids whose chunks differ.
func randomV3(r *rand.Rand, t dtype.Type, chunk []int, rank int) string {
	endian := []string{"little", "big"}[r.IntN(2)]
	array := fmt.Sprintf(`{"name":"bytes","configuration":{"endian":%q}}`, endian)
	switch t.Kind() {
	case dtype.String:
		array = `"vlen-utf8"`
	case dtype.Bytes:
		array = `"vlen-bytes"`
	}
	tail := []string{"", `,{"name":"zstd","configuration":{"level":1,"checksum":false}}`, `,"crc32c"`}[r.IntN(3)]
	front := ""
	var order []int
	if rank > 0 && r.IntN(3) == 0 {
		order = r.Perm(rank)
		front = fmt.Sprintf(`{"name":"transpose","configuration":{"order":%s}},`, must.Have(json.Marshal(order)))
	}
	if chunk == nil || r.IntN(3) != 0 {
		return "[" + front + array + tail + "]"
	}
	// A shard whose inner chunks divide what the transpose makes of the chunk.
	inner := make([]int, rank)
	for d := range inner {
		n := chunk[d]
		if order != nil {
			n = chunk[order[d]]
		}
		inner[d] = 1 + r.IntN(n)
		for n%inner[d] != 0 {
			inner[d]--
		}
	}
	shard := fmt.Sprintf(`{"name":"sharding_indexed","configuration":{"chunk_shape":%s,"codecs":[%s],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"],"index_location":%q}}`,
		must.Have(json.Marshal(inner)), array+tail, []string{"start", "end"}[r.IntN(2)])
	outer := []string{"", "", "", `,"crc32c"`, `,{"name":"gzip","configuration":{"level":1}}`}[r.IntN(5)]
	return "[" + front + shard + outer + "]"
}

// open returns the array of a configuration in a view.
func (c config) open(tb testing.TB, view kv.Reader) *Array {
	tb.Helper()
	m := &Meta{Version: c.version, Array: true, Shape: slices.Clone(c.shape), Type: c.typ, Grid: c.grid, Fill: c.fill}
	reg := builtin.Registry()
	var err error
	if c.version == V2 {
		m.Keys = meta.V2Keys('.', len(c.shape))
		var v2 struct {
			Order               string
			Filters, Compressor json.RawMessage
		}
		must.Have(0, json.Unmarshal([]byte(c.codecs), &v2))
		m.Codecs, err = reg.ParseV2(codecs.V2{Type: c.typ, Order: v2.Order, Rank: len(c.shape), Filters: v2.Filters, Compressor: v2.Compressor})
	} else {
		m.Keys = meta.DefaultKeys('/', len(c.shape))
		m.Codecs, err = reg.ParseV3([]byte(c.codecs))
	}
	if err != nil {
		tb.Fatalf("%v: %v", c, err)
	}
	o := OpenOptions{Runner: c.runner, Cache: c.cache, WriteEmptyChunks: c.empty}
	o = o.withDefaults()
	p, err := bind(m, o.MaxChunkBytes)
	if err != nil {
		tb.Fatalf("%v: %v", c, err)
	}
	a, err := newArray(view, location{version: c.version, path: "a", docs: "a/", chunks: "a/"}, p, o)
	if err != nil {
		tb.Fatalf("%v: %v", c, err)
	}
	return a
}

// randomElem makes an element that is rarely the fill value.
func randomElem(r *rand.Rand, t dtype.Type) []byte {
	if t.Variable() {
		return []byte("element"[:r.IntN(8)] + strconv.Itoa(r.IntN(100)))
	}
	b := make([]byte, t.Size())
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// join puts elements together as they lie in memory.
func join(elems [][]byte) []byte { return bytes.Join(elems, nil) }

func variableFrom(elems [][]byte) dtype.Variable {
	b := must.Have(dtype.NewBuilder(nil, len(elems)))
	for _, e := range elems {
		must.Have(0, b.Append(e))
	}
	return must.Have(dtype.OpenVariable(must.Have(b.Finish()), len(elems)))
}

// check reads a selection and compares it with the model.
func (m *model) check(t *testing.T, a *Array, p picked, name string) {
	t.Helper()
	ctx := context.Background()
	if shape, err := a.Resolve(p.sel); err != nil || !slices.Equal(shape, p.shape) {
		t.Fatalf("%s: %v: shape %v %v, want %v", name, p.sel, shape, err, p.shape)
	}
	want := [][]byte{}
	for _, f := range p.flat {
		want = append(want, m.elems[f])
	}
	if a.Type().Variable() {
		v, err := a.ReadVar(ctx, p.sel)
		if err != nil || v.Len() != len(want) {
			t.Fatalf("%s: read %v: %d elements of %d, %v", name, p.sel, v.Len(), len(want), err)
		}
		for i, w := range want {
			if !bytes.Equal(v.At(i), w) {
				t.Fatalf("%s: read %v: element %d is %q, want %q", name, p.sel, i, v.At(i), w)
			}
		}
		return
	}
	got := make([]byte, len(p.flat)*a.Type().Size())
	if err := a.ReadBytes(ctx, p.sel, got); err != nil {
		t.Fatalf("%s: read %v: %v", name, p.sel, err)
	}
	if !bytes.Equal(got, join(want)) {
		t.Fatalf("%s: read %v:\n got %x\nwant %x", name, p.sel, got, join(want))
	}
}

// write writes random values to a selection, or one value everywhere.
func (m *model) write(t *testing.T, r *rand.Rand, a *Array, p picked, fill []byte, name string) {
	t.Helper()
	ctx := context.Background()
	elems := make([][]byte, len(p.flat))
	for i := range elems {
		elems[i] = randomElem(r, a.Type())
	}
	var err error
	switch k := r.IntN(5); {
	case k == 0: // reset
		for i := range elems {
			elems[i] = fill
		}
		err = a.WriteFill(ctx, p.sel)
	case k == 1: // one value
		one := randomElem(r, a.Type())
		for i := range elems {
			elems[i] = one
		}
		if a.Type().Variable() {
			err = a.writeVar(ctx, p.sel, variableFrom([][]byte{one}), true)
		} else {
			err = a.writeBytes(ctx, p.sel, one, true)
		}
	case a.Type().Variable():
		err = a.WriteVar(ctx, p.sel, variableFrom(elems))
	default:
		err = a.WriteBytes(ctx, p.sel, join(elems))
	}
	if err != nil {
		t.Fatalf("%s: write %v: %v", name, p.sel, err)
	}
	for i, f := range p.flat {
		m.elems[f] = elems[i]
	}
}

// keys returns the expected keys of the array: the keys of all chunks with another value than
// the fill value.
func (m *model) keys(a *Array, fill []byte) []string {
	found := make(map[string]bool)
	coords := make([]int64, len(m.shape))
	for i, e := range m.elems {
		if bytes.Equal(e, fill) {
			continue
		}
		rest := int64(i)
		for d := len(m.shape) - 1; d >= 0; d-- {
			x := rest % m.shape[d]
			rest /= m.shape[d]
			coords[d], _ = a.Meta().Grid.Range(d, x, x+1)
		}
		found[a.ChunkKey(coords)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// goRunner runs everything at once.
type goRunner struct{}

func (goRunner) Run(ctx context.Context, n int, fn func(context.Context, int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(ctx, i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// mapCache is a cache that forgets some of what it is given.
type mapCache struct {
	mu   sync.Mutex
	m    map[string][]byte
	adds int
	hits int

	touches int
}

func (c *mapCache) Get(id kv.ID, codec [16]byte) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.m[string(id[:])+string(codec[:])]
	if ok {
		c.hits++
	}
	return b, ok
}

func (c *mapCache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.adds++; c.adds%7 == 0 {
		return
	}
	if c.m == nil {
		c.m = make(map[string][]byte)
	}
	c.m[string(id[:])+string(codec[:])] = chunk
}

// Keeps and Touch let every second small read decode the whole chunk.
func (c *mapCache) Keeps(int) bool { return true }

func (c *mapCache) Touch(kv.ID, [16]byte, int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touches++
	return c.touches%2 == 0
}

// idStore gives every value an identity made of its bytes.
type idStore struct{ *kv.Mem }

func (s idStore) Locate(ctx context.Context, key string) (kv.Value, error) {
	b, err := kv.Get(ctx, s.Mem, key)
	if err != nil {
		return nil, err
	}
	return idValue{kv.Bytes(b)}, nil
}

type idValue struct{ kv.Bytes }

func (v idValue) ID() (id kv.ID) {
	copy(id[:], sum(v.Bytes))
	return id
}

// seeds returns n seeds, from that of the test on.
func seeds(t *testing.T, n int) []uint64 {
	t.Helper()
	list, first := make([]uint64, n), must.Seed(t)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}
