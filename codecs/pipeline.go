package codecs

import (
	"errors"
	"fmt"
)

// boundStage is a stage with what flows into and out of it when encoding, and
// the shortcuts that it offers.
type boundStage struct {
	Stage
	name    string
	in, out Rep
	inPlace InPlaceStage // or nil
	view    ViewStage    // or nil
	// first says that everything in front of this stage works in place, so
	// that it can decode to where the result belongs; last the same for what
	// follows and for encoding.
	first, last bool
}

func newStage(name string, st Stage, in, out Rep) boundStage {
	s := boundStage{Stage: st, name: name, in: in, out: out}
	s.inPlace, _ = st.(InPlaceStage)
	s.view, _ = st.(ViewStage)
	return s
}

// pipeline is stages in encoding order.
type pipeline []boundStage

func (p pipeline) finish() {
	place := true
	for i := range p {
		p[i].first = place
		place = place && p[i].inPlace != nil
	}
	place = true
	for i := len(p) - 1; i >= 0; i-- {
		p[i].last = place
		place = place && p[i].inPlace != nil
	}
}

// decode appends the decoded src to dst. The buffers between stages come from
// the pool, and a stage that can works in place.
func (p pipeline) decode(dst, src []byte) ([]byte, error) {
	var (
		start = len(dst)
		cur   = src
		own   *scratch // holds cur, or nil
		there = false  // cur is dst[start:]
	)
	defer func() { own.put() }()
	for i := len(p) - 1; i >= 0; i-- {
		s := &p[i]
		if s.out.Size >= 0 && int64(len(cur)) != s.out.Size {
			return dst[:start], Corruptf(s.name, "%d bytes where there must be %d", len(cur), s.out.Size)
		}
		var err error
		switch {
		case s.inPlace != nil && (own != nil || there):
			err = s.inPlace.DecodeInPlace(cur)
		case s.view != nil:
			cur, err = s.view.DecodeView(cur)
		case s.first:
			if s.in.Size >= 0 {
				dst = room(dst, s.in.Size, len(cur))
			}
			dst, err = s.Decode(dst, cur)
			if err == nil {
				cur, there = dst[start:], true
				own.put()
				own = nil
			}
		default:
			next := getScratch(s.in.expect(len(cur)))
			next.b, err = s.Decode(next.b, cur)
			own.put()
			own, cur = next, next.b
		}
		if err == nil && s.in.Size >= 0 && int64(len(cur)) != s.in.Size {
			err = Corruptf(s.name, "decodes to %d bytes where there must be %d", len(cur), s.in.Size)
		}
		if err != nil {
			return dst[:start], named(s.name, err)
		}
	}
	if !there {
		dst = append(dst, cur...)
	}
	return dst, nil
}

// encode appends the encoded src to dst.
func (p pipeline) encode(dst, src []byte) ([]byte, error) {
	var (
		start = len(dst)
		cur   = src
		own   *scratch
		there = false
	)
	defer func() { own.put() }()
	for i := range p {
		s := &p[i]
		var err error
		switch {
		case s.inPlace != nil && (own != nil || there):
			err = s.inPlace.EncodeInPlace(cur)
		case s.last:
			dst, err = s.Encode(dst, cur)
			if err == nil {
				cur, there = dst[start:], true
				own.put()
				own = nil
			}
		default:
			next := getScratch(s.out.expect(len(cur)))
			next.b, err = s.Encode(next.b, cur)
			own.put()
			own, cur = next, next.b
		}
		if err != nil {
			return dst[:start], named(s.name, err)
		}
	}
	if !there {
		dst = append(dst, cur...)
	}
	return dst, nil
}

// expect guesses how many bytes there will be, made from n bytes.
func (r Rep) expect(n int) int64 {
	if r.Size >= 0 {
		return min(r.Size, 64<<20+1100*int64(n))
	}
	return min(r.Max, int64(n)+int64(n)/8+512)
}

// named adds the codec's name to an error that does not carry it yet.
func named(name string, err error) error {
	var c *corruptError
	if errors.As(err, &c) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
