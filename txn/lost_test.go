package txn

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// failingPacks fails writes or syncs of packs while it is switched on.
func failingPacks(on *atomic.Bool) vfs.FS {
	f := &crashtest.Faults{Match: func(op errorfs.Op) bool {
		return on.Load() && crashtest.IsWrite(op) && strings.HasSuffix(op.Path, ".pack")
	}}
	return f.Wrap(vfs.NewMem())
}

// After a failed pack the sessions that stored something are told, at their
// next write or commit, and everybody else goes on without opening again.
func TestPackFailureIsSurvived(t *testing.T) {
	var broken atomic.Bool
	db := openTest(t, testOptions(failingPacks(&broken)))
	big := strings.Repeat("x", 3000)
	update(t, db, "main", map[string]string{"before": big})

	saved, victim, idle := mustBegin(t, db), mustBegin(t, db), mustBegin(t, db)
	set(t, saved, map[string]string{"saved": big + "s"})
	must.Do(t, saved.Savepoint(bg))
	set(t, victim, map[string]string{"lost": big + "v"})
	set(t, idle, map[string]string{"small": "1"})

	broken.Store(true)
	culprit := mustBegin(t, db)
	set(t, culprit, map[string]string{"culprit": big + "c"})
	if _, err := culprit.Commit(bg, CommitOptions{}); !errors.Is(err, pack.ErrFailed) {
		t.Fatalf("commit on a broken disk: %v", err)
	}
	broken.Store(false)

	for name, s := range map[string]*Session{"culprit": culprit, "victim": victim} {
		if _, err := s.Commit(bg, CommitOptions{}); !errors.Is(err, ErrLost) {
			t.Errorf("commit of the %s: %v", name, err)
		}
		if err := s.Savepoint(bg); !errors.Is(err, ErrLost) {
			t.Errorf("savepoint of the %s: %v", name, err)
		}
		if err := s.Set(bg, "more", []byte(big)); !errors.Is(err, ErrLost) {
			t.Errorf("write of the %s: %v", name, err)
		}
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
	for name, s := range map[string]*Session{"saved": saved, "idle": idle} {
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			t.Errorf("commit of %s: %v", name, err)
		}
	}
	update(t, db, "main", map[string]string{"after": big + "a"})
	got := at(t, db, "main")
	want := map[string]string{"before": big, "saved": big + "s", "small": "1", "after": big + "a"}
	if len(got) != len(want) {
		t.Errorf("main holds %d keys, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %d bytes", k, len(got[k]))
		}
	}
}

// A pack that fails after a commit was planned, and before its batch, takes
// payloads of it: it is not made.
func TestPackFailureInACommit(t *testing.T) {
	for _, d := range []Durability{DurabilitySync, DurabilityNone} {
		var broken atomic.Bool
		o := testOptions(failingPacks(&broken))
		o.Durability = d
		db := openTest(t, o)
		s := mustBegin(t, db)
		set(t, s, map[string]string{"k": payload("mine"), "lost": payload("lost")})
		head := update(t, db, "main", map[string]string{"k": payload("theirs")})
		must.Do(t, db.Sync(bg))
		other := mustBegin(t, db)
		_, err := s.Commit(bg, CommitOptions{choose: func(Conflict) Choice {
			broken.Store(true)
			if err := other.Set(bg, "large", make([]byte, 300<<10)); !errors.Is(err, pack.ErrFailed) {
				t.Errorf("write on a broken disk: %v", err)
			}
			broken.Store(false)
			return Theirs
		}})
		if !errors.Is(err, ErrLost) {
			t.Errorf("durability %v: %v", d, err)
		}
		if mustHead(t, db) != head.ID {
			t.Errorf("durability %v: the branch moved", d)
		}
		if err := errors.Join(s.Abort(), other.Abort()); err != nil {
			t.Error(err)
		}
		update(t, db, "main", map[string]string{"after": payload("after")})
	}
}

// A failure that shows in a write, not in a commit, is over as well.
func TestPackFailureInSet(t *testing.T) {
	var broken atomic.Bool
	db := openTest(t, testOptions(failingPacks(&broken)))
	large := make([]byte, 300<<10)
	broken.Store(true)
	s := mustBegin(t, db)
	if err := s.Set(bg, "a", large); !errors.Is(err, pack.ErrFailed) {
		t.Fatalf("write on a broken disk: %v", err)
	}
	broken.Store(false)
	if err := s.Set(bg, "a", large); err != nil {
		t.Errorf("write after the failure: %v", err)
	}
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		t.Errorf("commit after the failure: %v", err)
	}
}

func mustBegin(t *testing.T, db *DB) *Session {
	t.Helper()
	s := must.Get(db.Begin(bg, "main"))(t)
	return s
}

// A payload names the array that it belongs to, also when the array is made in
// the same session, and keeps the name when the array moves.
func TestPayloadsNameTheirOwner(t *testing.T) {
	o := testOptions(vfs.NewMem())
	db := openTest(t, o)
	s := mustBegin(t, db)
	big := strings.Repeat("x", 3000)
	set(t, s, map[string]string{"g/a/zarr.json": "array f=c/:/:2", "plain": big + "p"})
	set(t, s, map[string]string{"g/a/c/0/1": big + "1", "g/a/other": big + "o"})
	must.Do(t, s.Move(bg, "g/a", "h"))
	set(t, s, map[string]string{"h/c/12/0": big + "2"})
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	c := must.Get(db.Lookup(bg, mustHead(t, db)))(t)
	id, ok, err := db.space.Identity(bg, c.Root, "h")
	if err != nil || !ok {
		t.Fatalf("identity of h: %v %v", ok, err)
	}
	got := map[string]bool{}
	for _, info := range db.packs.Infos() {
		for r, err := range db.packs.Records(bg, info.ID, 0) {
			must.Do(t, err)
			got[string(r.Owner.Key)] = r.Owner.Array == id
		}
	}
	want := map[string]bool{"c/0/1": true, "c/12/0": true, "plain": false, "g/a/other": false}
	for key, owned := range want {
		if is, ok := got[key]; !ok || is != owned {
			t.Errorf("%s: found %v, owned by the array %v, want %v", key, ok, is, owned)
		}
	}
	if len(got) != len(want) {
		t.Errorf("records: %v", got)
	}
}

func mustHead(t *testing.T, db *DB) CommitID {
	t.Helper()
	id := must.Get(db.Head(bg, "main"))(t)
	return id
}
