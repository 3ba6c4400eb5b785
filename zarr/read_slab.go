package zarr

// slabs cuts the work on shards into pieces along one axis, so that several
// goroutines can read one large shard.
type slabs struct {
	n     int64 // pieces per shard; 0 and 1 mean whole shards
	axis  int
	thick int // elements along axis
}

// split decides whether to cut shards. Each slab reads the index of the shard
// anew, so they are not made small, and only where few shards are read.
func (j *job) split() {
	f := j.st.form
	if j.a.opts.Runner == nil || !j.straight || f == nil || f.inner == nil || j.chunks >= 32 {
		return
	}
	for d, inner := range f.inner {
		if f.shape[d] == inner {
			continue
		}
		layer := max(f.bytes/f.shape[d]*inner, 1)
		thick := inner * (1 + (tune.slab-1)/layer)
		if thick < f.shape[d] {
			j.slab = slabs{n: int64((f.shape[d]-1)/thick + 1), axis: d, thick: thick}
		}
		return
	}
}

// cutSlab reduces the box to one slab; it returns false if nothing is left.
func (t *task) cutSlab(piece int64) bool {
	d, thick := t.j.slab.axis, t.j.slab.thick
	p := &t.parts[d]
	lo := max(p.from, int(piece)*thick)
	hi := min(p.from+p.span, (int(piece)+1)*thick)
	if lo >= hi {
		return false
	}
	p.k += int64(lo - p.from)
	p.from, p.span, p.n = lo, hi-lo, hi-lo
	t.box.Start[d], t.box.Count[d] = lo, hi-lo
	return true
}
