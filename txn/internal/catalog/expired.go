package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// ErrExpired means that a version has expired. It is ErrNoRef too.
var ErrExpired = fmt.Errorf("%w: it has expired", ErrNoRef)

// ErrShallow means that a version was not copied into a shallow copy. It is ErrExpired too.
var ErrShallow = shallowError{}

type shallowError struct{}

func (shallowError) Error() string {
	return ErrNoRef.Error() + ": it is not in this shallow copy; a pull with --deepen or --unshallow fetches it"
}
func (shallowError) Is(target error) bool { return errors.Is(ErrExpired, target) }

// Expiry marks a version that has expired: the commit stays, and a collection
// may free the contents.
type Expiry struct {
	Commit CommitID
	Time   time.Time // when it expired, or NotCopied
}

// NotCopied marks versions below the depth of a shallow copy.
var NotCopied = time.Unix(0, 0).UTC()

// Expired is the table of versions that have expired.
var Expired = Table[CommitID, Expiry]{
	space: index.SpaceExpired,
	key:   func(id CommitID) []byte { return id[:] },
	encode: func(e Expiry) (key, value []byte) {
		return e.Commit[:], binary.AppendVarint([]byte{version}, e.Time.UnixNano())
	},
	Decode: decodeExpiry,
}

func decodeExpiry(key, b []byte) (Expiry, error) {
	r := reader{b: b}
	r.version()
	e := Expiry{CommitID(key), r.time()}
	if err := r.end(); err != nil {
		return e, Corrupt("expiry of %v: %v", e.Commit, err)
	}
	return e, nil
}

// ExpiredIDs returns the versions that have expired.
func ExpiredIDs(in Scanner) (map[CommitID]struct{}, error) {
	ids := map[CommitID]struct{}{}
	for rec, err := range in.Scan(index.SpaceExpired, nil, nil, false) {
		if err != nil {
			return nil, err
		}
		if len(rec.Key) == len(CommitID{}) {
			ids[CommitID(rec.Key)] = struct{}{}
		}
	}
	return ids, nil
}
