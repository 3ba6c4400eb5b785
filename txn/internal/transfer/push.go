package transfer

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

// pushing is a push, pull or fetch of refs.
type pushing struct {
	t    *Transfer
	op   string
	refs map[string]*pushedRef // by stored name in the destination
	move map[string]catalog.CommitID
}

type pushedRef struct {
	id     catalog.CommitID // zero deletes it
	force  bool
	expect catalog.CommitID // what the destination had, when it was looked at
}

// Exchange pushes, pulls or fetches.
func Exchange(ctx context.Context, from *From, to *To, op string, o Options) (*Report, error) {
	p := &pushing{op: op}
	r, err := run(ctx, from, to, o, p.plan, p.publish)
	if err == errPlanned {
		err = nil
	}
	return r, err
}

// errPlanned ends a dry run.
var errPlanned = errors.New("txn: it was planned")

// plan finds the refs and which of them move.
func (p *pushing) plan(ctx context.Context, t *Transfer) error {
	p.t, p.refs, p.move = t, map[string]*pushedRef{}, map[string]catalog.CommitID{}
	if err := p.choose(); err != nil {
		return err
	}
	var tips []catalog.CommitID
	var refused error
	for _, name := range slices.Sorted(maps.Keys(p.refs)) {
		ref := p.refs[name]
		ref.expect, _ = t.to.Head(name)
		ok, err := p.may(ctx, name, ref.expect)
		refused = errors.Join(refused, err)
		if ok {
			p.move[name] = ref.id
			if t.o.DryRun {
				t.r.Moves = append(t.r.Moves, catalog.RefMove{Ref: name, Old: ref.expect, New: ref.id, Op: p.op})
			}
		}
		if ref.id.IsZero() {
			continue
		}
		t.r.Refs = append(t.r.Refs, catalog.Ref{Name: name, Commit: ref.id})
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
		specs = []RefSpec{{From: catalog.MainBranch}}
	}
	for _, s := range specs {
		prefix := catalog.HeadPrefix
		id, ok := p.t.heads[catalog.HeadRef(s.From)]
		if !ok {
			prefix = catalog.TagPrefix
			id, ok = p.t.heads[catalog.TagRef(s.From)]
		}
		if !ok {
			return fmt.Errorf("branch or tag %q: %w", s.From, catalog.ErrNoRef)
		}
		if s.To == "" {
			s.To = s.From
		}
		if err := catalog.CheckRefName(s.To); err != nil {
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
	for _, r := range p.t.to.Heads() {
		_, here := p.t.heads[r.Name]
		if all := catalog.IsHead(r.Name) && o.AllBranches || !catalog.IsHead(r.Name) && o.AllTags; all && !here && p.refs[r.Name] == nil && r.Name != catalog.HeadRef(catalog.MainBranch) {
			p.refs[r.Name] = &pushedRef{force: o.Force}
		}
	}
	return nil
}

func (p *pushing) add(name string, id catalog.CommitID, force bool) error {
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
func (p *pushing) may(ctx context.Context, name string, old catalog.CommitID) (bool, error) {
	ok, err := p.wants(ctx, name, old)
	if ok && err == nil {
		err = p.allowed(ctx, name, old)
	}
	return ok && err == nil, err
}

// allowed returns an error if a ref of the destination is protected from its move.
func (p *pushing) allowed(ctx context.Context, name string, old catalog.CommitID) error {
	if p.op == OpFetch {
		return nil
	}
	id := p.refs[name].id
	return p.t.to.Protection(name).Allow(catalog.RefMove{Ref: name, Old: old, New: id}, func() (bool, error) {
		return related(ctx, p.either, old, id)
	})
}

// wants is may without protections.
func (p *pushing) wants(ctx context.Context, name string, old catalog.CommitID) (bool, error) {
	ref := p.refs[name]
	switch {
	case old == ref.id:
		return false, nil
	case old.IsZero(), ref.force, p.op == OpFetch:
		return true, nil
	case ref.id.IsZero():
		_, err := p.t.From.Version(ctx, old)
		if errors.Is(err, catalog.ErrNoRef) {
			err = fmt.Errorf("%s: %w", refText(name), ErrDiverged)
		}
		return err == nil, err
	case strings.HasPrefix(name, catalog.TagPrefix):
		return false, fmt.Errorf("%s: %w", refText(name), errOtherTag)
	}
	if p.op == OpPull {
		if ahead, err := related(ctx, p.t.to.Lookup, ref.id, old); ahead || err != nil {
			return false, err
		}
	}
	behind, err := related(ctx, p.either, old, ref.id)
	if err == nil && !behind {
		// The empty first commit of a new database is no version to lose.
		var c *catalog.Commit
		if c, err = p.t.to.Lookup(ctx, old); err != nil || len(c.Parents) == 0 && c.Root.Empty() {
			return err == nil, err
		}
		err = fmt.Errorf("%s: %w", refText(name), ErrDiverged)
	}
	return behind, err
}

// either looks a commit up in the source, or in the destination: a source may have only what the destination lacks.
func (p *pushing) either(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error) {
	c, err := p.t.From.Lookup(ctx, id)
	if errors.Is(err, catalog.ErrNoRef) && p.t.to.bucket == nil {
		return p.t.to.Lookup(ctx, id)
	}
	return c, err
}

// related reports whether old is an ancestor of a version. A commit that is not
// known is none.
func related(ctx context.Context, lookup history.Get, old, id catalog.CommitID) (bool, error) {
	ok, err := history.IsAncestor(ctx, lookup, old, id)
	if errors.Is(err, catalog.ErrNoRef) {
		err = nil
	}
	return ok, err
}

// publish moves the refs; those that moved, or were protected, meanwhile are looked at again.
func (p *pushing) publish(ctx context.Context, t *Transfer) error {
	if p.op == OpFetch {
		p.move = nil
	}
	return t.move(ctx, p.op, p.move, func(name string, old catalog.CommitID) (bool, error) {
		if old == p.refs[name].expect {
			err := p.allowed(ctx, name, old)
			return err == nil, err
		}
		return p.may(ctx, name, old)
	})
}
