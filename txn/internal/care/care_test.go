package care

import (
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// overlay is a file system that cannot rename directories, as an overlay for those of a lower layer.
type overlay struct{ vfs.FS }

func (o overlay) Rename(from, to string) error {
	if i, err := o.Stat(from); err == nil && i.IsDir() && from == "db/old" {
		return syscall.EXDEV
	}
	return o.FS.Rename(from, to)
}

func write(t *testing.T, f vfs.FS, name, text string) {
	t.Helper()
	file := must.Get(f.Create(name, vfs.WriteCategoryUnspecified))(t)
	must.Get(file.Write([]byte(text)))(t)
	must.Do(t, errors.Join(file.Sync(), file.Close()))
}

// Damaged files and directories keep their contents in the quarantine, under names of their own.
func TestSetAside(t *testing.T) {
	f := overlay{vfs.NewMem()}
	must.Do(t, f.MkdirAll("db/old/sub", 0o777))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range []string{"db/quarantine/a-20260102T030405Z", "db/quarantine/a-20260102T030405Z.2"} {
		write(t, f, "db/a", "damaged")
		if got, err := SetAside(f, "db", "db/a", now); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		if i := must.Get(f.Stat(want))(t); i.Size() != int64(len("damaged")) {
			t.Errorf("%s has %d bytes", want, i.Size())
		}
	}
	write(t, f, "db/old/sub/b", "below")
	kept := must.Get(SetAside(f, "db", "db/old", now))(t)
	if i := must.Get(f.Stat(kept + "/sub/b"))(t); i.Size() != int64(len("below")) {
		t.Errorf("a copied file has %d bytes", i.Size())
	}
	for _, gone := range []string{"db/a", "db/old"} {
		if _, err := f.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if _, err := SetAside(f, "db", "db/none", now); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// An error that another process reports has its text and its kind.
func TestDamageAsJSON(t *testing.T) {
	for _, err := range []error{
		errors.New("plain"),
		kv.ErrCorrupt,
		&pack.CorruptError{Offset: 7, Reason: "a wrong checksum"},
		&DamageError{Problems: []Problem{{What: "page p", Err: kv.ErrCorrupt}}, Err: kv.ErrCorrupt},
	} {
		var d Damage
		must.Do(t, json.Unmarshal(must.Get(json.Marshal(Damage{err}))(t), &d))
		var was, is *pack.CorruptError
		if d.Err.Error() != err.Error() || errors.Is(d.Err, kv.ErrCorrupt) != errors.Is(err, kv.ErrCorrupt) || errors.As(d.Err, &is) != errors.As(err, &was) {
			t.Errorf("%v became %v", err, d.Err)
		}
		if was != nil && *was != *is {
			t.Errorf("%+v became %+v", was, is)
		}
	}
	var none Damage
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(none))(t), &none))
	if none.Err != nil || none.Known() == nil {
		t.Errorf("no error became %v, known as %v", none.Err, none.Known())
	}
}
