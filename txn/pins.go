package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
)

// Pin keeps a version and the places of its payloads: the packs that it names
// are not rewritten and no hole is made in them while the pin is there. Exports
// of references into packs need that, because others read them by file and
// offset.
type Pin struct {
	Name   string
	Commit CommitID
	Time   time.Time // when it was made
	Note   string    // what it is for
}

func (p *Pin) encode() []byte {
	b := append([]byte{recordVersion}, p.Commit[:]...)
	b = binary.AppendVarint(b, p.Time.UnixNano())
	return appendString(b, p.Note)
}

func decodePin(name string, b []byte) (Pin, error) {
	r := reader{b: b}
	r.version()
	p := Pin{Name: name, Commit: CommitID(r.bytes(digest.Size))}
	p.Time = time.Unix(0, r.varint()).UTC()
	p.Note = r.str()
	if err := r.end(); err != nil {
		return p, corrupt("pin %q: %v", name, err)
	}
	return p, nil
}

// CreatePin pins a version under a name like that of a branch. When it returns,
// no pack of the version is being rewritten any more: it waits for a push to this
// database that is copying a pack, while commits go on. A name that is taken is
// ErrRefExists.
func (db *DB) CreatePin(ctx context.Context, name string, at CommitID, note string) error {
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
	if _, err := db.idx.Get(index.SpacePin, []byte(name)); !errors.Is(err, index.ErrNotFound) {
		if err == nil {
			err = ErrRefExists
		}
		return fmt.Errorf("pin %q: %w", name, err)
	}
	db.pinned.Add(1)
	p := Pin{Commit: at, Time: db.opts.Now().UTC(), Note: note}
	batch := db.idx.NewBatch()
	defer batch.Close()
	batch.Set(index.SpacePin, []byte(name), p.encode())
	return batch.Commit(true)
}

// DeletePin removes a pin, or returns ErrNoRef.
func (db *DB) DeletePin(name string) error {
	if err := db.writable(); err != nil {
		return err
	}
	db.commit.lock()
	defer db.commit.unlock()
	if _, err := db.idx.Get(index.SpacePin, []byte(name)); err != nil {
		if errors.Is(err, index.ErrNotFound) {
			err = ErrNoRef
		}
		return fmt.Errorf("pin %q: %w", name, err)
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	batch.Delete(index.SpacePin, []byte(name))
	return batch.Commit(true)
}

// Pins lists the pins by name.
func (db *DB) Pins(ctx context.Context) ([]Pin, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	var pins []Pin
	for rec, err := range db.idx.Scan(index.SpacePin, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		p, err := decodePin(string(rec.Key), rec.Value)
		if err != nil {
			return nil, err
		}
		pins = append(pins, p)
	}
	return pins, nil
}
