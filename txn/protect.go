package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Protection says which moves of a branch or tag are refused.
type Protection = catalog.Protection

const (
	// Unprotected refuses nothing.
	Unprotected = catalog.Unprotected
	// Protected lets a branch go forward only: by commits and merges. What would drop versions of it is
	// refused: deletion, reset, undo, rebase, amend, a forced push. A protected tag cannot be deleted.
	Protected = catalog.Protected
	// Frozen lets a branch or tag not move at all.
	Frozen = catalog.Frozen
)

// ErrProtected means that a branch or tag is protected from a move.
var ErrProtected = catalog.ErrProtected

// Protections returns the branches and tags that are protected, by name.
func (db *DB) Protections(ctx context.Context) (branches, tags map[string]Protection, err error) {
	all, err := asked(ctx, db, "protect", protectRequest{}, db.protect)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // an earlier program has the database open
	}
	return all.Branches, all.Tags, err
}

// Protect protects a branch ("" is main) or tag that is there from moves, by all processes and pushes; expiry still
// applies. [Unprotected] ends it.
// A copy of the database has no protections of its own.
func (db *DB) Protect(ctx context.Context, name string, tag bool, p Protection) error {
	if !tag {
		name = orMain(name)
	}
	_, err := asked(ctx, db, "protect", protectRequest{Name: name, Tag: tag, Protection: p}, db.protect)
	return err
}

// protectRequest protects a branch or tag; without a name it asks for all.
type protectRequest struct {
	Name       string
	Tag        bool
	Protection Protection
}

type protections struct{ Branches, Tags map[string]Protection }

func (db *DB) protect(_ context.Context, r protectRequest) (protections, error) {
	out := protections{map[string]Protection{}, map[string]Protection{}}
	if r.Name == "" {
		db.heads.mu.RLock()
		defer db.heads.mu.RUnlock()
		for ref, p := range db.heads.protected {
			if catalog.IsHead(ref) {
				out.Branches[ref[len(catalog.HeadPrefix):]] = p
			} else {
				out.Tags[ref[len(catalog.TagPrefix):]] = p
			}
		}
		return out, nil
	}
	if err := db.writable(); err != nil {
		return out, err
	}
	ref := catalog.HeadRef(r.Name)
	if r.Tag {
		ref = catalog.TagRef(r.Name)
	}
	db.commit.lock()
	defer db.commit.unlock()
	if _, ok := db.heads.get(ref); !ok && r.Protection != Unprotected {
		return out, fmt.Errorf("protect %q: %w", r.Name, ErrNoRef)
	}
	all := map[string]Protection{}
	maps.Copy(all, db.heads.protected)
	if all[ref] = r.Protection; r.Protection == Unprotected {
		delete(all, ref)
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	catalog.PutProtections(batch, all)
	if err := batch.Commit(true); err != nil {
		return out, err
	}
	db.heads.mu.Lock()
	defer db.heads.mu.Unlock()
	db.heads.protected = all
	return out, nil
}

func (t *refTable) protection(ref string) Protection {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.protected[ref]
}

// mayMove returns [ErrProtected] if a ref is protected from a move. made are commits that are published with it.
func (db *DB) mayMove(ctx context.Context, m RefMove, made map[CommitID][]byte) error {
	return db.heads.protection(m.Ref).Allow(m, func() (bool, error) {
		return history.IsAncestor(ctx, func(ctx context.Context, id CommitID) (*Commit, error) {
			if record, ok := made[id]; ok {
				return catalog.DecodeCommit(id, record)
			}
			return db.Lookup(ctx, id)
		}, m.Old, m.New)
	})
}
