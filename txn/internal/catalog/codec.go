package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// version is the first byte of every record.
const version = 1

// Corrupt is an error about what is stored.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

var (
	errShort   = errors.New("record ends early")
	errLong    = errors.New("record has trailing bytes")
	errVersion = errors.New("record version is unknown")
)

// reader decodes a record field by field. The first failure is kept, and every
// field after it is zero.
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
	if v := r.bytes(1); r.err == nil && v[0] != version {
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

// CheckTime returns an error if a time cannot be recorded: records hold nanoseconds since
// 1970 in 64 bits.
func CheckTime(t time.Time) error {
	if !time.Unix(0, t.UnixNano()).Equal(t) {
		return fmt.Errorf("time %s: it is not between 1678 and 2262", t.Format(time.RFC3339))
	}
	return nil
}

func (r *reader) time() time.Time { return time.Unix(0, r.varint()).UTC() }

func (r *reader) id() CommitID { return CommitID(r.bytes(digest.Size)) }

func (r *reader) str() string {
	return string(r.bytes(r.count(1)))
}

func (r *reader) strs() (list []string) {
	for range r.count(1) {
		list = append(list, r.str())
	}
	return list
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
