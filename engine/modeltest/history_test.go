package modeltest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Steps that read the history: log, diff and blame.

func stepLog(r *run) {
	d := one(r, r.dbs)
	v := one(r, r.usable(d))
	r.note("%s: log of %s", d.name, v.name)
	got := map[txn.CommitID]bool{}
	for c, err := range r.via(d).Versions().Log(bg, v.id) {
		r.must(err, "log")
		got[c.ID] = true
	}
	if want := r.ancestors(v.id); !maps.Equal(got, want) {
		r.fail("log of %s has %d commits, want %d", v.name, len(got), len(want))
	}
}

func stepDiff(r *run) {
	d := one(r, r.dbs)
	list := r.usable(d)
	from, to := one(r, list), one(r, list)
	r.note("%s: diff of %s and %s", d.name, from.name, to.name)
	changes, err := r.via(d).NodeChanges(bg, from.id, to.id, "")
	r.must(err, "diff")
	got := map[string]engine.NodeChange{}
	for _, c := range changes {
		got[c.Path] = c
	}
	was := from.tree.ids()
	for p, n := range to.tree {
		c, told := got[p]
		delete(got, p)
		old := from.tree[p]
		if n.array == nil || old == nil || old.array == nil || old.id != n.id {
			if _, moved := was[n.id]; n.array == nil && old != nil && old.array == nil && !n.same(old) && !told {
				r.fail("diff: changed group /%s is not there", p) // one that is may have other copies of metadata
			} else if old == nil && !told && !moved {
				r.fail("diff: new node /%s is not there", p)
			}
			continue
		}
		if !n.same(old) && !told {
			r.fail("diff: changed array /%s is not there", p)
		}
		if c.Kind == "renamed" || n.array.kind.shards || n.linked || old.linked {
			continue
		}
		added, removed, changed := old.array.changes(n.array)
		if c.ChunksAdded != added || c.ChunksRemoved != removed || c.ChunksChanged != changed {
			r.fail("diff: /%s: %v, want %d added, %d removed, %d changed", p, c, added, removed, changed)
		}
	}
	for p, c := range got {
		if from.tree[p] == nil {
			r.fail("diff: %v is in neither version", c)
		}
	}
}

// changes counts the chunks that another state of the array adds, removes and
// changes. An import over an array may give it another rank, and so other keys.
func (a *array) changes(b *array) (added, removed, changed int64) {
	if len(a.shape) != len(b.shape) {
		return int64(len(b.chunks)), int64(len(a.chunks)), 0
	}
	for at, values := range b.chunks {
		if old := a.chunks[at]; old == nil {
			added++
		} else if !slices.Equal(old, values) {
			changed++
		}
	}
	for at := range a.chunks {
		if b.chunks[at] == nil {
			removed++
		}
	}
	return added, removed, changed
}

// stepBlame asks which commit made the chunks of an array what they are.
func stepBlame(r *run) {
	d := one(r, r.dbs)
	v := one(r, r.usable(d))
	list := v.tree.arrays()
	if len(list) == 0 {
		return
	}
	p := one(r, list)
	n := v.tree[p]
	if product(n.array.shape) == 0 || n.array.kind.shards {
		return
	}
	r.note("%s: blame of /%s of %s", d.name, p, v.name)
	up := r.ancestors(v.id)
	for c, err := range r.via(d).Blame(bg, v.id, p, r.region(n.array, false).zarr()) {
		r.must(err, "blame")
		by := r.versions[c.Commit.ID]
		if by == nil || !up[by.id] {
			r.fail("blame: %s is not an ancestor of %s", c.Commit.ID.Short(), v.name)
		}
		for i := range product(c.Counts) {
			var at coords
			copy(at[:], c.Coords)
			for dim := len(c.Counts) - 1; dim >= 0; dim-- {
				at[dim] += i % c.Counts[dim]
				i /= c.Counts[dim]
			}
			if err := r.blamed(d, by, n, at); err != nil {
				r.fail("blame: chunk %v of /%s of %s: %s %w", at, p, v.name, by.name, err)
			}
		}
	}
}

// blamed makes sure that a chunk came to be what it is in a version.
func (r *run) blamed(d *database, by *version, n *node, at coords) error {
	find := func(v *version) (*node, bool) {
		p, ok := v.tree.ids()[n.id]
		return v.tree[p], ok
	}
	now, ok := find(by)
	if !ok {
		return errors.New("has no such array")
	}
	if !slices.Equal(now.array.chunks[at], n.array.chunks[at]) {
		return errors.New("has another chunk")
	}
	if n.linked || now.linked {
		return nil
	}
	for _, id := range by.parents {
		if d.expired[id] {
			continue // then it is the oldest commit that is known to have it
		}
		if old, ok := find(r.versions[id]); ok && slices.Equal(old.array.chunks[at], n.array.chunks[at]) {
			return fmt.Errorf("is after %s, which has the chunk already", r.versions[id].name)
		}
	}
	return nil
}

// stepFind opens versions by name.
func stepFind(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	v := r.head(d, branch)
	rev := branch
	for n := r.rng.IntN(4); n > 0 && len(v.parents) > 0; n-- {
		v, rev = r.versions[v.parents[0]], rev+"~"
	}
	r.note("%s: open %s", d.name, rev)
	at, err := r.via(d).At(bg, rev)
	if d.expired[v.id] {
		r.expect(err, "open "+rev, txn.ErrExpired)
		return
	}
	r.must(err, "open "+rev)
	defer at.Close()
	if at.Commit().ID != v.id {
		r.fail("%s is %s, want %s", rev, at.Commit().ID.Short(), v.name)
	}
	for _, p := range v.tree.arrays() {
		a, err := at.Array(bg, p)
		r.must(err, "open /"+p)
		got, err := v.tree[p].array.kind.read(bg, a, zarr.Sel())
		r.must(err, "read /"+p)
		r.must(compareValues(got, v.tree[p].array.values(), v.tree[p].array), "/"+p)
	}
}
