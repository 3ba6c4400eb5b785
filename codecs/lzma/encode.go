package lzma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// Options say how data are encoded.
type Options struct {
	// Props are the properties; LZMA2 allows at most 4 for LC plus LP.
	Props Props
	// Dict is the size of the dictionary in bytes, at least 4 KiB. More than
	// the data have is not used.
	Dict int64
	// Deltas are the distances, 1 to 256, of delta filters in front, at most
	// three. They are for .xz and LZMA2; the other forms ignore them.
	Deltas []int
	// Check is the checksum of .xz data.
	Check byte
}

func (o Options) check(lzma2 bool) error {
	switch {
	case !o.Props.Valid() || lzma2 && o.Props.LC+o.Props.LP > 4:
		return fmt.Errorf("lzma: properties %+v", o.Props)
	case o.Dict < lzma.MinDictCap || o.Dict > lzma.MaxDictCap:
		return fmt.Errorf("lzma: a dictionary of %d bytes", o.Dict)
	case len(o.Deltas) > 3:
		return fmt.Errorf("lzma: %d delta filters", len(o.Deltas))
	}
	for _, d := range o.Deltas {
		if d < 1 || d > 256 {
			return fmt.Errorf("lzma: a delta filter of distance %d", d)
		}
	}
	if _, ok := appendCheck(nil, o.Check, nil); !ok {
		return fmt.Errorf("lzma: checksum %d", o.Check)
	}
	return nil
}

// encodeBuffer is how many bytes the encoder looks ahead. A chunk that does not
// compress is copied out of them and the dictionary, so both together must hold
// the largest, 64 KiB.
const encodeBuffer = 1 << 17

// dict returns the size of the dictionary for n bytes.
func (o Options) dict(n int) int { return int(min(o.Dict, int64(max(n, lzma.MinDictCap)))) }

func (o Options) properties() *lzma.Properties {
	return &lzma.Properties{LC: o.Props.LC, LP: o.Props.LP, PB: o.Props.PB}
}

// EncodeLZMA2 appends src as LZMA2 data, behind the delta filters.
func EncodeLZMA2(dst, src []byte, o Options) ([]byte, error) {
	if err := o.check(true); err != nil {
		return dst, err
	}
	src = Delta(src, o.Deltas)
	b := &scratch.Buffer{B: dst}
	w, err := lzma.Writer2Config{Properties: o.properties(), DictCap: o.dict(len(src)), BufSize: encodeBuffer}.NewWriter2(b)
	if err == nil {
		err = writeAll(w, src)
	}
	return b.B, err
}

func writeAll(w io.WriteCloser, src []byte) error {
	if _, err := w.Write(src); err != nil {
		return err
	}
	return w.Close()
}

// EncodeAlone appends src as .lzma data of unknown length, with an end marker.
func EncodeAlone(dst, src []byte, o Options) ([]byte, error) {
	if err := o.check(false); err != nil {
		return dst, err
	}
	b := &scratch.Buffer{B: dst}
	w, err := lzma.WriterConfig{Properties: o.properties(), DictCap: o.dict(len(src)), EOSMarker: true}.NewWriter(b)
	if err == nil {
		err = writeAll(w, src)
	}
	return b.B, err
}

// EncodeRaw appends src as an LZMA stream without header, with an end marker.
func EncodeRaw(dst, src []byte, o Options) ([]byte, error) {
	start := len(dst)
	out, err := EncodeAlone(dst, src, o)
	if err != nil {
		return dst, err
	}
	return append(out[:start], out[start+aloneHeader:]...), nil
}

// EncodeXZ appends src as .xz data: one stream of one block, or of none if src
// is empty.
func EncodeXZ(dst, src []byte, o Options) ([]byte, error) {
	if err := o.check(true); err != nil {
		return dst, err
	}
	before := dst
	flags := []byte{0, o.Check}
	dst = append(append(dst, headerMagic...), flags...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(flags))
	index := []byte{0, 0}
	if len(src) > 0 {
		start := len(dst)
		dst = o.appendBlockHeader(dst, len(src))
		var err error
		if dst, err = EncodeLZMA2(dst, src, o); err != nil {
			return before, err
		}
		size := len(dst) - start
		dst = pad(dst, size)
		dst, _ = appendCheck(dst, o.Check, src)
		index[1] = 1
		index = binary.AppendUvarint(index, uint64(size+checkSize(o.Check)))
		index = binary.AppendUvarint(index, uint64(len(src)))
	}
	index = pad(index, len(index))
	index = binary.LittleEndian.AppendUint32(index, crc32.ChecksumIEEE(index))
	dst = append(dst, index...)
	footer := append(binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1)), flags...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(footer))
	return append(append(dst, footer...), footerMagic...), nil
}

// appendBlockHeader appends the header of a block of n bytes.
func (o Options) appendBlockHeader(dst []byte, n int) []byte {
	start := len(dst)
	dst = append(dst, 0, byte(len(o.Deltas)))
	for _, d := range o.Deltas {
		dst = append(dst, filterDelta, 1, byte(d-1))
	}
	dst = append(dst, filterLZMA2, 1, lzma.EncodeDictCap(int64(o.dict(n))))
	dst = pad(dst, len(dst)-start)
	dst[start] = byte((len(dst)-start+4)/4 - 1)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// pad appends zeros until n is a multiple of four.
func pad(dst []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		dst = append(dst, 0)
	}
	return dst
}

// Delta returns src behind delta filters, a copy if there are any. [EncodeXZ]
// and [EncodeLZMA2] do it themselves.
func Delta(src []byte, deltas []int) []byte {
	if len(deltas) > 0 {
		src = bytes.Clone(src)
	}
	for _, d := range deltas {
		delta(src, d)
	}
	return src
}

// Undelta undoes, in place, delta filters, which raw data do not record.
func Undelta(p []byte, deltas []int) {
	for i := len(deltas) - 1; i >= 0; i-- {
		undelta(p, deltas[i])
	}
}

// delta subtracts from every byte the byte dist before it.
func delta(p []byte, dist int) {
	for i := len(p) - 1; i >= dist; i-- {
		p[i] -= p[i-dist]
	}
}
