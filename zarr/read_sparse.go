package zarr

// A selection such as a[::100] or a[[3, 70, 500]] wants thin layers of a chunk.
// Where a part of a chunk can be decoded at little more than its share of the
// cost, layers are decoded one by one straight to where they belong; otherwise
// everything between the first and the last goes through a buffer.

// sparseAxis returns the only axis of the box that has a step or a list, if
// layers along it can be decoded one by one, else -1.
func (t *task) sparseAxis() int {
	if t.direct || t.points != nil || !t.form.bound.Partial() || t.form.inner == nil && !t.form.uncached {
		return -1
	}
	axis, run := -1, t.j.st.size // run: bytes of a layer that lie together
	for d := range t.parts {
		a := &t.j.axes[d]
		switch {
		case a.list == nil && t.parts[d].n == t.parts[d].span:
			run *= t.parts[d].n
		case axis >= 0:
			return -1
		default:
			axis, run = d, t.j.st.size
		}
	}
	if axis < 0 || run < tune.run {
		return -1
	}
	return axis
}

// thin reports whether the layers along axis are so distant that the bytes
// between them should not be read.
func (t *task) thin(axis int) bool {
	p := &t.parts[axis]
	if t.form.inner != nil {
		// Layers in one inner chunk decode it again for each.
		return p.n <= (p.span-1)/t.form.inner[axis]
	}
	return p.n <= p.span/4
}

// eachLayer calls read for each wanted layer along axis, with box and user set
// to it.
func (t *task) eachLayer(axis int, read func() error) error {
	a, p := &t.j.axes[axis], &t.parts[axis]
	from, origin := p.from, t.user.Offset
	t.box.Count[axis], t.direct = 1, true
	for i := range p.n {
		k := p.k + int64(i)
		if a.list != nil {
			t.box.Start[axis] = from + int(a.element(int(k))-a.element(int(p.k)))
			t.user.Offset = origin + int(a.place(k))*t.j.along[axis]
		} else {
			t.box.Start[axis] = from + i*int(a.step)
			t.user.Offset = origin + i*t.user.Strides[axis]
		}
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}
