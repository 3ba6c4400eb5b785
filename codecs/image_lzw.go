package codecs

func parseLZW(c Config) (Codec, error) {
	return NewCodec(nil, func(in Rep) (Stage, Rep, error) { return &lzwStage{in}, in.Grown(), nil }), c.Fields().Err()
}

// lzwStage is imagecodecs' "imagecodecs_lzw", the LZW of TIFF 6.0: codes of 9 to 12 bits,
// the highest bit first, each width in use one code early.
type lzwStage struct{ in Rep }

const (
	lzwClear = 256 // empties the table
	lzwEnd   = 257
	lzwFirst = 258 // the first code of a sequence
	lzwCodes = 1 << 12
	lzwBits  = 9 // width at the beginning
)

func (s *lzwStage) Decode(dst, src []byte) ([]byte, error) {
	// A code means a sequence: the sequence of its prefix and one byte more. All
	// sequences stand in the output already and are copied from there.
	var at, length [lzwCodes]int
	start, limit := len(dst), s.in.Limit(len(src))
	next, width, last := lzwFirst, lzwBits, -1 // last is the code before, -1 after a clear
	lastAt, lastLen := 0, 0
	var bits uint32
	have := 0
	for _, b := range src {
		if bits, have = bits<<8|uint32(b), have+8; have < width {
			continue
		}
		have -= width
		code := int(bits >> have & (1<<width - 1))
		switch {
		case code == lzwEnd:
			return dst, nil
		case code == lzwClear:
			next, width, last = lzwFirst, lzwBits, -1
			continue
		case code > next || code == next && last < 0 || code >= lzwFirst && last < 0:
			return dst[:start], Corruptf("imagecodecs_lzw", "code %d where the table has %d", code, next)
		}
		from, n := len(dst), 1
		switch {
		case code < lzwClear:
			dst = append(dst, byte(code))
		case code < next:
			n = length[code]
			dst = append(dst, dst[at[code]:at[code]+n]...)
		default: // the sequence before, and its first byte again
			n = lastLen + 1
			dst = append(append(dst, dst[lastAt:lastAt+lastLen]...), dst[lastAt])
		}
		if int64(len(dst)-start) > limit {
			return dst[:start], Corruptf("imagecodecs_lzw", "more than the %d bytes that there may be", limit)
		}
		if last >= 0 && next < lzwCodes {
			at[next], length[next] = lastAt, lastLen+1 // its last byte is the first byte of this one
			if next++; next == 1<<width-1 && width < 12 {
				width++
			}
		}
		last, lastAt, lastLen = code, from, n
	}
	return dst, nil // some writers leave out the end
}

func (s *lzwStage) Encode(dst, src []byte) ([]byte, error) {
	table := make(map[uint32]int, lzwCodes)
	next, width := lzwFirst, lzwBits
	var bits uint32
	have := 0
	put := func(code int) {
		bits, have = bits<<width|uint32(code), have+width
		for ; have >= 8; have -= 8 {
			dst = append(dst, byte(bits>>(have-8)))
		}
	}
	put(lzwClear)
	prefix := -1
	for _, b := range src {
		if prefix < 0 {
			prefix = int(b)
			continue
		}
		key := uint32(prefix)<<8 | uint32(b)
		if code, ok := table[key]; ok {
			prefix = code
			continue
		}
		put(prefix)
		table[key] = next
		prefix = int(b)
		switch next++; {
		case next == lzwCodes-2:
			put(lzwClear)
			clear(table)
			next, width = lzwFirst, lzwBits
		case next == 1<<width:
			width++
		}
	}
	if prefix >= 0 {
		put(prefix)
		if next++; next == 1<<width && width < 12 {
			width++
		}
	}
	put(lzwEnd)
	if have > 0 {
		dst = append(dst, byte(bits<<(8-have)))
	}
	return dst, nil
}
