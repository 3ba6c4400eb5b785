package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/compare"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// ValueCommit is a commit that changed selected values of an array.
type ValueCommit struct {
	Commit *txn.Commit
	// Path is what the array is called in the commit.
	Path string
	// Count is the number of values that differ from every version before, and Start and Shape
	// the smallest box that holds them. Two NaNs are equal.
	Count        int64
	Start, Shape []int64
	// OrExpired says that versions before have expired, or their chunks cannot be read: one of them may
	// have made the change.
	OrExpired bool
}

// BlamedValues is a box of values that one commit changed last.
type BlamedValues struct {
	Start, Shape []int64
	Commit       *txn.Commit
	OrExpired    bool // as in [ValueCommit]
}

// maxTraced bounds the box around the values whose history is traced.
const maxTraced = 1 << 26

// ValueLog yields the commits up to and including at that changed values which a selection of an
// array names, newest first. Only chunks of the selection are compared, and decoded only where
// their bytes changed: a value that was encoded anew to the same is no change. Values of a chunk that
// cannot be read any more in a version before at are changed, as are values beyond the
// shape that the array had before, or of another data type. Of a merge, values are
// followed to the first parent that has the same. The array is followed through renames.
func (db *DB) ValueLog(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection) iter.Seq2[ValueCommit, error] {
	return func(yield func(ValueCommit, error) bool) {
		w := tracer{db: db, on: true}
		err := w.trace(ctx, at, path, sel, func(step *traced, changed bitset, expired bool) bool {
			c := ValueCommit{Commit: step.commit, Path: step.path, OrExpired: expired}
			c.Count, c.Start, c.Shape = w.around(changed)
			return yield(c, nil)
		})
		if err != nil {
			yield(ValueCommit{}, err)
		}
	}
}

// ValueBlame finds for the values that a selection of an array names the commits that changed them
// last, as [DB.ValueLog] compares them, and yields boxes of values with the same commit, in C order of
// their first values.
func (db *DB) ValueBlame(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection) iter.Seq2[BlamedValues, error] {
	return func(yield func(BlamedValues, error) bool) {
		w := tracer{db: db}
		var commits []BlamedValues
		var of []int32 // number of the commit of each value, from 1 on
		err := w.trace(ctx, at, path, sel, func(step *traced, changed bitset, expired bool) bool {
			if of == nil {
				of = make([]int32, w.n)
			}
			commits = append(commits, BlamedValues{Commit: step.commit, OrExpired: expired})
			for i := range changed.all() {
				of[i] = int32(len(commits))
			}
			return true
		})
		if err != nil {
			yield(BlamedValues{}, err)
			return
		}
		for i := range of {
			if of[i] == 0 {
				continue
			}
			c := commits[of[i]-1]
			if c.Start, c.Shape = w.grow(of, i); !yield(c, nil) {
				return
			}
		}
	}
}

// tracer walks the history of values in a box around a selection. Values are numbered in C order
// of the box.
type tracer struct {
	db           *DB
	on           bool // values that a commit changed are traced further
	start, shape []int64
	n            int
	all          bitset // every value of the box
	at           txn.CommitID
	waiting      map[txn.CommitID]*traced
}

// traced are the values that are in question at a commit.
type traced struct {
	commit *txn.Commit
	path   string
	values bitset
	keys   *tracedKeys
}

// tracedKeys are the keys of the chunks in the box, as long as the structure of the array
// stays.
type tracedKeys struct {
	draft     bool // of Zarr v3, whose keys are not relative to the array
	structure string
	keys      *txn.EarlierKeys
	chunks    []zarr.Chunk // of the keys; documents come after them
}

func (w *tracer) trace(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection, fn func(*traced, bitset, bool) bool) error {
	s, err := w.db.Snapshot(ctx, at)
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := s.Array(ctx, path)
	if err != nil {
		return err
	}
	first, err := w.box(a, sel)
	if err != nil || w.n == 0 {
		return err
	}
	w.at, w.waiting = at, map[txn.CommitID]*traced{at: {commit: s.Commit(), path: a.Path(), values: first}}
	for len(w.waiting) > 0 {
		var next *traced
		for _, t := range w.waiting {
			if next == nil || t.commit.Generation > next.commit.Generation || t.commit.Generation == next.commit.Generation && t.commit.Time.After(next.commit.Time) {
				next = t
			}
		}
		delete(w.waiting, next.commit.ID)
		if more, err := w.visit(ctx, next, fn); err != nil || !more {
			return err
		}
	}
	return nil
}

// box finds the box around a selection, and the values in it that are selected.
func (w *tracer) box(a *zarr.Array, sel zarr.Selection) (bitset, error) {
	spans, err := a.Spans(sel)
	if err != nil {
		return nil, err
	}
	n, whole := int64(1), true
	for _, x := range spans {
		if x.Len == 0 {
			return nil, nil
		}
		lo, hi := min(x.Index(0), x.Index(x.Len-1)), max(x.Index(0), x.Index(x.Len-1))
		if x.Step() == 0 { // a list
			for i := range x.Len {
				lo, hi = min(lo, x.Index(i)), max(hi, x.Index(i))
			}
		}
		w.start, w.shape = append(w.start, lo), append(w.shape, hi-lo+1)
		if n > maxTraced/(hi-lo+1) {
			return nil, fmt.Errorf("history of the values of /%s: the box around the selection has more than %d values: select a smaller part", a.Path(), maxTraced)
		}
		n *= hi - lo + 1
		whole = whole && (x.Len == 1 || x.Step() == 1)
	}
	w.n = int(n)
	w.all = newBitset(w.n)
	w.all.fill(0, w.n)
	if whole {
		return w.all, nil
	}
	values := newBitset(w.n)
	var put func(d, i int)
	put = func(d, i int) {
		if d == len(spans) {
			values.add(i)
			return
		}
		for k := range spans[d].Len {
			put(d+1, i*int(w.shape[d])+int(spans[d].Index(k)-w.start[d]))
		}
	}
	put(0, 0)
	return values, nil
}

// visit calls fn with what a commit changed, and hands the rest on to the versions before it.
func (w *tracer) visit(ctx context.Context, t *traced, fn func(*traced, bitset, bool) bool) (more bool, err error) {
	if t.keys == nil {
		if t.keys, err = w.keysOf(ctx, t.commit.ID, t.path); err != nil {
			return false, err
		}
	}
	node := t.path
	if t.keys.draft {
		node = ""
	}
	before, expired, err := w.db.store.Earlier(ctx, t.commit, node, t.keys.keys)
	if err != nil {
		return false, err
	}
	left := t.values
	was := make([]older, len(before))
	for i, e := range before {
		if t.keys.draft {
			e.Path = t.path
		}
		if was[i], err = w.compare(ctx, t, e, left); err != nil {
			return false, err
		}
		if was[i].differ == nil {
			w.push(was[i], left)
			return true, nil
		}
		expired = expired || was[i].unsure
		w.push(was[i], left.without(was[i].differ))
		left = left.and(was[i].differ)
	}
	if left.empty() {
		return true, nil
	}
	for _, o := range was {
		if w.on && o.has != nil {
			w.push(o, left.and(o.has))
		}
	}
	return fn(t, left, expired), nil
}

// push hands values on to an earlier version.
func (w *tracer) push(o older, values bitset) {
	if values.empty() {
		return
	}
	if t := w.waiting[o.commit.ID]; t != nil {
		t.values = t.values.or(values)
		return
	}
	w.waiting[o.commit.ID] = &traced{commit: o.commit, path: o.path, values: values, keys: o.keys}
}

// keysOf lists the keys of the chunks in the box, and of the documents of the array.
func (w *tracer) keysOf(ctx context.Context, at txn.CommitID, path string) (*tracedKeys, error) {
	s, err := w.db.Snapshot(ctx, at)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	a, err := s.Array(ctx, path)
	if err != nil {
		return nil, err
	}
	return w.keys(ctx, a)
}

func (w *tracer) keys(ctx context.Context, a *zarr.Array) (*tracedKeys, error) {
	t, root := &tracedKeys{structure: string(a.Meta().StructureKey())}, names.Dir(a.Path())
	box, ok := w.within(a.Shape())
	var list []string
	if ok {
		for c, err := range a.Chunks(ctx, boxOf(box.Start, box.Shape)) {
			if err != nil {
				return nil, err
			}
			t.chunks = append(t.chunks, c)
		}
	}
	if len(t.chunks) > 0 && !strings.HasPrefix(t.chunks[0].Key, root) {
		t.draft, root = true, ""
	}
	for _, c := range t.chunks {
		list = append(list, strings.TrimPrefix(c.Key, root))
	}
	t.keys = txn.NewEarlierKeys(append(list, "zarr.json", ".zarray"))
	return t, nil
}

// within is the part of the box that a shape has.
func (w *tracer) within(shape []int64) (box zarr.Chunk, ok bool) {
	if len(shape) != len(w.shape) {
		return box, false
	}
	for d, n := range shape {
		end := min(w.start[d]+w.shape[d], n)
		if end <= w.start[d] {
			return box, false
		}
		box.Start, box.Shape = append(box.Start, w.start[d]), append(box.Shape, end-w.start[d])
	}
	return box, true
}

// boxOf selects a box.
func boxOf(start, shape []int64) zarr.Selection {
	idx := make([]zarr.Index, len(start))
	for d, lo := range start {
		idx[d] = zarr.Slice(lo, lo+shape[d], 1)
	}
	return zarr.Sel(idx...)
}

// older is an earlier version, compared with a step.
type older struct {
	commit *txn.Commit
	path   string
	keys   *tracedKeys // nil if they are not known
	// differ are the values that are not the same there, nil if all are; has are those that are there.
	differ, has bitset
	unsure      bool // some are counted in differ because they cannot be read
}

// compare compares those of some values that may differ with an earlier version.
func (w *tracer) compare(ctx context.Context, t *traced, e txn.Earlier, values bitset) (older, error) {
	o := older{commit: e.Commit, path: e.Path, keys: t.keys}
	if len(e.Changed) == 0 && !t.keys.draft {
		return o, nil
	}
	then, err := w.db.Snapshot(ctx, e.Commit.ID)
	if err != nil {
		return o, err
	}
	defer then.Close()
	o.differ = w.all
	was, err := then.Array(ctx, e.Path)
	if errors.Is(err, zarr.ErrNotFound) || errors.Is(err, zarr.ErrKind) {
		return o, nil
	} else if err != nil {
		return o, err
	}
	both, ok := w.within(was.Shape())
	if !ok {
		return o, nil
	}
	now, err := w.db.Snapshot(ctx, t.commit.ID)
	if err != nil {
		return o, err
	}
	defer now.Close()
	is, err := now.Array(ctx, t.path)
	if err != nil {
		return o, err
	}
	var parts []zarr.Chunk
	if string(was.Meta().StructureKey()) != t.keys.structure {
		if o.keys, err = w.keys(ctx, was); err != nil {
			return o, err
		}
		parts = o.keys.chunks
	} else {
		for i := range e.Changed {
			if i < len(t.keys.chunks) {
				parts = append(parts, t.keys.chunks[i])
			}
		}
	}
	var differ bitset // nil: no value differs
	if slices.Equal(both.Shape, w.shape) {
		o.has = w.all
	} else {
		o.has = newBitset(w.n)
		w.fill(o.has, both.Start, both.Shape)
		differ = w.all.without(o.has)
	}
	changed := func() bitset {
		if differ == nil {
			differ = newBitset(w.n)
		}
		return differ
	}
	for _, p := range parts {
		lo, n, some := make([]int64, len(p.Start)), make([]int64, len(p.Start)), true
		for d := range lo {
			lo[d] = max(p.Start[d], both.Start[d])
			n[d] = min(p.Start[d]+p.Shape[d], both.Start[d]+both.Shape[d]) - lo[d]
			some = some && n[d] > 0
		}
		if !some || w.each(w.number(lo), n, func(i int) bool { return !values.has(i) }) {
			continue
		}
		comparable, err := compare.Elements(ctx, was, is, lo, n, func(at []int64) { changed().add(w.number(at)) })
		if err != nil && ctx.Err() == nil && (t.commit.ID != w.at || readable(ctx, is, lo, n)) {
			w.fill(changed(), lo, n)
			o.unsure, comparable, err = true, true, nil
		}
		if err != nil {
			return o, err
		}
		if !comparable {
			return o, nil
		}
	}
	o.differ = differ
	return o, nil
}

// readable reports whether a part of an array can be read.
func readable(ctx context.Context, a *zarr.Array, start, shape []int64) bool {
	_, err := compare.Elements(ctx, a, a, start, shape, func([]int64) {})
	return err == nil
}

// number is that of a place in the box.
func (w *tracer) number(at []int64) int {
	i := int64(0)
	for d, p := range at {
		i = i*w.shape[d] + p - w.start[d]
	}
	return int(i)
}

// place puts the place of a number into at.
func (w *tracer) place(at []int64, i int) {
	for d := len(at) - 1; d >= 0; d-- {
		at[d] = w.start[d] + int64(i)%w.shape[d]
		i /= int(w.shape[d])
	}
}

// fill adds the values of a part of the box to a set.
func (w *tracer) fill(b bitset, start, shape []int64) {
	if len(shape) == 0 {
		b.fill(0, 1)
		return
	}
	rows := slices.Clone(shape)
	rows[len(rows)-1] = 1
	w.each(w.number(start), rows, func(i int) bool { b.fill(i, int(shape[len(shape)-1])); return true })
}

// around returns the number of values of a set, and the box around them.
func (w *tracer) around(set bitset) (count int64, start, shape []int64) {
	var hi []int64
	at := make([]int64, len(w.shape))
	for i := range set.all() {
		w.place(at, i)
		if count++; count == 1 {
			start, hi = slices.Clone(at), slices.Clone(at)
		}
		for d, p := range at {
			start[d], hi[d] = min(start[d], p), max(hi[d], p)
		}
	}
	shape = make([]int64, len(hi))
	for d := range hi {
		shape[d] = hi[d] - start[d] + 1
	}
	return count, start, shape
}

// grow takes a box of values of one commit out of of, from the value i on: along the last dimension
// as far as it goes, then along the one before, and so on.
func (w *tracer) grow(of []int32, i int) (start, shape []int64) {
	commit := of[i]
	start, shape = make([]int64, len(w.shape)), make([]int64, len(w.shape))
	w.place(start, i)
	for d := range shape {
		shape[d] = 1
	}
	stride := 1
	for d := len(shape) - 1; d >= 0; d-- {
		for start[d]+shape[d] < w.start[d]+w.shape[d] {
			next := slices.Clone(shape)
			next[d] = 1
			if !w.each(i+int(shape[d])*stride, next, func(i int) bool { return of[i] == commit }) {
				break
			}
			shape[d]++
		}
		stride *= int(w.shape[d])
	}
	w.each(i, shape, func(i int) bool { of[i] = 0; return true })
	return start, shape
}

// each calls fn with the numbers of a box that begins at a number, until it returns false.
func (w *tracer) each(from int, shape []int64, fn func(i int) bool) bool {
	var walk func(d, i int) bool
	walk = func(d, i int) bool {
		if d == len(shape) {
			return fn(i)
		}
		stride := 1
		for _, n := range w.shape[d+1:] {
			stride *= int(n)
		}
		for k := range int(shape[d]) {
			if !walk(d+1, i+k*stride) {
				return false
			}
		}
		return true
	}
	return walk(0, from)
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }

// fill adds n numbers from one on.
func (b bitset) fill(from, n int) {
	for end := from + n; from < end; {
		k := min(64-from%64, end-from)
		b[from/64] |= (1<<k - 1) << (from % 64)
		from += k
	}
}

func (b bitset) empty() bool         { return !slices.ContainsFunc(b, func(w uint64) bool { return w != 0 }) }
func (b bitset) and(o bitset) bitset { return b.with(o, func(x, y uint64) uint64 { return x & y }) }
func (b bitset) or(o bitset) bitset  { return b.with(o, func(x, y uint64) uint64 { return x | y }) }
func (b bitset) without(o bitset) bitset {
	return b.with(o, func(x, y uint64) uint64 { return x &^ y })
}

func (b bitset) with(o bitset, fn func(x, y uint64) uint64) bitset {
	out := make(bitset, len(b))
	for i := range b {
		out[i] = fn(b[i], o[i])
	}
	return out
}

// all yields the numbers in order.
func (b bitset) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for k, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(k*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
