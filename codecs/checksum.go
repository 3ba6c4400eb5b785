package codecs

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// checksum is the stage of a codec that adds 32 bits, little-endian, computed from the bytes:
// "crc32c" of v3 at the end, and numcodecs' "crc32c", "crc32" and "adler32", with a
// configured location, "fletcher32" and "jenkins_lookup3" at the end.
type checksum struct {
	name  string
	start bool
	sum   func(p []byte) uint32
	other func(sum uint32) uint32 // a second form of the checksum that is read, if set
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32c(p []byte) uint32  { return crc32.Checksum(p, castagnoli) }
func adler32(p []byte) uint32 { return kernels.Adler32(1, p) }

// parseLocated parses a checksum that is at the start or the end; location is the
// default. In v3 only codecs of numcodecs have it.
func parseLocated(name, location string, sum func([]byte) uint32) func(Config) (Codec, error) {
	return func(c Config) (Codec, error) {
		f := c.Fields()
		s, config := &checksum{name: name, sum: sum}, json.RawMessage(nil)
		if c.V2 || c.Name == "numcodecs."+name {
			s.start = f.Enum("location", location, "start", "end") == "start"
			if raw := f.Raw("location"); raw != nil {
				config = Object("location", raw)
			}
		}
		return NewCodec(config, s.bind), f.Err()
	}
}

func parseJenkins(c Config) (Codec, error) {
	f := c.Fields()
	initval := f.Int("initval", 0, 0, math.MaxUint32)
	config := Object("initval", initval)
	var prefix []byte
	if raw := f.Raw("prefix"); !value.Absent(raw) {
		for _, b := range f.Ints("prefix") {
			if b < 0 || b > 255 {
				f.Fail("prefix", "%d is not a byte", b)
				break
			}
			prefix = append(prefix, byte(b))
		}
		config = Object("initval", initval, "prefix", raw)
	}
	s := &checksum{name: "jenkins_lookup3", sum: func(p []byte) uint32 {
		if prefix != nil {
			p = append(prefix[:len(prefix):len(prefix)], p...)
		}
		return Lookup3(p, uint32(initval))
	}}
	return NewCodec(config, s.bind), f.Err()
}

func (s *checksum) bind(in Rep) (Stage, Rep, error) { return s, in.Longer(4), nil }

var _ ViewStage = (*checksum)(nil)

func (s *checksum) Encode(dst, src []byte) ([]byte, error) {
	sum := s.sum(src)
	dst = scratch.Grow(dst, int64(len(src))+4)
	if s.start {
		return append(binary.LittleEndian.AppendUint32(dst, sum), src...), nil
	}
	return binary.LittleEndian.AppendUint32(append(dst, src...), sum), nil
}

func (s *checksum) DecodeView(src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, Corruptf(s.name, "%d bytes have no room for a checksum", len(src))
	}
	data, stored := src[:len(src)-4], src[len(src)-4:]
	if s.start {
		data, stored = src[4:], src[:4]
	}
	if want, got := binary.LittleEndian.Uint32(stored), s.sum(data); got != want && (s.other == nil || s.other(got) != want) {
		return nil, Corruptf(s.name, "checksum is %08x, stored is %08x", got, want)
	}
	return data, nil
}

func (s *checksum) Decode(dst, src []byte) ([]byte, error) {
	data, err := s.DecodeView(src)
	return append(dst, data...), err
}

// parseFletcher32 also reads the checksum of HDF5 before 1.6.3 on little-endian machines, as
// HDF5 does: the bytes of both halves were swapped.
func parseFletcher32(c Config) (Codec, error) {
	swapped := func(sum uint32) uint32 { return sum>>8&0x00ff00ff | sum<<8&0xff00ff00 }
	s := &checksum{name: "fletcher32", sum: fletcher32, other: swapped}
	return NewCodec(nil, s.bind), c.Fields().Err()
}

// fletcher32 is HDF5's checksum of that name: big-endian words of 16 bits, the
// last byte alone an upper half, summed modulo 65535 where 0 may be 65535.
func fletcher32(p []byte) uint32 {
	var a, b uint32
	fold := func(x uint32) uint32 { return x&0xffff + x>>16 }
	for len(p) >= 2 {
		// So many words overflow neither sum.
		run := p[:min(len(p)&^1, 2*360)]
		p = p[len(run):]
		for len(run) >= 2 {
			a += uint32(binary.BigEndian.Uint16(run))
			b += a
			run = run[2:]
		}
		a, b = fold(a), fold(b)
	}
	if len(p) == 1 {
		a += uint32(p[0]) << 8
		b += a
		a, b = fold(a), fold(b)
	}
	return fold(b)<<16 | fold(a)
}

// Lookup3 returns Bob Jenkins' hash of that name of bytes, the variant for bytes (hashlittle).
// It is the checksum of the codec "jenkins_lookup3", and with the seed 0 the checksum of HDF5
// metadata.
func Lookup3(p []byte, seed uint32) uint32 {
	a := 0xdeadbeef + uint32(len(p)) + seed
	b, c := a, a
	if len(p) == 0 {
		return c
	}
	for len(p) > 12 {
		a += binary.LittleEndian.Uint32(p)
		b += binary.LittleEndian.Uint32(p[4:])
		c += binary.LittleEndian.Uint32(p[8:])
		a, c = (a-c)^bits.RotateLeft32(c, 4), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 6), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 8), b+a
		a, c = (a-c)^bits.RotateLeft32(c, 16), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 19), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 4), b+a
		p = p[12:]
	}
	var last [12]byte
	copy(last[:], p)
	a += binary.LittleEndian.Uint32(last[:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:])
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	return (c ^ b) - bits.RotateLeft32(b, 24)
}
