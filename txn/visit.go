package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/visits"
)

// Visit is a connection of a peer. It is for one goroutine.
type Visit struct {
	*visits.Visit
	db *DB
}

// Visit begins a visit: the first one of a peer, which who describes in errors, if name is "" or
// is not that of a living peer. The error is errors.ErrUnsupported if the peer cannot have a
// file: then its leases end with this process.
func (db *DB) Visit(name, who string) (*Visit, error) {
	if err := db.writable(); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	v, err := db.visits.Visit(name, who)
	if err != nil {
		return nil, err
	}
	return &Visit{v, db}, nil
}

// Renew opens a version that the peer had leased before this visit. The version may have
// expired: nothing was collected without the peer.
func (v *Visit) Renew(ctx context.Context, id CommitID) (*Snapshot, error) {
	if v.File != nil {
		return v.db.Snapshot(ctx, id)
	}
	c, err := v.db.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Snapshot{db: v.db, commit: c, close: v.db.hold(c.Root)}, nil
}

// holdStored keeps a version that a peer has open, if all of it is stored.
func (db *DB) holdStored(id CommitID) (release func(), err error) {
	c, err := db.Lookup(context.Background(), id)
	if errors.Is(err, ErrNoRef) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored := c.Root.Empty() || db.committed().ViewPage(context.Background(), c.Root.Name, func([]byte) error { return nil }) == nil
	if !stored {
		return nil, nil
	}
	return db.hold(c.Root), nil
}
