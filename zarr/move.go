package zarr

// lane is one dimension of a move between two places: n elements, and where each
// of them lies, in bytes (or elements of variable length) from the lane's
// origin. [codecs.CopyStrided] handles regular steps; lanes are for selections
// with lists of positions.
type lane struct {
	n        int
	src, dst int // from one element to the next
	// srcAt and dstAt, if not nil, list the places instead.
	srcAt, dstAt []int
}

func (l *lane) srcOff(i int) int {
	if l.srcAt != nil {
		return l.srcAt[i]
	}
	return i * l.src
}

func (l *lane) dstOff(i int) int {
	if l.dstAt != nil {
		return l.dstAt[i]
	}
	return i * l.dst
}

// move copies the elements that lanes name, size bytes each, from src[so:] to
// dst[do:], in the order of the lanes. A source step of 0 repeats an element.
func move(dst []byte, do int, src []byte, so int, lanes []lane, size int) {
	if len(lanes) == 0 {
		copy(dst[do:do+size], src[so:so+size])
		return
	}
	l := &lanes[0]
	if len(lanes) > 1 {
		for i := range l.n {
			move(dst, do+l.dstOff(i), src, so+l.srcOff(i), lanes[1:], size)
		}
		return
	}
	if l.srcAt == nil && l.dstAt == nil && l.src == size && l.dst == size {
		copy(dst[do:do+l.n*size], src[so:so+l.n*size])
		return
	}
	for i := range l.n {
		d, s := do+l.dstOff(i), so+l.srcOff(i)
		copy(dst[d:d+size], src[s:s+size])
	}
}

// eachPair calls fn with the places of every element that lanes name, in
// order, for elements that are moved one by one.
func eachPair(lanes []lane, so, do int, fn func(src, dst int)) {
	if len(lanes) == 0 {
		fn(so, do)
		return
	}
	l := &lanes[0]
	for i := range l.n {
		eachPair(lanes[1:], so+l.srcOff(i), do+l.dstOff(i), fn)
	}
}

// makeLanes returns the move from buf to user. For lists it looks up the
// places of the elements on both sides; user.Offset is then the offset along
// the other dimensions alone.
func (t *task) makeLanes() []lane {
	t.lanes, t.tables = t.lanes[:0], t.tables[:0]
	need := 0
	for d := range t.parts {
		if t.j.axes[d].list != nil {
			need += 2 * t.parts[d].n
		}
	}
	if cap(t.tables) < need {
		t.tables = make([]int, 0, need)
	}
	for d := range t.parts {
		a, p := &t.j.axes[d], &t.parts[d]
		l := lane{n: p.n, src: t.buf.Strides[d], dst: t.user.Strides[d]}
		if a.list != nil {
			first := a.element(int(p.k))
			at := len(t.tables)
			for k := p.k; k < p.k+int64(p.n); k++ {
				t.tables = append(t.tables, int(a.element(int(k))-first)*l.src)
			}
			mid := len(t.tables)
			for k := p.k; k < p.k+int64(p.n); k++ {
				t.tables = append(t.tables, int(a.place(k))*l.dst)
			}
			l.srcAt, l.dstAt = t.tables[at:mid:mid], t.tables[mid:len(t.tables):len(t.tables)]
		}
		t.lanes = append(t.lanes, l)
	}
	return t.lanes
}
