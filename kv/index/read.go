package index

import (
	"bytes"
	"context"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// Record is one key with its value.
type Record struct {
	Key, Value []byte
}

// Get returns the value of key, which the caller owns. A key without a value
// is ErrNotFound.
func (x *Index) Get(s Space, key []byte) ([]byte, error) {
	if err := x.enter(); err != nil {
		return nil, err
	}
	defer x.use.leave()
	return get(x.db, s, key)
}

// View calls fn once with the value of key, which is valid until fn returns. The
// error of fn is returned unchanged.
func (x *Index) View(s Space, key []byte, fn func(value []byte) error) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.use.leave()
	return view(x.db, s, key, fn)
}

// GetPage returns the stored page, which the caller owns. A missing page is
// ErrNotFound. The page is not compared with its name.
func (x *Index) GetPage(ctx context.Context, name digest.Sum) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return x.Get(SpacePage, name[:])
}

// Scan yields the records of s in [from, to) in order of keys, or against it.
// nil is the beginning or the end of the space. It shows one state, that of
// the moment when the loop begins. Key and Value are valid until the next
// step. The sequence ends after the first error.
func (x *Index) Scan(s Space, from, to []byte, reverse bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := x.enter(); err != nil {
			yield(Record{}, err)
			return
		}
		defer x.use.leave()
		scan(x.db, s, from, to, reverse, x.use.closed, yield)
	}
}

// Snapshot is the state of an index at one moment. All methods are safe for
// concurrent use. It keeps deleted data on disk until it is closed.
type Snapshot struct {
	x *Index
	s *pebble.Snapshot
	// use outlives the snapshot: Close waits for reads.
	use usage
}

// Snapshot returns the present state. It must be closed; after the index is
// closed it returns kv.ErrClosed.
func (x *Index) Snapshot() *Snapshot {
	s := &Snapshot{x: x}
	s.use.init()
	if x.enter() != nil {
		s.use.close()
		return s
	}
	defer x.use.leave()
	s.s = x.db.NewSnapshot()
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

// Get is [Index.Get] at the snapshot.
func (s *Snapshot) Get(sp Space, key []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return get(s.s, sp, key)
}

// GetPage is [Index.GetPage] at the snapshot.
func (s *Snapshot) GetPage(ctx context.Context, name digest.Sum) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.Get(SpacePage, name[:])
}

// Scan is [Index.Scan] at the snapshot.
func (s *Snapshot) Scan(sp Space, from, to []byte, reverse bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := s.enter(); err != nil {
			yield(Record{}, err)
			return
		}
		defer s.leave()
		closed := func() bool { return s.use.closed() || s.x.use.closed() }
		scan(s.s, sp, from, to, reverse, closed, yield)
	}
}

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

func view(r pebble.Reader, s Space, key []byte, fn func([]byte) error) error {
	k := make([]byte, 0, 64)
	k = append(append(k, byte(s.check())), key...)
	v, c, err := r.Get(k)
	if err != nil {
		return readError("get", err)
	}
	defer c.Close()
	return fn(v)
}

func get(r pebble.Reader, s Space, key []byte) (value []byte, err error) {
	err = view(r, s, key, func(v []byte) error {
		value = bytes.Clone(v)
		if value == nil {
			value = []byte{}
		}
		return nil
	})
	return value, err
}

func scan(r pebble.Reader, s Space, from, to []byte, reverse bool, closed func() bool, yield func(Record, error) bool) {
	lo, hi := appendBounds(nil, nil, s, from, to)
	if bytes.Compare(lo, hi) >= 0 {
		return
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		yield(Record{}, readError("scan", err))
		return
	}
	defer it.Close()
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		// Close waits for this loop; it need not wait for its end.
		if closed() {
			yield(Record{}, kv.ErrClosed)
			return
		}
		v, err := it.ValueAndErr()
		if err != nil {
			yield(Record{}, readError("scan", err))
			return
		}
		if !yield(Record{Key: it.Key()[1:], Value: v}, nil) {
			return
		}
	}
	if err := it.Error(); err != nil {
		yield(Record{}, readError("scan", err))
	}
}
