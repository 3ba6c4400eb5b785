package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv/index"
)

// Protection says which moves of a branch or tag are refused.
type Protection uint8

const (
	// Unprotected refuses nothing.
	Unprotected Protection = iota
	// Protected lets a branch go forward only: by commits and merges. What would drop versions of it is
	// refused: deletion, reset, undo, rebase, amend, a forced push. A protected tag cannot be deleted.
	Protected
	// Frozen lets a branch or tag not move at all.
	Frozen
)

// String returns the name of a protection.
func (p Protection) String() string {
	switch p {
	case Protected:
		return "protected"
	case Frozen:
		return "frozen"
	}
	return "unprotected"
}

// ErrProtected means that a branch or tag is protected from a move.
var ErrProtected = fault.New("txn: it is protected", fault.ErrReadOnly)

// Allow returns an error that is [ErrProtected] for a move that is refused. forward
// reports whether the new version of a branch has the old one as an ancestor.
func (p Protection) Allow(m RefMove, forward func() (bool, error)) error {
	if p == Unprotected || m.Old == m.New || m.Old.IsZero() {
		return nil
	}
	if p == Protected && !m.New.IsZero() && IsHead(m.Ref) {
		if ok, err := forward(); ok || err != nil {
			return err
		}
	}
	kind, name := "branch", strings.TrimPrefix(m.Ref, HeadPrefix)
	if tag, ok := strings.CutPrefix(m.Ref, TagPrefix); ok {
		kind, name = "tag", tag
	}
	why := "it only goes forward"
	switch {
	case p == Frozen:
		why = "it is frozen"
	case m.New.IsZero():
		why = "it is not deleted"
	case kind == "tag":
		why = "it does not move"
	}
	return fmt.Errorf("%s %q: %w: %s; \"zarrdb %s DB --unprotect %s\" lets it", kind, name, ErrProtected, why, kind, name)
}

var metaProtected = []byte("protected")

// Protections returns the refs that are protected, by stored name.
func Protections(in Getter) (map[string]Protection, error) {
	b, err := in.Get(index.SpaceMeta, metaProtected)
	if errors.Is(err, index.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r := reader{b: b}
	r.version()
	all := map[string]Protection{}
	for range r.count(2) {
		ref := r.str()
		all[ref] = Protection(r.uvarint())
	}
	if err := r.end(); err != nil {
		return nil, Corrupt("protected branches and tags: %v", err)
	}
	return all, nil
}

// PutProtections stores what [Protections] returns.
func PutProtections(b *index.Batch, all map[string]Protection) {
	v := binary.AppendUvarint([]byte{version}, uint64(len(all)))
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		v = binary.AppendUvarint(appendString(v, ref), uint64(all[ref]))
	}
	b.Set(index.SpaceMeta, metaProtected, v)
}
