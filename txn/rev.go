package txn

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// minPrefix is how many digits of a commit id a revision must give.
const minPrefix = 4

// Resolve turns a revision into a commit:
//
//	rev  = base [ "@{" when "}" ] *( "~" [N] | "^" [N] )
//	base = branch | tag | commit id prefix of at least 4 digits | "" for main
//	when = N moves ago | time | age: the branch or tag as the reflog saw it
//	       then, which still knows those that were deleted; at times before
//	       it was copied from elsewhere, by the times of its commits
//
// "~N" is the N-th first parent, "^N" the N-th parent of a merge. Times are as
// for [ParseTime], ages as for [ParseAge]. A name that is both is a branch before
// a tag before a commit, but in a peer the full id of a commit that is open is that commit. An expired version that a snapshot or a peer has open is found by its
// full id.
func (db *DB) Resolve(ctx context.Context, rev string) (CommitID, error) {
	if err := db.check(); err != nil {
		return CommitID{}, err
	}
	return db.home.resolve(ctx, rev)
}

func (h holder) resolve(ctx context.Context, rev string) (CommitID, error) {
	db := h.DB
	base, steps, err := parseSteps(rev)
	if err != nil {
		return CommitID{}, err
	}
	var id CommitID
	if name, when, ok := strings.Cut(base, "@{"); ok {
		when, closed := strings.CutSuffix(when, "}")
		if !closed {
			return id, revError(rev, "@{ is not closed")
		}
		id, err = db.resolveAt(ctx, orMain(name), when)
	} else {
		id, err = db.resolveName(ctx, orMain(base))
	}
	for i := 0; err == nil && i < len(steps); i++ {
		id, err = db.hop(ctx, rev, id, steps[i])
	}
	if err == nil {
		_, err = db.version(ctx, id)
	}
	if errors.Is(err, ErrExpired) && strings.EqualFold(rev, id.String()) {
		if c, release := db.holdAgain(ctx, id); c != nil { // it can be opened
			release()
			err = nil
		}
	}
	return id, err
}

// absolute replaces a time or an age in BRANCH@{when} by the same time in UTC, because another
// process may have another time zone. It returns a revision without a time as it is.
func absolute(rev string, now time.Time) string {
	name, rest, ok := strings.Cut(rev, "@{")
	end := strings.LastIndexByte(rest, '}')
	if !ok || end < 0 {
		return rev
	}
	if _, err := strconv.ParseUint(rest[:end], 10, 32); err == nil {
		return rev
	}
	at, err := parseWhen(rest[:end], now)
	if err != nil {
		return rev
	}
	return name + "@{" + at.UTC().Format(time.RFC3339Nano) + rest[end:]
}

// hop goes from a commit to one before it.
func (db *DB) hop(ctx context.Context, rev string, id CommitID, s hop) (CommitID, error) {
	for n := s.back; n > 0; n-- {
		c, err := db.Lookup(ctx, id)
		if err != nil {
			return id, err
		}
		switch {
		case len(c.Parents) == 0:
			return id, revError(rev, fmt.Sprintf("history ends %d commits before", n))
		case s.parent > uint64(len(c.Parents)):
			return id, revError(rev, fmt.Sprintf("%s has no parent %d", id.Short(), s.parent))
		}
		id = c.Parents[s.parent-1]
	}
	return id, nil
}

func orMain(name string) string {
	if name == "" {
		return MainBranch
	}
	return name
}

func revError(rev, why string) error {
	return fmt.Errorf("revision %q: %s: %w", rev, why, ErrNoRef)
}

// hop goes back some commits, always to the parent of the same number.
type hop struct{ back, parent uint64 }

// parseSteps splits what follows the base of a revision, such as "~3^2", off.
func parseSteps(rev string) (base string, steps []hop, err error) {
	tail := rev[strings.LastIndex(rev, "}")+1:]
	i := strings.IndexAny(tail, "~^")
	if i < 0 {
		return rev, nil, nil
	}
	base, tail = rev[:len(rev)-len(tail)+i], tail[i:]
	for tail != "" {
		sign := tail[0]
		digits := tail[1:]
		if end := strings.IndexAny(digits, "~^"); end >= 0 {
			digits = digits[:end]
		}
		tail = tail[1+len(digits):]
		n := uint64(1)
		if digits != "" {
			if n, err = strconv.ParseUint(digits, 10, 32); err != nil {
				return "", nil, revError(rev, fmt.Sprintf("%q is not a number", digits))
			}
		}
		switch {
		case sign == '~':
			steps = append(steps, hop{n, 1})
		case n > 0: // ^0 is the commit itself
			steps = append(steps, hop{1, n})
		}
	}
	return base, steps, nil
}

func (db *DB) resolveName(ctx context.Context, name string) (CommitID, error) {
	for _, ref := range []string{catalog.HeadRef(name), catalog.TagRef(name)} {
		if id, ok := db.heads.get(ref); ok {
			return id, nil
		}
	}
	digits := strings.ToLower(name)
	if len(digits) < minPrefix || len(digits) > 2*digest.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return CommitID{}, fmt.Errorf("%q: %w", name, ErrNoRef)
	}
	if len(digits) == 2*digest.Size {
		var id CommitID
		_, err := hex.Decode(id[:], []byte(digits))
		return id, err // Resolve looks whether there is such a commit
	}
	if err := db.writePending(ctx); err != nil {
		return CommitID{}, err
	}
	from, _ := hex.DecodeString(digits[:len(digits)&^1])
	var found []CommitID
	for rec, err := range catalog.StoredCommits(ctx, db.idx, from) {
		if err != nil {
			return CommitID{}, err
		}
		if h := hex.EncodeToString(rec.ID[:]); h[:len(digits)] != digits {
			if h[:len(digits)] > digits {
				break
			}
			continue
		}
		if found = append(found, rec.ID); len(found) > 1 {
			return CommitID{}, fmt.Errorf("%q: %v and %v begin like this: %w", name, found[0], found[1], ErrNoRef)
		}
	}
	if len(found) == 0 {
		return CommitID{}, fmt.Errorf("%q: %w", name, ErrNoRef)
	}
	return found[0], nil
}

// resolveAt asks the reflog where a branch was.
func (db *DB) resolveAt(ctx context.Context, branch, when string) (CommitID, error) {
	rev := branch + "@{" + when + "}"
	back, err := strconv.ParseUint(when, 10, 32)
	byCount := err == nil
	var at time.Time
	if !byCount {
		if at, err = parseWhen(when, db.opts.Now()); err != nil {
			return CommitID{}, revError(rev, err.Error())
		}
	}
	ref := catalog.HeadRef(branch)
	if next, err := catalog.NextSeq(db.idx, ref); err != nil {
		return CommitID{}, err
	} else if next == 0 {
		ref = catalog.TagRef(branch) // never a branch of that name
	}
	var oldest, copied CommitID
	for m, err := range db.reflog(ctx, ref) {
		if err != nil {
			return CommitID{}, err
		}
		oldest = m.Old
		if (m.Op == transfer.OpClone || m.Op == transfer.OpPush || m.Op == transfer.OpPull) && !m.New.IsZero() {
			copied = m.New
		}
		if byCount && back > 0 {
			back--
			continue
		}
		if !byCount && m.Time.After(at) {
			continue
		}
		if m.New.IsZero() {
			return CommitID{}, revError(rev, "it was deleted then")
		}
		return m.New, nil
	}
	switch {
	case byCount && back == 0 && !oldest.IsZero():
		return oldest, nil // earlier entries have expired
	case !byCount && !copied.IsZero():
		return db.firstParentAt(ctx, rev, copied, at)
	}
	return CommitID{}, revError(rev, "the reflog does not reach back that far")
}

// firstParentAt answers where a branch was at a time before it was copied into this
// database, of which the reflog knows nothing: at its newest commit, along first
// parents, that was made by then.
func (db *DB) firstParentAt(ctx context.Context, rev string, id CommitID, at time.Time) (CommitID, error) {
	for {
		c, err := db.Lookup(ctx, id)
		if err != nil || !c.Time.After(at) {
			return id, err
		}
		if len(c.Parents) == 0 {
			return id, revError(rev, "the reflog does not reach back that far, and the first commit is newer")
		}
		id = c.Parents[0]
	}
}
