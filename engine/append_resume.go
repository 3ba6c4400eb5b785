package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// An append of many pieces saves its session from time to time between two
// pieces, with the number of those that are complete in its label. The same
// append, resumed, compares all pieces again and continues after them.
//
//	label   append 365 sources along time to /era5 (5f0c…): 120 done
//	                                                 │       └ where to go on
//	                                                 └ of everything that decides where chunks go

// digest identifies the result of the plan with the options.
func (p *AppendPlan) digest(o ImportOptions) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v %v %v %v %v\n", p.dim, p.link, p.rectilinear, o.Overwrite, o.AnyOrder, o.Validate)
	metas := map[*zarr.Meta][sha256.Size]byte{}
	for _, piece := range p.pieces {
		fmt.Fprintf(h, "%q %d\n", piece.Name, len(piece.arrays))
		for _, path := range slices.Sorted(maps.Keys(piece.arrays)) {
			m := piece.arrays[path].meta
			sum, ok := metas[m]
			if !ok {
				var err error
				if sum, err = metaSum(m); err != nil {
					return "", err
				}
				metas[m] = sum
			}
			fmt.Fprintf(h, "%q %x %x\n", path, sum, piece.arrays[path].label)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// session begins the session of the append, or takes up the one that it left
// when it was stopped.
func (j *joiner) session(ctx context.Context) (*Session, error) {
	digest, err := j.plan.digest(j.o)
	if err != nil {
		return nil, err
	}
	j.label = fmt.Sprintf("append %d sources along %s to /%s (%s)", len(j.plan.pieces), j.plan.dim, j.o.To, digest)
	j.saved = time.Now()
	if j.o.Resume && j.o.Session == nil {
		if s, err := j.resumed(ctx); s != nil || err != nil {
			return s, err
		}
	}
	o := j.o
	o.Resume = false
	return j.db.beginImport(ctx, j.first, o, func(s *Session) error { return j.prepare(ctx, s) })
}

// resumed opens the session that an append of this plan left, nil without one.
func (j *joiner) resumed(ctx context.Context) (*Session, error) {
	left, err := j.db.left(ctx, cmp.Or(j.o.Branch, txn.MainBranch), func(label string) bool { return j.doneIn(label) > 0 })
	if left == nil || err != nil {
		return nil, err
	}
	s, err := j.db.Resume(ctx, left.ID)
	if err != nil {
		return nil, err
	}
	j.done, j.kept = j.doneIn(left.Label), true
	if err := j.takeUp(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// labelAt is the label of the session when some pieces are complete.
func (j *joiner) labelAt(done int) string { return fmt.Sprintf("%s: %d done", j.label, done) }

// doneIn returns the number of complete pieces in a session with that label, 0
// if it is not of this append.
func (j *joiner) doneIn(label string) int {
	for n := 1; n < len(j.plan.pieces); n++ {
		if label == j.labelAt(n) {
			return n
		}
	}
	return 0
}

// takeUp restores the state of a saved session: the arrays before it began, and
// the last coordinates.
func (j *joiner) takeUp(ctx context.Context, s *Session) (err error) {
	before, err := j.db.Snapshot(ctx, s.Base())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, before.Close()) }()
	if err := j.compare(ctx, before.nodes); err != nil {
		return err
	}
	if err := j.fit(ctx, before.nodes); err != nil {
		return err
	}
	last := j.plan.pieces[j.done-1]
	for b, o := range j.orders {
		a, err := s.Array(ctx, names.Join(j.o.To, b.path))
		if err == nil {
			err = o.read(ctx, plainArray(a), b.had, last.arrays[b.path].start+last.arrays[b.path].length(), last.label)
		}
		if err != nil {
			return orderFailed(b.path, err)
		}
	}
	return nil
}

// save stores the complete pieces, if they are much work. It grants the followed
// references too, because a resumed append does not see them again.
func (j *joiner) save(ctx context.Context) error {
	// The caller's session is saved when everything is complete.
	if j.o.Session != nil || j.done == len(j.plan.pieces) || time.Since(j.saved) < saveEvery {
		return nil
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	if j.o.Link {
		j.notGranted = j.db.Grant(j.follow)
	}
	j.s.SetLabel(j.labelAt(j.done))
	if err := j.s.Savepoint(ctx); err != nil {
		return err
	}
	j.kept, j.saved = true, time.Now()
	return j.restart(ctx)
}

// stop ends a failed append. It keeps the saved part, unless the same append
// would fail again.
func (j *joiner) stop(s *Session, err error) error {
	if j.o.Session == nil && j.kept && !errors.Is(err, ErrMisfit) && !errors.Is(err, txn.ErrConflict) {
		return errors.Join(fmt.Errorf("%w: %w", err, ErrResumable), s.Close())
	}
	return j.o.abandon(s, err)
}
