package tree

import (
	"context"
	"sync"
)

// ahead reads pages that a comparison of two maps will need, while it compares
// earlier pages:
//
//	map a     | a0 | a1 | a2 | a3 | a4 |     leaves of one page of height 1
//	map b     | b0 | b1 | b2 | b3 | b4 |
//	            ^compared ^read   ^read by another goroutine
//
// It begins after a few leaves were compared, so that a caller of only the first
// difference does not pay for more. It reads no farther than the leaves of one
// page above. If pages come with requests, it asks for the first leaves below the next
// page above, too. A page that cannot be read is an error when the comparison reaches
// it.
type ahead struct {
	t    *Tree
	ctx  context.Context
	seen int // pairs of leaves that were read

	above [2]*page // pages whose leaves are in pairs
	next  [2]Root  // the next pages above, until their leaves were asked for
	sent  bool     // next were asked for
	wg    sync.WaitGroup

	mu     sync.Mutex
	loaded sync.Cond
	pairs  []leafPair
	asked  int // pairs before it were given to Tree.Fetch
	at     int // pairs before it are behind the comparison
	stop   bool
}

// leafPair are leaves of two maps that are likely to be compared with each
// other.
type leafPair struct {
	roots [2]Root
	pages [2]*page
	errs  [2]error
	state pairState
}

type pairState uint8

const (
	pairIdle pairState = iota
	pairBusy           // a goroutine reads it
	pairLoaded
)

const (
	// aheadAfter is the number of pairs that are compared before any is read ahead.
	aheadAfter = 8
	// aheadLeast is the least number of pairs worth reading ahead.
	aheadLeast = 4
	// aheadWorkers is the number of reading goroutines, on any number of
	// processors: they may wait for the disk.
	aheadWorkers = 4
)

func (t *Tree) newAhead(ctx context.Context) *ahead {
	a := &ahead{t: t, ctx: ctx}
	a.loaded.L = &a.mu
	return a
}

// descend is called before a comparison reads the leaves at the ends of the two
// paths.
func (a *ahead) descend(x, y []frame) {
	a.seen++
	if a.seen <= aheadAfter || len(x) == 0 || len(y) == 0 {
		return
	}
	f, g := &x[len(x)-1], &y[len(y)-1]
	if a.above == [2]*page{f.p, g.p} {
		return
	}
	a.end()
	a.above = [2]*page{f.p, g.p}
	// Where one has more leaves than the other, few of them are alike.
	if f.p.len()-f.i != g.p.len()-g.i {
		return
	}
	for i, j := f.i, g.i; i < f.p.len(); i, j = i+1, j+1 {
		if f.p.child.name(f.p.raw, i) != g.p.child.name(g.p.raw, j) {
			a.pairs = append(a.pairs, leafPair{roots: [2]Root{f.p.childAt(i), g.p.childAt(j)}})
		}
	}
	if len(a.pairs) < aheadLeast {
		a.pairs = a.pairs[:0]
		return
	}
	a.next = nextAbove(x, y)
	for range min(aheadWorkers, len(a.pairs)-1) {
		a.wg.Go(a.work)
	}
}

// nextAbove returns the next siblings of the pages at the ends of the two paths whose names
// differ, or empty roots.
func nextAbove(x, y []frame) (next [2]Root) {
	if len(x) < 2 || len(y) < 2 {
		return next
	}
	f, g := &x[len(x)-2], &y[len(y)-2]
	for i, j := f.i+1, g.i+1; i < f.p.len() && j < g.p.len(); i, j = i+1, j+1 {
		if f.p.child.name(f.p.raw, i) != g.p.child.name(g.p.raw, j) {
			return [2]Root{f.p.childAt(i), g.p.childAt(j)}
		}
	}
	return next
}

// end waits for running reads and forgets the pairs. Nothing reads ahead
// any more when it returns.
func (a *ahead) end() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.stop = true
	a.mu.Unlock()
	a.wg.Wait()
	a.pairs, a.asked, a.at, a.stop = a.pairs[:0], 0, 0, false
	a.next, a.sent = [2]Root{}, false
}

// work reads pairs behind the pair that is being compared.
func (a *ahead) work() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.stop && a.readNext(a.at+1) {
	}
}

// readNext reads the first pair from i on that no goroutine reads; false without
// such a pair. It is called with the lock held and releases it while it reads.
func (a *ahead) readNext(i int) bool {
	for ; i < len(a.pairs); i++ {
		p := &a.pairs[i]
		if p.state != pairIdle {
			continue
		}
		p.state = pairBusy
		a.fetch(i)
		a.mu.Unlock()
		for k := range p.roots {
			p.pages[k], p.errs[k] = a.t.load(a.ctx, &p.roots[k])
		}
		a.mu.Lock()
		p.state = pairLoaded
		a.loaded.Broadcast()
		return true
	}
	return false
}

// fetch asks for the leaves of pair i and of pairs behind it, so that two requests are under
// way. After the last pair it asks for the first leaves below the next pages above. It is
// called with the lock held.
func (a *ahead) fetch(i int) {
	for a.t.Batches() && a.asked < min(len(a.pairs), i+MaxFetch) {
		var roots []Root
		for ; a.asked < len(a.pairs) && len(roots) < MaxFetch; a.asked++ {
			roots = append(roots, a.pairs[a.asked].roots[:]...)
		}
		a.t.Fetch(a.ctx, roots)
	}
	if a.t.Batches() && a.asked == len(a.pairs) && !a.next[0].Empty() {
		a.fetchNext()
	}
}

// fetchNext asks for the first leaves below the next pages above, or for those pages if they
// are not in the cache. It is called with the lock held.
func (a *ahead) fetchNext() {
	p, q := a.t.cache.get(&a.next[0].Name), a.t.cache.get(&a.next[1].Name)
	if p == nil || q == nil {
		if !a.sent {
			a.t.Fetch(a.ctx, a.next[:])
		}
		a.sent = true
		return
	}
	usable := p.is(&a.next[0]) == nil && q.is(&a.next[1]) == nil && p.len() == q.len()
	a.next = [2]Root{}
	if !usable { // the comparison finds out why, if a page is damaged
		return
	}
	var roots []Root
	for i := 0; i < p.len() && len(roots) < 2*MaxFetch; i++ {
		if p.child.name(p.raw, i) != q.child.name(q.raw, i) {
			roots = append(roots, p.childAt(i), q.childAt(i))
		}
	}
	a.t.Fetch(a.ctx, roots)
}

// load is Tree.load of a leaf of map k. While another goroutine reads that leaf,
// load reads the next ones.
func (a *ahead) load(r *Root, k int) (*page, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.at
	for i < len(a.pairs) && a.pairs[i].roots[k].Name != r.Name {
		i++
	}
	if i == len(a.pairs) {
		a.mu.Unlock()
		defer a.mu.Lock()
		return a.t.load(a.ctx, r)
	}
	if i > 0 {
		a.pairs[i-1].pages = [2]*page{}
	}
	a.at = i
	p := &a.pairs[i]
	for p.state != pairLoaded {
		if !a.readNext(i) {
			a.loaded.Wait()
		}
	}
	return p.pages[k], p.errs[k]
}
