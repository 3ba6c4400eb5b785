package pack

import "context"

// Covered checks the range of the payload at a against sizes: its pack has a
// file of sufficient length, and the range lies before the durable end. Nothing
// is read. Errors are [CorruptError].
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

// inFile finds the payload at a in its file, which the caller releases. It first
// flushes pending writes of the file.
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
	h, err := r.acquire(ctx)
	return r, h, err
}

// Verify is [Store.Reread] of a whole payload, with its header compared as well:
// its place, its length and whose it is if an owner is given.
func (s *Store) Verify(ctx context.Context, a Address, fn func(payload []byte) error, owner ...Owner) error {
	r, h, err := s.inFile(ctx, a)
	if err != nil {
		return err
	}
	if base, err := r.base(h); h.data != nil && err == nil && a.Length < aheadLarge { // View does it for larger payloads
		r.p.ahead(h, base-min(base, headerBytes), base+a.Length)
	}
	err = s.checkHeader(ctx, &r, h, owner)
	h.unref()
	if err != nil {
		return err
	}
	return s.Reread(ctx, a, 0, a.Length, fn)
}
