package index

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// Record is one key with its value.
type Record struct {
	Key, Value []byte
}

// reads are the methods of an index and of its snapshots that read.
type reads struct {
	from pebble.Reader
	of   interface { // what they are the methods of
		enter() error
		leave()
		isClosed() bool
		Here() error
	}
}

// failed is readError of a read from an index that may be removed.
func (r *reads) failed(op string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		if moved := r.of.Here(); moved != nil {
			return moved
		}
	}
	return readError(op, err)
}

// Get returns the value of key, which the caller owns. A key without a value
// is ErrNotFound.
func (r *reads) Get(s Space, key []byte) (value []byte, err error) {
	err = r.View(s, key, func(v []byte) error {
		value = append([]byte{}, v...)
		return nil
	})
	return value, err
}

// View calls fn once with the value of key, which is valid until fn returns. The
// error of fn is returned unchanged.
func (r *reads) View(s Space, key []byte, fn func(value []byte) error) error {
	if err := r.of.enter(); err != nil {
		return err
	}
	defer r.of.leave()
	k := make([]byte, 0, 64)
	k = append(append(k, byte(s.check())), key...)
	v, c, err := r.from.Get(k)
	if err != nil {
		return r.failed("get", err)
	}
	defer c.Close()
	return fn(v)
}

// GetPage returns the stored page, which the caller owns. A missing page is
// ErrNotFound. The page is not compared with its name.
func (r *reads) GetPage(ctx context.Context, name digest.Sum) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.Get(SpacePage, name[:])
}

// Scan yields the records of s in [from, to) in order of keys, or against it.
// nil is the beginning or the end of the space. It yields the records as they
// are when the loop begins. Key and Value are valid until the next step. The
// sequence ends after the first error.
func (r *reads) Scan(s Space, from, to []byte, reverse bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := r.of.enter(); err != nil {
			yield(Record{}, err)
			return
		}
		defer r.of.leave()
		r.scan(s, from, to, reverse, yield)
	}
}

// Snapshot is the state of an index at one moment. All methods are safe for
// concurrent use. It keeps deleted data on disk until it is closed.
type Snapshot struct {
	reads
	x *Index
	s *pebble.Snapshot
	// use outlives the snapshot: Close waits for reads.
	use usage
}

// Snapshot returns the present state. It must be closed; after the index is
// closed it returns kv.ErrClosed.
func (x *Index) Snapshot() *Snapshot {
	s := &Snapshot{x: x}
	s.of = s
	s.use.init()
	if x.enter() != nil {
		s.use.close()
		return s
	}
	defer x.use.leave()
	s.s = x.db.NewSnapshot()
	s.from = s.s
	x.mu.Lock()
	x.snapshots[s] = struct{}{}
	x.mu.Unlock()
	return s
}

func (s *Snapshot) enter() error {
	if err := s.x.enter(); err != nil {
		return err
	}
	if !s.use.enter() {
		s.x.use.leave()
		return kv.ErrClosed
	}
	return nil
}

func (s *Snapshot) leave() {
	s.use.leave()
	s.x.use.leave()
}

// Here is [Index.Here].
func (s *Snapshot) Here() error { return s.x.Here() }

func (s *Snapshot) isClosed() bool { return s.use.closed() || s.x.use.closed() }

// Close waits for running reads and releases the snapshot. A second Close does
// nothing.
func (s *Snapshot) Close() {
	if !s.use.close() {
		return
	}
	s.use.wait()
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if _, ok := s.x.snapshots[s]; ok {
		delete(s.x.snapshots, s)
		_ = s.s.Close()
	}
}

func (r *reads) scan(s Space, from, to []byte, reverse bool, yield func(Record, error) bool) {
	lo, hi := appendBounds(nil, nil, s, from, to)
	if bytes.Compare(lo, hi) >= 0 {
		return
	}
	it, err := r.from.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		yield(Record{}, r.failed("scan", err))
		return
	}
	defer it.Close()
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		// Close waits for this loop; it need not wait for its end.
		if r.of.isClosed() {
			yield(Record{}, kv.ErrClosed)
			return
		}
		v, err := it.ValueAndErr()
		if err != nil {
			yield(Record{}, r.failed("scan", err))
			return
		}
		if !yield(Record{Key: it.Key()[1:], Value: v}, nil) {
			return
		}
	}
	if err := it.Error(); err != nil {
		yield(Record{}, r.failed("scan", err))
	}
}
