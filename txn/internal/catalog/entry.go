package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// EntryKind says what an entry of the log of a session is.
type EntryKind byte

// The kinds of entries, and the fields that each has.
const (
	EntryBegin  EntryKind = 'b' // Stored, Session
	EntryPut    EntryKind = 's' // Key, Value
	EntryDelete EntryKind = 'd' // Key
	EntryPrefix EntryKind = 'p' // Key: everything that begins with it is deleted
	EntryMove   EntryKind = 'm' // Key, To
	EntryGuard  EntryKind = 'g' // Paths
	EntryCommit EntryKind = 'c' // Commit: the session ended if that commit exists
	// EntryDamaged stands for an entry with another checksum before one that is whole. It is not stored.
	EntryDamaged EntryKind = 0
)

// Entry is an entry of the log of a session: something that was done since the last
// savepoint.
type Entry struct {
	Kind    EntryKind
	Key, To string
	Value   tree.Value
	Paths   []string
	Commit  CommitID
	// Stored is the hash of the record of the savepoint that the log goes on from, zero
	// if there was none.
	Stored digest.Sum
	// Session is the state that the log goes on from.
	Session *Session
}

// LogHeader is how a file with the log of a session begins. docs/format.md has the rest.
const LogHeader = "zarrdb session log 1\n"

var (
	errEntry      = errors.New("entry of unknown kind")
	entryChecksum = crc32.MakeTable(crc32.Castagnoli)
)

// AppendEntry appends an entry with its length and checksum.
func AppendEntry(b []byte, e *Entry) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(e.Kind))
	switch e.Kind {
	case EntryBegin:
		_, record := encodeSession(e.Session)
		b = append(append(append(b, e.Stored[:]...), e.Session.ID[:]...), record...)
	case EntryPut:
		b = AppendValue(appendString(b, e.Key), &e.Value)
	case EntryDelete, EntryPrefix:
		b = appendString(b, e.Key)
	case EntryMove:
		b = appendString(appendString(b, e.Key), e.To)
	case EntryGuard:
		b = appendStrings(b, e.Paths)
	case EntryCommit:
		b = append(b, e.Commit[:]...)
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-8))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(b[at+8:], entryChecksum))
	return b
}

// AppendValue appends the binary form of a value of a log.
func AppendValue(b []byte, v *tree.Value) []byte {
	b = append(b, byte(v.Kind))
	switch v.Kind {
	case tree.KindInline:
		return appendString(b, string(v.Inline))
	case tree.KindNative:
		b = append(append(b, v.Sum[:]...), v.Pack[:]...)
	case tree.KindVirtual:
		b = appendString(appendString(b, v.Source.URL), v.Source.Validator)
		whole := byte(0)
		if v.Source.Whole {
			whole = 1
		}
		b = append(b, whole)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, v.Offset), v.Length)
}

// String names the change.
func (e *Entry) String() string {
	switch {
	case e.Kind == EntryDamaged:
		return "a change whose name is damaged"
	case e.Kind == EntryMove:
		return fmt.Sprintf("the move from %q to %q", e.Key, e.To)
	case e.Kind == EntryGuard:
		return fmt.Sprintf("guards of %q", e.Paths)
	}
	return strconv.Quote(e.Key)
}

// Entries yields the entries of a log behind its header, up to the first one that is cut
// off or has another checksum: the process was killed while it wrote that entry. Before one that is
// whole, such an entry is [EntryDamaged]. An entry that cannot be decoded is an error.
func Entries(b []byte) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for len(b) > 8 {
			n, sum := uint64(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
			b = b[8:]
			if n == 0 || n > uint64(len(b)) {
				return
			}
			e, err := &Entry{Kind: EntryDamaged}, error(nil)
			if crc32.Checksum(b[:n], entryChecksum) == sum {
				e, err = decodeEntry(b[:n])
			} else if !startsWhole(b[n:]) {
				return
			}
			if b = b[n:]; !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// startsWhole reports whether a log goes on with an entry that has its checksum.
func startsWhole(b []byte) bool {
	if len(b) <= 8 {
		return false
	}
	n, sum := uint64(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
	return n > 0 && n <= uint64(len(b)-8) && crc32.Checksum(b[8:8+n], entryChecksum) == sum
}

func decodeEntry(b []byte) (*Entry, error) {
	e := &Entry{Kind: EntryKind(b[0])}
	r := reader{b: b[1:]}
	switch e.Kind {
	case EntryBegin:
		e.Stored = digest.Sum(r.bytes(digest.Size))
		id := r.bytes(len(SessionID{}))
		if r.err == nil {
			var err error
			e.Session, err = decodeSession(id, r.b)
			return e, err
		}
	case EntryPut:
		e.Key = r.str()
		e.Value = r.value()
	case EntryDelete, EntryPrefix:
		e.Key = r.str()
	case EntryMove:
		e.Key = r.str()
		e.To = r.str()
	case EntryGuard:
		e.Paths = r.strs()
	case EntryCommit:
		e.Commit = r.id()
	default:
		r.fail(errEntry)
	}
	if err := r.end(); err != nil {
		return nil, Corrupt("log of a session: %v", err)
	}
	return e, nil
}

// ParseValue is the inverse of [AppendValue].
func ParseValue(b []byte) (tree.Value, error) {
	r := reader{b: b}
	v := r.value()
	if err := r.end(); err != nil {
		return tree.Value{}, Corrupt("value: %v", err)
	}
	return v, nil
}

func (r *reader) value() (v tree.Value) {
	v.Kind = tree.Kind(r.bytes(1)[0])
	switch v.Kind {
	case tree.KindInline:
		v.Inline = []byte(r.str())
		return v
	case tree.KindNative:
		v.Sum = digest.Sum(r.bytes(digest.Size))
		v.Pack = tree.PackID(r.bytes(len(tree.PackID{})))
	case tree.KindVirtual:
		v.Source.URL = r.str()
		v.Source.Validator = r.str()
		v.Source.Whole = r.bytes(1)[0] == 1
	default:
		r.fail(errEntry)
	}
	v.Offset = r.uvarint()
	v.Length = r.uvarint()
	return v
}
