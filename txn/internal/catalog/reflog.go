package catalog

import (
	"encoding/binary"
	"iter"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// RefMove is one entry of the reflog: a ref went from Old to New. A zero id
// stands for "did not exist".
type RefMove struct {
	Ref      string // as stored: "heads/main", "tags/v1"
	Seq      uint64
	Old, New CommitID
	Time     time.Time
	Author   string
	// Op is the operation: "commit", "reset", "branch", "tag", "revert" ….
	Op string
	// Session made the move by its commit; zero for other moves, and for those of earlier versions.
	Session SessionID
}

// Moves is the table of reflog entries.
var Moves = Table[MoveKey, RefMove]{
	space:  index.SpaceReflog,
	key:    MoveKey.Bytes,
	encode: encodeMove,
	Decode: decodeMove,
}

func encodeMove(m RefMove) (key, value []byte) {
	b := []byte{version}
	b = append(b, m.Old[:]...)
	b = append(b, m.New[:]...)
	b = binary.AppendVarint(b, m.Time.UnixNano())
	b = appendString(b, m.Author)
	op := m.Op
	if m.Session != (SessionID{}) {
		op += " " + m.Session.String()
	}
	return MoveKey{m.Ref, m.Seq}.Bytes(), appendString(b, op)
}

func decodeMove(key, b []byte) (RefMove, error) {
	k, ok := ParseMoveKey(key)
	if !ok {
		return RefMove{}, Corrupt("reflog: key %q", key)
	}
	m := RefMove{Ref: k.Ref, Seq: k.Seq}
	r := reader{b: b}
	r.version()
	m.Old = r.id()
	m.New = r.id()
	m.Time = r.time()
	m.Author = r.str()
	m.Op = r.str()
	at := max(strings.LastIndexByte(m.Op, ' '), 0)
	if id, err := ParseSessionID(m.Op[min(at+1, len(m.Op)):]); err == nil && id != (SessionID{}) && m.Op[at:] == " "+id.String() {
		m.Op, m.Session = m.Op[:at], id
	}
	if err := r.end(); err != nil {
		return m, Corrupt("reflog of %s: %v", m.Ref, err)
	}
	return m, nil
}

// MoveKey names an entry of a reflog.
type MoveKey struct {
	Ref string
	Seq uint64
}

// Bytes returns the key as it is stored, which orders the moves of one ref by their numbers.
func (k MoveKey) Bytes() []byte {
	return binary.BigEndian.AppendUint64(append([]byte(k.Ref), 0), k.Seq)
}

// ParseMoveKey decodes the key of a reflog entry.
func ParseMoveKey(key []byte) (k MoveKey, ok bool) {
	if len(key) < 10 || key[len(key)-9] != 0 {
		return k, false
	}
	return MoveKey{string(key[:len(key)-9]), binary.BigEndian.Uint64(key[len(key)-8:])}, true
}

// afterMoves is the first key after all moves of a ref.
func afterMoves(ref string) []byte { return append([]byte(ref), 1) }

// MovesOf yields the moves of a ref from a number on, oldest or newest first.
func MovesOf(in Scanner, ref string, from uint64, newestFirst bool) iter.Seq2[RefMove, error] {
	return Moves.scan(in, MoveKey{ref, from}.Bytes(), afterMoves(ref), newestFirst)
}

// MovesBackwards yields the moves of all refs, last ref and newest move first.
func MovesBackwards(in Scanner) iter.Seq2[RefMove, error] {
	return Moves.scan(in, nil, nil, true)
}

// LoggedRefs yields the refs that have a reflog, each once.
func LoggedRefs(in Scanner) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var from []byte
		for {
			ref, found := "", false
			for m, err := range Moves.scan(in, from, nil, false) {
				if err != nil {
					yield("", err)
					return
				}
				ref, found = m.Ref, true
				break
			}
			if !found || !yield(ref, nil) {
				return
			}
			from = afterMoves(ref)
		}
	}
}

// NextSeq returns the number after that of the newest entry in the reflog of a ref,
// 0 if it has none.
func NextSeq(in Scanner, ref string) (uint64, error) {
	for rec, err := range in.Scan(index.SpaceReflog, MoveKey{ref, 0}.Bytes(), afterMoves(ref), true) {
		if err != nil {
			return 0, err
		}
		k, _ := ParseMoveKey(rec.Key)
		return k.Seq + 1, nil
	}
	return 0, nil
}
