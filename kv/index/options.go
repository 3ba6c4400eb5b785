package index

import (
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// Options of [Open]. nil and the zero value open an existing index on the
// operating system's file system for reading and writing.
type Options struct {
	// FS holds the directory; nil is the operating system.
	FS vfs.FS
	// Create makes the directory and the index if they do not exist.
	Create bool
	// ReadOnly opens without writes, except for the lock and the description for
	// a second opener. All writing methods return kv.ErrReadOnly. A process
	// without write permission writes nothing at all: it shares the lock with
	// other such readers, and writers get [LockedError]; while a writer has the
	// index open it gets that error itself. If the lock file is missing, or the
	// disk is mounted read-only, it reads without the lock; a writer that opens
	// the index anyway can make its reads fail, but never return other bytes.
	ReadOnly bool
	// Program is the name in the description for a second opener; "" is the name
	// of the running program.
	Program string
	// Socket is the path at which this process serves the index, for the
	// description; "" means that it does not.
	Socket string

	// CacheBytes is the size of a cache of blocks for this index; 0 uses one that
	// the indexes of the process share. Parsed pages are cached by the layer above, so
	// a large one pays twice.
	CacheBytes int64
	// MemTableBytes is the size of a memtable, which becomes a table when it is
	// full; 0 is 32 MiB. Up to four of them use memory, and flushed ones until
	// the next garbage collection.
	MemTableBytes int
	// MaxOpenFiles bounds open tables; 0 is 500.
	MaxOpenFiles int

	// MinFreeBytes is the free space below which writes are refused; 0 is three
	// times MemTableBytes, which Pebble may have to write to flush its memory.
	MinFreeBytes int64
	// ReserveBytes is the size of a file that is removed when deletes need the
	// space; 0 is 4 MiB, negative disables it.
	ReserveBytes int64
	// DiskFree returns the free bytes for the index; nil asks FS. An FS without
	// that number is treated as large enough.
	DiskFree func() (uint64, error)

	// Note, if set, is called with the outcome of background work, nil included: work is
	// [WorkTables] or [WorkFiles]. Calls may overlap, and must not use the index.
	Note func(work string, err error)

	// tablePause is the first back-off after a table could not be written.
	tablePause time.Duration
}

const (
	// blockBytes makes a block of each page, as nearly all are larger. Smaller
	// blocks make a larger table index, some 30 bytes a block, larger ones read,
	// clear and compare more for one page: a page that is not in the cache of
	// blocks costs about 6 µs, and 3 µs more with blocks of 8 KiB, or 1 µs more
	// with 2 KiB, where a third of the blocks have two pages.
	blockBytes = 1 << 10
	// stopSublevels is the number of overlapping young tables at which writers
	// wait. Pebble's own threshold is never reached, see gate.
	stopSublevels = 20
)

// Kinds of background work, for [Options.Note].
const (
	WorkTables = "tables of the index"
	WorkFiles  = "remove files"
)

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.FS == nil {
		c.FS = osfs.FS
	}
	if c.Program == "" && len(os.Args) > 0 {
		c.Program = filepath.Base(os.Args[0])
	}
	if c.MemTableBytes == 0 {
		c.MemTableBytes = 32 << 20
	}
	if c.MaxOpenFiles == 0 {
		c.MaxOpenFiles = 500
	}
	if c.MinFreeBytes == 0 {
		c.MinFreeBytes = 3 * int64(c.MemTableBytes)
	}
	if c.ReserveBytes == 0 {
		c.ReserveBytes = 4 << 20
	}
	if c.Note == nil {
		c.Note = func(string, error) {}
	}
	if c.tablePause == 0 {
		c.tablePause = time.Millisecond
	}
	return c
}

// pebble gives the options for Pebble, apart from the options that Open adds.
func (o *Options) pebble() *pebble.Options {
	p := &pebble.Options{
		ReadOnly:                    o.ReadOnly,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		// Tables are found by key hash, levels hold random names: little is
		// gained by more levels in between.
		L0CompactionThreshold:      4,
		L0StopWritesThreshold:      1 << 20,
		LBaseMaxBytes:              8 * int64(o.MemTableBytes),
		MaxOpenFiles:               o.MaxOpenFiles,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		// The kernel begins to write the log of a large commit before its sync.
		WALBytesPerSync: 1 << 20,
	}
	size := max(int64(o.MemTableBytes), 2<<20)
	for i := range p.Levels {
		p.TargetFileSizes[i] = min(size<<i, 256<<20)
		p.Levels[i] = pebble.LevelOptions{
			BlockSize:      blockBytes,
			IndexBlockSize: 64 << 10,
			FilterPolicy:   bloom.FilterPolicy(10),
		}
	}
	// Pages hold hashes and compressed names already.
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return p
}
