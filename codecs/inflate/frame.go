package inflate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// Zlib decodes the zlib stream (RFC 1950) at the start of src like [Inflate]
// and verifies its Adler-32 checksum. A stream that needs a preset dictionary
// is corrupt: Zarr agrees on no dictionary.
func Zlib(dst, src []byte, max int64) (out []byte, consumed int, err error) {
	if len(src) < 2 {
		return dst, 0, fmt.Errorf("%w: no room for the zlib header", errCorrupt)
	}
	switch h := binary.BigEndian.Uint16(src); {
	case h>>8&15 != 8 || h>>12 > 7 || h%31 != 0:
		return dst, 0, fmt.Errorf("%w: no zlib header: %#04x", errCorrupt, h)
	case h&0x20 != 0:
		return dst, 0, fmt.Errorf("%w: it needs a preset dictionary", errCorrupt)
	}
	out, n, err := Inflate(dst, src[2:], max)
	if err != nil {
		return dst, 0, err
	}
	rest := src[2+n:]
	if len(rest) < 4 {
		return dst, 0, fmt.Errorf("%w: the Adler-32 is cut off", errCorrupt)
	}
	if got, want := kernels.Adler32(1, out[len(dst):]), binary.BigEndian.Uint32(rest); got != want {
		return dst, 0, fmt.Errorf("%w: Adler-32 is %08x, should be %08x", errCorrupt, got, want)
	}
	return out, 2 + n + 4, nil
}

// Gzip decodes the gzip members (RFC 1952) at the start of src like [Inflate]
// and appends their contents. It verifies the checksum and size of each. It ends
// at the end of src or at a byte that does not begin another member; there must
// be at least one.
func Gzip(dst, src []byte, max int64) (out []byte, consumed int, err error) {
	out = dst
	for consumed == 0 || len(src)-consumed >= 2 && src[consumed] == 0x1f && src[consumed+1] == 0x8b {
		var n int
		before := len(out)
		out, n, err = member(out, src[consumed:], max)
		if err != nil {
			return dst, 0, err
		}
		max -= int64(len(out) - before)
		consumed += n
	}
	return out, consumed, nil
}

// member decodes one gzip member.
func member(dst, src []byte, max int64) (out []byte, consumed int, err error) {
	head, err := gzipHeader(src)
	if err != nil {
		return dst, 0, err
	}
	out, n, err := Inflate(dst, src[head:], max)
	if err != nil {
		return dst, 0, err
	}
	rest, data := src[head+n:], out[len(dst):]
	if len(rest) < 8 {
		return dst, 0, fmt.Errorf("%w: the gzip trailer is cut off", errCorrupt)
	}
	if got, want := crc32.ChecksumIEEE(data), binary.LittleEndian.Uint32(rest); got != want {
		return dst, 0, fmt.Errorf("%w: CRC-32 is %08x, should be %08x", errCorrupt, got, want)
	}
	if got, want := uint32(len(data)), binary.LittleEndian.Uint32(rest[4:]); got != want {
		return dst, 0, fmt.Errorf("%w: %d bytes (modulo 2^32), should be %d", errCorrupt, got, want)
	}
	return out, head + n + 8, nil
}

// gzipHeader returns the length of a member's header.
func gzipHeader(src []byte) (int, error) {
	const (
		hasCRC = 1 << 1 << iota
		hasExtra
		hasName
		hasComment
	)
	if len(src) < 10 {
		return 0, fmt.Errorf("%w: no room for the gzip header", errCorrupt)
	}
	if src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return 0, fmt.Errorf("%w: no gzip header: % x", errCorrupt, src[:3])
	}
	flags, n := src[3], 10
	cut := fmt.Errorf("%w: the gzip header is cut off", errCorrupt)
	if flags&0xe0 != 0 {
		return 0, fmt.Errorf("%w: reserved flags in the gzip header: %#02x", errCorrupt, flags)
	}
	if flags&hasExtra != 0 {
		if len(src)-n < 2 {
			return 0, cut
		}
		n += 2 + int(binary.LittleEndian.Uint16(src[n:]))
		if len(src) < n {
			return 0, cut
		}
	}
	for _, text := range []byte{hasName, hasComment} {
		if flags&text == 0 {
			continue
		}
		for {
			if len(src) <= n {
				return 0, cut
			}
			n++
			if src[n-1] == 0 {
				break
			}
		}
	}
	if flags&hasCRC != 0 {
		if len(src)-n < 2 {
			return 0, cut
		}
		if got, want := uint16(crc32.ChecksumIEEE(src[:n])), binary.LittleEndian.Uint16(src[n:]); got != want {
			return 0, fmt.Errorf("%w: header CRC is %04x, should be %04x", errCorrupt, got, want)
		}
		n += 2
	}
	return n, nil
}
