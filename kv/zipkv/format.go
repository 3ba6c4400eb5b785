package zipkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/kv"
)

// Signatures and fixed sizes of the records (APPNOTE.TXT 6.3.10, section 4.3).
const (
	sigLocal     = 0x04034b50
	sigCentral   = 0x02014b50
	sigEnd       = 0x06054b50
	sigEnd64     = 0x06064b50
	sigLocator64 = 0x07064b50
	sigSignature = 0x05054b50

	lenLocal     = 30
	lenCentral   = 46
	lenEnd       = 22
	lenEnd64     = 56
	lenLocator64 = 20

	extraZip64   = 0x0001
	extraUnicode = 0x7075

	flagEncrypted = 1 << 0
	flagUTF8      = 1 << 11
	flagMasked    = 1 << 13

	max16 = math.MaxUint16
	max32 = math.MaxUint32
)

// Compression methods.
const (
	methodStore   = 0
	methodDeflate = 8
	methodBzip2   = 12
	methodLZMA    = 14
	methodZstdOld = 20
	methodZstd    = 93
	methodAES     = 99
)

var (
	// errFormat means that the bytes are no zip archive. The error is
	// kv.ErrCorrupt too.
	errFormat = errors.New("zipkv: not a zip archive")

	// errMethod means that a member is encrypted or compressed in a way that
	// is not supported.
	errMethod = errors.New("zipkv: unsupported method")
)

var le = binary.LittleEndian

func corrupt(format string, args ...any) error {
	return fmt.Errorf("zipkv: %w: %s", kv.ErrCorrupt, fmt.Sprintf(format, args...))
}

// header is one record of the directory.
type header struct {
	name    string // a key, or refused, or of a directory
	raw     bool   // name is the bytes that are stored
	rawLen  uint16
	flags   uint16
	method  uint16
	crc     uint32
	packed  int64 // bytes in the archive
	size    int64
	offset  int64 // of the local header, as declared
	recSize int   // of this record
}

// parseHeader reads the record at the beginning of b, which may be longer.
// Lengths that reach beyond b are errShort.
func parseHeader(b []byte) (header, error) {
	if len(b) < lenCentral {
		return header{}, errShort
	}
	if sig := le.Uint32(b); sig != sigCentral {
		return header{}, corrupt("directory record with signature %#x", sig)
	}
	nameLen, extraLen, commentLen := int(le.Uint16(b[28:])), int(le.Uint16(b[30:])), int(le.Uint16(b[32:]))
	h := header{
		rawLen:  uint16(nameLen),
		flags:   le.Uint16(b[8:]),
		method:  le.Uint16(b[10:]),
		crc:     le.Uint32(b[16:]),
		recSize: lenCentral + nameLen + extraLen + commentLen,
	}
	if len(b) < h.recSize {
		return header{}, errShort
	}
	rawName := b[lenCentral : lenCentral+nameLen]
	extra := b[lenCentral+nameLen : lenCentral+nameLen+extraLen]
	h.name, h.raw = decodeName(rawName, h.flags, extra)
	if windows(b[5]) && strings.Contains(h.name, `\`) && !strings.Contains(h.name, "/") {
		h.name, h.raw = strings.ReplaceAll(h.name, `\`, "/"), false
	}

	packed, size, offset := uint64(le.Uint32(b[20:])), uint64(le.Uint32(b[24:])), uint64(le.Uint32(b[42:]))
	disk := uint32(le.Uint16(b[34:]))
	if err := zip64Extra(extra, &size, &packed, &offset, &disk); err != nil {
		return header{}, fmt.Errorf("%w of member %q", err, h.name)
	}
	switch {
	case disk != 0:
		return header{}, corrupt("member %q is in another part of the archive", h.name)
	case packed > math.MaxInt64 || size > math.MaxInt64 || offset > math.MaxInt64:
		return header{}, corrupt("member %q declares %d bytes in %d at %d", h.name, size, packed, offset)
	}
	h.packed, h.size, h.offset = int64(packed), int64(size), int64(offset)
	return h, nil
}

var errShort = errors.New("record is cut off")

// zip64Extra replaces numbers that did not fit their fields by the numbers of
// the zip64 extra field, which are in the order of the arguments.
func zip64Extra(extra []byte, size, packed, offset *uint64, disk *uint32) error {
	need := *size == max32 || *packed == max32 || *offset == max32 || *disk == max16
	if !need {
		return nil
	}
	b := findExtra(extra, extraZip64)
	if b == nil {
		// All ones may also be the number itself.
		return nil
	}
	for _, p := range []*uint64{size, packed, offset} {
		if *p != max32 {
			continue
		}
		if len(b) < 8 {
			return corrupt("zip64 field of %d bytes", len(b))
		}
		*p, b = le.Uint64(b), b[8:]
	}
	if *disk == max16 && len(b) >= 4 {
		*disk = le.Uint32(b)
	}
	return nil
}

// findExtra returns the contents of the extra field with the given tag, or nil.
// Bytes behind it that cannot be parsed are ignored: writers pad there.
func findExtra(extra []byte, tag uint16) []byte {
	for len(extra) >= 4 {
		n := int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return nil
		}
		if le.Uint16(extra) == tag {
			return extra[4 : 4+n]
		}
		extra = extra[4+n:]
	}
	return nil
}

// decodeName converts the stored name to UTF-8, and reports whether it is
// unchanged.
func decodeName(raw []byte, flags uint16, extra []byte) (name string, same bool) {
	name = string(raw)
	if flags&flagUTF8 != 0 {
		return name, true // invalid UTF-8 is refused as a key
	}
	// A field of Info-ZIP has the name in UTF-8, valid if the checksum of the
	// other name still agrees.
	if b := findExtra(extra, extraUnicode); len(b) > 5 && b[0] == 1 && le.Uint32(b[1:]) == crc32.ChecksumIEEE(raw) {
		return string(b[5:]), string(b[5:]) == name
	}
	if utf8.ValidString(name) {
		return name, true
	}
	var s strings.Builder
	for _, c := range raw {
		if c < 0x80 {
			s.WriteByte(c)
		} else {
			s.WriteString(codePage437[c-0x80])
		}
	}
	return s.String(), false
}

// windows reports whether the system that a member was made on separates
// directories by backslashes: FAT, the two numbers of NTFS, and VFAT. Some
// writers there store them unchanged, and unzip reads them as slashes.
func windows(madeOn byte) bool { return madeOn == 0 || madeOn == 10 || madeOn == 11 || madeOn == 14 }

// refused returns why a member with this name is no key, or "".
func refused(name string) string {
	if err := kv.ValidKey(name); err != nil {
		return err.Error()
	}
	if strings.Contains(name, `\`) {
		return "a backslash in it"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return "the name " + part + " in it"
		}
	}
	return ""
}
