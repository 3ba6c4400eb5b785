package catalog

import (
	"encoding/binary"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Session is the savepoint of a session.
type Session struct {
	ID      SessionID // the key
	Branch  string
	Base    CommitID
	Work    tree.Root // the session's working root
	Created time.Time
	Saved   time.Time
	Label   string
	Guards  []string
}

// Sessions is the table of stored sessions.
var Sessions = Table[SessionID, *Session]{
	space:  index.SpaceSession,
	key:    func(id SessionID) []byte { return id[:] },
	encode: encodeSession,
	Decode: decodeSession,
}

func encodeSession(s *Session) (key, value []byte) {
	b := []byte{version}
	b = appendString(b, s.Branch)
	b = append(b, s.Base[:]...)
	b = s.Work.AppendBinary(b)
	b = binary.AppendVarint(b, s.Created.UnixNano())
	b = binary.AppendVarint(b, s.Saved.UnixNano())
	b = appendString(b, s.Label)
	b = binary.AppendUvarint(b, uint64(len(s.Guards)))
	for _, g := range s.Guards {
		b = appendString(b, g)
	}
	return s.ID[:], b
}

func decodeSession(key, b []byte) (*Session, error) {
	if len(key) != len(SessionID{}) {
		return nil, corrupt("session key %x", key)
	}
	r := reader{b: b}
	r.version()
	s := &Session{ID: SessionID(key), Branch: r.str(), Base: r.id(), Work: r.root()}
	s.Created = r.time()
	s.Saved = r.time()
	s.Label = r.str()
	for range r.count(1) {
		s.Guards = append(s.Guards, r.str())
	}
	if err := r.end(); err != nil {
		return nil, corrupt("session %v: %v", s.ID, err)
	}
	return s, nil
}
