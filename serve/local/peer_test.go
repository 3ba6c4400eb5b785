package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/txn/txntest"
)

// A peer tells of versions what the process tells that has the database open, while it
// writes, expires and collects, and is followed by others.
func TestPeerTellsVersions(t *testing.T) {
	var h *holder
	h, _ = served(t, nil, nil)
	dir := h.db.Dir()
	var path atomic.Value // the client dials by itself too
	path.Store(h.l.Path())
	c := must.Get(Dial(bg, h.l.Path(), &DialOptions{Dir: dir, Redial: func(ctx context.Context) (net.Conn, error) {
		return Connect(ctx, path.Load().(string))
	}}))(t)
	defer c.Close()
	p := must.Get(c.Peer(nil))(t)
	defer p.Close()
	if p.Identity() != h.db.Identity() {
		t.Errorf("the identity of a peer is %v, want %v", p.Identity(), h.db.Identity())
	}
	r := rand.New(rand.NewPCG(1, 2))
	branches := []string{"main", "a", "b"}
	commits := []txn.CommitID{put(t, h.db, map[string][]byte{"d1/k": {1}})}
	for round := range 60 {
		branch := branches[r.IntN(len(branches))]
		_, gone := h.db.Head(bg, branch)
		to := commits[r.IntN(len(commits))]
		var c *txn.Commit
		var err error
		switch n := r.IntN(10); {
		case gone != nil:
			err = h.db.Versions().CreateBranch(bg, branch, to)
		case n < 5:
			c, err = h.db.Update(bg, branch, fmt.Sprint("round ", round), func(s *engine.Session) error {
				return s.Set(bg, fmt.Sprintf("d%d/k%d", r.IntN(2), r.IntN(4)), random(r.Uint64(), 10+r.IntN(3000)))
			})
		case n == 5:
			c, err = h.db.Versions().Merge(bg, branch, commits[r.IntN(len(commits))], txn.CommitOptions{Choices: []txn.PathChoice{{Choice: txn.Ours}}})
		case n == 6:
			_, err = h.db.Versions().Reset(bg, branch, to)
		case n == 7 && branch != "main":
			err = h.db.DeleteBranch(bg, branch)
		case n == 8:
			_, err = h.db.Expire(bg, txn.ExpireOptions{Keep: 2})
			if err == nil {
				_, err = h.db.GC(bg, txn.GCOptions{})
			}
		case n == 9:
			if err = h.end(); err == nil {
				h = hold(t, dir, nil)
				path.Store(h.l.Path())
			}
		default:
			err = h.db.Versions().CreateTag(bg, fmt.Sprint("t", round), to)
		}
		if err != nil && !errors.Is(err, txn.ErrExpired) {
			t.Fatal(round, err)
		}
		if c != nil {
			commits = append(commits, c.ID)
		}
		some := []txn.CommitID{commits[r.IntN(len(commits))], commits[r.IntN(len(commits))], commits[len(commits)-1]}
		if err := txntest.Same(bg, h.db.Versions(), p.Versions(), []string{branch, fmt.Sprint("t", round-1)}, some); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got, want := contents(t, p), contents(t, h.db); !maps.Equal(got, want) {
			t.Fatalf("round %d: a peer reads %v, want %v", round, got, want)
		}
	}
}

// contents are the values of main.
func contents(t *testing.T, db *engine.DB) map[string]string {
	t.Helper()
	s := must.Get(db.At(bg, "main"))(t)
	defer s.Close()
	out := map[string]string{}
	for key, err := range s.List(bg, kv.ListOptions{}) {
		must.Do(t, err)
		b, err := s.Get(bg, key, kv.All())
		if err != nil {
			t.Fatal(key, err)
		}
		out[key] = string(b)
	}
	return out
}

// A peer that was opened for reading changes nothing.
func TestPeerRefuses(t *testing.T) {
	h, c := served(t, nil, nil)
	id := put(t, h.db, map[string][]byte{"k": {1}})
	p := must.Get(c.Peer(&engine.Options{ReadOnly: true}))(t)
	for what, do := range map[string]func() error{
		"begin":      func() error { _, err := p.Begin(bg, ""); return err },
		"resume":     func() error { _, err := p.Resume(bg, txn.SessionID{}); return err },
		"branch":     func() error { return p.Versions().CreateBranch(bg, "x", id) },
		"delete":     func() error { return p.DeleteBranch(bg, "main") },
		"tag":        func() error { return p.Versions().CreateTag(bg, "x", id) },
		"reset":      func() error { _, err := p.Versions().Reset(bg, "", id); return err },
		"undo":       func() error { _, err := p.UndoBranch(bg, ""); return err },
		"merge":      func() error { _, err := p.Versions().Merge(bg, "", id, txn.CommitOptions{}); return err },
		"rebase":     func() error { _, err := p.Versions().Rebase(bg, "", id, txn.RebaseOptions{}); return err },
		"revert":     func() error { _, err := p.Versions().Revert(bg, "", id, 0, txn.CommitOptions{}); return err },
		"pick":       func() error { _, err := p.Versions().CherryPick(bg, "", id, 0, txn.CommitOptions{}); return err },
		"gc":         func() error { _, err := p.GC(bg, txn.GCOptions{}); return err },
		"expire":     func() error { _, err := p.Expire(bg, txn.ExpireOptions{Keep: 1}); return err },
		"checkpoint": func() error { return p.Checkpoint(bg) },
		"repair":     func() error { _, err := p.Repair(bg, txn.CheckOptions{}); return err },
		"abort":      func() error { return p.AbortSession(bg, txn.SessionID{}) },
		"pull":       func() error { _, err := p.Pull(bg, h.db, txn.TransferOptions{}); return err },
	} {
		if err := do(); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s, err := p.Stats(bg, ""); err != nil || s.Keys != 1 || s.Commits != 2 || s.Packs != 0 {
		t.Errorf("stats: %+v, %v", s, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Resolve(bg, "main"); !errors.Is(err, txn.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
