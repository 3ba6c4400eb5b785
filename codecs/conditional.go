package codecs

import (
	"slices"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// conditional is the registered v3 codec "conditional": bytes-to-bytes codecs,
// some of which are applied to each chunk. A header of bits records which, the
// lowest bit of the first byte for the first codec.
//
//	header │ output of the codecs whose bit is set
type conditional struct {
	codecs Chain
	header int // bytes
}

// maxHeaderBits bounds the header. The specification has no bound.
const maxHeaderBits = 1 << 16

func parseConditional(c Config) (Codec, error) {
	f := c.Fields()
	f.Require("codecs")
	x := &conditional{}
	list := f.Raw("codecs")
	bits := f.Int("header_bits", -1, 0, maxHeaderBits)
	if err := f.Err(); err != nil {
		return nil, err
	}
	var err error
	if x.codecs, err = c.parseInnerBytes(list, "codecs"); err != nil {
		return nil, err
	}
	n := len(x.codecs.links)
	if bits < 0 {
		bits = int64(n+7) / 8 * 8
	}
	if bits%8 != 0 || bits < int64(n) || n > maxHeaderBits {
		return nil, BadField("header_bits", "%d is not a multiple of 8 with a bit for each of %d codecs", bits, n)
	}
	x.header = int(bits / 8)
	return NewCodec(c.Raw, x.bind), nil
}

func (c *conditional) bind(in Rep) (Stage, Rep, error) {
	s := &conditionalStage{in: in, header: c.header}
	cur := in
	for i := range c.codecs.links {
		l := &c.codecs.links[i]
		st, next, err := l.codec.Bind(cur)
		if err != nil {
			return nil, Rep{}, l.fail(err)
		}
		// A compressor is a codec whose output for an empty input has an unknown
		// size.
		_, none, err := l.codec.Bind(BytesRep(0, 0))
		s.steps = append(s.steps, conditionalStep{newStage(l.name, st, cur, next), err == nil && none.Size < 0})
		cur = either(cur, next)
	}
	return s, cur.Longer(int64(c.header)), nil
}

// either returns the Rep of a value that has one of two Reps.
func either(a, b Rep) Rep {
	if a.Size != b.Size {
		a.Size = -1
	}
	a.Max = max(a.Max, b.Max)
	a.floor = max(a.floor, b.floor)
	if a.ItemSize != b.ItemSize {
		a.ItemSize = 0
	}
	return a
}

type conditionalStage struct {
	in     Rep
	steps  []conditionalStep
	header int
}

type conditionalStep struct {
	boundStage
	compresses bool
}

// Encode leaves out a compressor that does not make the chunk smaller. It always
// applies codecs whose output size does not depend on the data, such as a
// shuffle or a checksum.
func (s *conditionalStage) Encode(dst, src []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, s.header)...)
	cur := src
	var own *scratch.Buffer
	defer func() { own.Put() }()
	for i := range s.steps {
		st := &s.steps[i]
		if st.Stage != nil {
			next := scratch.Get(st.out.expect(len(cur)))
			var err error
			if next.B, err = st.Encode(next.B, cur); err != nil {
				next.Put()
				return dst[:start], named(st.name, err)
			}
			if st.compresses && len(next.B) >= len(cur) {
				next.Put()
				continue
			}
			own.Put()
			own, cur = next, next.B
		}
		dst[start+i/8] |= 1 << (i % 8)
	}
	return append(dst, cur...), nil
}

func (s *conditionalStage) Decode(dst, src []byte) ([]byte, error) {
	if len(src) < s.header {
		return dst, Corruptf("conditional", "%d bytes have no room for a header of %d", len(src), s.header)
	}
	header, cur := src[:s.header], src[s.header:]
	for i := len(s.steps); i < 8*s.header; i++ {
		if header[i/8]>>(i%8)&1 != 0 {
			return dst, Corruptf("conditional", "bit %d is set, and there are %d codecs", i, len(s.steps))
		}
	}
	var own *scratch.Buffer
	defer func() { own.Put() }()
	for i := range slices.Backward(s.steps) {
		st := &s.steps[i]
		if header[i/8]>>(i%8)&1 == 0 || st.Stage == nil {
			continue
		}
		if st.out.Size >= 0 && int64(len(cur)) != st.out.Size {
			return dst, Corruptf(st.name, "%d bytes where there must be %d", len(cur), st.out.Size)
		}
		next := scratch.Get(st.in.expect(len(cur)))
		var err error
		if next.B, err = st.Decode(next.B, cur); err != nil {
			next.Put()
			return dst, named(st.name, err)
		}
		own.Put()
		own, cur = next, next.B
	}
	if s.in.Size < 0 && int64(len(cur)) > s.in.Max {
		return dst, Corruptf("conditional", "%d bytes are more than %d", len(cur), s.in.Max)
	}
	return append(dst, cur...), nil
}
