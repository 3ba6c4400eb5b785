package catalog

import (
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Commit is one version with its parents and its message. It is immutable.
type Commit struct {
	ID CommitID
	// Parents are the versions from which the commit was made: none for the first
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

// EncodeCommit returns the record of a commit, which is stored and hashed. It is
// canonical: the same commit is always the same bytes. docs/format.md has the layout.
func EncodeCommit(c *Commit) []byte {
	b := []byte{version}
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

// SealCommit sets the id of a new commit and returns its record.
func SealCommit(c *Commit) []byte {
	record := EncodeCommit(c)
	c.ID = CommitID(digest.Of(record))
	return record
}

// DecodeCommit decodes the record of a commit and compares its hash with the id.
func DecodeCommit(id CommitID, b []byte) (*Commit, error) {
	if CommitID(digest.Of(b)) != id {
		return nil, Corrupt("commit %v: its bytes hash to %v", id, digest.Of(b))
	}
	r := reader{b: b}
	r.version()
	c := &Commit{ID: id, Root: r.root()}
	for range r.count(digest.Size) {
		c.Parents = append(c.Parents, r.id())
	}
	c.Generation = r.uvarint()
	c.Time = r.time()
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
		return nil, Corrupt("commit %v: %v", id, err)
	}
	return c, nil
}

// Commits is the table of commits.
var Commits = Table[CommitID, *Commit]{
	space:  index.SpaceCommit,
	key:    func(id CommitID) []byte { return id[:] },
	encode: func(c *Commit) (key, value []byte) { return c.ID[:], EncodeCommit(c) },
	Decode: func(key, value []byte) (*Commit, error) { return DecodeCommit(CommitID(key), value) },
}

// PutCommit stores a commit that is encoded already.
func PutCommit(b *index.Batch, id CommitID, record []byte) { b.Set(index.SpaceCommit, id[:], record) }

// StoredCommit is a commit that is not decoded yet. Value is valid until the next one.
type StoredCommit struct {
	ID    CommitID
	Value []byte
}

// StoredCommits yields the commits in the order of their ids, from the first on that is
// not less than from. The end of ctx is an error.
func StoredCommits(ctx context.Context, in Scanner, from []byte) iter.Seq2[StoredCommit, error] {
	stored := Table[CommitID, StoredCommit]{space: index.SpaceCommit, Decode: func(key, value []byte) (StoredCommit, error) {
		if len(key) != len(CommitID{}) {
			return StoredCommit{}, Corrupt("commit key %x", key)
		}
		return StoredCommit{CommitID(key), value}, ctx.Err()
	}}
	return stored.scan(in, from, nil, false)
}
