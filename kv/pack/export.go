package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Export writes a pack with the records whose payloads overlap need, which
// ascend, and nothing else, as one that was rewritten: without holes, from its
// beginning to its end. progress, if not nil, is called now and then with the
// bytes written so far. The Info is for the index that goes with what was
// written. What is damaged is copied as it is; [Store.Verify] tells.
func (s *Store) Export(ctx context.Context, id ID, need []Extent, w io.Writer, progress func(uint64)) (Info, error) {
	if err := s.check(ctx); err != nil {
		return Info{}, err
	}
	info, err := s.export(ctx, id, need, w, progress)
	if err != nil {
		return info, fmt.Errorf("pack: export %v: %w", id, err)
	}
	return info, nil
}

func (s *Store) export(ctx context.Context, id ID, need []Extent, w io.Writer, progress func(uint64)) (info Info, err error) {
	p := s.lookup(id)
	if p == nil {
		return info, &CorruptError{Pack: id, Reason: "there is no such pack"}
	}
	r := reclaimer{ctx: ctx, s: s, p: p}
	if r.f, err = s.openPack(id); err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, r.f.Close()) }()
	if r.lay, err = p.checkFile(r.f); err != nil {
		return info, err
	}
	size := uint64(fileHeaderSize)
	for _, e := range need {
		if e.From < size || e.To > p.size.Load() {
			return info, p.corrupt(e.From, e.To-e.From, "not a range of the pack")
		}
		start, err := r.begin(size, e.From)
		if err != nil {
			return info, err
		}
		r.keep(start, e.To)
		size = e.To
	}
	extents, table, at := placeExtents(r.kept)
	head := appendExtentHeader(nil, id, p.salt, table, at, size)
	if progress != nil {
		w = &countingWriter{w: w, progress: progress}
	}
	if err := r.copyLive(w, head, extents, table, at); err != nil {
		return info, err
	}
	return Info{ID: id, End: size, Size: size, Sealed: true}, nil
}

// countingWriter tells how much went through it.
type countingWriter struct {
	w        io.Writer
	n        uint64
	progress func(uint64)
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n)
	c.progress(c.n)
	return n, err
}
