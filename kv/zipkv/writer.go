package zipkv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Writer makes an archive. Members are stored as they are, so that ranges of them can
// be read. Equal members in equal order give equal bytes: there
// are no times in it (all are 1980-01-01) and no names of machines. It keeps the
// directory in memory: about 50 bytes and the name for each member.
//
// It is a kv.Writer that can only add: setting a key again is an error, and so
// is deleting one that was set. After an error of the output every further
// call returns it. Safe for concurrent use; members are written one after the
// other.
type Writer struct {
	mu  sync.Mutex
	out *bufio.Writer
	at  int64 // bytes written
	err error

	dir   []byte // the directory so far
	count uint64
	names nameSet

	comment string

	path, tmp string // of Create
	file      *os.File

	// From these sizes on, numbers go into zip64 fields. Tests lower them.
	limit32, limit16 uint64
}

var _ kv.Writer = (*Writer)(nil)

// Named reports whether a path has the suffix of an archive: .zip, or .ozx of a zipped OME-Zarr.
func Named(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".zip" || ext == ".ozx"
}

// SetComment sets the comment of the archive, of at most 65,535 bytes. Call it before Close.
func (z *Writer) SetComment(text string) { z.comment = text[:min(len(text), max16)] }

// newWriter writes an archive to w. Close completes it and does not close w.
func newWriter(w io.Writer) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, 1<<18), limit32: max32, limit16: max16}
}

// Create writes an archive to a file. Until Close it is a temporary file beside
// path; Close syncs it and replaces path. Abort, or an error, leaves path
// unchanged.
func Create(path string) (*Writer, error) {
	tmp := temp.Name(path)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("zipkv: create %s: %w", path, err)
	}
	z := newWriter(f)
	z.path, z.tmp, z.file = path, tmp, f
	return z, nil
}

// errExists is returned by Set for a key that the archive already has.
var errExists = fault.New("zipkv: member exists", fault.ErrExists)

// Set implements kv.Writer.
func (z *Writer) Set(ctx context.Context, key string, value []byte) error {
	return z.SetValue(ctx, key, kv.Bytes(value))
}

// Delete implements kv.Writer. An archive cannot delete a written member, so it
// is errors.ErrUnsupported for keys that were set.
func (z *Writer) Delete(ctx context.Context, key string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.begin(ctx); err != nil {
		return err
	}
	if z.names.has(z.dir, key) {
		return fmt.Errorf("zipkv: delete %q: an archive only grows: %w", key, errors.ErrUnsupported)
	}
	return nil
}

// SetValue writes a value of any size as member key. A large one is read in
// pieces: once for its checksum, once to write it. It must not change in between.
func (z *Writer) SetValue(ctx context.Context, key string, v kv.Value) error {
	if reason := refused(key); reason != "" || len(key) > max16 {
		return fmt.Errorf("zipkv: set: %w: %.200q: %s", kv.ErrInvalidKey, key, reason)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.begin(ctx); err != nil {
		return err
	}
	if v.Size() > atOnce {
		return z.set(ctx, key, v)
	}
	return v.View(ctx, kv.All(), func(b []byte) error { return z.set(ctx, key, kv.Bytes(b)) })
}

// set writes a member.
func (z *Writer) set(ctx context.Context, key string, v kv.Value) error {
	if !z.names.add(z.dir, key) {
		return fmt.Errorf("zipkv: set %q: %w", key, errExists)
	}
	crc, err := eachPiece(ctx, v, func([]byte) error { return nil })
	if err != nil {
		delete(z.names.all, key) // nothing was written yet
		return fmt.Errorf("zipkv: set %q: %w", key, err)
	}
	h := record{name: key, crc: crc, size: uint64(v.Size()), offset: uint64(z.at)}
	if err := z.write(h.local(z)); err != nil {
		return err
	}
	start := z.at
	written, err := eachPiece(ctx, v, z.write)
	if err == nil && (written != crc || uint64(z.at-start) != h.size) {
		err = kv.ErrChanged
	}
	if err != nil {
		return z.fail(fmt.Errorf("zipkv: set %q: %w", key, err))
	}
	z.dir = h.appendCentral(z.dir, z)
	z.count++
	return nil
}

func (z *Writer) begin(ctx context.Context) error {
	if z.err != nil {
		return z.err
	}
	return ctx.Err()
}

func (z *Writer) fail(err error) error {
	if z.err == nil {
		z.err = err
	}
	return err
}

// write appends to the archive.
func (z *Writer) write(b []byte) error {
	n, err := z.out.Write(b)
	z.at += int64(n)
	if err != nil {
		return z.fail(fmt.Errorf("zipkv: write: %w", err))
	}
	return nil
}

// atOnce is the size up to which a value is read only once.
const atOnce = 8 << 20

// eachPiece calls fn with the bytes of v, in order, and returns their checksum.
func eachPiece(ctx context.Context, v kv.Value, fn func([]byte) error) (crc uint32, err error) {
	piece := func(b []byte) error {
		crc = crc32.Update(crc, crc32.IEEETable, b)
		return fn(b)
	}
	if kv.Streams(v) {
		err = kv.Stream(ctx, v, piece)
	} else {
		err = kv.Pieces(ctx, v, 0, v.Size(), piece)
	}
	return crc, err
}

// Close writes the directory. With Create the archive is then durable at its
// path; after an error nothing is left.
func (z *Writer) Close() error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err == kv.ErrClosed {
		return z.err
	}
	err := z.err
	if err == nil {
		err = z.finish()
	}
	z.err = kv.ErrClosed
	if z.file == nil {
		return err
	}
	if err == nil {
		err = z.place()
	}
	if err != nil {
		z.discard()
	}
	return err
}

// Abort ends the writer without an archive. With Create it removes the temporary
// file.
func (z *Writer) Abort() error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err == kv.ErrClosed {
		return z.err
	}
	z.err = kv.ErrClosed
	if z.file == nil {
		return nil
	}
	return z.discard()
}

func (z *Writer) discard() error {
	z.file.Close()
	return os.Remove(z.tmp)
}

// place renames the finished temporary file to the archive.
func (z *Writer) place() error {
	err := z.file.Sync()
	if e := z.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(z.tmp, z.path)
	}
	if err == nil {
		err = temp.SyncFolder(z.path)
	}
	if err != nil {
		return fmt.Errorf("zipkv: create %s: %w", z.path, err)
	}
	return nil
}

// finish writes the directory and the end records.
func (z *Writer) finish() error {
	at := uint64(z.at)
	if err := z.write(z.dir); err != nil {
		return err
	}
	if err := z.write(z.appendEnd(nil, at)); err != nil {
		return err
	}
	if err := z.out.Flush(); err != nil {
		return z.fail(fmt.Errorf("zipkv: write: %w", err))
	}
	return nil
}
