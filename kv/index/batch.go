package index

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// maxBatchBytes bounds a batch. Pebble panics at four times as much; a bulk
// load belongs into [Index.Ingest].
const maxBatchBytes = 1<<30 - 1

// entryBytes is more than a batch needs for an entry beside key and value.
const entryBytes = 16

// Batch collects writes that take effect together. It is for one goroutine at
// a time. Keys and values are copied. An operation that does not fit makes
// Commit fail, so that single operations need not be checked.
type Batch struct {
	x         *Index
	b         *pebble.Batch
	sets      int
	makesRoom bool         // see MakesRoom
	put       []digest.Sum // names of pages
	err       error
	done      bool
	key       []byte // scratch
}

// NewBatch returns an empty batch. It must be closed.
func (x *Index) NewBatch() *Batch {
	b := &Batch{x: x}
	if err := x.enterWrite(); err != nil {
		b.err = err
		return b
	}
	defer x.use.leave()
	b.b = x.db.NewBatch()
	return b
}

// room reports whether n more bytes fit into the batch.
func (b *Batch) room(keyBytes, n int) bool {
	switch {
	case b.err != nil:
	case b.done:
		b.err = fmt.Errorf("index: batch is used up: %w", kv.ErrClosed)
	case keyBytes > maxKeyBytes:
		b.err = fmt.Errorf("%w: key of %d bytes", errTooLarge, keyBytes)
	case n > maxBatchBytes-entryBytes || b.b.Len() > maxBatchBytes-entryBytes-n:
		b.err = fmt.Errorf("%w: batch of %d bytes", errTooLarge, int64(b.b.Len())+int64(n))
	default:
		return true
	}
	return false
}

// Set stores value under key.
func (b *Batch) Set(s Space, key, value []byte) {
	if len(key) > maxKeyBytes || len(value) > maxBatchBytes {
		b.room(len(key), maxBatchBytes)
		return
	}
	if !b.room(len(key), len(key)+len(value)) {
		return
	}
	b.sets++
	if s == SpacePage && len(key) == digest.Size {
		b.put = append(b.put, digest.Sum(key))
	}
	// In place: one copy less for pages.
	op := b.b.SetDeferred(1+len(key), len(value))
	op.Key[0] = byte(s.check())
	copy(op.Key[1:], key)
	copy(op.Value, value)
	b.note(op.Finish())
}

// PutPage stores a page under its name.
func (b *Batch) PutPage(name digest.Sum, page []byte) { b.Set(SpacePage, name[:], page) }

// Delete removes key. A key without a value is no error.
func (b *Batch) Delete(s Space, key []byte) {
	if b.room(len(key), len(key)) {
		b.key = append(append(b.key[:0], byte(s.check())), key...)
		b.note(b.b.Delete(b.key, nil))
	}
}

func (b *Batch) note(err error) {
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("index: batch: %w", err)
	}
}

// MakesRoom declares that the batch frees space, although it holds more than
// deletes. It is then admitted like deletes, on a disk that is nearly full. It
// should be as small as a few records. It is called before Commit, by the
// goroutine that uses the batch.
func (b *Batch) MakesRoom() { b.makesRoom = true }

// Len is the approximate size of the batch in bytes, for cutting work into
// batches.
func (b *Batch) Len() int64 {
	if b.b == nil {
		return 0
	}
	return int64(b.b.Len())
}

// Commit applies the batch, atomically. With sync it returns after the batch,
// and every batch committed before, is on disk; without, a crash may lose it
// together with all later ones. Readers may see it a moment before Commit
// returns.
//
// Errors: [ErrFull] and errTooLarge leave everything as it was. [ErrMoved] means that
// the directory is not at its path any more: it is looked for before and after the write.
// After [ErrFailed] readers of this process may or may not see the batch, and it may
// or may not be there after the next Open. A batch can be committed once.
func (b *Batch) Commit(sync bool) error {
	if b.err != nil {
		return b.err
	}
	if b.done {
		return fmt.Errorf("index: batch is used up: %w", kv.ErrClosed)
	}
	x := b.x
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	x.gate.pass(x.sublevels, x.use.closed)
	if len(b.put) > 0 {
		x.sweepMu.RLock()
		defer x.sweepMu.RUnlock()
		x.sweep.spare(b.put)
	}
	return b.apply(sync)
}

// apply writes the batch. It does not check for sweeps.
func (b *Batch) apply(sync bool) error {
	if b.err != nil {
		return b.err
	}
	x := b.x
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	if err := x.Here(); err != nil {
		return err
	}
	size := int64(b.b.Len())
	if err := x.disk.enter("write", size, b.sets == 0 || b.makesRoom); err != nil {
		return err
	}
	defer x.disk.leave(size)
	x.quiet.RLock()
	defer x.quiet.RUnlock()
	if err := x.guard.err(); err != nil {
		return err
	}
	b.done = true
	o := pebble.NoSync
	if sync {
		o = pebble.Sync
	}
	var err error
	if b.b.Empty() && sync {
		// An empty batch still syncs earlier ones.
		err = x.db.LogData(nil, pebble.Sync)
	} else {
		err = x.db.Apply(b.b, o)
	}
	// Pebble sees a successful write of its log even after a failure: the guard
	// has the error.
	if err := x.Here(); err != nil {
		return err
	}
	if failed := x.guard.err(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("index: commit: %w", err)
	}
	x.logged.Add(size)
	x.wrote.Store(true)
	return nil
}

// Close releases the batch, committed or not.
func (b *Batch) Close() {
	if b.b != nil && b.x.enter() == nil {
		_ = b.b.Close()
		b.x.use.leave()
	}
	b.b, b.done = nil, true
}

// check panics for the one byte that has no end.
func (s Space) check() Space {
	if s == 0xff {
		panic("index: 0xff is not a space")
	}
	return s
}

// appendBounds appends the stored form of [from, to) in s to lo and hi.
func appendBounds(lo, hi []byte, s Space, from, to []byte) (_, _ []byte) {
	lo = append(append(lo, byte(s.check())), from...)
	if to == nil {
		return lo, append(hi, byte(s)+1)
	}
	return lo, append(append(hi, byte(s)), to...)
}
