package txn

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// CommitID names a commit by the hash of its record, which holds the root, the
// parents and everything said about the change: equal ids mean equal history.
type CommitID digest.Sum

// String prints the id as 40 hexadecimal digits.
func (id CommitID) String() string { return digest.Sum(id).String() }

// Short prints the first 10 digits, for people.
func (id CommitID) Short() string { return id.String()[:10] }

// IsZero reports whether id names no commit.
func (id CommitID) IsZero() bool { return digest.Sum(id).IsZero() }

// Commit is one version and what was said about it. It is immutable.
type Commit struct {
	ID CommitID
	// Parents are the versions that this one was made from: none for the first
	// commit, two or more for a merge. The first is the branch's own history.
	Parents []CommitID
	// Generation is one more than the largest of the parents', 0 for the first
	// commit. It bounds searches for ancestors.
	Generation uint64
	Author     string
	Time       time.Time
	Message    string
	// Properties are free metadata. Nothing here gives them a meaning.
	Properties map[string]string
	// Root is the namespace at this version.
	Root tree.Root
}

// SessionID names a session across processes.
type SessionID [8]byte

// String prints the id as 16 hexadecimal digits.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// ParseSessionID reads what String prints.
func ParseSessionID(s string) (SessionID, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(SessionID{}) {
		return SessionID{}, fmt.Errorf("%w: %q is not a session id", ErrNoRef, s)
	}
	return SessionID(b), nil
}

// Every record begins with its version.
const recordVersion = 1

// encode gives the bytes that are stored and hashed. They are canonical: the
// same commit is always the same bytes. docs/format.md has the layout.
func (c *Commit) encode() []byte {
	b := []byte{recordVersion}
	b = c.Root.AppendBinary(b)
	b = binary.AppendUvarint(b, uint64(len(c.Parents)))
	for _, p := range c.Parents {
		b = append(b, p[:]...)
	}
	b = binary.AppendUvarint(b, c.Generation)
	b = binary.AppendVarint(b, c.Time.UnixNano())
	b = appendString(b, c.Author)
	b = appendString(b, c.Message)
	b = binary.AppendUvarint(b, uint64(len(c.Properties)))
	for _, k := range slices.Sorted(maps.Keys(c.Properties)) {
		b = appendString(b, k)
		b = appendString(b, c.Properties[k])
	}
	return b
}

// decodeCommit reads a stored commit and proves that it is the one named.
func decodeCommit(id CommitID, b []byte) (*Commit, error) {
	if CommitID(digest.Of(b)) != id {
		return nil, corrupt("commit %v: its bytes hash to %v", id, digest.Of(b))
	}
	r := reader{b: b}
	r.version()
	c := &Commit{ID: id, Root: r.root()}
	for range r.count(digest.Size) {
		c.Parents = append(c.Parents, CommitID(r.bytes(digest.Size)))
	}
	c.Generation = r.uvarint()
	c.Time = time.Unix(0, r.varint()).UTC()
	c.Author = r.str()
	c.Message = r.str()
	if n := r.count(2); n > 0 {
		c.Properties = make(map[string]string, n)
		for range n {
			k := r.str()
			c.Properties[k] = r.str()
		}
	}
	if err := r.end(); err != nil {
		return nil, corrupt("commit %v: %v", id, err)
	}
	return c, nil
}

// sessionRecord is what a savepoint keeps of a session.
type sessionRecord struct {
	branch  string
	base    CommitID
	work    tree.Root
	created time.Time
	saved   time.Time
	label   string
	guards  []string
}

func (s *sessionRecord) encode() []byte {
	b := []byte{recordVersion}
	b = appendString(b, s.branch)
	b = append(b, s.base[:]...)
	b = s.work.AppendBinary(b)
	b = binary.AppendVarint(b, s.created.UnixNano())
	b = binary.AppendVarint(b, s.saved.UnixNano())
	b = appendString(b, s.label)
	b = binary.AppendUvarint(b, uint64(len(s.guards)))
	for _, g := range s.guards {
		b = appendString(b, g)
	}
	return b
}

func decodeSession(id SessionID, b []byte) (*sessionRecord, error) {
	r := reader{b: b}
	r.version()
	s := &sessionRecord{branch: r.str(), base: CommitID(r.bytes(digest.Size)), work: r.root()}
	s.created = time.Unix(0, r.varint()).UTC()
	s.saved = time.Unix(0, r.varint()).UTC()
	s.label = r.str()
	for range r.count(1) {
		s.guards = append(s.guards, r.str())
	}
	if err := r.end(); err != nil {
		return nil, corrupt("session %v: %v", id, err)
	}
	return s, nil
}

// RefMove is one entry of the reflog: a ref went from Old to New. A zero id
// stands for "did not exist".
type RefMove struct {
	Ref      string // as stored: "heads/main", "tags/v1"
	Seq      uint64
	Old, New CommitID
	Time     time.Time
	Author   string
	// Op says what moved it: "commit", "reset", "branch", "tag", "revert" ….
	Op string
}

func (m *RefMove) encode() []byte {
	b := []byte{recordVersion}
	b = append(b, m.Old[:]...)
	b = append(b, m.New[:]...)
	b = binary.AppendVarint(b, m.Time.UnixNano())
	b = appendString(b, m.Author)
	return appendString(b, m.Op)
}

func decodeRefMove(key, b []byte) (RefMove, error) {
	if len(key) < 10 || key[len(key)-9] != 0 {
		return RefMove{}, corrupt("reflog: key %q", key)
	}
	m := RefMove{Ref: string(key[:len(key)-9]), Seq: binary.BigEndian.Uint64(key[len(key)-8:])}
	r := reader{b: b}
	r.version()
	m.Old = CommitID(r.bytes(digest.Size))
	m.New = CommitID(r.bytes(digest.Size))
	m.Time = time.Unix(0, r.varint()).UTC()
	m.Author = r.str()
	m.Op = r.str()
	if err := r.end(); err != nil {
		return m, corrupt("reflog of %s: %v", m.Ref, err)
	}
	return m, nil
}

// reflogKey orders the moves of one ref by their sequence number.
func reflogKey(ref string, seq uint64) []byte {
	b := append([]byte(ref), 0)
	return binary.BigEndian.AppendUint64(b, seq)
}

func encodePackInfo(i pack.Info) []byte {
	b := []byte{recordVersion}
	b = binary.AppendUvarint(b, i.End)
	var flags byte
	if i.Sealed {
		flags |= 1
	}
	return append(b, flags)
}

func decodePackInfo(key, b []byte) (pack.Info, error) {
	if len(key) != len(pack.ID{}) {
		return pack.Info{}, corrupt("pack table: key %x", key)
	}
	r := reader{b: b}
	r.version()
	i := pack.Info{ID: pack.ID(key), End: r.uvarint()}
	i.Sealed = r.bytes(1)[0]&1 != 0
	if err := r.end(); err != nil {
		return i, corrupt("pack table: %v: %v", i.ID, err)
	}
	return i, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

var (
	errShort   = errors.New("record ends early")
	errLong    = errors.New("record has trailing bytes")
	errVersion = errors.New("record version is unknown")
)

// reader takes a record apart. The first failure sticks, and everything after
// it reads as zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) version() {
	if v := r.bytes(1); r.err == nil && v[0] != recordVersion {
		r.fail(errVersion)
	}
}

// bytes returns the next n bytes, zeros after a failure.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || len(r.b) < n {
		r.fail(errShort)
		return make([]byte, n)
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of items of at least size bytes each, so that a damaged
// one cannot make a loop or an allocation larger than the record.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

func (r *reader) str() string {
	return string(r.bytes(r.count(1)))
}

func (r *reader) root() tree.Root {
	if r.err != nil {
		return tree.Root{}
	}
	root, rest, err := tree.DecodeRoot(r.b)
	if err != nil {
		r.fail(err)
		return tree.Root{}
	}
	r.b = rest
	return root
}

func (r *reader) end() error {
	if r.err == nil && len(r.b) != 0 {
		return errLong
	}
	return r.err
}
