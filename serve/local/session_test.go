package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

func begin(t testing.TB, c *Client) *session {
	t.Helper()
	s := must.Get(beginOn(c))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// joinSession opens the same session from another client.
func joinSession(t testing.TB, c *Client, id txn.SessionID) *session {
	t.Helper()
	s := must.Get(resumeOn(c, id))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// Two clients that share a session see what the other one writes, and neither
// overwrites what it has not seen.
func TestSharedSession(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("0")})
	a := begin(t, c)
	b := joinSession(t, join(t, h, nil), a.ID())
	wantValue(t, a, "k", []byte("0"))
	wantValue(t, b, "k", []byte("0"))
	must.Do(t, a.Set(bg, "k", []byte("a")))
	var changed *engine.ChangedError
	if err := b.Set(bg, "k", []byte("b")); !errors.As(err, &changed) || !errors.Is(err, txn.ErrConflict) || changed.Key != "k" || changed.Have == (kv.ID{}) {
		t.Errorf("a lost update: %v", err)
	}
	if err := b.Delete(bg, "k"); !errors.As(err, &changed) {
		t.Errorf("a lost update: %v", err)
	}
	wantValue(t, b, "k", []byte("a"))
	if err := b.Set(bg, "k", []byte("b")); err != nil {
		t.Error(err)
	}
	// What was read as absent is to be absent still.
	for _, s := range []*session{a, b} {
		if _, err := kv.Get(bg, s, "new"); err != kv.ErrNotFound {
			t.Error(err)
		}
	}
	if err := a.Set(bg, "new", []byte("a")); err != nil {
		t.Error(err)
	}
	if err := b.Set(bg, "new", []byte("b")); !errors.As(err, &changed) || !changed.Want.Absent {
		t.Error(err)
	}
	// What was not read is written.
	if err := a.Set(bg, "blind", []byte("a")); err != nil {
		t.Error(err)
	}
	if err := b.Set(bg, "blind", []byte("b")); err != nil {
		t.Error(err)
	}
	commit, err := a.Commit(bg, txn.CommitOptions{Message: "both", Properties: map[string]string{"x": "y"}})
	if err != nil || commit.Message != "both" || commit.Author == "" || commit.Properties["x"] != "y" {
		t.Fatalf("%+v, %v", commit, err)
	}
	if _, err := b.Get(bg, "k", kv.All()); !errors.Is(err, txn.ErrSessionClosed) {
		t.Errorf("after the commit: %v", err)
	}
	if err := b.Abort(); err != nil {
		t.Error(err)
	}
	v := version(t, c, commit.ID.String())
	wantValue(t, v, "k", []byte("b"))
	wantValue(t, v, "blind", []byte("b"))
	if got := v.Commit(); got.ID != commit.ID || !got.Time.Equal(commit.Time) || !slices.Equal(got.Parents, commit.Parents) {
		t.Errorf("%+v, want %+v", got, commit)
	}
}

// Elements of one chunk that several processes write are all kept, also while others of a process
// read the chunk, at an edge that one of them has moved, and in shards and texts.
func TestPartsOfChunks(t *testing.T) {
	h, c := served(t, nil, nil)
	one := begin(t, c)
	for name, form := range map[string]string{
		"plain": `"data_type":"int32","codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"fill_value":0`,
		"shard": `"data_type":"int32","codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[4],
			"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],
			"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]}}],"fill_value":0`,
		"texts": `"data_type":"string","codecs":[{"name":"vlen-utf8"}],"fill_value":""`,
	} {
		must.Do(t, one.Set(bg, name+"/zarr.json", []byte(`{"zarr_format":3,"node_type":"array","shape":[28],`+form+`,
			"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[16]}},
			"chunk_key_encoding":{"name":"default"}}`)))
	}
	two := joinSession(t, join(t, h, nil), one.ID())
	sessions := []*engine.Session{one.Session, two.Session, must.Get(h.db.Resume(bg, one.ID()))(t)}
	olds := []*zarr.Array{must.Get(one.Array(bg, "plain"))(t), must.Get(sessions[2].Array(bg, "plain"))(t)}
	must.Do(t, must.Get(two.Array(bg, "plain"))(t).Resize(bg, []int64{32}, zarr.ResizeOptions{}))
	var work sync.WaitGroup
	for i, s := range sessions {
		for _, name := range []string{"plain", "shard", "texts"} {
			a := must.Get(s.Array(bg, name))(t)
			n := a.Meta().Shape[0]
			for turn := range 3 { // writers and a reader
				work.Go(func() {
					for at := int64(i + 3*turn); at < n; at += 9 {
						value := fmt.Sprint(at + 1)
						if name == "texts" {
							value = strconv.Quote(value)
						}
						if turn == 2 {
							if _, err := kv.Get(bg, s, fmt.Sprintf("%s/c/%d", name, at/16)); err != nil && !errors.Is(err, kv.ErrNotFound) {
								t.Errorf("%s of %d: %v", name, i, err)
							}
						}
						if err := a.WriteValue(bg, zarr.Sel(zarr.At(at)), []byte(value)); err != nil {
							t.Errorf("%s[%d] of %d: %v", name, at, i, err)
						}
					}
				})
			}
		}
	}
	work.Wait()
	// Processes that opened the array before it grew write up to what was its edge.
	for _, old := range olds {
		must.Do(t, zarr.Write(bg, old, zarr.Sel(zarr.Slice(16, 28, 1)), []int32{17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}))
	}
	for name, n := range map[string]int32{"plain": 32, "shard": 28} {
		got, _, err := zarr.Read[int32](bg, must.Get(sessions[2].Array(bg, name))(t), zarr.Sel())
		if err != nil || len(got) != int(n) {
			t.Fatalf("%s: %d elements, %v", name, len(got), err)
		}
		for i, v := range got {
			if v != int32(i+1) {
				t.Errorf("%s[%d] is %d", name, i, v)
			}
		}
	}
	texts := must.Get(must.Get(sessions[2].Array(bg, "texts"))(t).ReadVar(bg, zarr.Sel()))(t)
	for i := range texts.Len() {
		if string(texts.At(i)) != fmt.Sprint(i+1) {
			t.Errorf("texts[%d] is %q", i, texts.At(i))
		}
	}
}

// Replies that are too long for a meta arrive all the same; a report of conflicts
// without the list.
func TestLongReplies(t *testing.T) {
	h, c := served(t, &Options{maxMeta: 400}, nil)
	put(t, h.db, map[string][]byte{"k": []byte("0")})
	s := begin(t, c)
	keys := map[string][]byte{}
	for i := range 50 {
		key := fmt.Sprint("k", i)
		keys[key] = []byte("theirs")
		must.Do(t, s.Set(bg, key, []byte("mine")))
	}
	head := put(t, h.db, keys)
	var conflict *txn.ConflictError
	if _, err := s.Commit(bg, txn.CommitOptions{}); !errors.As(err, &conflict) || conflict.Head != head || len(conflict.Conflicts) != 0 {
		t.Errorf("%#v", err)
	}
	n := 0
	for _, err := range s.Changes(bg, "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 50 {
		t.Errorf("%d changes", n)
	}
}

// Another protocol is refused by name.
func TestOtherProtocol(t *testing.T) {
	h, _ := served(t, &Options{Version: "v9.8.7"}, nil)
	conn := must.Get(Connect(bg, h.l.Path()))(t)
	defer conn.Close()
	w := wire.NewConn(conn, wire.Limits{}, 0)
	must.Do(t, w.Send(&wire.Frame{ID: 3, Op: wire.OpHello, Meta: []byte(`{"protocol":77,"version":"v1.2.3"}`)}))
	f, err := w.Receive()
	if err != nil || f.Flags&wire.FlagError == 0 || f.ID != 3 {
		t.Fatal(f, err)
	}
	err = remote(f.Meta)
	if !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	for _, part := range []string{"v9.8.7", "v1.2.3", "protocol 77"} {
		if !contains(err, part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	if _, err := w.Receive(); err == nil {
		t.Error("the connection goes on")
	}
}

// A session ends with its client if it is blank: no savepoint, no write and no guard. What
// a client was promised stays.
func TestBlankSessionsEnd(t *testing.T) {
	h, _ := served(t, nil, nil)
	for name, c := range map[string]struct {
		use   func(*session) error
		stays bool
	}{
		"blank":     {func(s *session) error { _, err := s.Get(bg, "k", kv.All()); return notFound(err) }, false},
		"written":   {func(s *session) error { return s.Set(bg, "k", []byte("1")) }, true},
		"guarded":   {func(s *session) error { return s.Guard(bg, "k") }, true},
		"savepoint": {func(s *session) error { return s.Savepoint(bg) }, true},
	} {
		client := join(t, h, nil)
		s := begin(t, client)
		if err := errors.Join(c.use(s), s.Close()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err := resumeOn(client, s.ID())
		if stays := err == nil; stays != c.stays || !stays && !errors.Is(err, txn.ErrNoRef) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func notFound(err error) error {
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("found, or %w", err)
}

// A session goes on after a dry run of a commit that was not answered.
func TestUnansweredDryRun(t *testing.T) {
	was := handlers[wire.OpCommit]
	t.Cleanup(func() { handlers[wire.OpCommit] = was })
	handlers[wire.OpCommit] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		var in wire.Publish
		if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
			return err
		}
		if in.DryRun {
			return c.u.Close()
		}
		return was(c, ctx, f)
	}
	_, c := served(t, nil, nil)
	s := begin(t, c)
	must.Do(t, s.Set(bg, "k", []byte("1")))
	if _, err := s.Commit(bg, txn.CommitOptions{DryRun: true}); !errors.Is(err, ErrUnknown) || errors.Is(err, txn.ErrLost) {
		t.Error(err)
	}
	wantValue(t, s, "k", []byte("1"))
	if _, err := s.Commit(bg, txn.CommitOptions{}); err != nil {
		t.Error(err)
	}
}

// A commit whose answer was lost takes place once, and the client knows it: the connection ends before,
// beside and after the commit.
func TestUnansweredCommit(t *testing.T) {
	was := handlers[wire.OpCommit]
	t.Cleanup(func() { handlers[wire.OpCommit] = was })
	var next atomic.Pointer[func(c *conn, ctx context.Context, f *wire.Frame) error]
	handlers[wire.OpCommit] = func(c *conn, ctx context.Context, f *wire.Frame) error {
		if lose := next.Swap(nil); lose != nil {
			return (*lose)(c, ctx, f)
		}
		return was(c, ctx, f)
	}
	h, c := served(t, nil, nil)
	for i, lose := range []func(c *conn, ctx context.Context, f *wire.Frame, s *session) error{
		func(c *conn, _ context.Context, _ *wire.Frame, _ *session) error { return c.u.Close() },
		func(c *conn, ctx context.Context, f *wire.Frame, _ *session) error {
			_ = c.u.Close()
			return was(c, context.WithoutCancel(ctx), f)
		},
		func(c *conn, ctx context.Context, _ *wire.Frame, s *session) error {
			joined, err := h.db.Resume(ctx, s.ID())
			if err == nil {
				_, err = joined.Commit(ctx, txn.CommitOptions{Message: fmt.Sprint(2)})
			}
			return errors.Join(err, c.u.Close())
		},
	} {
		s := begin(t, c)
		must.Do(t, s.Set(bg, "k", []byte(fmt.Sprint(i))))
		next.Store(new(func(c *conn, ctx context.Context, f *wire.Frame) error { return lose(c, ctx, f, s) }))
		at := must.Get(s.Commit(bg, txn.CommitOptions{Message: fmt.Sprint(i)}))(t)
		if head := must.Get(h.db.Head(bg, ""))(t); head != at.ID || at.Message != fmt.Sprint(i) || !s.Ended() {
			t.Errorf("commit %d: the head is %v, want %v %q", i, head, at.ID, at.Message)
		}
	}

	// The caller's context ends while the commit is made: another Commit returns it.
	s := begin(t, c)
	must.Do(t, s.Set(bg, "k", []byte("3")))
	ctx, cancel := context.WithCancel(bg)
	next.Store(new(func(c *conn, ctx context.Context, f *wire.Frame) error {
		cancel()
		return was(c, context.WithoutCancel(ctx), f)
	}))
	if _, err := s.Commit(ctx, txn.CommitOptions{Message: "3"}); err != nil { // or the answer was faster
		var lost *SessionLostError
		if !errors.As(err, &lost) || !lost.Committing || !errors.Is(err, context.Canceled) {
			t.Errorf("commit with a context that ends: %v", err)
		}
		at := must.Get(s.Commit(bg, txn.CommitOptions{Message: "again"}))(t)
		if head := must.Get(h.db.Head(bg, ""))(t); at.ID != head || at.Message != "3" {
			t.Errorf("the commit is %v %q, want %v", at.ID, at.Message, head)
		}
	}
	n := 0
	for range h.db.Reflog(bg, "") {
		n++
	}
	if n != 5 {
		t.Errorf("%d moves of main", n)
	}
}
