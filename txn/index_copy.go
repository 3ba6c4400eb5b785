package txn

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Another process cannot open the index of a database that is open here. It can open a
// copy, which shares the tables, and read the packs beside it:
//
//	this process             another process
//	index/                   readers/3f.../  its own copy, as of one moment
//	packs/  ◀─────────────── packs/          no space is given back meanwhile

// readersDir holds the copies of the index that other processes read.
const readersDir = "readers"

// IndexCopy is a copy of the index of an open database, as of one moment. While it is
// open, collections leave packs alone. Close it before the database, whose next writer
// removes what a killed process left.
type IndexCopy struct {
	name  string
	close func() error
}

// CopyIndex makes a copy of the index for a process that only reads: its
// [Options.IndexCopy] is the name of the copy. Tables are hard links where the file
// system has them, so that it takes milliseconds.
func (db *DB) CopyIndex(ctx context.Context) (_ *IndexCopy, err error) {
	defer wrap(&err, "copy the index for a reader")
	if err := errors.Join(db.whole(), ctx.Err()); err != nil {
		return nil, err
	}
	db.pinMu.Lock() // waits for a pack that is being reclaimed
	db.pinned.Add(1)
	db.copies.Add(1)
	db.pinMu.Unlock()
	var id [8]byte
	rand.Read(id[:])
	c := &IndexCopy{name: readersDir + "/" + hex.EncodeToString(id[:])}
	path := readersPath(db.opts, db.dir, hex.EncodeToString(id[:]))
	c.close = sync.OnceValue(func() error {
		defer db.copies.Add(-1)
		db.copying.Lock()
		defer db.copying.Unlock()
		fs := db.opts.FS
		return errors.Join(fs.RemoveAll(path), index.RemoveEmpty(fs, readersPath(db.opts, db.dir)))
	})
	if err := db.copyIndexTo(ctx, path); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// readersPath joins a path in the directory of copies.
func readersPath(o Options, dir string, names ...string) string {
	return o.FS.PathJoin(append([]string{dir, readersDir}, names...)...)
}

func (db *DB) copyIndexTo(ctx context.Context, path string) error {
	db.copying.Lock()
	defer db.copying.Unlock()
	fs := db.opts.FS
	if err := fs.MkdirAll(readersPath(db.opts, db.dir), 0o777); err != nil {
		return err
	}
	if db.opts.ReadOnly { // nothing changes the index meanwhile
		return index.Clone(fs, fs.PathJoin(db.dir, indexDir), path)
	}
	if err := db.writePending(ctx); err != nil {
		return err
	}
	if err := db.idx.Flush(); err != nil { // logs are copied, and read when the copy is opened
		return err
	}
	return db.idx.Checkpoint(path)
}

// Name names the copy, relative to the directory of the database.
func (c *IndexCopy) Name() string { return c.name }

// Close removes the copy. A process that still reads it gets errors.
func (c *IndexCopy) Close() error { return c.close() }

// openIndexCopy opens the database in dir with a copy of its index.
func openIndexCopy(dir string, opts Options) (*DB, error) {
	id, ok := strings.CutPrefix(opts.IndexCopy, readersDir+"/")
	if _, err := hex.DecodeString(id); !ok || id == "" || err != nil { // it comes from another process
		return nil, fmt.Errorf("txn: open %s: %q is not the name of a copy of the index", dir, opts.IndexCopy)
	}
	opts.ReadOnly = true
	return open(dir, readersPath(opts, dir, id), opts, false)
}

// removeCopies removes what processes left that were killed. This process alone has the
// database open.
func (db *DB) removeCopies() error {
	fs, path := db.opts.FS, readersPath(db.opts, db.dir)
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fs.RemoveAll(path)
}
