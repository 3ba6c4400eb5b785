package history

import (
	"cmp"
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// ChunkRun is consecutive places that one commit last changed: From, up to and without To.
type ChunkRun struct {
	From, To int64
	Commit   *catalog.Commit
}

// BlameRuns is [Versions.Blame] of the places from 0 up to and without n, whose number n is
// not bounded: place returns the place of a key, relative to path, or false. It calls fn
// for runs in order, until fn returns false. Memory is that of a bounded number of keys;
// the changes are read again for each so many that changed since the array was made.
func (v *Versions) BlameRuns(ctx context.Context, at catalog.CommitID, path string, n int64, place func(key string) (int64, bool), fn func(ChunkRun) bool) error {
	run := ChunkRun{}
	add := func(to int64, c *catalog.Commit) bool {
		if run.Commit != nil && run.Commit.ID != c.ID && run.To > run.From {
			if !fn(run) {
				return false
			}
			run.From = run.To
		}
		run.To, run.Commit = to, c
		return true
	}
	for from := int64(0); from < n; {
		w := &blameWindow{place: place, from: from, to: n, most: v.blameKeys()}
		if err := v.blame(ctx, at, path, nil, w); err != nil {
			return err
		}
		listed := w.sorted()
		for _, p := range listed {
			if p.place > run.To && !add(p.place, w.rest) || !add(p.place+1, w.result[p.key]) {
				return nil
			}
		}
		if run.To < w.to && !add(w.to, w.rest) {
			return nil
		}
		from = w.to
	}
	if run.To > run.From {
		fn(run)
	}
	return nil
}

// maxBlameKeys bounds the keys that a window of blame holds.
const maxBlameKeys = 1 << 17

func (v *Versions) blameKeys() int { return cmp.Or(v.BlameKeys, maxBlameKeys) }

// blameWindow is a range of places in question. Keys in it are listed when a commit is met
// that changed them; rest is the commit of all others.
type blameWindow struct {
	place    func(key string) (int64, bool)
	from, to int64
	most     int
	listed   []placedKey
	rest     *catalog.Commit
	result   []*catalog.Commit
}

type placedKey struct {
	place int64
	key   int // in blamer.keys
}

// list lists a key, unless it is not in the window.
func (w *blameWindow) list(b *blamer, key string) (int, bool) {
	p, ok := w.place(key)
	if !ok || p < w.from || p >= w.to {
		return 0, false
	}
	if len(w.listed) >= w.most {
		// The window ends earlier: keep the first half.
		slices.SortFunc(w.listed, func(a, b placedKey) int { return cmp.Compare(a.place, b.place) })
		half := len(w.listed) / 2
		w.to = w.listed[half].place
		for _, k := range w.listed[half:] {
			delete(b.index, b.keys[k.key])
			b.keys[k.key] = ""
		}
		w.listed = w.listed[:half]
		if p >= w.to {
			return 0, false
		}
	}
	i := len(b.keys)
	b.keys, b.result = append(b.keys, key), append(b.result, nil)
	b.index[key] = i
	w.listed = append(w.listed, placedKey{p, i})
	return i, true
}

func (w *blameWindow) sorted() []placedKey {
	slices.SortFunc(w.listed, func(a, b placedKey) int { return cmp.Compare(a.place, b.place) })
	return w.listed
}
