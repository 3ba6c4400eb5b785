package care

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// CheckOptions say how much DB.Check looks at.
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
}

// CheckProgress is how far a check is.
type CheckProgress struct {
	// Bytes of TotalBytes were read. The total is that of the files, so it is
	// reached only if everything in them is in use.
	Bytes, TotalBytes int64
}

// CheckReport is what a check looked at and found.
type CheckReport struct {
	Refs, Commits, Sessions, Pages, Values, Payloads int64
	// PayloadBytes are those of the payloads. A payload of 512 bytes or more is
	// counted once, however many versions hold it.
	PayloadBytes int64
	// AwayPages and AwayPayloads are in the remote that this lazy clone was made of, and not here. What is below a page that is
	// away is not counted.
	AwayPages, AwayPayloads int64
	// What nothing reaches that is kept: it waits for gc, or is written at this
	// moment by a session. It is no problem.
	OrphanPages, OrphanBytes, OrphanCommits int64
	// Found is how many damaged things there are. Problems holds the first
	// 1000, one for each key that a thing is found under.
	Found    int64
	Problems []Problem
}

// MaxProblems bounds the report, not the search.
const MaxProblems = 1000

// errNoted ends a step of a check early, after a problem that hides the rest of the step.
var errNoted = errors.New("txn: the problem is noted")

// Check looks at the database as it is now.
func (p *Parts) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	c := &Checker{Parts: p, Options: o}
	if err := c.RunAll(ctx); err != nil {
		return nil, err
	}
	return &c.Report, nil
}

// InTurn takes steps up to the first error.
func InTurn(ctx context.Context, steps ...func(context.Context) error) error {
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

// Stop reports whether an error ends the check rather than being a finding.
func Stop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, catalog.ErrClosed)
}

// scan calls fn for each record of a table that can be read, and returns the number of
// all records. kind is that of problems; table and record name them, record with the key.
func scan[K, V any](c *Checker, t *catalog.Table[K, V], kind, table, record string, fn func(key []byte, v V)) (n int64, err error) {
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
func (c *Checker) packs(ctx context.Context) error {
	if _, err := scan(c, &catalog.Packs, ProblemPack, "the table of packs", "pack table entry %x", func([]byte, pack.Info) {}); err != nil {
		return err
	}
	files, err := c.Packs.Files(ctx)
	if err != nil {
		return err
	}
	for _, i := range files {
		var err error
		switch {
		case i.Missing && c.Gone:
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
func (c *Checker) known(context.Context) (err error) {
	if c.holes, err = catalog.KnownHoles(c.snap); err != nil {
		return c.unreadable(err, ProblemPack, "known holes")
	}
	return nil
}

func (c *Checker) refs(context.Context) (err error) {
	c.Report.Refs, err = scan(c, &catalog.Refs, ProblemRef, "refs", "ref %s", func(_ []byte, ref catalog.Ref) {
		c.heads[ref.Commit] = append(c.heads[ref.Commit], ref.Name)
		c.targets[ref.Name] = ref.Commit
		c.reach(ref.Commit, "ref "+ref.Name)
	})
	return err
}

// reflogs checks that moves follow one another and end where the refs are.
func (c *Checker) reflogs(context.Context) error {
	ends, next := map[string]catalog.CommitID{}, map[string]uint64{}
	_, err := scan(c, &catalog.Moves, ProblemReflog, "reflogs", "reflog entry %q", func(_ []byte, m catalog.RefMove) {
		if m.Time.After(c.Moved) {
			c.Moved = m.Time
		}
		what := fmt.Sprintf("reflog of %s, move %d", m.Ref, m.Seq)
		if last, ok := ends[m.Ref]; ok && last != m.Old {
			hint := ""
			if m.Seq > next[m.Ref] {
				hint = ` (moves between them are missing; "zarrdb fsck --repair" notes that)`
			}
			c.note(Problem{Kind: ProblemReflog, What: what,
				Err: catalog.Corrupt("begins at %v, but the move before ends at %v%s", m.Old, last, hint)})
		}
		ends[m.Ref], next[m.Ref] = m.New, m.Seq+1
		for _, id := range []catalog.CommitID{m.Old, m.New} {
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
				Err: catalog.Corrupt("points at %v, but its last move went to %v", id, end)})
		}
	}
	return nil
}

func (c *Checker) sessions(context.Context) (err error) {
	c.Report.Sessions, err = scan(c, &catalog.Sessions, ProblemSession, "sessions", "session %x", func(key []byte, s *catalog.Session) {
		c.reach(s.Base, fmt.Sprintf("base of session %x", key))
		c.start(s.Work, nil)
		if s.Start != nil {
			c.start(*s.Start, nil)
		}
	})
	return err
}

// history checks commits and their ancestors, each once.
func (c *Checker) history(ctx context.Context) error {
	for len(c.pending) > 0 {
		next := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		if err := ctx.Err(); err != nil {
			return err
		}
		c.Report.Commits++
		commit, err := catalog.Commits.Get(c.snap, next.id)
		if errors.Is(err, index.ErrNotFound) {
			err = catalog.Corrupt("commit %v is missing", next.id)
		}
		if err != nil {
			if Stop(err) {
				return err
			}
			c.note(Problem{Kind: ProblemCommit,
				What: fmt.Sprintf("commit %v, named by %s", next.id, next.from), Err: err, Commits: []catalog.CommitID{next.id}, Versions: 1, Refs: c.heads[next.id]})
			continue
		}
		c.generations[next.id] = commit.Generation
		expired, _, err := c.DB.Expired(ctx, next.id)
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
			c.note(Problem{Kind: ProblemCommit, What: fmt.Sprintf("commit %v", e.child), Commits: []catalog.CommitID{e.child}, Versions: 1,
				Err: catalog.Corrupt("is of generation %d, its parent %v of %d", c.generations[e.child], e.parent, parent)})
		}
	}
	return nil
}
