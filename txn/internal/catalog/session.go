package catalog

import (
	"encoding/binary"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Session is the savepoint of a session.
type Session struct {
	ID     SessionID // the key
	Branch string
	Base   CommitID
	Work   tree.Root // the session's working root
	// Start is what the changes of a fork are relative to; nil is the root of Base.
	Start   *tree.Root
	Created time.Time
	Saved   time.Time
	Label   string
	By      Origin
	Guards  []string
}

// Sessions is the table of stored sessions.
var Sessions = Table[SessionID, *Session]{
	space:  index.SpaceSession,
	key:    func(id SessionID) []byte { return id[:] },
	encode: encodeSession,
	Decode: decodeSession,
}

// forkVersion is the first byte of the record of a fork, which has Start too.
const forkVersion = 2

// Encode returns the record of a session.
func (s *Session) Encode() []byte {
	_, b := encodeSession(s)
	return b
}

func encodeSession(s *Session) (key, value []byte) {
	b := []byte{version}
	if s.Start != nil {
		b[0] = forkVersion
	}
	b = appendString(b, s.Branch)
	b = append(b, s.Base[:]...)
	b = s.Work.AppendBinary(b)
	b = binary.AppendVarint(b, s.Created.UnixNano())
	b = binary.AppendVarint(b, s.Saved.UnixNano())
	b = appendString(b, withOrigin(s.Label, s.By))
	b = appendStrings(b, s.Guards)
	if s.Start != nil {
		b = s.Start.AppendBinary(b)
	}
	return s.ID[:], b
}

func decodeSession(key, b []byte) (*Session, error) {
	if len(key) != len(SessionID{}) {
		return nil, Corrupt("session key %x", key)
	}
	r := reader{b: b}
	fork := len(b) > 0 && b[0] == forkVersion
	if fork {
		r.bytes(1)
	} else {
		r.version()
	}
	s := &Session{ID: SessionID(key), Branch: r.str(), Base: r.id(), Work: r.root()}
	s.Created = r.time()
	s.Saved = r.time()
	s.Label, s.By = cutOrigin(r.str())
	s.Guards = r.strs()
	if fork {
		start := r.root()
		s.Start = &start
	}
	if err := r.end(); err != nil {
		return nil, Corrupt("session %v: %v", s.ID, err)
	}
	return s, nil
}
