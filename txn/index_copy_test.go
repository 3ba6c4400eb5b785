package txn

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A copy of the index shows the moment at which it was made, through commits, expiry and
// collections, and a clone of it is whole.
func TestIndexCopy(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		mem := vfs.NewMem()
		o := testOptions(mem)
		db := openTest(t, o)
		values := map[string]string{}
		for i := range 40 {
			values[fmt.Sprint("k", i)] = strings.Repeat(fmt.Sprint(i), 3000)
		}
		first := update(t, db, "main", values)
		if readOnly {
			closeChecked(t, db)
			ro := *o
			ro.ReadOnly = true
			db = openAgain(t, &ro)
		}
		c, err := db.CopyIndex(bg)
		if err != nil {
			t.Fatal(err)
		}
		if !readOnly {
			for i := range 20 {
				update(t, db, "main", map[string]string{fmt.Sprint("k", 2*i): "small"})
			}
			mustExpire(t, db, ExpireOptions{Keep: 1})
			if r := mustGC(t, db); r.FreedBytes != 0 || r.Leased == 0 {
				t.Errorf("beside a reader: %+v", r)
			}
		}
		reader, err := Open("db", &Options{FS: mem, IndexCopy: c.Name()})
		if err != nil {
			t.Fatal(err)
		}
		if got := at(t, reader, "main"); !maps.Equal(got, values) {
			t.Errorf("read only %v: %d keys in the copy", readOnly, len(got))
		}
		if _, err := reader.Begin(bg, "main"); err == nil {
			t.Error("a session in a copy")
		}
		mustBeSound(t, reader)
		clone := fmt.Sprint("clone", readOnly)
		if _, err := reader.Clone(bg, clone, TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		cloned, err := Open(clone, testOptions(mem))
		if err != nil {
			t.Fatal(err)
		}
		if got := at(t, cloned, first.ID.String()); !maps.Equal(got, values) {
			t.Errorf("read only %v: %d keys in the clone", readOnly, len(got))
		}
		closeChecked(t, cloned)
		if err := errors.Join(reader.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := mem.Stat("db/readers"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a copy is left: %v", err)
		}
		if !readOnly {
			if r := mustGC(t, db); r.FreedBytes == 0 {
				t.Errorf("after the reader: %+v", r)
			}
		}
		closeChecked(t, db)
	}
}

// A copy that is made while a collection runs ends it before it changes a pack.
func TestIndexCopyStopsGC(t *testing.T) {
	db := openTest(t, nil)
	for i := range 40 {
		update(t, db, "main", map[string]string{fmt.Sprint("k", i%2): strings.Repeat(fmt.Sprint(i), 3000)})
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	var c *IndexCopy
	r, err := db.GC(bg, GCOptions{Progress: func(p GCProgress) {
		if p.Phase != "reclaim" || c != nil {
			return
		}
		var err error
		if c, err = db.CopyIndex(bg); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || r.FreedBytes != 0 || !r.Stopped && r.Leased == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// The next process that opens the database removes the copies of one that was killed.
func TestIndexCopyLeft(t *testing.T) {
	o := testOptions(vfs.NewMem())
	db := openTest(t, o)
	c, err := db.CopyIndex(bg)
	if err != nil {
		t.Fatal(err)
	}
	left := "db/" + c.Name() + "0"
	_, err = vfs.Clone(o.FS, o.FS, "db/"+c.Name(), left)
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	closeChecked(t, db)
	if _, err := o.FS.Stat(left); err != nil {
		t.Fatal(err)
	}
	closeChecked(t, openAgain(t, o))
	if _, err := o.FS.Stat("db/readers"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy is left: %v", err)
	}
}

// openAgain opens the database of openTest.
func openAgain(t *testing.T, o *Options) *DB {
	t.Helper()
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Names of copies come from other processes, and lead nowhere else.
func TestIndexCopyName(t *testing.T) {
	o := testOptions(vfs.NewMem())
	closeChecked(t, openTest(t, o))
	for _, name := range []string{"index", "readers/", "readers/../index", "readers/x", "/db/index", "checkpoints/0000000000000001-00000000"} {
		if _, err := Open("db", &Options{FS: o.FS, IndexCopy: name}); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
}
