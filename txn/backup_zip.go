package txn

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zarrdb/zarrdb/kv/index"
)

// stagedSuffix marks a directory that holds what goes into a zip, or came out.
const stagedSuffix = ".staged"

// BackupZip writes a backup of everything to one new zip file, which [Restore]
// takes. It is made as a directory beside the file first, so it needs the space
// twice for that time. A backup that was interrupted is taken up by the same
// call. ErrExists if the file is there: a zip cannot take what is new.
func (db *DB) BackupZip(ctx context.Context, file string, o TransferOptions) (*TransferReport, error) {
	fs := fsOf(db.opts.FS)
	if _, err := fs.Stat(file); err == nil {
		return nil, fmt.Errorf("backup to %s: %w", file, ErrExists)
	}
	staged := file + stagedSuffix
	r, err := db.Backup(ctx, staged, o)
	if err != nil {
		return r, err
	}
	if err := writeZip(ctx, fs, staged, file); err != nil {
		return r, fmt.Errorf("backup to %s: %w", file, err)
	}
	return r, fs.RemoveAll(staged)
}

// writeZip puts the files of a database that is not open into a zip.
func writeZip(ctx context.Context, fs index.FS, dir, file string) error {
	tmp := file + ".tmp"
	f, err := fs.Create(tmp, index.WriteCategory)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	// Payloads are mostly compressed already; holes must not take space.
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, sub := range []string{"", indexDir, packDir} {
		if err == nil {
			err = zipFiles(ctx, fs, w, dir, sub)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(tmp, file)
	}
	if err != nil {
		return errors.Join(err, fs.RemoveAll(tmp))
	}
	return syncDir(fs, fs.PathDir(file))
}

// zipFiles adds the files of one directory.
func zipFiles(ctx context.Context, fs index.FS, w *zip.Writer, dir, sub string) error {
	names, err := fs.List(fs.PathJoin(dir, sub))
	if err != nil {
		return err
	}
	for _, name := range names {
		path := fs.PathJoin(dir, sub, name)
		fi, err := fs.Stat(path)
		if err != nil {
			return err
		}
		if fi.IsDir() || sub == indexDir && (name == "LOCK" || name == "RESERVE") {
			continue
		}
		entry := name
		if sub != "" {
			entry = sub + "/" + name
		}
		to, err := w.Create(entry)
		if err != nil {
			return err
		}
		f, err := fs.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, withContext{ctx, f})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// withContext is a reader that ends with a context.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (r withContext) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// readZip puts the files of a zip that BackupZip made into a new directory.
// Names that are not those of a database's files are refused.
func readZip(ctx context.Context, fs index.FS, file, dir string) (err error) {
	f, err := fs.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, fi.Size())
	if err != nil {
		return fmt.Errorf("%s: %w: %w", file, ErrNotDatabase, err)
	}
	for _, sub := range []string{indexDir, packDir} {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for _, e := range z.File {
		sub, name, ok := strings.Cut(e.Name, "/")
		if !ok {
			sub, name = "", e.Name
		}
		if sub != "" && sub != indexDir && sub != packDir || sub == "" && name != FormatFile ||
			name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
			return fmt.Errorf("%s: %w: it holds %q", file, ErrNotDatabase, e.Name)
		}
		if err := unzip(ctx, fs, e, fs.PathJoin(dir, sub, name)); err != nil {
			return fmt.Errorf("%s: %s: %w", file, e.Name, err)
		}
	}
	return nil
}

// unzip writes one file, with holes where there are zeros. It is not synced: a
// restore reads it and then it goes.
func unzip(ctx context.Context, fs index.FS, e *zip.File, path string) (err error) {
	r, err := e.Open()
	if err != nil {
		return corrupt("%v", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := fs.Create(path, index.WriteCategory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	var at, end int64
	for {
		n, err := io.ReadFull(withContext{ctx, r}, b)
		if n > 0 && !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
			end = at + int64(n)
		}
		at += int64(n)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF && uint64(at) == e.UncompressedSize64:
			if end < at {
				_, err := f.WriteAt([]byte{0}, at-1)
				return err
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return corrupt("%v", err)
		case uint64(at) > e.UncompressedSize64:
			return corrupt("it is longer than it says")
		}
	}
}
