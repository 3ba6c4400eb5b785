package refs

import (
	"bytes"
	"context"
	"iter"
	"math"
	"sort"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// List yields the keys of a parquet set in byte order.
//
// The keys of chunks are made and not stored. They come in the order of their
// bytes, not of their numbers:
//
//	t/0  t/1  t/10  t/100  t/101 …  t/11  t/110 …  t/2  t/20 …
//
// so the walk goes down a tree of digits, and reads from about one partition for
// each number of digits at a time. It skips branches without a wanted key and
// branches without a partition.
func (s *lazySet) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l := listing{ctx: ctx, set: s, opts: opts, yield: yield, docs: s.docs, arrays: s.arrays}
		l.prefix, l.after = []byte(opts.Prefix), []byte(opts.After)
		from := max(opts.Prefix, opts.After)
		l.docs = l.docs[sort.Search(len(l.docs), func(i int) bool { return l.docs[i].key >= from }):]
		if err := l.before(""); err != nil && err != errStopped {
			yield("", err)
		}
	}
}

// listing is the state of one list: the next document and the next array, which
// represents all keys that begin with its prefix.
type listing struct {
	ctx    context.Context
	set    *lazySet
	opts   kv.ListOptions
	prefix []byte // of opts
	after  []byte // of opts
	yield  func(string, error) bool
	keys   arena
	docs   []doc
	arrays []array
	steps  int
}

// step checks the context from time to time.
func (l *listing) step() error {
	if l.steps++; l.steps%checkEvery == 1 {
		return l.ctx.Err()
	}
	return nil
}

// before lists the documents and arrays that come before a key; "" is behind
// all keys.
func (l *listing) before(key string) error {
	for {
		if err := l.step(); err != nil {
			return err
		}
		hasDoc := len(l.docs) > 0 && (key == "" || l.docs[0].key < key)
		hasArray := len(l.arrays) > 0 && (key == "" || l.arrays[0].prefix < key)
		switch {
		case hasArray && !(hasDoc && l.docs[0].key < l.arrays[0].prefix):
			a := &l.arrays[0]
			l.arrays = l.arrays[1:]
			if err := l.array(a); err != nil {
				return err
			}
		case hasDoc:
			d := &l.docs[0]
			l.docs = l.docs[1:]
			if strings.HasPrefix(d.key, l.opts.Prefix) && d.key > l.opts.After && !l.yield(d.key, nil) {
				return errStopped
			}
		default:
			return nil
		}
	}
}

// wanted reports whether the listing may include keys that begin with node.
func (l *listing) wanted(node []byte) bool {
	if !bytes.HasPrefix(node, l.prefix) && !bytes.HasPrefix(l.prefix, node) {
		return false
	}
	return string(node) >= l.opts.After || bytes.HasPrefix(l.after, node)
}

// array lists the chunks of an array, and the documents between their keys.
func (l *listing) array(a *array) error {
	if !l.wanted([]byte(a.prefix)) || a.total == 0 {
		return nil
	}
	w := chunkWalk{listing: l, a: a, key: []byte(a.prefix), inner: make([]int64, len(a.counts)), at: -1}
	var err error
	if w.present, w.all, err = l.set.existing(l.ctx, a); err != nil {
		return err
	}
	inner := int64(1)
	for d := len(a.counts) - 1; d >= 0; d-- {
		w.inner[d] = inner
		inner *= a.counts[d]
	}
	return w.dimension(0, 0)
}

// chunkWalk goes through the keys of the chunks of an array.
type chunkWalk struct {
	*listing
	a       *array
	inner   []int64 // chunks that share the coordinates up to a dimension
	present []int64 // existing partitions, unless all exist
	all     bool
	key     []byte // the digits of the current branch

	part *partition // the one used last, and its number
	at   int64
}

// dimension lists the chunks whose coordinates before d make up number base.
func (w *chunkWalk) dimension(d int, base int64) error {
	n := len(w.key)
	for v := range min(10, w.a.counts[d]) {
		w.key = append(w.key[:n], byte('0'+v))
		if err := w.digits(d, base, v); err != nil {
			return err
		}
	}
	w.key = w.key[:n]
	return nil
}

// digits lists the chunks whose coordinate in dimension d begins with the digits
// of v, which end the key.
func (w *chunkWalk) digits(d int, base, v int64) error {
	if err := w.step(); err != nil {
		return err
	}
	if !w.wanted(w.key) || !w.anyPresent(d, base, v) {
		return nil
	}
	n := len(w.key)
	if d == len(w.a.counts)-1 {
		if err := w.chunk(base*w.a.counts[d] + v); err != nil {
			return err
		}
	} else {
		// A separator comes before a digit.
		w.key = append(w.key, w.a.sep)
		if err := w.dimension(d+1, base*w.a.counts[d]+v); err != nil {
			return err
		}
	}
	if v == 0 || v > w.a.counts[d]/10 {
		return nil // no number has a leading zero
	}
	for next := 10 * v; next < 10*v+10 && next < w.a.counts[d]; next++ {
		w.key = append(w.key[:n], byte('0'+next%10))
		if err := w.digits(d, base, next); err != nil {
			return err
		}
	}
	w.key = w.key[:n]
	return nil
}

// anyPresent reports whether a partition exists that may have chunks of
// digits(d, base, v): those with v itself, 10 v to 10 v + 9, and so on.
func (w *chunkWalk) anyPresent(d int, base, v int64) bool {
	if w.all {
		return true
	}
	count := w.a.counts[d]
	for low, high := v, v; low < count; low, high = 10*low, 10*high+9 {
		high = min(high, count-1)
		first := (base*count + low) * w.inner[d] / w.a.record
		last := ((base*count+high+1)*w.inner[d] - 1) / w.a.record
		i := sort.Search(len(w.present), func(i int) bool { return w.present[i] >= first })
		if i < len(w.present) && w.present[i] <= last {
			return true
		}
		if low == 0 || low > count/10 {
			break
		}
		high = min(high, math.MaxInt64/10-1) // count bounds the coordinates
	}
	return false
}

// chunk lists one key, if it has a value.
func (w *chunkWalk) chunk(number int64) error {
	if n := number / w.a.record; n != w.at {
		part, err := w.set.partition(w.ctx, w.a, n)
		if err != nil {
			return err
		}
		w.part, w.at = part, n
	}
	if !w.part.exists(number%w.a.record) || !bytes.HasPrefix(w.key, w.prefix) || string(w.key) <= w.opts.After {
		return nil
	}
	if len(w.docs) > 0 && w.docs[0].key < string(w.key) || len(w.arrays) > 0 && w.arrays[0].prefix < string(w.key) {
		if err := w.before(string(w.key)); err != nil {
			return err
		}
	}
	if !w.yield(w.keys.string(w.key), nil) {
		return errStopped
	}
	return nil
}
