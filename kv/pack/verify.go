package pack

import "context"

// Covered reports whether the payload at a can be there as far as the sizes
// tell: its pack has a file, which reaches that far, and the range lies before
// the durable end. Nothing is read. Errors are [CorruptError].
func (s *Store) Covered(ctx context.Context, a Address) error {
	r, err := s.locate(ctx, a, 0, 0)
	if err != nil {
		return err
	}
	if !s.Durable(a) {
		return r.p.corrupt(a.Offset, a.Length, "behind the durable end of the pack")
	}
	return nil
}

// inFile finds the payload at a in its file, which the caller gives back. What was
// written to it last is flushed before.
func (s *Store) inFile(ctx context.Context, a Address) (part, *handle, error) {
	r, err := s.locate(ctx, a, 0, a.Length)
	if err != nil {
		return r, nil, err
	}
	if end := a.Offset + a.Length; end > r.p.memFrom.Load() {
		if err := r.p.flush(end); err != nil {
			return r, nil, err
		}
	}
	h, err := r.acquire()
	return r, h, err
}

// Verify is [Store.View] of a whole payload, with its header compared as well:
// its place, its length and whose it is if an owner is given.
func (s *Store) Verify(ctx context.Context, a Address, fn func(payload []byte) error, owner ...Owner) error {
	r, h, err := s.inFile(ctx, a)
	if err != nil {
		return err
	}
	r.ahead(h)
	err = s.checkHeader(ctx, &r, h, owner)
	h.unref()
	if err != nil {
		return err
	}
	return s.View(ctx, a, 0, a.Length, fn)
}

// Who verifies goes through a pack from payload to payload, so the kernel is asked
// for what comes next: a page of a map that is not there stops its reader until a
// whole window is read. That is done once in aheadEvery bytes, or for a payload
// that is large.
const (
	aheadEvery = 4 << 20
	aheadLarge = 128 << 10
)

func (r *part) ahead(h *handle) {
	base, err := r.base(h)
	if h.data == nil || err != nil {
		return
	}
	from, to := base-min(base, headerBytes), base+r.a.Length
	switch {
	case from/aheadEvery != to/aheadEvery:
		readAhead(h.data, from, roundUp(to, aheadEvery)+aheadEvery)
	case to-from >= aheadLarge:
		readAhead(h.data, from, to)
	}
}
