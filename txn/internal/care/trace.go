package care

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// trace finds out under which keys and in which versions the damaged things are: it
// reads everything again, pages below which there is no damage once.
func (c *Checker) trace(ctx context.Context) error {
	t := tracer{c: c, at: map[tracePlace][]int{}, places: map[string]int{}, out: c.notes}
	if len(c.damaged)+len(c.bad) > 0 {
		for _, r := range c.roots {
			if err := t.version(ctx, r); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(t.out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Array, b.Array), slices.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Key, b.Key))
	})
	for _, p := range t.out {
		slices.Sort(p.Refs)
		c.tell(p)
	}
	c.Report.Problems = t.out[:min(len(t.out), MaxProblems)]
	return nil
}

type tracer struct {
	c *Checker
	// at remembers what was found below a page at a path, places the number of a
	// problem by its What, the text that names the damaged thing. Pages without damage below are
	// removed from Checker.pages.
	at     map[tracePlace][]int
	places map[string]int
	out    []Problem
}

type tracePlace struct {
	page tree.Name
	path string
}

// version adds a version to the problems that it has.
func (t *tracer) version(ctx context.Context, r checkRoot) error {
	found, err := t.page(ctx, place{at: r.root.Place()})
	if err != nil || r.commit == nil {
		return err
	}
	for _, i := range found {
		p := &t.out[i]
		p.Versions++
		if len(p.Commits) < MaxProblemCommits {
			p.Commits = append(p.Commits, *r.commit)
		}
		p.Refs = append(p.Refs, t.c.heads[*r.commit]...)
	}
	return nil
}

// page returns the problems at and below a page.
func (t *tracer) page(ctx context.Context, p place) ([]int, error) {
	page := p.at.Page().Name
	if _, ok := t.c.pages[page]; !ok {
		return nil, nil
	}
	here := tracePlace{page, p.path}
	if found, ok := t.at[here]; ok {
		return found, nil
	}
	if err := t.c.damaged[page.String()]; err != nil {
		found := []int{t.problem(pageProblem(page, p.path, err))}
		t.at[here] = found
		return found, nil
	}
	var found []int
	err := t.c.open(ctx, p, func(child place) error {
		more, err := t.page(ctx, child)
		found = append(found, more...)
		return err
	}, func(l payloadPlace) error {
		if bad := t.c.bad[catalog.AddressOf(l.v)]; bad != nil && l.v.Kind == tree.KindNative {
			found = append(found, t.problem(payloadProblem(p.path, l, bad)))
		}
		return nil
	})
	if err == nil || t.c.Away != nil && errors.Is(err, tree.ErrMissing) { // it is away
		err = ctx.Err()
	}
	if err != nil && (Stop(err) || len(t.c.damaged) < MaxProblems) { // else it is damaged too
		return nil, err
	}
	if len(found) == 0 {
		delete(t.c.pages, page)
		return nil, nil
	}
	t.at[here] = found
	return found, nil
}

// problem returns the number of a problem, which was found at its place before or not.
func (t *tracer) problem(p Problem) int {
	i, ok := t.places[p.What]
	if !ok {
		i = len(t.out)
		t.places[p.What] = i
		t.out = append(t.out, p)
	}
	return i
}
