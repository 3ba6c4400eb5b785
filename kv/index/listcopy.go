package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// The list of tables says which tables and logs count, and nothing else does: a
// table that a compaction has replaced may still be there, with deleted keys that are
// gone from its successor, without a trace. So the list is written twice. What was
// synced goes to a copy beside it, which is synced before Pebble acts upon it:
//
//	MANIFEST-000012          MANIFEST-000012.copy
//
// A copy that goes on where the list ends shows that the list was cut off; and a
// lost list is made again from its copy (Recover). Both have their names on disk
// before a marker names the list.
const copySuffix = ".copy"

// isList reports whether a file is a list of tables.
func isList(name string) bool {
	return strings.HasPrefix(name, "MANIFEST-") && !strings.HasSuffix(name, copySuffix)
}

// listFile is a list of tables with its copy. After a failure it swallows what it gets.
type listFile struct {
	logFile
	copy    vfs.File
	pending []byte // in the list, not in the copy
	named   bool   // on disk
}

func (g *guardFS) createList(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.createLog(name, func() (vfs.File, error) { return g.FS.Create(name, category) })
	if err != nil || g.isFailed() {
		return f, err
	}
	c, err := g.FS.Create(name+copySuffix, category)
	if err != nil {
		g.fail("create", name+copySuffix, err)
		return f, nil
	}
	return &listFile{logFile: *f.(*logFile), copy: c}, nil
}

func (f *listFile) Write(p []byte) (int, error) {
	f.pending = append(f.pending, p...)
	return f.logFile.Write(p)
}

// Sync makes the list durable, and then its copy.
func (f *listFile) Sync() error {
	_ = f.logFile.Sync()
	f.do("write copy", func() error {
		_, err := f.copy.Write(f.pending)
		f.pending = f.pending[:0]
		return errors.Join(err, f.copy.Sync())
	})
	if !f.named {
		f.named = true
		f.do("sync directory of", func() error { return syncDir(f.g.FS, f.g.dir) })
	}
	return nil
}

func (f *listFile) SyncData() error { return f.Sync() }

func (f *listFile) Close() error {
	err := f.copy.Close()
	f.do("close copy", func() error { return err })
	return f.logFile.Close()
}

// removeAlone removes the copies that were alone when the index was opened, unless
// there is a list of that number now.
func (g *guardFS) removeAlone() {
	for _, name := range g.alone {
		path := g.FS.PathJoin(g.dir, name)
		if _, err := g.FS.Stat(strings.TrimSuffix(path, copySuffix)); errors.Is(err, os.ErrNotExist) {
			_ = g.FS.Remove(path) // garbage
		}
	}
}

// aloneCopies returns the copies of lists that are gone, which a crash can leave.
// They are worth something until the index has opened without them.
func aloneCopies(names []string) (copies []string) {
	for _, name := range names {
		if list, ok := strings.CutSuffix(name, copySuffix); ok && isList(list) && !slices.Contains(names, list) {
			copies = append(copies, name)
		}
	}
	return copies
}

// hasCopy reports whether the list of tables that counts has a copy.
func hasCopy(names []string) bool {
	list, err := currentList(names)
	return err == nil && slices.Contains(names, list) && slices.Contains(names, list+copySuffix)
}

// scanList goes over a list of tables or the copy of one, and returns how many
// bytes of it hold whole edits, or pieces of the last one.
func scanList(f vfs.File) (size uint64, damaged bool, err error) {
	var s logScan
	err = s.file(f, func([]byte) {})
	return s.read(), s.damaged, err
}

// copyEnds returns how far the copy of a list goes, 0 if there is none.
func copyEnds(fs vfs.FS, list string) (uint64, error) {
	f, err := fs.Open(list + copySuffix)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, _, err := scanList(f)
	return size, errors.Join(err, f.Close())
}

// soundList returns the list of tables that goes furthest, the list itself or its
// copy, as far as it can be read.
func soundList(fs vfs.FS, path string) (best []byte, err error) {
	for _, name := range []string{path, path + copySuffix} {
		b, err := readList(fs, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(b) > len(best) {
			best = b
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: neither %s nor a copy of it can be read", kv.ErrCorrupt, path)
	}
	return best, nil
}

// maxList bounds a list that is read whole; Pebble begins another at 128 MiB.
const maxList = 1 << 30

// readList reads a list as far as it is sound, nothing if others follow.
func readList(fs vfs.FS, path string) (b []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, damaged, err := scanList(f)
	if err != nil || damaged || size > maxList {
		return nil, err
	}
	b = make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}
