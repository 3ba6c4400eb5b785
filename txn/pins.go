package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// CreatePin pins a version under a name like that of a branch. When it returns,
// no pack of the version is being rewritten any more: it waits for a push to this
// database that is copying a pack, while commits go on. A name that is taken is
// ErrRefExists.
func (db *DB) CreatePin(ctx context.Context, name string, at CommitID, note string) error {
	if db.peer != nil {
		return db.peer.tell(ctx, "pin", pinRequest{name, at, note})
	}
	if err := errors.Join(db.writable(), CheckRefName(name)); err != nil {
		return err
	}
	db.pinMu.Lock()
	defer db.pinMu.Unlock()
	db.commit.lock()
	defer db.commit.unlock()
	if _, err := db.version(ctx, at); err != nil {
		return err
	}
	// The commit is on disk before what names it.
	if err := db.writePending(ctx); err != nil {
		return fmt.Errorf("pin %q: %w", name, err)
	}
	has, err := catalog.Pins.Has(db.idx, name)
	if err == nil && has {
		err = ErrRefExists
	}
	if err != nil {
		return fmt.Errorf("pin %q: %w", name, err)
	}
	db.pinned.Add(1)
	p := Pin{Name: name, Commit: at, Time: db.opts.Now().UTC(), Note: note}
	batch := db.idx.NewBatch()
	defer batch.Close()
	catalog.Pins.Put(batch, p)
	return batch.Commit(true)
}

// DeletePin removes a pin, or returns ErrNoRef.
func (db *DB) DeletePin(name string) error {
	if db.peer != nil {
		return db.peer.tell(context.Background(), "unpin", name)
	}
	if err := db.writable(); err != nil {
		return err
	}
	db.commit.lock()
	defer db.commit.unlock()
	has, err := catalog.Pins.Has(db.idx, name)
	if err == nil && !has {
		err = ErrNoRef
	}
	if err != nil {
		return fmt.Errorf("pin %q: %w", name, err)
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	catalog.Pins.Delete(batch, name)
	return batch.Commit(true)
}

// Pins lists the pins by name.
func (db *DB) Pins(ctx context.Context) ([]Pin, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	var pins []Pin
	for p, err := range catalog.Pins.All(db.records(ctx)) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		pins = append(pins, p)
	}
	return pins, nil
}
