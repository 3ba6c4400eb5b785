package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// CheckOptions say how much [DB.Check] looks at.
type CheckOptions struct {
	// Payloads reads every payload and compares it with its checksums, its hash
	// and its header. Otherwise only the index is read, payloads must lie
	// inside packs that are there and long enough, and known holes are read.
	Payloads bool
	// Found is called with each problem once the versions that it affects are
	// known; nil collects them in the report only. Calls do not overlap.
	Found func(Problem) `json:"-"`
	// Progress is called from time to time with how far the check is. Calls do not
	// overlap.
	Progress func(CheckProgress) `json:"-"`

	// gone says that packs may have been removed since, because the index is a
	// checkpoint: that one is missing matters where a payload lies in it.
	gone bool
	// payload replaces the look at a payload; it may be called side by side.
	payload func(ctx context.Context, v tree.Value) error
}

// CheckProgress is how far a check is.
type CheckProgress struct {
	// Bytes of TotalBytes were read. The total is that of the files, so it is
	// reached only if everything in them is in use.
	Bytes, TotalBytes int64
}

// Kinds of problems.
const (
	ProblemPage    = "page"    // of the index
	ProblemPayload = "payload" // of a chunk or a large document
	ProblemCommit  = "commit"
	ProblemRef     = "ref"
	ProblemReflog  = "reflog"
	ProblemSession = "session"
	ProblemPack    = "pack"
)

// Problem is something that is not as it must be.
type Problem struct {
	Kind string
	// What names the damaged thing in one line: kind, key, pack and offset.
	What string
	Err  error

	// Key is the key of a damaged payload, or the directory that a damaged page
	// belongs to, with a slash at its end. Array is the path of the array that
	// a chunk belongs to, and Chunk its coordinates; nil for what is no chunk.
	Key   string
	Array string
	Chunk []int64

	// Versions is how many commits hold the damaged thing at Key; Commits are
	// the first [MaxProblemCommits] of them, Refs the branches and tags that
	// point at one ("heads/main").
	Versions int64
	Commits  []CommitID
	Refs     []string

	// Address of a payload; Page is the name of a page.
	Address pack.Address
	Page    string

	// Hole says that the payload is known to be damaged: see [TransferOptions].SkipDamaged.
	Hole bool
	sum  digest.Sum // of the payload
}

// MaxProblemCommits bounds Problem.Commits.
const MaxProblemCommits = 100

// Error implements error. The text names the damaged object, the versions that have it, and the reason.
func (p Problem) Error() string { return p.What + p.in() + ": " + p.Err.Error() }

// in says which versions are affected.
func (p Problem) in() string {
	if p.Versions == 0 {
		return ""
	}
	var names []string
	for _, r := range p.Refs {
		_, name, _ := strings.Cut(r, "/")
		names = append(names, name)
	}
	for _, c := range p.Commits {
		if len(names) < 3 {
			names = append(names, c.Short())
		}
	}
	s := ""
	if p.Versions > 1 {
		s = "s"
	}
	return fmt.Sprintf(" in %d version%s (%s)", p.Versions, s, strings.Join(names, ", "))
}

// Unwrap returns what is wrong with the thing.
func (p Problem) Unwrap() error { return p.Err }

// CheckReport is what a check looked at and found.
type CheckReport struct {
	Refs, Commits, Sessions, Pages, Values, Payloads int64
	// PayloadBytes are those of the payloads. A payload of 512 bytes or more is
	// counted once, however many versions hold it.
	PayloadBytes int64
	// What nothing reaches that is kept: it waits for gc, or is written at this
	// moment by a session. It is no problem.
	OrphanPages, OrphanBytes, OrphanCommits int64
	// Found is how many damaged things there are. Problems holds the first
	// 1000, one for each key that a thing is found under.
	Found    int64
	Problems []Problem
}

// maxProblems bounds the report, not the search.
const maxProblems = 1000

// Check verifies that everything that refs, reflogs and stored sessions reach
// is there and fits its name: commits hash to their ids, their parents
// exist and their generations fit, reflogs lead to the refs, pages hash to
// their names and fit the pages above them, payloads lie in packs. It looks at
// the database as it is when it begins, beside running readers and writers,
// and keeps what it looks at from being reclaimed. The error is about the check
// itself, ctx included; damage is in the report.
func (db *DB) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	return cared(ctx, db, "check", o, o.Progress, o.Found, db.checkNow)
}

func (db *DB) checkNow(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	if err := db.writePending(ctx); err != nil {
		return nil, err
	}
	c, err := db.checked(ctx, o)
	return &c.r, err
}

// checked is a check that is over.
func (db *DB) checked(ctx context.Context, o CheckOptions) (*checker, error) {
	db.care.RLock()
	defer db.care.RUnlock()
	c := newChecker(db, o)
	defer c.snap.Close()
	return c, inTurn(ctx, c.packs, c.known, c.refs, c.reflogs, c.sessions, c.history, c.walk, c.orphans, c.trace)
}

// errNoted ends a step of a check early, after a problem that hides the rest of the step.
var errNoted = errors.New("txn: the problem is noted")

// inTurn takes steps up to the first error.
func inTurn(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil && !errors.Is(err, errNoted) {
			return err
		}
	}
	return nil
}

// stop reports whether an error ends the check rather than being a finding.
func stop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrClosed)
}

// scan calls fn for each record of a table that can be read, and returns the number of
// all records. kind is that of problems; table and record name them, record with the key.
func scan[K, V any](c *checker, t *catalog.Table[K, V], kind, table, record string, fn func(key []byte, v V)) (n int64, err error) {
	for rec, err := range t.Scan(c.snap) {
		if err != nil {
			return n, c.unreadable(err, kind, table)
		}
		n++
		v, err := t.Decode(rec.Key, rec.Value)
		if err != nil {
			c.note(Problem{Kind: kind, What: fmt.Sprintf(record, rec.Key), Err: err})
			continue
		}
		fn(rec.Key, v)
	}
	return n, nil
}

// packs compares the files with their records in the index.
func (c *checker) packs(context.Context) error {
	if _, err := scan(c, &catalog.Packs, ProblemPack, "the table of packs", "pack table entry %x", func([]byte, pack.Info) {}); err != nil {
		return err
	}
	for _, i := range c.db.packs.Infos() {
		var err error
		switch {
		case i.Missing && c.o.gone:
			continue
		case i.Missing && i.End > 0:
			err = &pack.CorruptError{Pack: i.ID, Length: i.End, Reason: "the file is missing"}
		case i.Size < i.End:
			err = &pack.CorruptError{Pack: i.ID, Offset: i.Size, Length: i.End - i.Size, Reason: "the file ends early"}
		default:
			continue
		}
		c.note(Problem{Kind: ProblemPack, What: fmt.Sprintf("pack %v", i.ID), Err: err, Address: pack.Address{Pack: i.ID}})
	}
	return nil
}

// known reads the known holes.
func (c *checker) known(context.Context) (err error) {
	if c.holes, err = holes(c.snap); err != nil {
		return c.unreadable(err, ProblemPack, "known holes")
	}
	return nil
}

func (c *checker) refs(context.Context) (err error) {
	c.r.Refs, err = scan(c, &catalog.Refs, ProblemRef, "refs", "ref %s", func(_ []byte, ref catalog.Ref) {
		c.heads[ref.Commit] = append(c.heads[ref.Commit], ref.Name)
		c.targets[ref.Name] = ref.Commit
		c.reach(ref.Commit, "ref "+ref.Name)
	})
	return err
}

// reflogs checks that moves follow one another and end where the refs are.
func (c *checker) reflogs(context.Context) error {
	ends, next := map[string]CommitID{}, map[string]uint64{}
	_, err := scan(c, &catalog.Moves, ProblemReflog, "reflogs", "reflog entry %q", func(_ []byte, m RefMove) {
		if m.Time.After(c.moved) {
			c.moved = m.Time
		}
		what := fmt.Sprintf("reflog of %s, move %d", m.Ref, m.Seq)
		if last, ok := ends[m.Ref]; ok && last != m.Old {
			hint := ""
			if m.Seq > next[m.Ref] {
				hint = ` (moves between them are missing; "zarrdb fsck --repair" notes that)`
			}
			c.note(Problem{Kind: ProblemReflog, What: what,
				Err: corrupt("begins at %v, but the move before ends at %v%s", m.Old, last, hint)})
		}
		ends[m.Ref], next[m.Ref] = m.New, m.Seq+1
		for _, id := range []CommitID{m.Old, m.New} {
			if !id.IsZero() {
				c.reach(id, what)
			}
		}
	})
	if err != nil {
		return err
	}
	for ref, end := range ends {
		if id := c.targets[ref]; id != end {
			c.note(Problem{Kind: ProblemRef, What: "ref " + ref,
				Err: corrupt("points at %v, but its last move went to %v", id, end)})
		}
	}
	return nil
}

func (c *checker) sessions(context.Context) (err error) {
	c.r.Sessions, err = scan(c, &catalog.Sessions, ProblemSession, "sessions", "session %x", func(key []byte, s *catalog.Session) {
		c.reach(s.Base, fmt.Sprintf("base of session %x", key))
		c.start(s.Work, nil)
		if s.Start != nil {
			c.start(*s.Start, nil)
		}
	})
	return err
}

// history checks commits and their ancestors, each once.
func (c *checker) history(ctx context.Context) error {
	for len(c.pending) > 0 {
		next := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		if err := ctx.Err(); err != nil {
			return err
		}
		c.r.Commits++
		commit, err := catalog.Commits.Get(c.snap, next.id)
		if errors.Is(err, index.ErrNotFound) {
			err = corrupt("commit %v is missing", next.id)
		}
		if err != nil {
			if stop(err) {
				return err
			}
			c.note(Problem{Kind: ProblemCommit,
				What: fmt.Sprintf("commit %v, named by %s", next.id, next.from), Err: err, Commits: []CommitID{next.id}, Versions: 1, Refs: c.heads[next.id]})
			continue
		}
		c.generations[next.id] = commit.Generation
		expired, _, err := c.db.home.expired(ctx, next.id)
		if err != nil {
			return err
		}
		if !expired { // its pages need not be there
			c.start(commit.Root, &next.id)
		}
		for _, p := range commit.Parents {
			c.reach(p, "commit "+next.id.Short())
			c.lineage = append(c.lineage, edge{next.id, p})
		}
	}
	for _, e := range c.lineage {
		parent, ok := c.generations[e.parent]
		if ok && c.generations[e.child] <= parent {
			c.note(Problem{Kind: ProblemCommit, What: fmt.Sprintf("commit %v", e.child), Commits: []CommitID{e.child}, Versions: 1,
				Err: corrupt("is of generation %d, its parent %v of %d", c.generations[e.child], e.parent, parent)})
		}
	}
	return nil
}
