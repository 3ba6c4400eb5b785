package filter

import (
	"encoding/binary"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func parsePackBool(c codecs.Config) (codecs.Codec, error) {
	return codecs.NewCodec(nil, bindPackBool), c.Fields().Err()
}

func bindPackBool(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if in.Size < 0 || in.Array && in.Type.Size() != 1 {
		return nil, codecs.Rep{}, codecs.BadField("", "packs elements of one byte only")
	}
	n := int(in.Size)
	packed := 1 + (n+7)/8
	out := codecs.BytesRep(int64(packed), int64(packed))
	if in.Array {
		out = codecs.Rep{Array: true, Type: dtype.NewUint(8), Shape: []int{packed}}
	}
	return packBoolStage{n}, out, nil
}

// packBoolStage is numcodecs' "packbits": eight truth values to a byte, the first in
// the highest bit, behind a byte with the number of padding bits at the end. It
// makes an array of bytes.
type packBoolStage struct{ n int }

func (s packBoolStage) Encode(dst, src []byte) ([]byte, error) {
	dst = append(dst, byte(-s.n&7))
	return packBools(dst, src, firstHigh), nil
}

func (s packBoolStage) Decode(dst, src []byte) ([]byte, error) {
	// The length has been checked; it leaves the first byte only one value.
	if want := byte(-s.n & 7); src[0] != want {
		return dst, codecs.Corruptf("packbits", "%d bits of padding for %d elements", src[0], s.n)
	}
	return unpackBools(dst, src[1:], s.n, firstHigh), nil
}

// The order of bits in a byte: a word whose byte i has the bit of element i.
const (
	firstLow  = 0x8040201008040201
	firstHigh = 0x0102040810204080

	onesOfBytes = 0x0101010101010101
	lowOfBytes  = 0x7f7f7f7f7f7f7f7f
)

// packBools appends a bit for every byte of src, set if the byte is not 0.
func packBools(dst, src []byte, first uint64) []byte {
	dst = scratch.Grow(dst, int64(len(src)+7)/8)
	// The product of a word of ones and zeros and the mirrored word has, in its
	// highest byte, the sum of the bits that belong to the ones.
	mirror := bits.ReverseBytes64(first)
	for len(src) > 0 {
		var w uint64
		if len(src) >= 8 {
			w = binary.LittleEndian.Uint64(src)
			src = src[8:]
		} else {
			w = loadWord(src, len(src))
			src = nil
		}
		w = (w&lowOfBytes + lowOfBytes | w) >> 7 & onesOfBytes
		dst = append(dst, byte(w*mirror>>56))
	}
	return dst
}

// unpackBools appends n bytes that are 0 or 1.
func unpackBools(dst, src []byte, n int, first uint64) []byte {
	start := len(dst)
	dst = scratch.Grow(dst, int64(n))[:start+n]
	for to := dst[start:]; len(to) > 0; src = src[1:] {
		w := (uint64(src[0])*onesOfBytes&first + lowOfBytes) >> 7 & onesOfBytes
		if len(to) < 8 {
			storeWord(to, len(to), w)
			break
		}
		binary.LittleEndian.PutUint64(to, w)
		to = to[8:]
	}
	return dst
}

// packbits is the registered v3 codec of that name: of every number the bits
// from first to last, one after the other, lowest first.
type packbits struct {
	padding     string
	first, last int // last is -1 for the highest bit
}

func parsePackbits(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	p := &packbits{last: -1, padding: f.Enum("padding_encoding", "none", "none", "first_byte", "last_byte")}
	members := []any{"padding_encoding", p.padding}
	for _, m := range []struct {
		name string
		bit  *int
	}{{"first_bit", &p.first}, {"last_bit", &p.last}} {
		if raw := f.Raw(m.name); !value.Absent(raw) {
			*m.bit = int(f.Int(m.name, 0, 0, 63))
			members = append(members, m.name, *m.bit)
		}
	}
	if p.last >= 0 && p.last < p.first {
		f.Fail("last_bit", "%d is below first_bit %d", p.last, p.first)
	}
	return codecs.NewCodec(codecs.Object(members...), p.bind), f.Err()
}

func (p *packbits) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	t := in.Type
	s := &packbitsStage{packbits: p, parts: 1, size: t.Size(), width: t.Bits()}
	switch t.Kind() {
	case dtype.Bool:
		s.width = 1
	case dtype.Complex:
		s.parts, s.size, s.width = 2, t.Size()/2, t.Bits()/2
	case dtype.Int, dtype.Datetime, dtype.Timedelta:
		s.signed = true
	case dtype.Uint, dtype.Float:
	default:
		return nil, codecs.Rep{}, codecs.BadField("", "does not pack the data type %v", t)
	}
	last := p.last
	if last < 0 {
		last = s.width - 1
	}
	if last >= s.width || p.first > last {
		return nil, codecs.Rep{}, codecs.BadField("last_bit", "the bits %d to %d of %d", p.first, last, s.width)
	}
	s.keep = last - p.first + 1
	s.n = in.Count() * s.parts
	s.bytes = int((int64(s.n)*int64(s.keep) + 7) / 8)
	size := int64(s.bytes)
	if p.padding != "none" {
		size++
	}
	return s, codecs.BytesRep(size, size), nil
}

// packbitsStage packs n numbers of size bytes, of which width bits are used and
// keep are kept.
type packbitsStage struct {
	*packbits
	parts, size, width, keep int
	n, bytes                 int
	signed                   bool
}

// pad returns the number of padding bits.
func (s *packbitsStage) pad() byte { return byte(8*int64(s.bytes) - int64(s.n)*int64(s.keep)) }

func (s *packbitsStage) Encode(dst, src []byte) ([]byte, error) {
	if s.padding == "first_byte" {
		dst = append(dst, s.pad())
	}
	if s.keep == 1 && s.width == 1 {
		dst = packBools(dst, src, firstLow)
	} else {
		start := len(dst)
		dst = scratch.Grow(dst, int64(s.bytes))[:start+s.bytes]
		clear(dst[start:])
		mask := ^uint64(0) >> (64 - s.keep)
		for pos := int64(0); len(src) > 0; pos += int64(s.keep) {
			putBits(dst[start:], pos, s.keep, loadWord(src, s.size)>>s.first&mask)
			src = src[s.size:]
		}
	}
	if s.padding == "last_byte" {
		dst = append(dst, s.pad())
	}
	return dst, nil
}

func (s *packbitsStage) Decode(dst, src []byte) ([]byte, error) {
	if s.padding != "none" {
		pad, rest := src[0], src[1:]
		if s.padding == "last_byte" {
			pad, rest = src[len(src)-1], src[:len(src)-1]
		}
		if pad != s.pad() {
			return dst, codecs.Corruptf("packbits", "%d bits of padding, not %d", pad, s.pad())
		}
		src = rest
	}
	if s.keep == 1 && s.width == 1 {
		return unpackBools(dst, src, s.n, firstLow), nil
	}
	start := len(dst)
	dst = scratch.Grow(dst, int64(s.n)*int64(s.size))[:start+s.n*s.size]
	to := dst[start:]
	for pos := int64(0); len(to) > 0; pos += int64(s.keep) {
		v := getBits(src, pos, s.keep) << s.first
		if s.signed {
			// The highest bit that was kept is the sign.
			n := 64 - s.keep - s.first
			v = uint64(int64(v<<n) >> n)
		}
		storeWord(to, s.size, v)
		to = to[s.size:]
	}
	return dst, nil
}

// putBits sets n bits of dst, which are 0, from bit pos on.
func putBits(dst []byte, pos int64, n int, v uint64) {
	i, off := pos>>3, int(pos&7)
	dst[i] |= byte(v << off)
	for done := 8 - off; done < n; done += 8 {
		i++
		dst[i] |= byte(v >> done)
	}
}

// getBits returns n bits of src from bit pos on.
func getBits(src []byte, pos int64, n int) uint64 {
	i, off := pos>>3, int(pos&7)
	v := uint64(src[i]) >> off
	for done := 8 - off; done < n; done += 8 {
		i++
		v |= uint64(src[i]) << done
	}
	return v & (^uint64(0) >> (64 - n))
}

// loadWord reads a little-endian number of up to 8 bytes.
func loadWord(p []byte, size int) (v uint64) {
	for i := range size {
		v |= uint64(p[i]) << (8 * i)
	}
	return v
}

func storeWord(p []byte, size int, v uint64) {
	for i := range size {
		p[i] = byte(v >> (8 * i))
	}
}
