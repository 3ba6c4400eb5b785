package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// CheckOptions say how much [DB.Check] looks at.
type CheckOptions struct {
	// Payloads reads every payload and verifies its checksum and its hash.
	// Otherwise only the index is read, and payloads must lie inside a pack.
	Payloads bool
	// Found is told of each problem; nil collects them in the report only.
	Found func(Problem)
}

// Problem is something that is not as it must be.
type Problem struct {
	// What names the damaged thing: "page …", "commit …", "payload of KEY".
	What string
	Err  error
}

// Error implements error.
func (p Problem) Error() string { return p.What + ": " + p.Err.Error() }

// Unwrap returns what is wrong with the thing.
func (p Problem) Unwrap() error { return p.Err }

// CheckReport is what a check looked at and found.
type CheckReport struct {
	Refs, Commits, Sessions, Pages, Values, Payloads int64
	PayloadBytes                                     int64
	Problems                                         []Problem
}

// maxProblems bounds the report, not the search.
const maxProblems = 1000

// Check verifies that everything that refs, reflogs and stored sessions reach
// is there and is what its name says: commits hash to their ids and their
// parents exist, pages hash to their names and are well formed, payloads lie
// in packs. It reads beside running readers and writers. The error is about
// the check itself; damage is in the report.
func (db *DB) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	c := checker{db: db, o: o, r: &CheckReport{}, pages: map[tree.Name]struct{}{}, commits: map[CommitID]struct{}{}}
	for _, step := range []func(context.Context) error{c.refs, c.reflogs, c.sessions} {
		if err := step(ctx); err != nil {
			return c.r, err
		}
	}
	return c.r, nil
}

type checker struct {
	db      *DB
	o       CheckOptions
	r       *CheckReport
	pages   map[tree.Name]struct{}
	commits map[CommitID]struct{}
}

func (c *checker) problem(err error, format string, args ...any) {
	p := Problem{What: fmt.Sprintf(format, args...), Err: err}
	if len(c.r.Problems) < maxProblems {
		c.r.Problems = append(c.r.Problems, p)
	}
	if c.o.Found != nil {
		c.o.Found(p)
	}
}

// stop reports whether an error ends the check rather than being a finding.
func stop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrClosed)
}

func (c *checker) refs(ctx context.Context) error {
	for _, ref := range c.db.heads.list("") {
		c.r.Refs++
		if err := c.history(ctx, ref.Commit, "ref "+ref.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) reflogs(ctx context.Context) error {
	for rec, err := range c.db.idx.Scan(index.SpaceReflog, nil, nil, false) {
		if err != nil {
			return err
		}
		m, err := decodeRefMove(rec.Key, rec.Value)
		if err != nil {
			c.problem(err, "reflog entry %q", rec.Key)
			continue
		}
		for _, id := range []CommitID{m.Old, m.New} {
			if id.IsZero() {
				continue
			}
			if err := c.history(ctx, id, "reflog of "+m.Ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) sessions(ctx context.Context) error {
	for rec, err := range c.db.idx.Scan(index.SpaceSession, nil, nil, false) {
		if err != nil {
			return err
		}
		c.r.Sessions++
		if len(rec.Key) != len(SessionID{}) {
			c.problem(corrupt("key of %d bytes", len(rec.Key)), "session %x", rec.Key)
			continue
		}
		id := SessionID(rec.Key)
		s, err := decodeSession(id, rec.Value)
		if err != nil {
			c.problem(err, "session %v", id)
			continue
		}
		if err := c.history(ctx, s.base, "base of session "+id.String()); err != nil {
			return err
		}
		if err := c.root(ctx, s.work, "session "+id.String()); err != nil {
			return err
		}
	}
	return nil
}

// history checks a commit and its ancestors, each once.
func (c *checker) history(ctx context.Context, id CommitID, from string) error {
	pending := []CommitID{id}
	for len(pending) > 0 {
		id := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if _, ok := c.commits[id]; ok {
			continue
		}
		c.commits[id] = struct{}{}
		c.r.Commits++
		commit, err := c.db.Commit(ctx, id)
		if err != nil {
			if stop(err) {
				return err
			}
			c.problem(err, "commit %v, named by %s", id, from)
			continue
		}
		if err := c.root(ctx, commit.Root, "commit "+id.Short()); err != nil {
			return err
		}
		pending = append(pending, commit.Parents...)
		from = "commit " + id.Short()
	}
	return nil
}

// root checks the pages and values below a root that no earlier root had.
func (c *checker) root(ctx context.Context, root tree.Root, of string) error {
	err := c.db.space.t.Walk(ctx, root, func(name tree.Name, _ uint8, _ int) (bool, error) {
		if _, ok := c.pages[name]; ok {
			return false, nil
		}
		c.pages[name] = struct{}{}
		c.r.Pages++
		return true, nil
	}, func(e tree.Entry) error {
		return c.value(ctx, e, of)
	})
	if err != nil && !stop(err) {
		c.problem(err, "%s", of)
		return nil
	}
	return err
}

func (c *checker) value(ctx context.Context, e tree.Entry, of string) error {
	c.r.Values++
	if e.Value.Kind != tree.KindNative {
		return nil
	}
	c.r.Payloads++
	c.r.PayloadBytes += int64(e.Value.Length)
	err := c.db.packs.Check(ctx, addressOf(e.Value))
	if err == nil && c.o.Payloads {
		err = c.payload(ctx, e.Value)
	}
	if err != nil {
		if stop(err) {
			return err
		}
		a := addressOf(e.Value)
		c.problem(err, "payload at %v+%d, %d bytes, key %q of %s", a.Pack, a.Offset, a.Length, e.Key, of)
	}
	return nil
}

// payload reads the bytes of a value and compares them with their hash.
func (c *checker) payload(ctx context.Context, v tree.Value) error {
	return located{c.db, v}.View(ctx, kv.All(), func(b []byte) error {
		got := tree.Value{Kind: tree.KindInline, Inline: b}
		if got.ContentSum() != v.Sum {
			return corrupt("payload hashes to %v, not %v", got.ContentSum(), v.Sum)
		}
		return nil
	})
}

// CheckDir opens the database in dir for reading and checks it.
func CheckDir(ctx context.Context, dir string, fs index.FS, o CheckOptions) (_ *CheckReport, err error) {
	db, err := Open(dir, &Options{FS: fs, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Check(ctx, o)
}
