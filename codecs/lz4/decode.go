package lz4

import (
	"encoding/binary"
	"errors"

	library "github.com/pierrec/lz4/v4"
)

// errBlock says that a block is damaged, or decodes to more than there is room for.
var errBlock = errors.New("the block is damaged or longer than it should be")

// Decode decodes the block src into dst and returns how many bytes it has. Bytes of dst
// behind them may be overwritten; nothing is written behind dst. The error is errBlock.
// Safe for concurrent use. See the description of the LZ4 block format, "Compressed block
// format".
func Decode(dst, src []byte) (n int, err error) {
	if hasDecode {
		return sequences(dst, src, true)
	}
	if n, err = library.UncompressBlock(src, dst); err != nil {
		return 0, errBlock
	}
	return n, nil
}

// sequences decodes a block. With fast, decodeArch does it as far as it can.
func sequences(dst, src []byte, fast bool) (int, error) {
	di, si := 0, 0
	for si < len(src) {
		if fast {
			di, si = decodeArch(dst[:min(len(dst), di+maxArch)], src, di, si)
		}
		token := int(src[si])
		si++
		n, at, ok := length(src, si, token>>4)
		if !ok || n > len(src)-at || n > len(dst)-di {
			return 0, errBlock
		}
		di += copy(dst[di:], src[at:at+n])
		si = at + n
		if si == len(src) && token&15 == 0 {
			break // the last sequence has no match
		}
		if len(src)-si < 2 {
			return 0, errBlock
		}
		distance := int(binary.LittleEndian.Uint16(src[si:]))
		n, si, ok = length(src, si+2, token&15)
		n += minMatch
		if !ok || distance == 0 || distance > di || n > len(dst)-di {
			return 0, errBlock
		}
		// A match may overlap its own output: the copied bytes double with each turn.
		for from, to := di-distance, di+n; di < to; {
			di += copy(dst[di:to], dst[from:di])
		}
	}
	return di, nil
}

// length adds the bytes at src[at:] that belong to a length whose part in the token is n,
// and returns where they end.
func length(src []byte, at, n int) (sum, end int, ok bool) {
	for more := n == 15; more; at++ {
		if at >= len(src) || n < 0 {
			return 0, 0, false
		}
		n += int(src[at])
		more = src[at] == 255
	}
	return n, at, true
}
