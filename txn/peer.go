package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Source is what a process that reads a database asks of the one that has it open:
//
//	DB.Source            in the process that has the lock: index, packs, leases
//	  ▲ requests
//	Peer                 any other process: its own cache of pages, its own maps of packs
//
// Pages are named by the hash of their bytes and packs only grow, so what a peer has read
// stays right. All methods are safe for concurrent use.
type Source interface {
	// Lease resolves a revision as [DB.Resolve] does, and keeps that version from being
	// collected until the lease is released.
	Lease(ctx context.Context, rev string) (Lease, error)
	// Pages returns committed pages by their names, in this order, as many as fit into one
	// answer and at least one. The caller owns them. The error is tree.ErrMissing if one
	// of them is not there.
	Pages(ctx context.Context, names []PageName) ([][]byte, error)
	// Pack opens the file of a pack, which holds the payload at a. It is leased: until
	// the descriptor and all maps of it are closed, no hole is made in it. The caller
	// closes it. errors.ErrUnsupported where files cannot be leased.
	Pack(ctx context.Context, a PackAddress) (PackFile, error)
	// Payload returns the bytes [off, off+n) of the payload at a, or fewer, but not none.
	// It is for systems without leases. The caller owns them.
	Payload(ctx context.Context, a PackAddress, off, n uint64) ([]byte, error)
	// Recalled registers a function that is called when files are wanted back: it closes
	// those that are not being read, soon.
	Recalled(letGo func())
}

type (
	// PageName is the hash of a page.
	PageName = tree.Name
	// PackAddress is where a payload lies in its pack.
	PackAddress = pack.Address
	// PackFile is the file of a pack that was leased; an *os.File with its descriptor is one.
	PackFile = pack.Borrowed
)

// ParsePackID is the inverse of the String method of the pack of an address.
func ParsePackID(s string) (id pack.ID, ok bool) { return pack.ParseID(s) }

// Lease keeps one version. Safe for concurrent use.
type Lease interface {
	// Commit is the version; it must not be changed.
	Commit() *Commit
	// Check returns nil, or why the version may have been collected: the process that
	// kept it has ended, and the version had expired.
	Check() error
	// Release ends the lease. Calling it twice is fine.
	Release()
}

// EncodeCommit returns the record of a commit, whose hash is its id; docs/format.md has the
// layout.
func EncodeCommit(c *Commit) []byte { return catalog.EncodeCommit(c) }

// DecodeCommit decodes the record of a commit, and compares its hash with the id.
func DecodeCommit(id CommitID, record []byte) (*Commit, error) {
	return catalog.DecodeCommit(id, record)
}

// Source returns the source of a database that this process has open.
func (db *DB) Source() Source { return source{db} }

type source struct{ db *DB }

// lease is the lease of a snapshot.
type lease struct{ s *Snapshot }

func (l lease) Commit() *Commit { return l.s.commit }
func (l lease) Check() error    { return l.s.failed(nil) }
func (l lease) Release()        { _ = l.s.Close() }

func (s source) Lease(ctx context.Context, rev string) (Lease, error) {
	at, err := s.db.At(ctx, rev)
	if err != nil {
		return nil, err
	}
	return lease{at}, nil
}

// maxPages and maxPageBytes bound one answer to [Source.Pages].
const (
	maxPages     = 64
	maxPageBytes = 1 << 20
)

func (s source) Pages(ctx context.Context, names []PageName) (pages [][]byte, err error) {
	if err := s.db.check(); err != nil {
		return nil, err
	}
	from, bytes := s.db.committed(), 0
	for i, name := range names {
		b, err := from.GetPage(ctx, name)
		if err != nil {
			return nil, err
		}
		if bytes += len(b); i > 0 && (bytes > maxPageBytes || i == maxPages) {
			break
		}
		pages = append(pages, b)
	}
	return pages, nil
}

func (s source) Pack(ctx context.Context, a PackAddress) (PackFile, error) {
	if err := errors.Join(s.db.check(), ctx.Err()); err != nil {
		return nil, err
	}
	f, err := s.db.packs.File(a)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s source) Payload(ctx context.Context, a PackAddress, off, n uint64) (out []byte, err error) {
	err = s.db.packs.View(ctx, a, off, min(n, maxPayload), func(b []byte) error {
		out = slices.Clone(b)
		return nil
	})
	return out, err
}

// maxPayload bounds one answer to [Source.Payload].
const maxPayload = 16 << 20

func (s source) Recalled(letGo func()) { s.db.Cache(letGo) }

// Peer reads a database that another process has open, through a [Source]. Safe for
// concurrent use; Close when done.
type Peer struct {
	db  *DB
	src Source
}

// releaseTime is how long a peer waits for its reads when files are wanted back.
const releaseTime = time.Second

// release gives the files of packs back.
func (p *Peer) release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	p.db.packs.Release(ctx)
}

// NewPeer returns a peer that reads the database in dir. Of the options it uses Policy,
// Resolver and PageCacheBytes.
func NewPeer(dir string, src Source, o *Options) *Peer {
	opts := o.withDefaults()
	opts.ReadOnly = true
	db := &DB{opts: opts, dir: dir, roots: map[tree.Root]int{}, source: src, packs: pack.Borrow(src.Pack)}
	t := tree.New(sourcePages{src}, &tree.Options{CacheBytes: opts.PageCacheBytes})
	db.space = namespace.New(t, opts.Policy, db.load)
	p := &Peer{db, src}
	src.Recalled(p.release)
	return p
}

// At opens the version that a revision names; see [DB.Resolve].
func (p *Peer) At(ctx context.Context, rev string) (*Snapshot, error) {
	if err := p.db.check(); err != nil {
		return nil, err
	}
	l, err := p.src.Lease(ctx, rev)
	if err != nil {
		return nil, err
	}
	c := l.Commit()
	unhold := p.db.hold(c.Root)
	return &Snapshot{db: p.db, commit: c, kept: l.Check, close: func() {
		unhold()
		l.Release()
		if p.idle() {
			p.release()
		}
	}}, nil
}

// idle reports whether no version is open.
func (p *Peer) idle() bool {
	p.db.mu.Lock()
	defer p.db.mu.Unlock()
	return len(p.db.roots) == 0
}

// Close ends the peer. Its snapshots must not be used any more.
func (p *Peer) Close() error {
	if p.db.closed.Swap(true) {
		return nil
	}
	return p.db.packs.Close()
}

// view is pack.Store.View, of a peer too: a payload whose file was not lent is sent.
func (db *DB) view(ctx context.Context, a pack.Address, off, n uint64, fn func([]byte) error) error {
	err := db.packs.View(ctx, a, off, n, fn)
	if db.source == nil || !errors.Is(err, pack.ErrNotLent) {
		return err
	}
	if err := kv.CheckHeld(int64(n)); err != nil {
		return err
	}
	b := make([]byte, 0, n)
	for at := uint64(0); at < n; at = uint64(len(b)) {
		part, err := db.source.Payload(ctx, a, off+at, n-at)
		if err == nil && (len(part) == 0 || uint64(len(part)) > n-at) {
			err = fmt.Errorf("txn: %d bytes came where %d were asked for", len(part), n-at)
		}
		if err != nil {
			return err
		}
		b = append(b, part...)
	}
	return fn(b)
}

// sourcePages are the committed pages of a source.
type sourcePages struct{ src Source }

var (
	_ tree.Pages       = sourcePages{}
	_ tree.PageBatcher = sourcePages{}
)

func (p sourcePages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	pages, err := p.src.Pages(ctx, []PageName{name})
	if err == nil && len(pages) != 1 {
		err = fmt.Errorf("txn: %d pages came where one was asked for", len(pages))
	}
	if err != nil {
		return nil, err
	}
	return pages[0], nil
}

func (p sourcePages) GetPages(ctx context.Context, names []tree.Name) ([][]byte, error) {
	return p.src.Pages(ctx, names)
}

func (p sourcePages) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written by a peer")
}
