package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// KeptVersion keeps a version from expiring under a name, also while no program runs that uses the version, until
// [DB.EndKept]. Copies and backups of the database do not contain it.
type KeptVersion = catalog.Pin

// pinRequest is a request of a peer about versions that are kept by name.
type pinRequest struct {
	Do     string // "keep", "end", "end old", or "" for the list
	Name   string
	To     CommitID
	Before time.Time
	Note   string
}

// KeepVersion keeps a version under a name, in place of the version that was kept under it before. note says who needs it,
// by default this process. Errors: ErrRefName, ErrNoRef, ErrExpired.
func (db *DB) KeepVersion(ctx context.Context, name string, id CommitID, note string) error {
	if note == "" {
		note = thisProcess().String()
	}
	_, err := db.pins(ctx, pinRequest{Do: "keep", Name: name, To: id, Note: note})
	return err
}

// EndKept ends the keeping of a version under a name. If no version is kept under it, the error is ErrNoRef.
func (db *DB) EndKept(ctx context.Context, name string) error {
	_, err := db.pins(ctx, pinRequest{Do: "end", Name: name})
	return err
}

// EndKeptBefore ends the keeping of all versions that are kept since before a time, and returns them.
func (db *DB) EndKeptBefore(ctx context.Context, before time.Time) ([]*KeptVersion, error) {
	return db.pins(ctx, pinRequest{Do: "end old", Before: before})
}

// KeptVersions lists the versions that are kept, in the order of their names.
func (db *DB) KeptVersions(ctx context.Context) ([]*KeptVersion, error) {
	return db.pins(ctx, pinRequest{})
}

func (db *DB) pins(ctx context.Context, r pinRequest) ([]*KeptVersion, error) {
	return asked(ctx, db, "pin", r, db.doPin)
}

func (db *DB) doPin(ctx context.Context, r pinRequest) (list []*KeptVersion, err error) {
	check := db.writable
	if r.Do == "" {
		check = db.check
	}
	if err := check(); err != nil {
		return nil, err
	}
	db.commit.lock() // nothing expires meanwhile
	defer db.commit.unlock()
	batch := db.idx.NewBatch()
	defer batch.Close()
	switch r.Do {
	case "keep":
		if err := checkRefName(r.Name); err != nil {
			return nil, err
		}
		if err := db.writePending(ctx); err != nil {
			return nil, err
		}
		if _, err := db.version(ctx, r.To); err != nil {
			return nil, err
		}
		catalog.Pins.Put(batch, &KeptVersion{Name: r.Name, Commit: r.To, Time: db.opts.Now().UTC(), Note: r.Note})
	case "end":
		if has, err := catalog.Pins.Has(db.idx, r.Name); err != nil {
			return nil, err
		} else if !has {
			return nil, fmt.Errorf("no version is kept as %q: %w", r.Name, ErrNoRef)
		}
		batch.MakesRoom()
		catalog.Pins.Delete(batch, r.Name)
	case "", "end old":
		for p, err := range catalog.Pins.All(db.idx) {
			if err != nil {
				return nil, err
			}
			if r.Do == "" || p.Time.Before(r.Before) {
				list = append(list, p)
			}
		}
		if r.Do == "" {
			return list, nil
		}
		batch.MakesRoom()
		for _, p := range list {
			catalog.Pins.Delete(batch, p.Name)
		}
	default:
		return nil, fmt.Errorf("%w: %q is nothing to do with a kept version", ErrRequest, r.Do)
	}
	return list, batch.Commit(true)
}
