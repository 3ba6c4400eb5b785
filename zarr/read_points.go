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

// pointInUser is the memory of one point of the result.
func (t *task) pointInUser(at int) []byte {
	off := t.j.user.Offset + at*t.j.user.Strides[0]
	return t.j.user.Data[off : off+t.j.st.size]
}

// pointInBuffer is where a point lies in memory with the given strides in which
// the first element of the box is at origin.
func (t *task) pointInBuffer(at, origin int, strides []int) int {
	for d, coords := range t.j.points {
		inChunk := int(coords[at] - t.j.st.meta.Grid.Start(d, t.coords[d]))
		origin += (inChunk - t.box.Start[d]) * strides[d]
	}
	return origin
}

// putPoints copies the points in hand to the caller's memory.
func (t *task) putPoints(data []byte, origin int, strides []int) {
	size := t.j.st.size
	for _, at := range t.points {
		off := t.pointInBuffer(at, origin, strides)
		copy(t.pointInUser(at), data[off:off+size])
	}
}

// decodePoints decodes the points in hand one by one.
func (t *task) decodePoints(ctx context.Context) error {
	for d := range t.box.Count {
		t.box.Count[d] = 1
	}
	t.user.Strides = resize(t.user.Strides, len(t.box.Count)) // of one element: any will do
	t.user.Data = t.j.user.Data
	for _, at := range t.points {
		for d, coords := range t.j.points {
			t.box.Start[d] = int(coords[at] - t.j.st.meta.Grid.Start(d, t.coords[d]))
		}
		t.user.Offset = t.j.user.Offset + at*t.j.user.Strides[0]
		if err := t.form.bound.DecodeBox(ctx, &t.source, t.box, t.user); err != nil {
			return err
		}
	}
	return nil
}
