package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

type (
	commitID = catalog.CommitID
	commit   = catalog.Commit
)

// graph is a history without contents.
type graph map[commitID]*commit

func (g graph) get(_ context.Context, id commitID) (*commit, error) {
	if c, ok := g[id]; ok {
		return c, nil
	}
	return nil, catalog.ErrNoRef
}

// add makes a commit with some parents.
func (g graph) add(parents ...commitID) commitID {
	c := &commit{Parents: parents, Message: fmt.Sprint(len(g))}
	for _, p := range parents {
		c.Generation = max(c.Generation, g[p].Generation+1)
	}
	catalog.SealCommit(c)
	g[c.ID] = c
	return c.ID
}

// TestBisect searches random histories with merges for a commit that brought
// something in.
func TestBisect(t *testing.T) {
	rnd, _ := toy.Rand(t)
	g := graph{}
	first := g.add()
	ids := []commitID{first}
	for range 60 {
		parents := []commitID{ids[rnd.IntN(len(ids))]}
		if rnd.IntN(3) > 0 {
			parents[0] = ids[len(ids)-1]
		}
		if b := ids[rnd.IntN(len(ids))]; rnd.IntN(3) == 0 && b != parents[0] {
			parents = append(parents, b)
		}
		ids = append(ids, g.add(parents...))
	}
	ancestors := func(of commitID) map[commitID]bool {
		seen := map[commitID]bool{}
		for c, err := range Ancestors(t.Context(), g.get, []commitID{of}, All) {
			must.Do(t, err)
			seen[c.ID] = true
		}
		return seen
	}
	for range 100 {
		bad := ids[1+rnd.IntN(len(ids)-1)]
		below := ancestors(bad)
		candidates := slices.Collect(maps.Keys(below))
		slices.SortFunc(candidates, func(a, b commitID) int { return strings.Compare(string(a[:]), string(b[:])) })
		culprit := candidates[rnd.IntN(len(candidates))]
		var good []commitID
		if culprit != first {
			good = []commitID{first}
		}
		skips := map[commitID]bool{}
		if rnd.IntN(3) == 0 {
			for range rnd.IntN(6) {
				skips[candidates[rnd.IntN(len(candidates))]] = true
			}
		}
		b := must.Get(Bisect(t.Context(), g.get, good, bad))(t)
		asked := 0
		for {
			id, ok := b.Next()
			if !ok {
				break
			}
			if asked++; asked > len(candidates) {
				t.Fatal("asks for ever")
			}
			v := Good
			switch {
			case skips[id]:
				v = Skip
			case ancestors(id)[culprit]:
				v = Bad
			}
			must.Do(t, b.Mark(id, v))
		}
		found, others := b.Result()
		if found != culprit && !slices.Contains(others, culprit) {
			t.Fatalf("found %s and %d others, not %s", found.Short(), len(others), culprit.Short())
		}
		for _, id := range others {
			if !skips[id] {
				t.Fatalf("%s is left though it can be asked", id.Short())
			}
		}
	}
}

// A line is halved each time.
func TestBisectAsksFew(t *testing.T) {
	g := graph{}
	good := g.add()
	var line []commitID
	for last := good; len(line) < 100; {
		last = g.add(last)
		line = append(line, last)
	}
	for culprit := 0; culprit < 100; culprit += 1 + rand.IntN(10) {
		b := must.Get(Bisect(t.Context(), g.get, []commitID{good}, line[99]))(t)
		asked := 0
		for id, ok := b.Next(); ok; id, ok = b.Next() {
			asked++
			v := Good
			if slices.Index(line, id) >= culprit {
				v = Bad
			}
			must.Do(t, b.Mark(id, v))
		}
		if found, others := b.Result(); found != line[culprit] || len(others) > 0 || asked > 7 || b.Left() != 1 {
			t.Errorf("found %v and %v in %d questions, %d left", found, others, asked, b.Left())
		}
	}
	if _, err := Bisect(t.Context(), g.get, []commitID{line[99]}, line[98]); err == nil {
		t.Error("good is not an ancestor of bad")
	}
	b := must.Get(Bisect(t.Context(), g.get, []commitID{good}, line[9]))(t)
	if b.Mark(line[50], Good) == nil || b.Mark(line[9], Good) == nil || b.Mark(line[3], 0) == nil {
		t.Error("verdicts that make no sense are taken")
	}
	must.Do(t, b.Mark(line[3], Good))
	if b.Mark(line[2], Bad) == nil {
		t.Error("bad before good is taken")
	}
}

// The merge base is the best common ancestor: one that no other is below.
func TestMergeBase(t *testing.T) {
	rnd, _ := toy.Rand(t)
	for range 200 {
		g := graph{}
		ids := []commitID{g.add()}
		for range 2 + rnd.IntN(12) {
			parents := []commitID{ids[rnd.IntN(len(ids))]}
			if b := ids[rnd.IntN(len(ids))]; b != parents[0] && rnd.IntN(2) == 0 {
				parents = append(parents, b)
			}
			ids = append(ids, g.add(parents...))
		}
		is := func(old, head commitID) bool {
			ok := must.Get(IsAncestor(t.Context(), g.get, old, head))(t)
			return ok
		}
		a, b := ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))]
		common := slices.DeleteFunc(slices.Clone(ids), func(id commitID) bool { return !is(id, a) || !is(id, b) })
		best := slices.DeleteFunc(slices.Clone(common), func(id commitID) bool {
			return slices.ContainsFunc(common, func(other commitID) bool { return other != id && is(id, other) })
		})
		got, err := MergeBase(t.Context(), g.get, a, b)
		if len(best) == 1 && (err != nil || got != best[0]) || len(best) > 1 && !errors.Is(err, ErrManyBases) {
			t.Fatalf("merge base of %v and %v: %v, %v; want %v", a, b, got, err, best)
		}
	}
}

// The merge bases of many tips are those of all their pairs, and the history is read once,
// down to where the last lines meet.
func TestMergeBases(t *testing.T) {
	rnd, _ := toy.Rand(t)
	more := 0
	for range 300 {
		g := graph{}
		ids := []commitID{g.add()}
		for range 2 + rnd.IntN(14) {
			parents := []commitID{ids[rnd.IntN(len(ids))]}
			if b := ids[rnd.IntN(len(ids))]; b != parents[0] && rnd.IntN(3) == 0 {
				parents = append(parents, b)
			}
			if rnd.IntN(20) == 0 {
				parents = nil // another first commit
			}
			ids = append(ids, g.add(parents...))
		}
		tips := map[commitID]bool{}
		for range 1 + rnd.IntN(5) {
			tips[ids[rnd.IntN(len(ids))]] = true
		}
		list := slices.Collect(maps.Keys(tips))
		got := must.Get(MergeBases(t.Context(), g.get, list))(t)
		is := func(old, head commitID) bool {
			ok := must.Get(IsAncestor(t.Context(), g.get, old, head))(t)
			return ok
		}
		want := map[commitID]bool{}
		for i, a := range list {
			for _, b := range list[:i] {
				common := slices.DeleteFunc(slices.Clone(ids), func(id commitID) bool { return !is(id, a) || !is(id, b) })
				for _, id := range common {
					if !slices.ContainsFunc(common, func(other commitID) bool { return other != id && is(id, other) }) {
						want[id] = true
					}
				}
			}
		}
		for _, b := range got {
			if !want[b] {
				more++
			}
			delete(want, b)
		}
		if len(want) > 0 {
			t.Fatalf("bases %v are missing of tips %v", want, list)
		}
	}
	if more > 30 {
		t.Errorf("%d bases too many in 300 histories", more)
	}
}

// Many branches cost one reading of the history above the oldest fork.
func TestMergeBasesAreReadOnce(t *testing.T) {
	g := graph{}
	last := g.add()
	for range 1000 {
		last = g.add(last)
	}
	var tips []commitID
	for range 2000 {
		last = g.add(last)
		tips = append(tips, g.add(last))
	}
	reads := 0
	got, err := MergeBases(t.Context(), func(ctx context.Context, id commitID) (*commit, error) {
		reads++
		return g.get(ctx, id)
	}, append(tips, last))
	if err != nil || len(got) != 2000 || reads > 4100 {
		t.Errorf("%d bases in %d reads, %v", len(got), reads, err)
	}
}
