package txn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// maxBuffered bounds the write buffer in entries; its bytes count against
// Options.SessionBytes.
const maxBuffered = 1 << 16

// Set implements [kv.Writer]. Setting the bytes that a key has already is no
// write at all.
func (s *Session) Set(ctx context.Context, key string, value []byte) error {
	sum := digest.Of(value)
	old, err := s.lookup(ctx, key)
	switch {
	case err == nil && old.Kind != tree.KindVirtual && old.ContentSum() == sum:
		return nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return err
	}
	if v, ok := inlineValue(key, value); ok {
		return s.put(ctx, edit{key: key, value: v}, 0)
	}
	v, failures, err := s.storeChunk(ctx, key, value, sum)
	if err != nil {
		return fmt.Errorf("set %s: %w", key, err)
	}
	return s.put(ctx, edit{key: key, value: v}, failures)
}

// SetVirtual stores a reference to bytes that lie outside the database: length
// bytes from offset on, or everything from there if src.Whole.
func (s *Session) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	return s.put(ctx, edit{key: key, value: tree.Value{Kind: tree.KindVirtual, Source: src, Offset: offset, Length: length}}, 0)
}

// Delete implements [kv.Writer].
func (s *Session) Delete(ctx context.Context, key string) error {
	return s.put(ctx, edit{key: key, del: true}, 0)
}

// put buffers one edit. failures is the count under which a payload was stored.
func (s *Session) put(ctx context.Context, e edit, failures uint64) error {
	if err := errors.Join(ctx.Err(), checkKey(e.key)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	if e.value.Kind == tree.KindNative {
		if err := s.fresh.note(e.value.Length, failures); err != nil {
			return err
		}
	}
	s.buf[e.key] = e
	s.bufSize += int64(len(e.key)) + int64(len(e.value.Inline)) + 160
	if _, name := splitKey(e.key); s.space.isNode(name) {
		s.newNodes = true
	}
	if len(s.buf) >= maxBuffered || s.bufSize > s.db.opts.SessionBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	if limit := s.db.opts.SavepointBytes; limit > 0 && s.fresh.bytes >= limit {
		return s.savepoint(ctx)
	}
	return nil
}

// maxKey is the longest key in bytes.
const maxKey = 4 << 10

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %.80q… is longer than %d bytes", kv.ErrInvalidKey, key, maxKey)
	}
	return kv.ValidKey(key)
}

// flush applies the write buffer to the working root. The caller holds mu.
func (s *Session) flush(ctx context.Context) error {
	if len(s.buf) == 0 {
		return nil
	}
	work, err := s.space.apply(ctx, s.work, s.buffered())
	if err != nil {
		return err
	}
	s.work = work
	s.publish()
	clear(s.buf)
	s.bufSize, s.newNodes = 0, false
	return nil
}

// buffered returns the write buffer in order. The caller holds mu.
func (s *Session) buffered() []edit {
	// Not the edits are sorted, because they are large to move.
	keys := slices.AppendSeq(make([]string, 0, len(s.buf)), maps.Keys(s.buf))
	slices.Sort(keys)
	edits := make([]edit, len(keys))
	for i, key := range keys {
		edits[i] = s.buf[key]
	}
	return edits
}

// flushed returns the working root with every write in it.
func (s *Session) flushed(ctx context.Context) (tree.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionClosed {
		return tree.Root{}, ErrSessionClosed
	}
	err := s.flush(ctx)
	return s.work, err
}

// change flushes and replaces the working root by what fn makes of it.
func (s *Session) change(ctx context.Context, fn func(root tree.Root) (tree.Root, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	work, err := fn(s.work)
	if err == nil {
		s.work = work
		s.publish()
	}
	return err
}

// DeletePrefix implements [kv.PrefixDeleter]. Where prefix names a directory
// ("a/b/") the cost does not depend on what is below.
func (s *Session) DeletePrefix(ctx context.Context, prefix string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		return s.space.deletePrefix(ctx, root, prefix)
	})
}

// Move renames everything at and below a path. Chunks are not touched. Errors:
// kv.ErrNotFound if there is nothing, ErrExists if there is something at to.
func (s *Session) Move(ctx context.Context, from, to string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		return s.space.move(ctx, root, from, to)
	})
}

// Copy makes a copy of everything at and below a path of a version (nil for
// the session itself). Chunks are shared, not copied.
func (s *Session) Copy(ctx context.Context, src *Snapshot, from, to string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		source := root
		if src != nil {
			source = src.commit.Root
		}
		return s.space.copy(ctx, root, source, from, to, newIdentity)
	})
}

func newIdentity() (id [16]byte) {
	rand.Read(id[:])
	return id
}
