package local

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

func mustSet(t *testing.T, s *session, key, value string) {
	t.Helper()
	must.Do(t, s.Set(bg, key, []byte(value)))
}

// Forks of a session, each opened by another client, become one commit.
func TestForks(t *testing.T) {
	h, c := served(t, nil, nil)
	s := begin(t, c)
	mustSet(t, s, "mine", "1")
	var forks []*session
	for _, label := range []string{"a", "b"} {
		out, _, err := callJSON[wire.View](t, s, wire.OpFork, wire.Fork{Handle: wire.Handle{View: s.tx.handle}})
		if err != nil || out.Session == nil {
			t.Fatalf("%+v, %v", out, err)
		}
		id := must.Get(txn.ParseSessionID(out.Session.ID))(t)
		f := joinSession(t, join(t, h, nil), id)
		wantValue(t, f, "mine", []byte("1"))
		mustSet(t, f, label, "1")
		forks = append(forks, f)
	}
	mustSet(t, forks[1], "mine", "2")
	mustSet(t, s, "mine", "3")
	take := func(f *session, choices ...wire.Choice) error {
		_, _, err := callJSON[none](t, s, wire.OpJoin, wire.Join{Handle: wire.Handle{View: s.tx.handle}, Session: f.ID().String(), Choices: choices})
		return err
	}
	must.Do(t, take(forks[0]))
	if err := take(forks[1]); !errors.Is(err, txn.ErrConflict) {
		t.Errorf("both changed mine: %v", err)
	}
	if err := take(forks[1], wire.Choice{Path: "mine", Take: "both"}); !errors.Is(err, ErrRequest) {
		t.Error(err)
	}
	must.Do(t, take(forks[1], wire.Choice{Path: "mine", Take: "theirs"}))
	if err := forks[1].Set(bg, "late", nil); !errors.Is(err, txn.ErrSessionClosed) {
		t.Errorf("the fork goes on: %v", err)
	}
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	v := version(t, c, "")
	for key, want := range map[string]string{"mine": "2", "a": "1", "b": "1"} {
		wantValue(t, v, key, []byte(want))
	}
}

// A session takes up its branch, with conflicts decided; guards are not.
func TestRebaseAndGuard(t *testing.T) {
	h, c := served(t, nil, nil)
	put(t, h.db, map[string][]byte{"k": []byte("0"), "read": []byte("0")})
	s := begin(t, c)
	mustSet(t, s, "k", "session")
	put(t, h.db, map[string][]byte{"k": []byte("branch")})
	rebase := func(choices ...wire.Choice) error {
		_, _, err := callJSON[wire.Session](t, s, wire.OpRebase, wire.Rebase{Handle: wire.Handle{View: s.tx.handle}, Choices: choices})
		return err
	}
	if err := rebase(); !errors.Is(err, txn.ErrConflict) {
		t.Error(err)
	}
	must.Do(t, rebase(wire.Choice{Take: "ours"}))
	wantValue(t, s, "k", []byte("branch"))
	must.Do(t, s.Guard(bg, "read"))
	put(t, h.db, map[string][]byte{"read": []byte("1")})
	mustSet(t, s, "other", "1")
	var conflict *txn.ConflictError
	if _, err := s.Commit(bg, txn.CommitOptions{}); !errors.As(err, &conflict) || conflict.Conflicts[0].Kind != txn.ConflictGuard {
		t.Error(err)
	}
}
