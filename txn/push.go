package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// RefSpec names a branch or tag that goes to another database.
type RefSpec struct {
	// From is its name in the source, and To in the destination, "" for the
	// same. A name that is a branch and a tag is the branch.
	From, To string
	// Force lets it move even if versions are dropped, or another tag is.
	Force bool
}

// Push carries the versions of branches and tags that the destination lacks, and
// moves its refs of these names, which are made if they are not there: all of
// them or, with an error, none. A branch that has only the empty first commit of a new
// database counts as missing. Both databases are open, and may be in use.
//
// Errors: [ErrDiverged] if a branch of the destination has versions that the
// source does not have, or a tag is another one, and Force is not set; ErrNoRef
// if the source has no such branch or tag.
func (db *DB) Push(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	return to.home.transfer(ctx, db, opPush, o)
}

// Pull is [DB.Push] from the other side. A branch that is ahead of the source is
// left alone.
func (db *DB) Pull(ctx context.Context, from *DB, o TransferOptions) (*TransferReport, error) {
	return db.home.transfer(ctx, from, opPull, o)
}

// Fetch is [DB.Pull] without moves: the versions are there afterwards, for a merge
// or rebase, and the report says which refs of the source they are. Expiry lets
// them go if no ref comes to reach them.
func (db *DB) Fetch(ctx context.Context, from *DB, o TransferOptions) (*TransferReport, error) {
	return db.home.transfer(ctx, from, opFetch, o)
}

// pushing is a push, pull or fetch of refs.
type pushing struct {
	t    *transfer
	op   string
	refs map[string]*pushedRef // by stored name in the destination
	move map[string]CommitID
}

type pushedRef struct {
	id     CommitID // zero deletes it
	force  bool
	expect CommitID // what the destination had, when it was looked at
}

// exchange pushes, pulls or fetches.
func exchange(ctx context.Context, from, to *DB, op string, o TransferOptions) (*TransferReport, error) {
	p := &pushing{op: op}
	r, err := transferred(ctx, from, to, o, p.plan, p.publish)
	if err == errPlanned {
		err = nil
	}
	return r, err
}

// errPlanned ends a dry run.
var errPlanned = errors.New("txn: it was planned")

// plan finds the refs and which of them move.
func (p *pushing) plan(ctx context.Context, t *transfer) error {
	p.t, p.refs, p.move = t, map[string]*pushedRef{}, map[string]CommitID{}
	if err := p.choose(); err != nil {
		return err
	}
	var tips []CommitID
	var refused error
	for _, name := range slices.Sorted(maps.Keys(p.refs)) {
		ref := p.refs[name]
		ref.expect, _ = t.to.heads.get(name)
		ok, err := p.may(ctx, name, ref.expect)
		refused = errors.Join(refused, err)
		if ok {
			p.move[name] = ref.id
			if t.o.DryRun {
				t.r.Moves = append(t.r.Moves, RefMove{Ref: name, Old: ref.expect, New: ref.id, Op: p.op})
			}
		}
		if ref.id.IsZero() {
			continue
		}
		t.r.Refs = append(t.r.Refs, Ref{Name: name, Commit: ref.id})
		if ok || t.o.Deepen > 0 || t.o.Unshallow {
			tips = append(tips, ref.id)
		}
	}
	if refused != nil {
		return refused
	}
	err := t.commits(ctx, tips)
	if err == nil && t.o.DryRun {
		err = errPlanned
	}
	return err
}

// choose resolves what the options name; nothing is the main branch.
func (p *pushing) choose() error {
	o := p.t.o
	specs := o.Refs
	if len(specs) == 0 && !o.AllBranches && !o.AllTags {
		specs = []RefSpec{{From: MainBranch}}
	}
	for _, s := range specs {
		prefix := catalog.HeadPrefix
		id, ok := p.t.heads[catalog.HeadRef(s.From)]
		if !ok {
			prefix = catalog.TagPrefix
			id, ok = p.t.heads[catalog.TagRef(s.From)]
		}
		if !ok {
			return fmt.Errorf("branch or tag %q: %w", s.From, ErrNoRef)
		}
		if s.To == "" {
			s.To = s.From
		}
		if err := CheckRefName(s.To); err != nil {
			return err
		}
		if err := p.add(prefix+s.To, id, s.Force || o.Force); err != nil {
			return err
		}
	}
	for name, id := range p.t.heads {
		if strings.HasPrefix(name, catalog.HeadPrefix) && o.AllBranches || strings.HasPrefix(name, catalog.TagPrefix) && o.AllTags {
			if err := p.add(name, id, o.Force); err != nil {
				return err
			}
		}
	}
	if !o.Prune {
		return nil
	}
	if !o.AllBranches && !o.AllTags {
		return errors.New("prune: neither all branches nor all tags are pushed")
	}
	for _, r := range p.t.to.heads.list("") {
		_, here := p.t.heads[r.Name]
		if all := isHead(r.Name) && o.AllBranches || !isHead(r.Name) && o.AllTags; all && !here && p.refs[r.Name] == nil && r.Name != catalog.HeadRef(MainBranch) {
			p.refs[r.Name] = &pushedRef{force: o.Force}
		}
	}
	return nil
}

func (p *pushing) add(name string, id CommitID, force bool) error {
	if old := p.refs[name]; old != nil {
		if old.id != id {
			return fmt.Errorf("%s: two versions are to become it: %s and %s", refText(name), old.id.Short(), id.Short())
		}
		force = force || old.force
	}
	p.refs[name] = &pushedRef{id: id, force: force}
	return nil
}

// refText is a stored name as people know it.
func refText(name string) string {
	if short, ok := strings.CutPrefix(name, catalog.TagPrefix); ok {
		return fmt.Sprintf("tag %q", short)
	}
	return fmt.Sprintf("branch %q", strings.TrimPrefix(name, catalog.HeadPrefix))
}

// may reports whether a ref of the destination is to be moved: not if it is there
// already, or ahead in a pull. It is refused if that would drop versions.
func (p *pushing) may(ctx context.Context, name string, old CommitID) (bool, error) {
	ref := p.refs[name]
	switch {
	case old == ref.id:
		return false, nil
	case old.IsZero(), ref.force, p.op == opFetch:
		return true, nil
	case ref.id.IsZero():
		_, err := p.t.from.version(ctx, old)
		if errors.Is(err, ErrNoRef) {
			err = fmt.Errorf("%s: %w", refText(name), ErrDiverged)
		}
		return err == nil, err
	case strings.HasPrefix(name, catalog.TagPrefix):
		return false, fmt.Errorf("%s: %w", refText(name), errOtherTag)
	}
	if p.op == opPull {
		if ahead, err := related(ctx, p.t.to, ref.id, old); ahead || err != nil {
			return false, err
		}
	}
	behind, err := related(ctx, p.t.from, old, ref.id)
	if err == nil && !behind {
		// The empty first commit of a new database is no version to lose.
		var c *Commit
		if c, err = p.t.to.Lookup(ctx, old); err != nil || len(c.Parents) == 0 && c.Root.Empty() {
			return err == nil, err
		}
		err = fmt.Errorf("%s: %w", refText(name), ErrDiverged)
	}
	return behind, err
}

// related reports whether old is an ancestor of a version. A commit that is not
// known is none.
func related(ctx context.Context, db *DB, old, id CommitID) (bool, error) {
	ok, err := history.IsAncestor(ctx, db.Lookup, old, id)
	if errors.Is(err, ErrNoRef) {
		err = nil
	}
	return ok, err
}

// publish moves the refs; those that moved meanwhile are looked at again.
func (p *pushing) publish(ctx context.Context, t *transfer) error {
	if p.op == opFetch {
		p.move = nil
	}
	return t.move(ctx, p.op, p.move, func(name string, old CommitID) (bool, error) {
		if old == p.refs[name].expect {
			return true, nil
		}
		return p.may(ctx, name, old)
	})
}
