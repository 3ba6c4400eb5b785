package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// Source answers the requests of processes that read a database which another process has
// open:
//
//	DB.Source            in the process that has the lock: index, packs, leases
//	  ▲ requests
//	DB of NewPeer        any other process: its own cache of pages, its own maps of packs
//
// The name of a page is the hash of its bytes, and packs only grow: what a peer has read
// stays right. All methods are safe for concurrent use. Lists that they return are the
// caller's.
type Source interface {
	// Lease resolves a revision as [DB.Resolve] does, and keeps that version from being
	// collected until the lease is released.
	Lease(ctx context.Context, rev string) (Lease, error)
	// Pages returns the committed pages of the first names, in this order: at least one
	// page, and as many as fit into one answer. Their bytes must not be changed. The error
	// is tree.ErrMissing if there is no page of a name.
	Pages(ctx context.Context, q PageQuery) ([][]byte, error)
	// Pack opens the file of the pack that holds the payload at a, with a lease: the file
	// gets no holes until its descriptor and all its maps are closed. The caller closes the
	// file. The error is errors.ErrUnsupported where files cannot be leased.
	Pack(ctx context.Context, a PackAddress) (PackFile, error)
	// Payload returns bytes of the payload at a, from off on: at least one byte and at most
	// n. The caller owns the bytes. It is for systems without leases.
	Payload(ctx context.Context, a PackAddress, off, n uint64) ([]byte, error)
	// Resolve resolves a revision as [DB.Resolve] does.
	Resolve(ctx context.Context, rev string) (CommitID, error)
	// Refs returns the branches and the tags, both sorted by name.
	Refs(ctx context.Context) (branches, tags []Ref, err error)
	// Ancestors returns a commit and the commits before it, in the order of [DB.Log]: at
	// most n commits, and as many as fit into one answer. The error is ErrNoRef if there is
	// no commit from.
	Ancestors(ctx context.Context, from CommitID, n int) ([]Ancestor, error)
	// Records returns records of the index, as many as fit into one answer, and whether
	// there are more. All records of an answer are as of one moment, after the commits that
	// were made before the call.
	Records(ctx context.Context, of RecordRange) (list []Record, more bool, err error)
	// Watch has moves of refs counted, by anybody: each is counted before somebody can see it. The counting
	// ends with the connection, and may end with a recall. The error is errors.ErrUnsupported where memory cannot be shared.
	Watch(ctx context.Context) (Watch, error)
	// Recalled registers a function that is called before a collection, by any goroutine.
	// letGo closes the files that Pack returned as soon as no read uses them. stop ends
	// the registration.
	Recalled(letGo func()) (stop func())
}

type (
	// PageQuery says which pages are asked for.
	PageQuery struct {
		Names []PageName // at least one
		// Key, if it is not empty, asks for the pages on the way to a key: Names has the first
		// of them, and the pages below it may follow, at most tree.MaxFetch pages in all.
		Key []byte
		// Into, if it is not nil, has length 0 and memory for the pages. The pages lie there one
		// behind the other, and fewer pages are returned if there is no room for more; a first
		// page that is longer is in memory of its own. A source of another process ignores Into.
		Into []byte
	}

	// PageName is the hash of a page.
	PageName = tree.Name
	// PackAddress is where a payload lies in its pack.
	PackAddress = pack.Address
	// PackFile is the file of a pack that was leased; an *os.File with its descriptor is one.
	PackFile = pack.Borrowed
	// Record is a record of the index.
	Record = index.Record
)

// RecordRange names the records of one space with keys in [From, To), in the order of the
// keys or in the reverse order. nil stands for the beginning or the end of the space.
// docs/format.md lists the spaces.
type RecordRange struct {
	Space    byte
	From, To []byte
	Reverse  bool
	// Kept, if not 0, is the number that the request "keep" reported: the records are as
	// of that moment.
	Kept uint64
}

// Ancestor is a commit in its stored form; see [DecodeCommit].
type Ancestor struct {
	ID     CommitID
	Record []byte
	// Expired is when the version expired, in nanoseconds since 1970, or nil.
	Expired *int64
}

// ParsePackID is the inverse of PackAddress.Pack.String.
func ParsePackID(s string) (id pack.ID, ok bool) { return pack.ParseID(s) }

// Lease keeps one version. Safe for concurrent use.
type Lease interface {
	// Commit is the version; it must not be changed.
	Commit() *Commit
	// Check returns nil while the version is kept. It returns an error if the version may
	// have been collected: the process that kept the version has ended, and no other
	// process could keep it again.
	Check() error
	// Release ends the lease. Calling it twice is fine.
	Release()
}

// EncodeCommit returns the record of a commit, which the caller owns. The id of the commit
// is the hash of the record; docs/format.md has the layout.
func EncodeCommit(c *Commit) []byte { return catalog.EncodeCommit(c) }

// DecodeCommit decodes the record of a commit. The error is kv.ErrCorrupt if the hash of the
// record is not the id.
func DecodeCommit(id CommitID, record []byte) (*Commit, error) {
	return catalog.DecodeCommit(id, record)
}

// Source returns what other processes may read of this database. A peer returns its own source.
func (db *DB) Source() Source { return db.home.source() }

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

// maxPageBytes bounds the pages or records of one answer.
const maxPageBytes = 1 << 20

// PagesAtOnce implements [FarSource].
func (source) PagesAtOnce() int { return tree.MaxFar }

func (s source) Pages(ctx context.Context, q PageQuery) ([][]byte, error) {
	if err := s.db.check(); err != nil {
		return nil, err
	}
	return somePages(ctx, s.db.pages(), q)
}

func (s source) Pack(ctx context.Context, a PackAddress) (PackFile, error) {
	if err := errors.Join(s.db.check(), ctx.Err()); err != nil {
		return nil, err
	}
	f, err := s.db.lend(ctx, a)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s source) Payload(ctx context.Context, a PackAddress, off, n uint64) (out []byte, err error) {
	err = s.db.home.view(ctx, a, off, min(n, maxPayload), false, digest.Sum{}, func(b []byte) error {
		out = slices.Clone(b)
		return nil
	})
	return out, err
}

// maxPayload bounds one answer to [Source.Payload].
const maxPayload = 16 << 20

func (s source) Resolve(ctx context.Context, rev string) (CommitID, error) {
	return s.db.Resolve(ctx, rev)
}

func (s source) Refs(ctx context.Context) (branches, tags []Ref, err error) {
	if err := s.db.check(); err != nil {
		return nil, nil, err
	}
	return s.db.Refs(ctx)
}

func (s source) Ancestors(ctx context.Context, from CommitID, n int) (list []Ancestor, err error) {
	some := false // some commits have expired; mostly none has
	for _, err := range s.db.idx.Scan(index.SpaceExpired, nil, nil, false) {
		if some = true; err != nil {
			return nil, err
		}
		break
	}
	if err := s.db.check(); err != nil {
		return nil, err
	}
	// The peer keeps the commits: here they would only push out others.
	stored := map[CommitID][]byte{}
	lookup := func(_ context.Context, id CommitID) (*Commit, error) {
		b, err := s.db.storedCommit(id)
		if err != nil {
			return nil, err
		}
		stored[id] = b
		return catalog.DecodeCommit(id, b)
	}
	bytes := 0
	for c, err := range history.Ancestors(ctx, lookup, []CommitID{from}, history.All) {
		if err != nil {
			return nil, err
		}
		a := Ancestor{ID: c.ID, Record: stored[c.ID]}
		if some {
			gone, at, err := s.db.home.expired(ctx, c.ID)
			if err != nil {
				return nil, err
			}
			if gone {
				a.Expired = new(at.UnixNano())
			}
		}
		list = append(list, a)
		if bytes += len(a.Record); len(list) >= min(n, maxRecords) || bytes > maxPageBytes {
			break
		}
	}
	return list, nil
}

// maxRecords bounds one answer to [Source.Records] and [Source.Ancestors].
const maxRecords = 1024

func (s source) Records(ctx context.Context, of RecordRange) (list []Record, more bool, err error) {
	if err := errors.Join(s.db.check(), ctx.Err()); err != nil {
		return nil, false, err
	}
	if of.Space == byte(index.SpacePage) || of.Space == 0xff {
		return nil, false, fmt.Errorf("txn: %q is not a space of records", of.Space)
	}
	var in transfer.Records = s.db.idx
	if of.Kept != 0 {
		in, err = s.db.keptSnapshot(of.Kept)
	} else {
		err = s.db.writePending(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for r, err := range in.Scan(index.Space(of.Space), of.From, of.To, of.Reverse) {
		if err != nil {
			return nil, false, err
		}
		if len(list) == maxRecords || bytes > maxPageBytes {
			return list, true, nil
		}
		list = append(list, Record{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)})
		bytes += len(r.Key) + len(r.Value)
	}
	return list, false, nil
}

func (s source) Watch(context.Context) (Watch, error) {
	return Watch{Writes: &s.db.heads.moves, Live: func() bool { return s.db.check() == nil }}, nil
}

// OnMove has fn called before moves of refs are seen, until stop is called. fn must not use the database. Servers use OnMove to
// tell their clients of moves; see [Source]. For a peer, fn is never called.
func OnMove(db *DB, fn func()) (stop func()) { return db.heads.onMove.add(fn) }

func (s source) Recalled(letGo func()) (stop func()) { return s.db.Cache(letGo) }
