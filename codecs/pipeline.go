package codecs

import (
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// boundStage is a stage with its input and output when encoding, and its
// optional interfaces.
type boundStage struct {
	Stage
	name    string
	in, out Rep
	inPlace InPlaceStage // or nil
	view    ViewStage    // or nil
	// first means that all stages before this stage work in place: this stage can decode into
	// the result. last means the same of the stages after this stage, for encoding.
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

// decode appends the decoded src to dst.
func (p pipeline) decode(dst, src []byte) ([]byte, error) {
	start := len(dst)
	dst, data, own, err := p.run(dst, src)
	if err == nil && len(data) > 0 && (len(dst) == start || &data[0] != &dst[start]) {
		dst = append(dst, data...)
	}
	own.Put()
	return dst, err
}

// decodeView decodes src to where it likes: into tmp, a buffer of its own, or
// not at all where the result is a part of src. Both tmp and the buffer that
// is returned, which may be nil, must be put back when data is done with.
func (p pipeline) decodeView(tmp *scratch.Buffer, src []byte) (data []byte, own *scratch.Buffer, err error) {
	tmp.B, data, own, err = p.run(tmp.B, src)
	return data, own, err
}

// run decodes src. data is a part of src, of own, or the bytes appended to dst.
// The buffers between stages come from the pool, and stages work in place if
// they can.
func (p pipeline) run(dst, src []byte) (_, data []byte, own *scratch.Buffer, err error) {
	start := len(dst)
	there := false // data is dst[start:]
	data = src
	for i := len(p) - 1; i >= 0; i-- {
		s := &p[i]
		if s.out.Size >= 0 && int64(len(data)) != s.out.Size {
			return dst[:start], nil, own, Corruptf(s.name, "%d bytes where there must be %d", len(data), s.out.Size)
		}
		switch {
		case s.inPlace != nil && (own != nil || there):
			err = s.inPlace.DecodeInPlace(data)
		case s.view != nil:
			data, err = s.view.DecodeView(data)
		case s.first:
			if s.in.Size >= 0 {
				dst = scratch.Room(dst, s.in.Size, len(data))
			}
			dst, err = s.Decode(dst, data)
			if err == nil {
				data, there = dst[start:], true
				own.Put()
				own = nil
			}
		default:
			next := scratch.Get(s.in.expect(len(data)))
			next.B, err = s.Decode(next.B, data)
			own.Put()
			own, data = next, next.B
		}
		if err == nil && s.in.Size >= 0 && int64(len(data)) != s.in.Size {
			err = Corruptf(s.name, "decodes to %d bytes where there must be %d", len(data), s.in.Size)
		}
		if err != nil {
			return dst[:start], nil, own, named(s.name, err)
		}
	}
	return dst, data, own, nil
}

// encode appends the encoded src to dst.
func (p pipeline) encode(dst, src []byte) ([]byte, error) {
	var (
		start = len(dst)
		cur   = src
		own   *scratch.Buffer
		there = false
	)
	defer func() { own.Put() }()
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
				own.Put()
				own = nil
			}
		default:
			next := scratch.Get(s.out.expect(len(cur)))
			next.B, err = s.Encode(next.B, cur)
			own.Put()
			own, cur = next, next.B
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

// inPlace reports whether every stage works in place.
func (p pipeline) inPlace() bool {
	for i := range p {
		if p[i].inPlace == nil {
			return false
		}
	}
	return true
}

// encodeInPlace encodes b where it lies.
func (p pipeline) encodeInPlace(b []byte) error {
	for i := range p {
		if err := p[i].inPlace.EncodeInPlace(b); err != nil {
			return named(p[i].name, err)
		}
	}
	return nil
}

// expect estimates the number of output bytes for n input bytes.
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
