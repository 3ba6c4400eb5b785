package zipkv

// record is a member that is being written.
type record struct {
	name         string
	crc          uint32
	size, offset uint64
}

const (
	madeByUnix = 3 << 8
	// Readers of version 4.5 know zip64 (APPNOTE.TXT, 4.4.3.2).
	version20 = 20
	version45 = 45

	date1980 = 1<<5 | 1 // 1 January; the year counts from 1980
	fileMode = 0o100644 << 16
)

// flags returns the UTF-8 flag for a name that is not ASCII.
func (h *record) flags() uint16 {
	for i := range len(h.name) {
		if h.name[i] >= 0x80 {
			return flagUTF8
		}
	}
	return 0
}

// appendCommon appends the fields that both headers have in this order.
func (h *record) appendCommon(b []byte, version uint16, size uint32, extra int) []byte {
	b = le.AppendUint16(b, version)
	b = le.AppendUint16(b, h.flags())
	b = le.AppendUint16(b, methodStore)
	b = le.AppendUint16(b, 0) // time
	b = le.AppendUint16(b, date1980)
	b = le.AppendUint32(b, h.crc)
	b = le.AppendUint32(b, size) // in the archive
	b = le.AppendUint32(b, size)
	b = le.AppendUint16(b, uint16(len(h.name)))
	return le.AppendUint16(b, uint16(extra))
}

// local returns the local header. There the zip64 field must have both sizes.
func (h *record) local(z *Writer) []byte {
	version, size := uint16(version20), uint32(h.size)
	var extra []byte
	if h.size >= z.limit32 {
		version, size = version45, max32
		extra = appendZip64(h.size, h.size)
	}
	b := make([]byte, 0, lenLocal+len(h.name)+len(extra))
	b = le.AppendUint32(b, sigLocal)
	b = h.appendCommon(b, version, size, len(extra))
	b = append(b, h.name...)
	return append(b, extra...)
}

// appendCentral appends the record of the directory, whose zip64 field has just
// the numbers that do not fit.
func (h *record) appendCentral(b []byte, z *Writer) []byte {
	version, size, offset := uint16(version20), uint32(h.size), uint32(h.offset)
	var large []uint64
	if h.size >= z.limit32 {
		size, large = max32, append(large, h.size, h.size)
	}
	if h.offset >= z.limit32 {
		offset, large = max32, append(large, h.offset)
	}
	if len(large) > 0 {
		version = version45
	}
	extra := appendZip64(large...)
	b = le.AppendUint32(b, sigCentral)
	b = le.AppendUint16(b, madeByUnix|version)
	b = h.appendCommon(b, version, size, len(extra))
	b = le.AppendUint16(b, 0) // comment
	b = le.AppendUint16(b, 0) // disk
	b = le.AppendUint16(b, 0) // internal attributes
	b = le.AppendUint32(b, fileMode)
	b = le.AppendUint32(b, offset)
	b = append(b, h.name...)
	return append(b, extra...)
}

// appendZip64 returns an extra field with the numbers, or nothing for none.
func appendZip64(numbers ...uint64) []byte {
	if len(numbers) == 0 {
		return nil
	}
	b := le.AppendUint16(nil, extraZip64)
	b = le.AppendUint16(b, uint16(8*len(numbers)))
	for _, n := range numbers {
		b = le.AppendUint64(b, n)
	}
	return b
}

// appendEnd appends the end record for the directory at the given offset, with
// the zip64 records before it where they are needed.
func (z *Writer) appendEnd(b []byte, at uint64) []byte {
	size := uint64(len(z.dir))
	count16, size32, at32 := uint16(z.count), uint32(size), uint32(at)
	if z.count >= z.limit16 || size >= z.limit32 || at >= z.limit32 {
		count16, size32, at32 = max16, max32, max32
		b = le.AppendUint32(b, sigEnd64)
		b = le.AppendUint64(b, lenEnd64-12) // size of the rest of the record
		b = le.AppendUint16(b, madeByUnix|version45)
		b = le.AppendUint16(b, version45)
		b = le.AppendUint32(b, 0) // disk
		b = le.AppendUint32(b, 0)
		b = le.AppendUint64(b, z.count)
		b = le.AppendUint64(b, z.count)
		b = le.AppendUint64(b, size)
		b = le.AppendUint64(b, at)

		b = le.AppendUint32(b, sigLocator64)
		b = le.AppendUint32(b, 0) // disk
		b = le.AppendUint64(b, at+size)
		b = le.AppendUint32(b, 1) // disks
	}
	b = le.AppendUint32(b, sigEnd)
	b = le.AppendUint32(b, 0) // disks
	b = le.AppendUint16(b, count16)
	b = le.AppendUint16(b, count16)
	b = le.AppendUint32(b, size32)
	b = le.AppendUint32(b, at32)
	b = le.AppendUint16(b, uint16(len(z.comment)))
	return append(b, z.comment...)
}

// nameSet finds names that were already written. While names come in order, as
// from a listing, it keeps only the last one; after that it reads the others
// back from the directory.
type nameSet struct {
	last string
	all  map[string]struct{} // nil while in order
}

// add reports whether name is new, and remembers it. dir has the records of
// earlier members.
func (s *nameSet) add(dir []byte, name string) bool {
	if s.all == nil && name > s.last {
		s.last = name
		return true
	}
	if s.has(dir, name) {
		return false
	}
	if s.all == nil {
		s.all = map[string]struct{}{}
		eachName(dir, func(n string) bool {
			s.all[n] = struct{}{}
			return true
		})
	}
	s.all[name] = struct{}{}
	return true
}

func (s *nameSet) has(dir []byte, name string) bool {
	if s.all != nil {
		_, ok := s.all[name]
		return ok
	}
	if name > s.last {
		return false
	}
	found := false
	eachName(dir, func(n string) bool {
		found = n == name
		return n < name // in order
	})
	return found
}

func eachName(dir []byte, fn func(string) bool) {
	for len(dir) > 0 {
		n, extra := int(le.Uint16(dir[28:])), int(le.Uint16(dir[30:]))
		if !fn(string(dir[lenCentral : lenCentral+n])) {
			return
		}
		dir = dir[lenCentral+n+extra:]
	}
}
