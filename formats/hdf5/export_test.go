package hdf5

import (
	"bytes"
	"encoding/binary"

	"github.com/zarrdb/zarrdb/codecs"
)

// Repair makes the checksums right of structures that end where the next one begins, so
// that a fuzzer gets behind them.
func Repair(b []byte) {
	for _, s := range []string{"OHDR", "OCHK", "FRHP", "FHDB", "FHIB", "BTHD", "BTLF", "BTIN", "FAHD", "FADB", "EAHD", "EAIB", "EASB", "EADB", "SMTB"} {
		for at := 0; at < len(b); {
			i := bytes.Index(b[at:], []byte(s))
			if i < 0 {
				break
			}
			i += at
			at = i + 4
			if n := length(b[i:], s); n > 4 && n <= len(b)-i {
				binary.LittleEndian.PutUint32(b[i+n-4:], codecs.Lookup3(b[i:i+n-4], 0))
			}
		}
	}
}

// length is that of a structure of a file with addresses and lengths of 8 bytes, 0 if it
// is not known.
func length(b []byte, signature string) int {
	switch signature {
	case "OHDR":
		if len(b) > 10 {
			flags, at := b[5], 6
			if flags&0x20 != 0 {
				at += 16
			}
			if flags&0x10 != 0 {
				at += 4
			}
			w := 1 << (flags & 3)
			if at+w <= len(b) {
				return at + w + int(min(number(b[at:at+w]), 1<<30)) + 4
			}
		}
	case "FRHP":
		return 146
	case "BTHD":
		return 38
	case "FAHD":
		return 28
	case "EAHD":
		return 72
	}
	return 0
}
