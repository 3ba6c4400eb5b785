package zarr

import "context"

// boundPoints sets the box to the smallest one that holds the points in hand.
func (t *task) boundPoints() {
	j := t.j
	for d, coords := range j.points {
		start := j.st.meta.Grid.Start(d, t.coords[d])
		lo, hi := coords[t.points[0]], coords[t.points[0]]
		for _, at := range t.points[1:] {
			lo, hi = min(lo, coords[at]), max(hi, coords[at])
		}
		t.box.Start[d], t.box.Count[d] = int(lo-start), int(hi-lo)+1
	}
}

// pointFar is the memory of one point of the result.
func (t *task) pointFar(at int) []byte {
	off := t.j.far.Offset + at*t.j.far.Strides[0]
	return t.j.far.Data[off : off+t.j.st.size]
}

// pointNear is where a point lies in memory with the given strides in which
// the first element of the box is at origin.
func (t *task) pointNear(at, origin int, strides []int) int {
	for d, coords := range t.j.points {
		inChunk := int(coords[at] - t.j.st.meta.Grid.Start(d, t.coords[d]))
		origin += (inChunk - t.box.Start[d]) * strides[d]
	}
	return origin
}

// putPoints copies the points in hand to far.
func (t *task) putPoints(data []byte, origin int, strides []int) {
	size := t.j.st.size
	for _, at := range t.points {
		off := t.pointNear(at, origin, strides)
		copy(t.pointFar(at), data[off:off+size])
	}
}

// decodePoints decodes the points in hand one by one.
func (t *task) decodePoints(ctx context.Context) error {
	for d := range t.box.Count {
		t.box.Count[d] = 1
	}
	t.far.Strides = resize(t.far.Strides, len(t.box.Count)) // of one element: any will do
	t.far.Data = t.j.far.Data
	for _, at := range t.points {
		for d, coords := range t.j.points {
			t.box.Start[d] = int(coords[at] - t.j.st.meta.Grid.Start(d, t.coords[d]))
		}
		t.far.Offset = t.j.far.Offset + at*t.j.far.Strides[0]
		if err := t.form.bound.DecodeBox(ctx, &t.source, t.box, t.far); err != nil {
			return err
		}
	}
	return nil
}
