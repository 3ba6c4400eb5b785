package txn

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Rot of a payload that this process has read already does not get into new versions: a session finds
// it, a full check names it, and a write of the right bytes heals it. With VerifyReads, a snapshot
// finds it too.
func TestRotAfterTheFirstRead(t *testing.T) {
	if !mmap.Supported || strconv.IntSize == 32 { // with an address space for few maps
		t.Skip("files are not mapped here")
	}
	const key = "a"
	value := bytes.Repeat([]byte("0123456789abcdef"), 1<<13) // two blocks of a pack
	for _, verify := range []bool{false, true} {
		o := testOptions(nil)
		o.VerifyReads = verify
		db := openOnDisk(t, o)
		s := mustBegin(t, db)
		must.Do(t, s.Set(bg, key, value))
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		at := must.Get(db.At(bg, "main"))(t)
		defer at.Close()
		for range 2 {
			if got, err := at.Get(bg, key, kv.All()); err != nil || !bytes.Equal(got, value) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
		}
		damageOf(t, db, db.fs, "main", key)
		if _, err := at.Get(bg, key, kv.All()); errors.Is(err, kv.ErrCorrupt) != verify {
			t.Errorf("VerifyReads is %v, a second read returns %v", verify, err)
		}
		s = mustBegin(t, db)
		if _, err := s.Get(bg, key, kv.All()); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a session reads damage: %v", err)
		}
		if r := checkReport(t, db, CheckOptions{Payloads: true}); r.Found != 1 {
			t.Errorf("a check finds %d problems, want 1", r.Found)
		}
		if err := s.Set(bg, key, value); err != nil || s.Healed() != 1 {
			t.Errorf("%d payloads were healed, %v", s.Healed(), err)
		}
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
}
