package jpeg

import (
	"encoding/binary"
	"io"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/raster"
)

// Markers (ITU T.81, table B.1).
const (
	soi   = 0xd8
	eoi   = 0xd9
	sos   = 0xda
	dqt   = 0xdb
	dht   = 0xc4
	dac   = 0xcc
	jpg   = 0xc8
	sof0  = 0xc0
	sof2  = 0xc2
	sof15 = 0xcf
	app0  = 0xe0
	app14 = 0xee
	tem   = 0x01
	rst0  = 0xd0
)

// maxSegments bounds the segments before the first scan.
const maxSegments = 1 << 12

// segment is a marker with its contents.
type segment struct {
	marker byte
	off    int64 // of the 0xff
	end    int64 // where the next one begins, or the data of a scan
}

// segments calls fn for each segment from off on, up to and including SOS, EOI or a
// frame header, or until fn returns false (T.81, B.1.1).
//
//	ff │ marker │ length 2, which counts itself │ …
func segments(r io.ReaderAt, off int64, fn func(segment) (more bool, err error)) error {
	for range maxSegments {
		var b [4]byte
		if _, err := r.ReadAt(b[:2], off); err != nil {
			return raster.Cut(err, "jpeg")
		}
		if b[0] != 0xff {
			return formats.Invalid("jpeg: no marker at byte %d", off)
		}
		s := segment{marker: b[1], off: off, end: off + 2}
		switch {
		case b[1] == 0xff: // fill
			off++
			continue
		case b[1] == soi || b[1] == eoi || b[1] == tem || b[1] >= rst0 && b[1] < soi:
		default:
			if _, err := r.ReadAt(b[:], off); err != nil {
				return raster.Cut(err, "jpeg")
			}
			n := int64(binary.BigEndian.Uint16(b[2:]))
			if n < 2 {
				return formats.Invalid("jpeg: a segment of %d bytes at byte %d", n, off)
			}
			s.end += n
		}
		more, err := fn(s)
		if err != nil || !more || s.marker == sos || s.marker == eoi {
			return err
		}
		off = s.end
	}
	return formats.Invalid("jpeg: more than %d segments before the pixels", maxSegments)
}

// frameHeader reports whether a marker is SOF0 to SOF15 (T.81, B.2.2).
func frameHeader(m byte) bool { return m >= sof0 && m <= sof15 && m != dht && m != dac && m != jpg }

// readHeader finds the frame header.
//
//	ff │ SOF │ length 2 │ precision │ height 2 │ width 2 │ components │ …
func (c colours) readHeader(r io.ReaderAt, size int64) (raster.Info, error) {
	var info raster.Info
	var b [10]byte
	if _, err := r.ReadAt(b[:2], 0); err != nil {
		return info, raster.Cut(err, "jpeg")
	}
	if b[0] != 0xff || b[1] != soi {
		return info, formats.Other("JPEG")
	}
	found := false
	err := segments(r, 2, func(s segment) (bool, error) {
		if !frameHeader(s.marker) {
			return true, nil
		}
		if _, err := r.ReadAt(b[:], s.off); err != nil {
			return false, raster.Cut(err, "jpeg")
		}
		found = true
		be := binary.BigEndian
		info = raster.Info{Height: int(be.Uint16(b[5:])), Width: int(be.Uint16(b[7:])), Channels: int(b[9]), Bits: 8}
		switch {
		case s.marker > sof2:
			return false, formats.Unsupported("jpeg: a process other than baseline, extended sequential and progressive with Huffman codes (SOF%d)", s.marker-sof0)
		case b[4] != 8:
			return false, formats.Unsupported("jpeg: samples of %d bits", b[4])
		case info.Channels != 1 && info.Channels != 3 && info.Channels != 4:
			return false, formats.Unsupported("jpeg: %d components", info.Channels)
		case info.Height == 0:
			return false, formats.Unsupported("jpeg: a height that the header leaves open")
		}
		return false, nil
	})
	if err == nil && !found {
		err = formats.Invalid("jpeg: no frame header")
	}
	// One component has as many blocks of 64 samples as the image, each with at least
	// one bit.
	info.MaxBytes = 8 * 64 * size * int64(info.Channels)
	return info, err
}
