package txn

import (
	"cmp"
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// trace finds out under which keys and in which versions the damaged things
// are: from each version down those pages only that lead to damage.
func (c *checker) trace(ctx context.Context) error {
	t := tracer{c: c, tainted: c.tainted(), at: map[tracePlace][]int{}, places: map[foundPlace]int{}, out: c.notes}
	for _, r := range c.roots {
		if err := t.version(ctx, r); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Array, b.Array), slices.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Key, b.Key))
	})
	for i := range t.out {
		slices.Sort(t.out[i].Refs)
	}
	c.r.Problems = t.out[:min(len(t.out), maxProblems)]
	for _, p := range t.out {
		c.tell(p)
	}
	return nil
}

// tainted returns the pages that are damaged, name a bad payload or lead to
// one that does.
func (c *checker) tainted() map[int32]bool {
	out := map[int32]bool{}
	for p := range c.damaged {
		out[p] = true
	}
	for p := range c.holders {
		out[p] = true
	}
	for more := len(out) > 0; more; {
		more = false
		for _, e := range c.above {
			if out[e.below] && !out[e.page] {
				out[e.page], more = true, true
			}
		}
	}
	return out
}

type tracer struct {
	c       *checker
	tainted map[int32]bool
	// at remembers what was found below a page at a path, places the number of
	// a problem.
	at     map[tracePlace][]int
	places map[foundPlace]int
	out    []Problem
}

type tracePlace struct {
	page int32
	path string
}

type foundPlace struct {
	page int32 // -1 for a payload
	key  string
	at   pack.Address
}

// version adds a version to the problems that it has.
func (t *tracer) version(ctx context.Context, r checkRoot) error {
	page, ok := t.c.pages[r.root.Name]
	if !ok || !t.tainted[page] {
		return nil
	}
	found, err := t.page(ctx, r.root.Place(), "", nil)
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
func (t *tracer) page(ctx context.Context, at tree.Place, path string, form *Form) ([]int, error) {
	page := t.c.pages[at.Page().Name]
	here := tracePlace{page, path}
	if found, ok := t.at[here]; ok {
		return found, nil
	}
	if p, ok := t.c.damaged[page]; ok {
		found := []int{t.problem(foundPlace{page: page, key: path}, pageProblem(p.Page, path, p.Err))}
		t.at[here] = found
		return found, nil
	}
	var found []int
	into := func(child tree.Place, path string, form *Form) error {
		n, ok := t.c.pages[child.Page().Name]
		if !ok || !t.tainted[n] {
			return nil
		}
		more, err := t.page(ctx, child, path, form)
		found = append(found, more...)
		return err
	}
	err := t.c.tree.Open(ctx, at, func(child tree.Place) error {
		return into(child, path, form)
	}, func(e tree.Entry) error {
		key, chunk, m, err := namespace.ReadEntry(path, form, e)
		if err != nil || m == nil && key == "" {
			return err
		}
		if m != nil {
			return into(e.Value.Child.Place(), m.Path, m.Form)
		}
		if e.Value.Kind != tree.KindNative {
			return nil
		}
		a := addressOf(e.Value)
		if bad := t.c.bad[a]; bad != nil {
			p := payloadProblem(key, path, chunk, e.Value, bad)
			found = append(found, t.problem(foundPlace{page: -1, key: key, at: a}, p))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.at[here] = found
	return found, nil
}

// problem returns the number of a problem at a place, which is new or not.
func (t *tracer) problem(at foundPlace, p Problem) int {
	i, ok := t.places[at]
	if !ok {
		i = len(t.out)
		t.places[at] = i
		t.out = append(t.out, p)
	}
	return i
}
