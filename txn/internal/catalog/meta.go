package catalog

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Keys of index.SpaceMeta, each of one value about the whole database.
var (
	metaIncarnation = []byte("incarnation")
	metaReady       = []byte("ready")
	metaMoves       = []byte("moves")
	metaBackupOf    = []byte("backup-of")
	metaBackupMoves = []byte("backup-moves")
	metaEnded       = []byte("ended")
	metaErased      = []byte("erased")
)

// Incarnation returns the name under which this directory writes packs, or
// index.ErrNotFound.
func Incarnation(in Getter) (id [8]byte, err error) {
	b, err := in.Get(index.SpaceMeta, metaIncarnation)
	if err == nil && len(b) != len(id) {
		err = Corrupt("incarnation of %d bytes", len(b))
	}
	if err != nil {
		return id, err
	}
	return [8]byte(b), nil
}

// PutIncarnation stores the name under which this directory writes packs.
func PutIncarnation(b *index.Batch, id [8]byte) { b.Set(index.SpaceMeta, metaIncarnation, id[:]) }

// Ready reports whether the database has its first commit.
func Ready(in Getter) bool {
	_, err := in.Get(index.SpaceMeta, metaReady)
	return err == nil
}

// Erased names the last erasure, if a collection has not removed what was erased to the last byte, else it is "".
func Erased(in Getter) (string, error) {
	b, err := in.Get(index.SpaceMeta, metaErased)
	if errors.Is(err, index.ErrNotFound) {
		return "", nil
	}
	return string(b), err
}

// PutErased notes an erasure under a new name.
func PutErased(b *index.Batch) { b.Set(index.SpaceMeta, metaErased, []byte(rand.Text())) }

// DeleteErased notes that nothing is left of what was erased.
func DeleteErased(b *index.Batch) { b.Delete(index.SpaceMeta, metaErased) }

// Kinds of care whose time is stored.
const (
	LastGC     = "last-gc"
	LastBackup = "last-backup"
	LastErase  = "last-erase" // here or, in a backup, in its source
)

// LastCare returns when care of a kind ended, the zero time if it is not known.
func LastCare(in Getter, kind string) (at time.Time, err error) {
	b, err := in.Get(index.SpaceMeta, []byte(kind))
	if errors.Is(err, index.ErrNotFound) {
		return at, nil
	} else if err == nil && len(b) != 8 {
		err = Corrupt("%s of %d bytes", kind, len(b))
	}
	if err != nil {
		return at, err
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), nil
}

// PutLastCare stores what [LastCare] returns.
func PutLastCare(b *index.Batch, kind string, at time.Time) {
	b.Set(index.SpaceMeta, []byte(kind), binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// PutReady notes that the database has its first commit.
func PutReady(b *index.Batch) { b.Set(index.SpaceMeta, metaReady, []byte{1}) }

// MoveCount returns how often refs moved since the database was made.
func MoveCount(in Getter) (uint64, error) {
	n, _, err := count(in, metaMoves)
	return n, err
}

// count returns a count of moves, and whether it is stored.
func count(in Getter, name []byte) (n uint64, ok bool, err error) {
	b, err := in.Get(index.SpaceMeta, name)
	switch {
	case errors.Is(err, index.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case len(b) != 8:
		return 0, false, Corrupt("count of moves of %d bytes", len(b))
	}
	return binary.BigEndian.Uint64(b), true, nil
}

// MovedSinceBackup reports whether refs of a backup moved after it was last brought up to date.
func MovedSinceBackup(in Getter) (bool, error) {
	then, ok, err := count(in, metaBackupMoves)
	if !ok || err != nil {
		return false, err
	}
	now, err := MoveCount(in)
	return now != then, err
}

// PutMoveCount stores how often refs moved since the database was made.
func PutMoveCount(b *index.Batch, n uint64) {
	b.Set(index.SpaceMeta, metaMoves, binary.BigEndian.AppendUint64(nil, n))
}

// IsBackupOf reports whether the database is a backup of the one with an
// incarnation.
func IsBackupOf(in Getter, id [8]byte) (bool, error) {
	b, err := in.Get(index.SpaceMeta, metaBackupOf)
	if errors.Is(err, index.ErrNotFound) {
		return false, nil
	}
	return err == nil && bytes.Equal(b, id[:]), err
}

// Ended returns the sessions without a record whose logs are void, because a commit ended
// them.
func Ended(in Getter) (ids []SessionID, err error) {
	b, err := in.Get(index.SpaceMeta, metaEnded)
	switch {
	case errors.Is(err, index.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for len(b) >= len(SessionID{}) {
		ids, b = append(ids, SessionID(b[:len(SessionID{})])), b[len(SessionID{}):]
	}
	if len(b) > 0 {
		return nil, Corrupt("ended sessions with %d bytes behind them", len(b))
	}
	return ids, nil
}

// PutEnded stores what [Ended] returns.
func PutEnded(b *index.Batch, ids []SessionID) {
	var value []byte
	for _, id := range ids {
		value = append(value, id[:]...)
	}
	b.Set(index.SpaceMeta, metaEnded, value)
}

// PutBackupOf notes of which incarnation the database is a backup, and how often its refs
// will have moved.
func PutBackupOf(b *index.Batch, id [8]byte, moves uint64) {
	b.Set(index.SpaceMeta, metaBackupOf, id[:])
	b.Set(index.SpaceMeta, metaBackupMoves, binary.BigEndian.AppendUint64(nil, moves))
}
