package txn

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// A transfer reads its source as of one moment, beside commits, expiry and collections:
//
//	transfer ─▶ home.keep ─▶ snapshot of the index, in DB.kept
//	DB.GC    ─▶ a version goes if it has expired, and had expired in every such snapshot
//
// A peer asks the process that has the database open to keep, for as long as the request
// "keep" is under way. That process ends the request when it gives the database up: then the
// transfer begins anew with what the next process keeps, and goes on with what was copied.

// keep keeps all versions that have not expired from being collected, until release is
// called, or ctx of the result ends.
func (h holder) keep(ctx context.Context) (*transfer.Kept, error) {
	id, snap, err := h.keepHere(ctx)
	if err != nil {
		return nil, err
	}
	return &transfer.Kept{Records: snap, Ctx: ctx, Release: func() { h.letGoOf(id) }}, nil
}

// keepHere is keep in the process that has the database open. id names the snapshot.
func (db *DB) keepHere(ctx context.Context) (id uint64, snap *index.Snapshot, err error) {
	if err := db.check(); err != nil {
		return 0, nil, err
	}
	db.commit.lock() // nothing expires meanwhile
	defer db.commit.unlock()
	if err := db.writePending(ctx); err != nil {
		return 0, nil, err
	}
	var random [8]byte
	rand.Read(random[:]) // a peer of an earlier process cannot mean this snapshot
	id, snap = binary.LittleEndian.Uint64(random[:]), db.idx.Snapshot()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.kept == nil {
		db.kept = map[uint64]*index.Snapshot{}
	}
	db.kept[id] = snap
	return id, snap, nil
}

func (db *DB) letGoOf(id uint64) {
	db.mu.Lock()
	snap := db.kept[id]
	delete(db.kept, id)
	db.mu.Unlock()
	snap.Close()
}

// keptSnapshot returns the snapshot that [DB.keepHere] named.
func (db *DB) keptSnapshot(id uint64) (*index.Snapshot, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	snap := db.kept[id]
	if snap == nil {
		return nil, fmt.Errorf("%w: nothing is kept under the number %d", ErrNotKept, id)
	}
	return snap, nil
}

// keptExpired leaves in expired what a running transfer does not keep.
func (db *DB) keptExpired(expired map[CommitID]struct{}) error {
	db.mu.Lock()
	all := maps.Clone(db.kept)
	db.mu.Unlock()
	for id, snap := range all {
		then, err := catalog.ExpiredIDs(snap)
		if err != nil {
			if _, released := db.keptSnapshot(id); released != nil {
				continue
			}
			return err
		}
		maps.DeleteFunc(expired, func(id CommitID, _ struct{}) bool {
			_, was := then[id]
			return !was
		})
	}
	return nil
}

func (p *peer) keep(of context.Context) (*transfer.Kept, error) {
	// A pack that is not found counts as damage.
	if file := p.id.File; file != "" && FileOf(p.db.dir) != file {
		return nil, fmt.Errorf("%q: the files of the database are not there: %w", p.db.dir, ErrMoved)
	}
	ctx, cancel := context.WithCancelCause(of)
	ids, ended := make(chan uint64, 1), make(chan struct{})
	go func() {
		defer close(ended)
		n := 0
		_, err := ask[none](ctx, p, "keep", none{}, func(id uint64) {
			if n++; n > 1 { // asked again, of another process
				cancel(ErrNotKept)
				return
			}
			ids <- id
		})
		if of.Err() == nil && (err == nil || errors.Is(err, context.Canceled)) { // the process ends
			err = ErrNotKept
		}
		cancel(err)
	}()
	release := func() {
		cancel(context.Canceled)
		<-ended
	}
	select {
	case id := <-ids:
		return &transfer.Kept{Records: sourceRecords{ctx, p.Source, id}, Ctx: ctx, Release: release, Ask: func(ctx context.Context) error {
			_, err := sourceRecords{ctx, p.Source, id}.Get(index.SpaceRef, []byte{0})
			return err
		}}, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// keepUntil keeps the versions until ctx ends, and reports under which number.
func (db *DB) keepUntil(ctx context.Context, _ none, report func(any)) (none, error) {
	id, _, err := db.keepHere(ctx)
	if err != nil {
		return none{}, err
	}
	defer db.letGoOf(id)
	report(id)
	<-ctx.Done()
	return none{}, ctx.Err()
}

// sameDatabase reports whether two of them are one.
func sameDatabase(a, b *DB) bool {
	return a == b || (a.IsPeer() || b.IsPeer()) && a.Identity() == b.Identity()
}
