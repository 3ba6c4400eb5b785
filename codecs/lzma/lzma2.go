package lzma

import "encoding/binary"

// LZMA2 is a row of chunks, each of which begins with a control byte:
//
//	0x00        the end
//	0x01, 0x02  stored: length less one (2 bytes), the bytes; 1 begins a new
//	            dictionary
//	0x80 – 0xff LZMA: the low five bits and two bytes are the length less one,
//	            two more that of the stream; bits 5 and 6 say what begins anew:
//	            1 the state, 2 also the properties, which follow, 3 also the
//	            dictionary

// DecodeLZMA2 appends what LZMA2 data hold, at most max bytes, to dst. Errors
// are as those of [DecodeRaw]; what follows the data is ignored.
func DecodeLZMA2(dst, src []byte, max int64) ([]byte, error) {
	return with(dst, max, func(d *decoder) error {
		_, err := d.lzma2(src)
		return err
	})
}

// lzma2 decodes LZMA2 data and returns how long they are.
func (d *decoder) lzma2(src []byte) (int, error) {
	needDict, needState, needProps := true, true, true
	pos := 0
	for {
		if pos >= len(src) {
			return 0, corrupt("LZMA2 without an end")
		}
		c := src[pos]
		if c == 0 {
			return pos + 1, nil
		}
		head := 3
		if c >= 0x80 {
			head = 5
		}
		if len(src)-pos < head+1 {
			return 0, corrupt("LZMA2 is cut off")
		}
		if c == 1 || c >= 0xe0 {
			d.dict, needDict = len(d.out), false
			needProps, needState = true, true
		}
		if needDict || c > 2 && c < 0x80 {
			return 0, corrupt("LZMA2 control byte %#02x", c)
		}
		size := int(binary.BigEndian.Uint16(src[pos+1:])) + 1
		if c < 0x80 {
			pos += head
			if size > len(src)-pos {
				return 0, corrupt("LZMA2 is cut off")
			}
			if err := d.room(size); err != nil {
				return 0, err
			}
			d.out = append(d.out, src[pos:pos+size]...)
			pos += size
			// Literals go on from the last byte; the state does not.
			continue
		}
		size += int(c&0x1f) << 16
		packed := int(binary.BigEndian.Uint16(src[pos+3:])) + 1
		pos += head
		if c >= 0xc0 {
			p, ok := propsOf(src[pos])
			pos++
			if !ok || p.LC+p.LP > maxLitBits {
				return 0, corrupt("LZMA2 properties %#02x", src[pos-1])
			}
			d.props, needProps = p, false
		}
		if needProps {
			return 0, corrupt("LZMA2 without properties")
		}
		if c >= 0xa0 {
			d.model.reset(d.props)
			needState = false
		}
		if needState {
			return 0, corrupt("LZMA2 without a state")
		}
		if packed > len(src)-pos {
			return 0, corrupt("LZMA2 is cut off")
		}
		n, err := d.stream(src[pos:pos+packed], int64(size))
		if err != nil {
			return 0, err
		}
		if n != packed {
			return 0, corrupt("an LZMA2 chunk of %d bytes has %d", packed, n)
		}
		pos += packed
	}
}
