package zarr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// job is one call that reads or writes: a plan, and where the elements of the
// result lie in the caller's memory. Jobs are pooled.
type job struct {
	plan
	a  *Array
	st *arrayState
	// reading means that the job does not write.
	reading bool
	// user is the caller's memory; its strides are the strides of the result.
	user codecs.Dst
	// along is the distance in user between neighbours along each dimension of
	// the array, 0 for dropped ones.
	along []int
	slab  slabs
	// step is called for each chunk.
	step func(t *task, ctx context.Context) error
	// first is the piece that run begins with.
	first int64
	// run is j.runOne, made once per job and not per call.
	run func(ctx context.Context, i int) error
}

var jobs = sync.Pool{New: func() any {
	j := new(job)
	j.run = j.runOne
	return j
}}

// begin resolves sel for the array, for reading or for writing. The caller ends
// the job.
func (a *Array) begin(ctx context.Context, sel Selection, read bool) (*job, error) {
	if !read {
		if err := a.refresh(ctx); err != nil {
			return nil, err
		}
	}
	j := jobs.Get().(*job)
	j.a, j.st, j.reading = a, a.st.Load(), read
	if err := j.prepare(j.st, sel, read); err != nil {
		j.end()
		return nil, err
	}
	return j, nil
}

func (j *job) end() {
	j.a, j.st, j.step, j.points = nil, nil, nil, nil
	j.user.Data, j.slab = nil, slabs{}
	for d := range j.axes {
		j.axes[d].grid, j.axes[d].list, j.axes[d].order = nil, nil, nil
	}
	jobs.Put(j)
}

// pack sets user to memory that holds the result without gaps. Strides of
// elements of variable length count elements.
func (j *job) pack(data []byte) {
	strides := j.user.Strides[:0]
	for range j.shape {
		strides = append(strides, 0)
	}
	size := max(j.st.size, 1)
	for d := len(strides) - 1; d >= 0; d-- {
		strides[d] = size
		size *= int(j.shape[d]) // the last product is the size of the caller's slice
	}
	j.user = codecs.Dst{Data: data, Strides: strides}
}

// work does step to every chunk that the plan touches.
func (j *job) work(ctx context.Context, step func(t *task, ctx context.Context) error) (err error) {
	if j.chunks == 0 || j.total == 0 {
		return ctx.Err()
	}
	j.step = step
	j.along = j.along[:0]
	for d := range j.dims {
		s := 0
		if axis := j.dims[d].axis; axis >= 0 {
			s = j.user.Strides[axis]
		}
		j.along = append(j.along, s)
	}
	n := j.chunks * max(j.slab.n, 1)
	if j.gathers(ctx) {
		return j.gather(ctx, n)
	}
	if j.a.opts.Runner == nil || n == 1 || n > int64(maxTasks) {
		t := getTask()
		defer t.put()
		for i := range n {
			if err := t.do(ctx, j, i); err != nil {
				return err
			}
		}
		return nil
	}
	if j.first, err = j.readCached(ctx, n); err != nil || j.first == n {
		return err
	}
	return j.a.opts.Runner.Run(ctx, int(n-j.first), j.run)
}

// quickBytes is the size of a result that is copied from cached chunks before goroutines for it begin.
const quickBytes = 64 << 10

// readCached reads few elements of pieces that are in the cache in the goroutine of the caller: others take longer to
// begin. It returns the first piece that is not read.
func (j *job) readCached(ctx context.Context, n int64) (int64, error) {
	if !j.reading || j.a.opts.Cache == nil || j.total*int64(max(j.st.size, 1)) > quickBytes {
		return 0, nil
	}
	t := getTask()
	defer t.put()
	t.quick = true
	for i := range n {
		if err := t.do(ctx, j, i); err != nil {
			if errors.Is(err, errNotCached) {
				err = nil
			}
			return i, err
		}
	}
	return n, nil
}

// errNotCached is the error of a quick task for a chunk that is not cached.
var errNotCached = errors.New("not cached")

// maxTasks is the most that is handed to a Runner at once.
const maxTasks = 1<<31 - 1

func (j *job) runOne(ctx context.Context, i int) error {
	t := getTask()
	defer t.put()
	return t.do(ctx, j, j.first+int64(i))
}

// task is the state of one goroutine that works on one chunk after another.
// Tasks are pooled and keep their buffers.
type task struct {
	j *job
	// coords, parts, key and form belong to the chunk in hand.
	coords []int64
	parts  []part
	key    string
	keys   []byte // see makeKey
	form   *chunkForm
	ints   []int // a shape or strides, for as long as one function needs them
	// box holds all wanted elements of the chunk, and perhaps unwanted ones between.
	box codecs.Box
	// n is the number of wanted elements along each dimension. user is their
	// position in the caller's memory, and buf in a buffer with the given
	// strides, one step per wanted element; not used with lists.
	n    []int
	user codecs.Dst
	buf  codecs.Src
	// points are the members of a point selection, if it is one.
	points []int
	// direct means that the wanted elements are exactly the box, so that it can
	// be decoded into the caller's memory.
	direct bool

	shard   shardRead
	lanes   []lane
	tables  []int
	scratch []byte
	encoded []byte

	// found is the chunk in hand if it was given: located already, nil if it is
	// not there.
	found kv.Value
	given bool
	// quick means to do only what is cached; see errNotCached.
	quick bool

	// merging says that the chunk in hand, which was, is written only if it is the same still.
	merging bool
	was     kv.ID

	source valueSource
	// onValue is t.decodeValue, made once per task and not per chunk.
	onValue func([]byte) error
}

var tasks = sync.Pool{New: func() any {
	t := new(task)
	t.onValue = t.decodeValue
	return t
}}

func getTask() *task { return tasks.Get().(*task) }

// keepScratch is the largest buffer that stays with a pooled task, until the
// garbage collector empties the pool: one that is made anew for each shard costs
// a page fault every 4 KiB.
const keepScratch = 128 << 20

func (t *task) put() {
	t.j, t.form, t.points, t.source.value, t.key = nil, nil, nil, nil, ""
	t.found, t.given, t.quick = nil, false, false
	t.user.Data, t.buf.Data = nil, nil
	t.shard.t, t.shard.cache, t.shard.value = nil, nil, nil
	if cap(t.scratch) > keepScratch {
		t.scratch = nil
	}
	if cap(t.encoded) > keepScratch {
		t.encoded = nil
	}
	tasks.Put(t)
}

// do works on the i-th piece of a job.
func (t *task) do(ctx context.Context, j *job, i int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.j = j
	some, err := t.place(i)
	if err == nil && some {
		err = j.step(t, ctx)
	}
	if err != nil {
		return fmt.Errorf("chunk %s: %w", t.key, err)
	}
	return nil
}

// place sets the task to the i-th piece; some is false if it has no elements.
func (t *task) place(i int64) (some bool, err error) {
	j := t.j
	rank := len(j.st.meta.Shape)
	t.coords = resize(t.coords, rank)
	t.box.Start, t.box.Count = resize(t.box.Start, rank), resize(t.box.Count, rank)
	piece := int64(0)
	if j.slab.n > 1 {
		i, piece = i/j.slab.n, i%j.slab.n
	}
	if j.points != nil {
		j.coords(j.st, i, t.coords)
		t.points = j.groups.group(i)
	} else {
		t.parts = resize(t.parts, rank)
		for d := rank - 1; d >= 0; d-- {
			a := &j.axes[d]
			p := a.part(i % a.parts)
			i /= a.parts
			t.parts[d], t.coords[d] = p, p.chunk
			t.box.Start[d], t.box.Count[d] = p.from, p.span
		}
	}
	t.makeKey()
	if t.form, err = j.st.formOf(t.coords, &t.ints); err != nil {
		return false, err
	}
	if j.points != nil {
		t.direct = false
		t.boundPoints()
		return true, nil
	}
	if j.slab.n > 1 && !t.cutSlab(piece) {
		return false, nil
	}
	t.bindUser()
	return true, nil
}

// keyBlock is the number of bytes of keys that share one allocation.
const keyBlock = 2048

// makeKey sets key. Keys are parts of a block that is written once: a kept key
// keeps the block in memory.
func (t *task) makeKey() {
	chunks := t.j.a.loc.chunks
	most := len(chunks) + len("c/") + 20*len(t.coords)
	if cap(t.keys)-len(t.keys) < most {
		t.keys = make([]byte, 0, max(keyBlock, most))
	}
	from := len(t.keys)
	t.keys = t.j.st.meta.Keys.Append(append(t.keys, chunks...), t.coords)
	own := t.keys[from:]
	t.key = unsafe.String(unsafe.SliceData(own), len(own))
}

// bindUser sets n, user and direct for the parts in hand.
func (t *task) bindUser() {
	j := t.j
	t.direct = true
	t.n = resize(t.n, len(t.parts))
	t.user.Data, t.user.Offset = j.user.Data, j.user.Offset
	t.user.Strides = resize(t.user.Strides, len(t.parts))
	for d := range t.parts {
		p, a, along := &t.parts[d], &j.axes[d], j.along[d]
		t.n[d] = p.n
		t.user.Strides[d] = along
		t.direct = t.direct && a.list == nil && p.n == p.span
		if a.list != nil {
			continue // every element has a place of its own
		}
		t.user.Offset += int(a.place(p.k)) * along
		if a.flip {
			t.user.Strides[d] = -along
		}
	}
}

// bindBuffer sets buf to the wanted elements in a buffer that holds the box,
// or a whole chunk, with the given strides; origin is where the first element
// of the box lies.
func (t *task) bindBuffer(data []byte, origin int, strides []int) {
	t.buf.Data, t.buf.Offset = data, origin
	t.buf.Strides = resize(t.buf.Strides, len(t.parts))
	for d := range t.parts {
		t.buf.Strides[d] = strides[d] * int(t.j.axes[d].step)
	}
}

// origin is where the first element of the box lies in a whole chunk.
func (t *task) origin() int {
	off := 0
	for d, s := range t.box.Start {
		off += s * t.form.strides[d]
	}
	return off
}

// boxBytes is the size of the box.
func (t *task) boxBytes() int {
	n := t.j.st.size
	for _, c := range t.box.Count {
		n *= c
	}
	return n
}

// wholeBox reports whether the box is the chunk.
func (t *task) wholeBox() bool {
	for d, c := range t.box.Count {
		if c != t.form.shape[d] {
			return false
		}
	}
	return true
}

// buffer returns t.scratch with n bytes, which hold anything.
func (t *task) buffer(n int) []byte {
	if cap(t.scratch) < n {
		t.scratch = make([]byte, n)
	}
	t.scratch = t.scratch[:n]
	return t.scratch
}

// resize returns s with n elements, which hold anything.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// valueSource is a value as codecs read it. The value is located by then.
type valueSource struct{ value kv.Value }

func (s *valueSource) Size() int64 { return s.value.Size() }

func (s *valueSource) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	return s.value.View(ctx, kv.Span(off, n), fn)
}
