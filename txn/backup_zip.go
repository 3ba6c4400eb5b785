package txn

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// stagedSuffix marks a directory with the index that goes into a zip.
const stagedSuffix = ".staged"

// BackupZip writes a backup of everything to one new zip file, which [Restore]
// takes. Payloads go straight into the file, uncompressed, and are read back from
// it; only the index is made beside it first. The file is there when everything
// in it is verified and durable, or not at all. ErrExists if it is there before: a
// zip cannot take what is new.
func (db *DB) BackupZip(ctx context.Context, file string, o TransferOptions) (_ *TransferReport, err error) {
	if err := db.whole(); err != nil {
		return nil, fmt.Errorf("backup to %s: %w", file, err)
	}
	fs := db.opts.FS
	if o.SkipDamaged {
		return nil, fmt.Errorf("backup to %s: a zip file cannot leave out damaged chunks: make the backup in a directory: %w", file, errors.ErrUnsupported)
	}
	if _, err := fs.Stat(file); err == nil {
		return nil, fmt.Errorf("backup to %s: %w", file, ErrExists)
	}
	z := zipBackup{db: db, fs: fs, staged: file + stagedSuffix, tmp: file + ".tmp"}
	r, err := z.run(ctx, o)
	if err == nil {
		err = fs.Rename(z.tmp, file)
	}
	if err == nil {
		err = index.SyncDir(fs, fs.PathDir(file))
	} else if exists(fs, z.tmp) {
		err = errors.Join(err, fs.Remove(z.tmp))
	}
	if err = errors.Join(err, fs.RemoveAll(z.staged)); err != nil {
		return r, fmt.Errorf("backup to %s: %w", file, err)
	}
	return r, nil
}

// zipBackup is a backup into a zip under way: a transfer to a database whose packs
// are in the zip, and whose index follows them.
type zipBackup struct {
	db          *DB
	fs          index.FS
	staged, tmp string
	zip         *zip.Writer
}

func (z *zipBackup) run(ctx context.Context, o TransferOptions) (_ *TransferReport, err error) {
	if err := z.fs.RemoveAll(z.staged); err != nil { // of one that was interrupted
		return nil, err
	}
	if _, err := prepareDir(z.fs, z.staged); err != nil {
		return nil, err
	}
	to, err := open(z.staged, z.fs.PathJoin(z.staged, indexDir), z.db.copyOptions(), true)
	if err != nil {
		return nil, err
	}
	t, err := newTransfer(z.db, to, o)
	defer t.close()
	if err != nil {
		return t.r, errors.Join(err, to.Close())
	}
	f, err := z.fs.Create(z.tmp, index.WriteCategory)
	if err != nil {
		return t.r, errors.Join(err, to.Close())
	}
	z.zip = zip.NewWriter(f)
	err = inTurn(ctx,
		func(ctx context.Context) error { return t.begin(ctx, everything) },
		t.walk,
		func(ctx context.Context) error { return z.packs(ctx, t) },
		t.copyPages,
		func(ctx context.Context) error { return t.mirror(ctx, &z.db.incarnation) })
	if err = errors.Join(err, to.Close()); err == nil {
		err = z.index(ctx)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = z.verify(ctx, t)
	}
	return t.r, err
}

// stored adds a file to the zip. What is stored as it is can be read in place.
func (z *zipBackup) stored(dir, name string) (io.Writer, error) {
	return z.zip.CreateHeader(&zip.FileHeader{Name: dir + "/" + name, Method: zip.Store})
}

// packs writes the payloads, each pack without its holes.
func (z *zipBackup) packs(ctx context.Context, t *transfer) error {
	for _, id := range t.needed() {
		w, err := z.stored(packDir, pack.FileName(id))
		if err != nil {
			return err
		}
		before := t.r.PayloadBytes
		info, err := t.from.packs.Export(ctx, id, t.found.need[id], w, func(n uint64) {
			t.r.PayloadBytes = before + int64(n)
			t.report("copy", t.r.PayloadBytes, t.found.total)
		})
		if err != nil {
			return err
		}
		t.r.Packs++
		t.packs = append(t.packs, info)
	}
	return nil
}

// index adds the files of the index, which is not open, and the one that makes a
// database of them.
func (z *zipBackup) index(ctx context.Context) error {
	dir := z.fs.PathJoin(z.staged, indexDir)
	names, err := z.fs.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := z.fs.PathJoin(dir, name)
		fi, err := z.fs.Stat(path)
		if err != nil {
			return err
		}
		if fi.IsDir() || name == "LOCK" || name == "RESERVE" {
			continue
		}
		w, err := z.stored(indexDir, name)
		if err != nil {
			return err
		}
		f, err := z.fs.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: FormatFile, Method: zip.Store})
	if err == nil {
		_, err = io.WriteString(w, formatText)
	}
	return errors.Join(err, z.zip.Close())
}

// verify opens the zip as a restore does, and compares every payload that went
// into it.
func (z *zipBackup) verify(ctx context.Context, t *transfer) (err error) {
	opts := z.db.copyOptions()
	opts.ReadOnly = true
	in, closeZip, err := openZip(ctx, z.fs, z.tmp, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), closeZip()) }()
	t.to = in
	if err := t.verify(ctx); err != nil {
		return err
	}
	return in.sound(ctx)
}

// openZip opens the database in a zip file for reading. Its index is compared with
// the checksums of the zip; packs have their own.
func openZip(ctx context.Context, fs index.FS, file string, opts Options) (_ *DB, closeZip func() error, err error) {
	z, err := index.OpenZip(fs, file)
	if errors.Is(err, kv.ErrCorrupt) { // or something else than a zip
		err = fmt.Errorf("%w: %v", ErrNotDatabase, err)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, z.Close())
		}
	}()
	for _, name := range z.Names() {
		if strings.HasPrefix(name, packDir+"/") {
			continue
		}
		if err := z.Verify(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	opts.FS = z
	db, err := Open(file, &opts)
	return db, z.Close, err
}
