package modeltest

import "slices"

// Reads of every kind: whole arrays, thin parts, through handles opened earlier and
// of versions that are open for long. They change nothing but caches.

// glance compares a single array of a single version after each step, because that is cheap.
func (r *run) glance() {
	if len(r.dbs) == 0 {
		return
	}
	d := one(r, r.dbs)
	r.compareRefs(d)
	v := one(r, r.usable(d))
	at, err := r.via(d).Snapshot(bg, v.id)
	r.must(err, "open "+v.name)
	defer at.Close()
	r.readPart(&held{at: at, v: v})
}

// readPart reads a random part of a random array.
func (r *run) readPart(h *held) {
	list := h.v.tree.arrays()
	if len(list) == 0 {
		return
	}
	p := one(r, list)
	want := h.v.tree[p].array
	var err error
	a, err := h.at.Array(bg, p)
	if h.arrays != nil && r.chance(2) {
		a, err = h.array(p)
	}
	r.must(err, "open /"+p+" of "+h.v.name)
	sel := whole(want)
	if !r.chance(4) {
		sel = r.region(want, true)
	}
	r.must(compareSelected(bg, want, a, sel), h.v.name)
}

func stepRead(r *run) {
	d := one(r, r.dbs)
	h := &held{}
	if len(d.held) == 0 || len(d.held) < 5 && r.chance(3) {
		h = r.hold(d, one(r, r.usable(d)))
	} else {
		h = one(r, d.held)
	}
	r.note("%s: parts of %s", d.name, h.v.name)
	for range 1 + r.rng.IntN(8) {
		r.readPart(h)
	}
}

func stepRelease(r *run) {
	d := one(r, r.dbs)
	if len(d.held) > 0 {
		h := one(r, d.held)
		r.note("%s: close %s", d.name, h.v.name)
		r.release(d, h)
	}
}

// stepReadSession reads parts of a session.
func stepReadSession(r *run) {
	_, s := r.session()
	for range 1 + r.rng.IntN(4) {
		p, n := r.existing(s)
		if n == nil || slices.Contains(n.array.shape, 0) {
			return
		}
		r.must(compareSelected(bg, n.array, r.open(s, p), r.region(n.array, true)), "session "+s.name)
	}
}

func stepCompare(r *run) {
	d := one(r, r.dbs)
	v := one(r, r.usable(d))
	r.note("%s: all of %s", d.name, v.name)
	r.compareVersion(d, v)
}
