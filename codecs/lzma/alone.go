package lzma

import (
	"encoding/binary"
	"math"
)

// aloneHeader is the length of the header: properties, dictionary size (4), length (8, all ones: unknown).
const aloneHeader = 13

// DecodeAlone appends what .lzma data hold, at most max bytes, to dst. Errors
// are as those of [DecodeRaw]; what follows the data is ignored.
func DecodeAlone(dst, src []byte, max int64) ([]byte, error) {
	if len(src) < aloneHeader {
		return dst, corrupt("no room for the header")
	}
	p, ok := propsOf(src[0])
	if !ok {
		return dst, corrupt("properties %#02x", src[0])
	}
	size := int64(-1)
	if n := binary.LittleEndian.Uint64(src[5:]); n != math.MaxUint64 {
		if n > math.MaxInt64 {
			return dst, corrupt("a length of %d", n)
		}
		size = int64(n)
	}
	return with(dst, max, func(d *decoder) error {
		d.model.reset(p)
		_, err := d.stream(src[aloneHeader:], size)
		return err
	})
}
