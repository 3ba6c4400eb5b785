package ocdbt

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// A frame is the stored form of manifests and nodes:
//
//	magic uint32be │ length uint64le │ version │ compression │ body … │ CRC-32C uint32le
const (
	magicManifest = 0x0cdb3a2a
	magicVersions = 0x0cdb1234
	magicNode     = 0x0cdb20de

	frameHeader = 4 + 8
	frameMin    = frameHeader + 1 + 1 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decodeFrame checks a frame and returns its body, of at most limit bytes. The body may
// be a part of b.
func decodeFrame(magic uint32, b []byte, limit int) ([]byte, error) {
	if len(b) < frameMin {
		return nil, formats.Invalid("%d bytes are too few", len(b))
	}
	if m := binary.BigEndian.Uint32(b); m != magic {
		return nil, formats.Invalid("it begins with %08x, not with %08x", m, magic)
	}
	if n := binary.LittleEndian.Uint64(b[4:]); n != uint64(len(b)) {
		return nil, formats.Invalid("%d bytes, and its header says %d", len(b), n)
	}
	end := len(b) - 4
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, formats.Invalid("the CRC-32C is wrong")
	}
	c := cursor{b: b[frameHeader:end]}
	version, compression := c.uvarint(), c.uvarint()
	switch {
	case c.err != nil:
		return nil, c.err
	case version != 0:
		return nil, formats.Unsupported("OCDBT: version %d of the format", version)
	case compression > 1:
		return nil, formats.Unsupported("OCDBT: compression %d", compression)
	case compression == 1:
		return decodeZstd(c.b, limit)
	case len(c.b) > limit:
		return nil, formats.Invalid("%d bytes, more than the %d of a node", len(c.b), limit)
	}
	return c.b, nil
}

func decodeZstd(src []byte, limit int) ([]byte, error) {
	out, err := codecs.DecodeZstd(src, int64(limit))
	if err != nil {
		return nil, formats.Invalid("%v", err)
	}
	return out, nil
}
