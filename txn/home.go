package txn

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// home is where the index of a database is: a holder has it open, and a peer asks the process that has
// it open. open and [NewPeer] choose it. What needs the whole index is a request; see ask.go.
type home interface {
	identity() Identity
	here() error
	failed() error
	close() error
	source() Source
	remote() Remote
	// usage returns how many packs there are, and what was written to the log of the index.
	usage() (packs int, written int64)

	// records are those of the index as of now.
	records(ctx context.Context) transfer.Records
	// keep keeps versions for a transfer; see keep.go.
	keep(ctx context.Context) (*transfer.Kept, error)
	// readCommit reads a commit that is not in the cache, and reached notes that one was looked up.
	readCommit(ctx context.Context, id CommitID) (*Commit, error)
	reached(ctx context.Context, id CommitID)
	// view reads a payload with pack.Store.View, or with Reread if all is set. In a lazy clone the whole bytes are compared with
	// their hash sum first, once; a zero sum is not known.
	view(ctx context.Context, a pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) error
	// expired reports whether a commit was let go, and when. gone is the same with a cache.
	expired(ctx context.Context, id CommitID) (bool, time.Time, error)
	gone(ctx context.Context, id CommitID) (bool, time.Time, error)
	refs(ctx context.Context) (branches, tags []Ref, err error)
	head(ctx context.Context, branch string) (CommitID, error)
	resolve(ctx context.Context, rev string) (CommitID, error)
	at(ctx context.Context, rev string) (*Snapshot, error)
	snapshot(ctx context.Context, id CommitID) (*Snapshot, error)

	begin(ctx context.Context, o BeginOptions) (*Session, error)
	resume(ctx context.Context, id SessionID) (*Session, error)
	// combine, transfer and repair are requests with callbacks or other databases.
	combine(ctx context.Context, r combineRequest) (*Commit, error)
	transfer(ctx context.Context, from *DB, do string, o TransferOptions) (*TransferReport, error)
	repair(ctx context.Context, o CheckOptions, from []*DB) (*RepairReport, error)
}

// holder is the home of a database that this process has open.
type holder struct{ *DB }

func (h holder) identity() Identity {
	return Identity{Name: hex.EncodeToString(h.incarnation[:]), File: h.idx.LockFile()}
}

func (h holder) here() error    { return h.idx.Here() }
func (h holder) failed() error  { return h.idx.Failed() }
func (h holder) source() Source { return source{h.DB} }
func (h holder) remote() Remote { return remote{source{h.DB}} }

func (h holder) close() error {
	for _, s := range h.openSessions() {
		s.suspend()
	}
	h.commit.lock() // a commit under way ends first
	defer h.commit.unlock()
	return h.shut()
}

func (h holder) usage() (packs int, written int64) {
	for _, i := range h.packs.Infos() {
		if !i.Missing {
			packs++
		}
	}
	return packs, int64(h.idx.Metrics().LogBytes)
}

func (h holder) records(context.Context) transfer.Records { return h.idx }

func (h holder) readCommit(_ context.Context, id CommitID) (*Commit, error) {
	b, err := h.storedCommit(id)
	if err != nil {
		return nil, err
	}
	return catalog.DecodeCommit(id, b)
}

func (h holder) view(ctx context.Context, a pack.Address, off, n uint64, all bool, sum digest.Sum, fn func([]byte) error) error {
	switch {
	case h.away != nil:
		return h.away.View(ctx, a, off, n, all, sum, fn)
	case all:
		return h.packs.Reread(ctx, a, off, n, fn)
	}
	return h.packs.View(ctx, a, off, n, fn)
}

func (h holder) reached(context.Context, CommitID) {}

func (h holder) expired(_ context.Context, id CommitID) (bool, time.Time, error) {
	if h.pending.commit(id) != nil {
		return false, time.Time{}, nil // it was made again
	}
	e, err := catalog.Expired.Get(h.idx, id)
	if errors.Is(err, index.ErrNotFound) {
		return false, time.Time{}, nil
	}
	return err == nil, e.Time, err
}

func (h holder) gone(ctx context.Context, id CommitID) (bool, time.Time, error) {
	known, age := h.current.has(id)
	if known {
		return false, time.Time{}, nil
	}
	gone, at, err := h.expired(ctx, id)
	if err == nil && !gone {
		h.current.add(id, age)
	}
	return gone, at, err
}

func (h holder) refs(context.Context) (branches, tags []Ref, err error) {
	return h.heads.list(catalog.HeadPrefix), h.heads.list(catalog.TagPrefix), nil
}

func (h holder) head(_ context.Context, branch string) (CommitID, error) {
	if id, ok := h.heads.get(catalog.HeadRef(branch)); ok {
		return id, nil
	}
	return CommitID{}, fmt.Errorf("branch %q: %w", branch, ErrNoRef)
}

func (h holder) combine(ctx context.Context, r combineRequest) (*Commit, error) {
	return r.do(ctx, h.DB)
}

func (h holder) transfer(ctx context.Context, from *DB, do string, o TransferOptions) (_ *TransferReport, err error) {
	if do == transfer.OpBackup {
		defer wrap(&err, "backup to %s", h.dir)
		return from.backupTo(ctx, h.DB, o)
	}
	defer wrap(&err, "%s", do)
	if do != transfer.OpPush && do != transfer.OpPull && do != transfer.OpFetch {
		return nil, fmt.Errorf("%w: it is no transfer", ErrRequest)
	}
	return transferred(from, h.DB, func(from *transfer.From, to *transfer.To) (*TransferReport, error) {
		return transfer.Exchange(ctx, from, to, do, o)
	})
}
