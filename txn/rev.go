package txn

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// minPrefix is how many digits of a commit id a revision must give.
const minPrefix = 4

// Resolve turns a revision into a commit:
//
//	rev  = base *( "~" [N] ) | base "@{" when "}" *( "~" [N] )
//	base = branch | tag | commit id prefix of at least 4 digits | "" for main
//	when = N moves ago | time: the branch or tag as the reflog saw it then,
//	       which still knows those that were deleted
//
// "~N" is the N-th first parent. Times are RFC 3339, "2006-01-02 15:04:05",
// "2006-01-02 15:04" or "2006-01-02", local where no zone is given. A name
// that is both is a branch before a tag before a commit.
func (db *DB) Resolve(ctx context.Context, rev string) (CommitID, error) {
	if err := db.check(); err != nil {
		return CommitID{}, err
	}
	base, steps, err := cutSteps(rev)
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
	for ; err == nil && steps > 0; steps-- {
		var c *Commit
		if c, err = db.Commit(ctx, id); err != nil {
			break
		}
		if len(c.Parents) == 0 {
			return CommitID{}, revError(rev, fmt.Sprintf("history ends %d commits before", steps))
		}
		id = c.Parents[0]
	}
	if err == nil {
		_, err = db.version(ctx, id)
	}
	return id, err
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

// cutSteps splits the "~N~M" off the end of a revision and adds it up.
func cutSteps(rev string) (base string, steps uint64, err error) {
	tail := rev[strings.LastIndex(rev, "}")+1:]
	i := strings.IndexByte(tail, '~')
	if i < 0 {
		return rev, 0, nil
	}
	base = rev[:len(rev)-len(tail)+i]
	for s := range strings.SplitSeq(tail[i+1:], "~") {
		n := uint64(1)
		if s != "" {
			if n, err = strconv.ParseUint(s, 10, 32); err != nil {
				return "", 0, revError(rev, fmt.Sprintf("%q is not a number", s))
			}
		}
		steps += n
	}
	return base, steps, nil
}

func (db *DB) resolveName(ctx context.Context, name string) (CommitID, error) {
	for _, ref := range []string{headRef(name), tagRef(name)} {
		if id, ok := db.heads.get(ref); ok {
			return id, nil
		}
	}
	digits := strings.ToLower(name)
	if len(digits) < minPrefix || len(digits) > 2*digest.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return CommitID{}, fmt.Errorf("%q: %w", name, ErrNoRef)
	}
	if err := db.writePending(ctx); err != nil {
		return CommitID{}, err
	}
	from, _ := hex.DecodeString(digits[:len(digits)&^1])
	var found []CommitID
	for rec, err := range commitRecords(ctx, db.idx, from) {
		if err != nil {
			return CommitID{}, err
		}
		if h := hex.EncodeToString(rec.id[:]); h[:len(digits)] != digits {
			if h[:len(digits)] > digits {
				break
			}
			continue
		}
		if found = append(found, rec.id); len(found) > 1 {
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
		if at, err = ParseTime(when); err != nil {
			return CommitID{}, revError(rev, err.Error())
		}
	}
	ref := headRef(branch)
	if next, err := db.nextReflogSeq(ref); err != nil {
		return CommitID{}, err
	} else if next == 0 {
		ref = tagRef(branch) // never a branch of that name
	}
	for m, err := range db.reflog(ctx, ref) {
		if err != nil {
			return CommitID{}, err
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
	return CommitID{}, revError(rev, "the reflog does not reach back that far")
}

// ParseTime reads a point in time as revisions and options spell it.
func ParseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z", s)
}
