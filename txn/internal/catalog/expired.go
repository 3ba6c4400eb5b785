package catalog

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// ErrExpired means that a version has expired. It is ErrNoRef too.
var ErrExpired = fmt.Errorf("%w: it has expired", ErrNoRef)

// Expiry marks a version that has expired: its commit stays, and what it holds may
// be collected.
type Expiry struct {
	Commit CommitID
	Time   time.Time // when it expired
}

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
		return e, corrupt("expiry of %v: %v", e.Commit, err)
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
