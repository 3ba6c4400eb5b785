package tiff

import (
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// packints is imagecodecs' "imagecodecs_packints": integers of fewer bits than their
// data type has, the highest bit first. After each run of elements the next one begins at
// a byte.
//
//	runlen 3, 3 bits:  aaabbbcc c0000000 dddeeeff f0000000
type packints struct {
	bits, run int
}

const packintsName = "imagecodecs_packints"

func packintsEntry() codecs.Entry {
	return codecs.Entry{V3: []string{packintsName}, Kind: codecs.ArrayToBytes, Parse: parsePackints}
}

func parsePackints(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	p := packints{bits: int(f.Int("bitspersample", 8, 1, 16)), run: int(f.Int("runlen", 0, 0, 1<<40))}
	if raw := f.Raw("bitorder"); raw != nil && string(raw) != "null" && string(raw) != `">"` {
		f.Fail("bitorder", `%s is not supported, ">" is`, raw)
	}
	return codecs.NewCodec(codecs.Object("bitspersample", p.bits, "runlen", p.run), p.bind), f.Err()
}

func (p packints) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	size := in.Type.Size()
	switch kind := in.Type.Kind(); {
	case kind == dtype.Bool && p.bits == 1:
	case kind == dtype.Uint && in.Type.Bits() == 8*size && size <= 2 && p.bits <= 8*size:
	default:
		return nil, codecs.Rep{}, codecs.BadField("bitspersample", "%d bits do not fit elements of %v", p.bits, in.Type)
	}
	s := packintsStage{bits: p.bits, run: p.run, size: size, count: in.Count()}
	if s.run == 0 {
		s.run = max(s.count, 1)
	}
	runs := int64(s.count / s.run)
	n := runs*s.runBytes(s.run) + s.runBytes(s.count%s.run)
	return s, codecs.BytesRep(n, n), nil
}

type packintsStage struct{ bits, run, size, count int }

// runBytes returns the bytes of a run of n elements.
func (s packintsStage) runBytes(n int) int64 { return (int64(n)*int64(s.bits) + 7) / 8 }

func (s packintsStage) Decode(dst, src []byte) ([]byte, error) {
	dst = slices.Grow(dst, s.count*s.size)
	mask := uint32(1)<<s.bits - 1
	for left := s.count; left > 0; {
		n := min(left, s.run)
		var have int
		var word uint32
		row := src[:s.runBytes(n)]
		for range n {
			for have < s.bits {
				word, row, have = word<<8|uint32(row[0]), row[1:], have+8
			}
			have -= s.bits
			if v := word >> have & mask; s.size == 1 {
				dst = append(dst, byte(v))
			} else {
				dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
			}
		}
		src, left = src[s.runBytes(n):], left-n
	}
	return dst, nil
}

// Encode implements [codecs.Stage]. Higher bits are left out.
func (s packintsStage) Encode(dst, src []byte) ([]byte, error) {
	mask := uint32(1)<<s.bits - 1
	for left := s.count; left > 0; {
		n := min(left, s.run)
		var have int
		var word uint32
		for range n {
			v := uint32(src[0])
			if s.size == 2 {
				v = uint32(binary.LittleEndian.Uint16(src))
			}
			src = src[s.size:]
			word, have = word<<s.bits|v&mask, have+s.bits
			for have >= 8 {
				have -= 8
				dst = append(dst, byte(word>>have))
			}
		}
		if have > 0 {
			dst = append(dst, byte(word<<(8-have)))
		}
		left -= n
	}
	return dst, nil
}
