package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"runtime"
	"time"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
)

// Options configure a database. nil and the zero value work.
type Options struct {
	// ReadOnly opens without writing anything.
	ReadOnly bool
	// WhyReadOnly, if not nil, is part of the error of a write to a database that is ReadOnly.
	WhyReadOnly error
	// Create makes the database if the directory holds none.
	Create bool
	// LockWait bounds the wait for another process that has the database open;
	// default 0. Then opening fails with a *[LockedError]. It fails at once if this process
	// itself has the database open and Locked is not set.
	LockWait time.Duration
	// Locked, if set, is called during that wait each time that the database is
	// found locked. An error ends the wait, and opening returns it.
	Locked func(held *LockedError) error
	// Author is recorded in commits that name none; default user@host.
	Author string
	// MemoryBytes bounds the memory that all databases of the process take together: decoded
	// chunks, pages and buffers. The least of the open databases counts. The default is a quarter
	// of the memory that the machine, the cgroup and GOMEMLIMIT allow. Where several processes have
	// a database open, each one takes an equal part. [UsedMemory] returns the present use.
	MemoryBytes int64
	// CacheBytes is the size of a cache of decoded chunks for this database, beside
	// MemoryBytes; 0 uses the cache that the databases of the process share, negative
	// disables caching.
	CacheBytes int64
	// Workers is the number of chunks that all operations together read or write
	// at a time; default GOMAXPROCS.
	Workers int
	// Codecs are the codecs of arrays; nil is [source.DefaultCodecs].
	Codecs *codecs.Registry
	// Adapters resolves URL schemes; nil is [DefaultAdapters].
	Adapters *Adapters
	// Follow allows references of virtual values, in addition to the grants of
	// this machine; see [DB.Grant].
	Follow Follow
	// ConfigDir is where this machine remembers that; default "zarrdb" in
	// [os.UserConfigDir].
	ConfigDir string
	// PageCacheBytes is the size of a cache of index pages for this database, beside
	// MemoryBytes; 0 uses the cache that the databases of the process share.
	PageCacheBytes int64
	// VerifyReads compares stored bytes with their checksums at every read, and not only when this
	// process reads them first; see [txn.Options].
	VerifyReads bool
	// SessionBytes bounds the bytes that one session buffers in memory; the default is
	// a part of MemoryBytes, at most 64 MiB.
	SessionBytes int64
	// Durability selects when commits are on disk; default [txn.DurabilitySync].
	Durability txn.Durability
	// SyncInterval bounds the delay of commits with [txn.DurabilityAsync];
	// default 1 s.
	SyncInterval time.Duration
	// Serve, if set, is called before the database is opened, and returns how this
	// process serves it to other processes while it is open; see package serve/local.
	// Without it, or if it returns nil, the database is not served.
	Serve func(dir string) (*Serving, error)
	// Join, if set, opens a database that another process has open, as a peer of that
	// process, and returns its closer; see package serve/local. Transfers and repairs
	// that other processes ask for read such databases.
	Join func(ctx context.Context, held *LockedError, o *Options) (db *DB, done func() error, err error)
	// CareFailed, if set, is called when work fails that the database does by itself, such
	// as checkpoints, and that did not fail before; see [DB.CareErrors]. Calls may overlap,
	// and must not use the database.
	CareFailed func(txn.CareError)
	// Warn, if set, is called with a text for the user if a database is opened by the URL of a remote that cannot be reached, or
	// went back.
	Warn func(text string)
	// FS is where the database lives; nil is the operating system's.
	FS index.FS
	// Now is the clock for commit times, safe for concurrent use; default
	// [time.Now].
	Now func() time.Time
}

// Serving is how a process serves its open database to other processes.
type Serving struct {
	// Socket is the path of the socket on which it listens. A [LockedError] of other
	// processes has it.
	Socket string
	// Dial connects this process itself. It is called after Start.
	Dial func() (net.Conn, error)
	// Start is called when the database is open, and Stop before it is closed: it
	// waits for the requests that are running. Stop is called once, and not if
	// Start fails.
	Start func(*DB) error
	Stop  func() error
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Author == "" {
		c.Author = defaultAuthor()
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Codecs == nil {
		c.Codecs = source.DefaultCodecs()
	}
	if c.Adapters == nil {
		c.Adapters = DefaultAdapters()
	}
	return c
}

const (
	maxCacheBytes = 1 << 44
	maxWorkers    = 1 << 20
)

// check reports an option that has no sense.
func (o *Options) check() error {
	switch {
	case o.CacheBytes > maxCacheBytes:
		return fmt.Errorf("engine: Options.CacheBytes is %d, the most is %d; 0 is a part of MemoryBytes", o.CacheBytes, int64(maxCacheBytes))
	case o.Workers > maxWorkers:
		return fmt.Errorf("engine: Options.Workers is %d, the most is %d; 0 is the number of processors", o.Workers, maxWorkers)
	}
	return o.Follow.Check()
}

// defaultAuthor returns the user of the process.
func defaultAuthor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return name
}
