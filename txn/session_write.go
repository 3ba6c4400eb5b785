package txn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// maxBuffered bounds the write buffer in entries; its bytes count against
// Options.SessionBytes.
const maxBuffered = 1 << 16

// Set implements [kv.Writer]. Setting the bytes that a key has already is no
// write at all, unless the stored bytes are damaged: then they are healed, in every
// version that has them. Bytes that the session's base has at the key are not stored
// again, also if the session set or deleted the key since.
func (s *Session) Set(ctx context.Context, key string, value []byte) error {
	return s.home.set(ctx, key, value)
}

func (s own) set(ctx context.Context, key string, value []byte) error {
	old, has, err := s.current(ctx, key)
	if err == nil {
		_, err = s.setOver(ctx, key, value, old, has)
	}
	return err
}

// setOver is Set of a key whose value was looked up. It returns the new value.
func (s own) setOver(ctx context.Context, key string, value []byte, old tree.Value, has bool) (v tree.Value, err error) {
	if has && s.repeated(ctx, old, value) {
		s.noteSame(key)
		return old, nil
	}
	sum, damaged := digest.Of(value), false
	if has && old.Kind != tree.KindVirtual && old.ContentSum() == sum {
		keeps, err := s.keeps(ctx, old, value)
		if err != nil {
			return v, err
		}
		if keeps {
			s.noteSame(key)
			return old, nil
		}
		damaged = true
	}
	if v, ok := inlineValue(key, value); ok {
		return v, s.put(ctx, namespace.Edit{Key: key, Value: v}, nil)
	}
	if damaged {
		// The base has the same payload, or one that was not looked for.
	} else if v, base, err := s.atBase(ctx, key, sum, value); err != nil {
		return v, err
	} else if base != nil {
		err := s.put(ctx, namespace.Edit{Key: key, Value: v}, base)
		if err != errOtherBase {
			return v, err
		}
	}
	owner, err := s.owner(ctx, key)
	if err != nil {
		return v, err
	}
	if v, err = s.store(ctx, owner, value, sum); err != nil {
		return v, fmt.Errorf("set %s: %w", key, err)
	}
	return v, s.put(ctx, namespace.Edit{Key: key, Value: v}, nil)
}

// noteSame notes a write of the bytes that a key has.
func (s *Session) noteSame(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now().UTC()
	s.noteTime(key, false)
	s.wrote()
}

// callbacks are the functions of [OnWrite] and [OnMove].
type callbacks struct {
	mu  sync.Mutex
	fns []*func()
}

// OnWrite has fn called at each write to a session, whoever writes, before the write is
// acknowledged, and when the session ends. After stop has returned, fn is not called any more.
// One goroutine at a time calls fn, which must not use the session. For a session of a peer,
// fn is never called. Servers use OnWrite to tell their clients of writes; see [Tx.Watch].
func OnWrite(s *Session, fn func()) (stop func()) {
	return s.onWrite.add(fn)
}

func (c *callbacks) add(fn func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fns = append(c.fns, &fn)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fns = slices.DeleteFunc(c.fns, func(f *func()) bool { return f == &fn })
	}
}

func (c *callbacks) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fn := range c.fns {
		(*fn)()
	}
}

// wrote counts a write. Each write of a key counts once. The caller holds mu.
func (s *Session) wrote() {
	s.writes.Add(1)
	s.onWrite.call()
}

// atBase returns the stored bytes that the session's base has at a key, and the
// root of the base, if their hash is sum; else base is nil.
func (s *Session) atBase(ctx context.Context, key string, sum digest.Sum, value []byte) (v tree.Value, base *tree.Root, err error) {
	s.mu.RLock()
	root, changed := s.start, s.work != s.start || len(s.buf) > 0
	s.mu.RUnlock()
	if !changed {
		return v, nil, nil // Set has looked there
	}
	v, ok, err := s.space.Get(ctx, root, key)
	if err != nil || !ok || v.Kind != tree.KindNative || v.Sum != sum {
		return tree.Value{}, nil, err
	}
	if keeps, err := s.home.keeps(ctx, v, value); !keeps || err != nil {
		return tree.Value{}, nil, err
	}
	return v, &root, nil
}

// errOtherBase means that the session got another base: chunks that only the old
// base names may have been collected.
var errOtherBase = errors.New("txn: the session has another base now")

// SetVirtual stores a reference to bytes that lie outside the database: length
// bytes from offset on, or everything from there if src.Whole.
func (s *Session) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	return s.home.setVirtual(ctx, key, tree.Value{Kind: tree.KindVirtual, Source: src, Offset: offset, Length: length})
}

// Delete implements [kv.Writer].
func (s *Session) Delete(ctx context.Context, key string) error { return s.home.remove(ctx, key) }

// lockOpen acquires changing, to change a session that is open.
func (s *Session) lockOpen(ctx context.Context) error {
	if err := s.changing.Lock(ctx); err != nil {
		return err
	}
	if s.state != sessionOpen {
		s.changing.Unlock()
		return s.errClosed()
	}
	return nil
}

// put buffers one edit. base is the version that keeps the payload of its value,
// nil for other values: if the session has another base by now, the error is
// errOtherBase.
func (s *Session) put(ctx context.Context, e namespace.Edit, base *tree.Root) error {
	if err := errors.Join(ctx.Err(), namespace.CheckKey(e.Key)); err != nil {
		return err
	}
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	if base != nil && *base != s.start {
		return errOtherBase
	}
	// Room is made before: a write that fails has not happened.
	if err := s.room(ctx); err != nil {
		return err
	}
	if err := s.noteEdit(&e); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now().UTC()
	s.noteTime(e.Key, e.Delete)
	s.buf[e.Key] = e
	s.wrote()
	s.bufSize += int64(len(e.Key)) + int64(len(e.Value.Inline)) + 160
	s.bufSize += 64 * int64(s.bufDirs.add(e.Key))
	if _, name := namespace.SplitKey(e.Key); s.space.IsNode(name) {
		s.newNodes = true
	}
	return nil
}

// room makes room in the write buffer, and a savepoint where one is due. The caller
// holds changing.
func (s *Session) room(ctx context.Context) error {
	if n, _ := s.fresh.size(); s.db.opts.SavepointBytes > 0 && n >= s.db.opts.SavepointBytes && !s.recovering {
		return s.savepoint(ctx)
	}
	if err := s.logRoom(ctx); err != nil {
		return err
	}
	if len(s.buf) >= maxBuffered || s.bufSize > s.pages.Bound {
		return s.flush(ctx)
	}
	return nil
}

// flush applies the write buffer to the working root. The caller holds changing.
func (s *Session) flush(ctx context.Context) error {
	if len(s.buf) == 0 {
		return nil
	}
	work, err := s.space.Apply(ctx, s.work, s.buffered())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = work
	s.publish()
	clear(s.buf)
	clear(s.bufDirs)
	s.bufSize, s.newNodes = 0, false
	return nil
}

// dirSet are the directories above some keys, each with a slash at its end; "" is the root.
type dirSet map[string]struct{}

// add adds the directories above a key, and returns how many are new.
func (d dirSet) add(key string) (n int) {
	for at := len(key); at >= 0; n++ {
		at = strings.LastIndexByte(key[:at], '/')
		dir := key[:at+1]
		if _, ok := d[dir]; ok {
			return n // the directories above it are there too
		}
		d[dir] = struct{}{}
	}
	return n
}

// mayHold reports whether one of the keys may begin with prefix: none does if no key is in
// the directory that the prefix lies in.
func (d dirSet) mayHold(prefix string) bool {
	_, ok := d[prefix[:strings.LastIndexByte(prefix, '/')+1]]
	return ok
}

// buffered returns the write buffer in order. The caller holds changing.
func (s *Session) buffered() []namespace.Edit {
	// Not the edits are sorted, because they are large to move.
	keys := slices.AppendSeq(make([]string, 0, len(s.buf)), maps.Keys(s.buf))
	slices.Sort(keys)
	edits := make([]namespace.Edit, len(keys))
	for i, key := range keys {
		edits[i] = s.buf[key]
	}
	return edits
}

// flushed returns the working root with every write in it.
func (s *Session) flushed(ctx context.Context) (tree.Root, error) {
	_, work, err := s.flushedSince(ctx)
	return work, err
}

// flushedBelow returns the working root with every write in it whose key begins
// with prefix. Others may be left in the buffer: a listing of a node that is
// about to be made does not write the pages of those that were made before.
func (s *Session) flushedBelow(ctx context.Context, prefix string) (tree.Root, error) {
	s.mu.RLock()
	root, ok := s.home.below(prefix)
	ok = ok && s.state != sessionClosed
	s.mu.RUnlock()
	if ok {
		return root, nil
	}
	return s.flushed(ctx)
}

// flushedSince returns the root of the base, and the working root with every
// write in it since.
func (s *Session) flushedSince(ctx context.Context) (start, work tree.Root, err error) {
	r, err := s.home.roots(ctx)
	return r.Start, r.Work, err
}

func (s own) roots(ctx context.Context) (Roots, error) {
	if err := s.changing.Lock(ctx); err != nil {
		return Roots{}, err
	}
	defer s.changing.Unlock()
	if s.state == sessionClosed {
		return Roots{}, s.errClosed()
	}
	err := s.flush(ctx)
	return Roots{s.start, s.work, s.life}, err
}

func (s own) change(ctx context.Context, entry *catalog.Entry, fn func(root tree.Root) (tree.Root, error)) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	defer func() { s.joins = nil }()
	if err := s.logRoom(ctx); err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	base, start, forked, before := s.base, s.start, s.forked, s.work
	work, err := fn(s.work)
	if err != nil {
		return err
	}
	s.replace(s.base, s.start, s.forked, work)
	switch {
	case entry != nil:
		err = s.note(entry)
	case s.logged.on:
		err = s.savepoint(ctx)
	}
	if err != nil { // it has not happened
		s.replace(base, start, forked, before)
	}
	return err
}

// replace puts other roots in place. The caller holds changing.
func (s *Session) replace(base CommitID, start tree.Root, forked bool, work tree.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base, s.start, s.forked, s.work = base, start, forked, work
	s.used = time.Now().UTC()
	s.publish()
	s.wrote()
}

// DeletePrefix implements [kv.PrefixDeleter]. Where prefix names a directory
// ("a/b/") the cost does not depend on what is below.
func (s *Session) DeletePrefix(ctx context.Context, prefix string) error {
	if none, err := s.nothingAt(ctx, prefix); none || err != nil {
		return err
	}
	return s.home.change(ctx, &catalog.Entry{Kind: catalog.EntryPrefix, Key: prefix}, func(root tree.Root) (tree.Root, error) {
		return s.space.DeletePrefix(ctx, root, prefix)
	})
}

// nothingAt reports whether it is plain, without a flush, that no key begins with
// prefix.
func (s *Session) nothingAt(ctx context.Context, prefix string) (bool, error) {
	s.mu.RLock()
	open := s.state == sessionOpen
	work, ok := s.home.below(prefix)
	s.mu.RUnlock()
	if !open {
		return false, s.errClosed()
	}
	if !ok {
		return false, nil
	}
	any, err := s.space.Any(ctx, work, prefix)
	if err != nil {
		return false, s.home.dropped(ctx, err)
	}
	return !any, nil
}

// Move renames everything at and below a path. Chunks are not touched. Errors:
// kv.ErrNotFound if there is nothing, ErrExists if there is something at to.
func (s *Session) Move(ctx context.Context, from, to string) error {
	return s.home.change(ctx, &catalog.Entry{Kind: catalog.EntryMove, Key: from, To: to}, func(root tree.Root) (tree.Root, error) {
		return s.space.Move(ctx, root, from, to)
	})
}

// Copy makes a copy of everything at and below a path of a version (nil for
// the session itself). Chunks are shared, not copied. A snapshot that is closed is
// kv.ErrClosed; it may be closed afterwards.
func (s *Session) Copy(ctx context.Context, src *Snapshot, from, to string) error {
	return s.home.change(ctx, nil, func(root tree.Root) (tree.Root, error) {
		source := root
		if src != nil {
			release, err := src.keep()
			if err != nil {
				return root, err
			}
			s.holds(release)
			source = src.commit.Root
		}
		return s.space.Copy(ctx, root, source, from, to, newIdentity)
	})
}

func newIdentity() (id [16]byte) {
	rand.Read(id[:])
	return id
}
