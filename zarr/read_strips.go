package zarr

import (
	"context"
	"slices"
	"sort"

	"github.com/zarrdb/zarrdb/codecs"
)

// strips reports whether the chunk in hand is large and little of it is wanted, such as by a[::8, ::8], so
// that it is decoded in strips: memory then is that of a strip.
func (t *task) strips() bool {
	f := t.form
	if t.points != nil || f.bytes <= tune.large {
		return false
	}
	wanted := t.j.st.size
	for _, p := range t.parts {
		wanted *= p.n
	}
	switch box := t.boxBytes(); {
	case f.inner != nil || f.bound.Partial():
		return !t.direct && box > tune.large && wanted <= box/2 && (f.inner != nil || f.bound.InStrips())
	default:
		return wanted <= f.bytes/2 && f.bound.InStrips()
	}
}

// readStrips decodes the box in strips, and copies what is wanted of each. Those of a shard are whole inner chunks.
func (t *task) readStrips(ctx context.Context) error {
	parts, box := slices.Clone(t.parts), codecs.Box{Start: slices.Clone(t.box.Start), Count: slices.Clone(t.box.Count)}
	defer func() { // the whole may be tried
		copy(t.parts, parts)
		copy(t.box.Start, box.Start)
		copy(t.box.Count, box.Count)
		t.bindUser()
	}()
	if t.form.inner == nil {
		return t.form.bound.DecodeStrips(ctx, &t.source, box, tune.large/8, func(strip codecs.Box, data codecs.Src) error {
			if t.narrow(parts, strip) {
				origin := data.Offset
				for d, stride := range data.Strides {
					origin += (t.box.Start[d] - strip.Start[d]) * stride
				}
				t.copyOut(data.Data, origin, data.Strides)
			}
			return nil
		})
	}
	axis := max(slices.IndexFunc(parts, func(p part) bool { return p.span > 1 }), 0)
	for d, inner := range t.form.inner {
		if box.Count[d] > inner {
			axis = d
			break
		}
	}
	layer := t.boxBytes() / box.Count[axis] * t.form.inner[axis]
	thick := t.form.inner[axis] * max(tune.large/2/layer, 1)
	strip := codecs.Box{Start: slices.Clone(box.Start), Count: slices.Clone(box.Count)}
	for at, end := box.Start[axis], box.Start[axis]+box.Count[axis]; at < end; at += strip.Count[axis] {
		strip.Start[axis], strip.Count[axis] = at, min((at/thick+1)*thick, end)-at
		if !t.narrow(parts, strip) {
			continue
		}
		buf := t.bufferBox()
		if err := t.decodeBox(ctx, t.box, buf); err != nil {
			return err
		}
		t.copyOut(buf.Data, 0, buf.Strides)
	}
	return nil
}

// narrow sets the task to what is wanted of a strip; false if that is nothing.
func (t *task) narrow(parts []part, strip codecs.Box) bool {
	for d, p := range parts {
		a := &t.j.axes[d]
		at := func(i int) int { // where the i-th wanted element lies
			if a.list != nil {
				return p.from + int(a.element(int(p.k)+i)-a.element(int(p.k)))
			}
			return p.from + i*int(a.step)
		}
		lo := sort.Search(p.n, func(i int) bool { return at(i) >= strip.Start[d] })
		hi := sort.Search(p.n, func(i int) bool { return at(i) >= strip.Start[d]+strip.Count[d] })
		if lo == hi {
			return false
		}
		from, span := at(lo), at(hi-1)-at(lo)+1
		t.parts[d] = part{chunk: p.chunk, k: p.k + int64(lo), n: hi - lo, from: from, span: span}
		t.box.Start[d], t.box.Count[d] = from, span
	}
	t.bindUser()
	return true
}
