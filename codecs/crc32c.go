package codecs

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc32cCodec is the v3 codec "crc32c" and the numcodecs filter of that name:
// the bytes, and their CRC-32C as four bytes, little-endian.
type crc32cCodec struct {
	start bool // numcodecs: the checksum comes first
	said  bool // the configuration has a location
}

func parseCRC32C(c Config) (Codec, error) {
	f := c.Fields()
	x := &crc32cCodec{}
	if c.V2 || c.Name == "numcodecs.crc32c" {
		x.said = f.Raw("location") != nil
		x.start = f.Enum("location", "end", "start", "end") == "start"
	}
	return x, f.Err()
}

func (c *crc32cCodec) Config() json.RawMessage {
	if !c.said {
		return nil
	}
	if c.start {
		return Object("location", "start")
	}
	return Object("location", "end")
}

func (c *crc32cCodec) Bind(in Rep) (Stage, Rep, error) {
	return crc32cStage{start: c.start}, in.Longer(4), nil
}

type crc32cStage struct{ start bool }

var _ ViewStage = crc32cStage{}

func (s crc32cStage) Encode(dst, src []byte) ([]byte, error) {
	sum := crc32.Checksum(src, castagnoli)
	if s.start {
		dst = binary.LittleEndian.AppendUint32(dst, sum)
		return append(dst, src...), nil
	}
	dst = append(dst, src...)
	return binary.LittleEndian.AppendUint32(dst, sum), nil
}

func (s crc32cStage) DecodeView(src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, Corruptf("crc32c", "%d bytes have no room for a checksum", len(src))
	}
	data, sum := src[:len(src)-4], src[len(src)-4:]
	if s.start {
		data, sum = src[4:], src[:4]
	}
	if want, got := binary.LittleEndian.Uint32(sum), crc32.Checksum(data, castagnoli); got != want {
		return nil, Corruptf("crc32c", "checksum is %08x, stored is %08x", got, want)
	}
	return data, nil
}

func (s crc32cStage) Decode(dst, src []byte) ([]byte, error) {
	data, err := s.DecodeView(src)
	return append(dst, data...), err
}
