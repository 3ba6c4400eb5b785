package tiff

import (
	"context"
	"encoding/binary"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

const (
	// maxPages bounds the directories of a file, maxEntries the tags of all together.
	maxPages   = 1 << 16
	maxEntries = 1 << 21
	// maxText bounds the bytes read of a tag with text.
	maxText = 32 << 20
	// maxValues bounds the numbers read of a tag that is no index.
	maxValues = 1 << 16
	// maxRead bounds the bytes of all tags that are read when a file is opened.
	maxRead = 64 << 20
	// maxArrays bounds the arrays of a file.
	maxArrays = 1 << 14
	// frontBytes are read at once when a file is opened: in most files that are made for
	// servers, all directories with the offsets of all tiles.
	frontBytes = 256 << 10
	// keepBytes of other blocks are kept.
	keepBytes = 4 << 20
)

// file is a TIFF file that is being opened.
//
//	"II" or "MM" │ 42 (2) │ first directory (4)
//	"II" or "MM" │ 43 (2) │ 8 (2) │ 0 (2) │ first directory (8)      BigTIFF
type file struct {
	*formats.Window
	order binary.ByteOrder
	big   bool
	first int64

	entries int
	taken   uint64         // bytes of tags
	seen    map[int64]bool // offsets of directories
}

// ifd is an image file directory.
//
//	count 2 │ (tag 2, type 2, count 4, value or offset 4) … │ next 4
//	count 8 │ (tag 2, type 2, count 8, value or offset 8) … │ next 8      BigTIFF
type ifd struct {
	off  int64
	tags []tag
	next int64
	subs []*ifd
}

// tag is an entry of a directory.
type tag struct {
	id, typ uint16
	count   uint64
	at      int64 // of the first value in the file
}

// sizes are the bytes of a value by type: BYTE 1, ASCII 2, SHORT 3, LONG 4, RATIONAL 5,
// SBYTE 6, UNDEFINED 7, SSHORT 8, SLONG 9, SRATIONAL 10, FLOAT 11, DOUBLE 12, IFD 13,
// LONG8 16, SLONG8 17, IFD8 18.
var sizes = [...]int64{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}

func (t tag) size() int64 {
	if int(t.typ) < len(sizes) {
		return sizes[t.typ]
	}
	return 0
}

// magic reports whether a file begins as a TIFF file, and its byte order and
// version.
func magic(head []byte) (order binary.ByteOrder, big, ok bool) {
	if len(head) < 8 {
		return nil, false, false
	}
	switch string(head[:4]) {
	case "II*\x00":
		return binary.LittleEndian, false, true
	case "MM\x00*":
		return binary.BigEndian, false, true
	case "II+\x00":
		return binary.LittleEndian, true, string(head[4:8]) == "\x08\x00\x00\x00"
	case "MM\x00+":
		return binary.BigEndian, true, string(head[4:8]) == "\x00\x08\x00\x00"
	}
	return nil, false, false
}

func openFile(ctx context.Context, v kv.Value) (*file, error) {
	w, err := formats.OpenWindow(ctx, v, formats.WindowOptions{Scheme: "tiff", Front: frontBytes, Keep: keepBytes})
	if err != nil {
		return nil, err
	}
	f := &file{Window: w, seen: map[int64]bool{}}
	var ok bool
	if f.order, f.big, ok = magic(w.Front()); !ok {
		return nil, formats.Other("TIFF")
	}
	at := int64(4)
	if f.big {
		at = 8
	}
	f.first, err = f.offset(ctx, at)
	return f, err
}

// offset reads an offset of the file's width.
func (f *file) offset(ctx context.Context, at int64) (int64, error) {
	var b [8]byte
	if !f.big {
		err := f.Read(ctx, b[:4], at)
		return int64(f.order.Uint32(b[:])), err
	}
	err := f.Read(ctx, b[:], at)
	n := f.order.Uint64(b[:])
	if err == nil && n > math.MaxInt64 {
		err = formats.Invalid("tiff: an offset of %d", n)
	}
	return int64(n), err
}

// pages reads the chain of directories, with the sub-directories of each.
func (f *file) pages(ctx context.Context) ([]*ifd, error) {
	var list []*ifd
	for at := f.first; at != 0; {
		d, err := f.directory(ctx, at)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
		at = d.next
		t, ok := d.find(subIFDs)
		if !ok {
			continue
		}
		offs, err := f.numbers(ctx, t, maxValues)
		if err != nil {
			return nil, err
		}
		for _, off := range offs {
			if off == 0 || off > math.MaxInt64 {
				continue
			}
			sub, err := f.directory(ctx, int64(off))
			if err != nil {
				return nil, err
			}
			d.subs = append(d.subs, sub)
		}
	}
	if len(list) == 0 {
		return nil, formats.Invalid("tiff: there is no directory")
	}
	return list, nil
}

// directory reads one directory. A directory is never read twice, so that chains
// end.
func (f *file) directory(ctx context.Context, off int64) (*ifd, error) {
	if f.seen[off] {
		return nil, formats.Invalid("tiff: the directories run in a circle at %d", off)
	}
	f.seen[off] = true
	if len(f.seen) > maxPages {
		return nil, formats.Unsupported("tiff: more than %d directories", maxPages)
	}
	head, width := 2, 12
	if f.big {
		head, width = 8, 20
	}
	var b [8]byte
	if err := f.Read(ctx, b[:head], off); err != nil {
		return nil, err
	}
	n := uint64(f.order.Uint16(b[:]))
	if f.big {
		n = f.order.Uint64(b[:])
	}
	f.entries += int(min(n, maxEntries))
	if n > math.MaxUint16 || f.entries > maxEntries {
		return nil, formats.Invalid("tiff: a directory of %d tags", n)
	}
	d := &ifd{off: off, tags: make([]tag, 0, min(n, 64))}
	raw := make([]byte, int(n)*width)
	at := off + int64(head)
	if err := f.Read(ctx, raw, at); err != nil {
		return nil, err
	}
	for i := range int(n) {
		e := raw[i*width:]
		t := tag{id: f.order.Uint16(e), typ: f.order.Uint16(e[2:])}
		value, room := e[8:12], int64(4)
		if f.big {
			t.count = f.order.Uint64(e[4:])
			value, room = e[12:20], 8
		} else {
			t.count = uint64(f.order.Uint32(e[4:]))
		}
		size := t.size()
		if size == 0 || t.count == 0 {
			continue // of no known type
		}
		if t.at = at + int64(i*width+width) - room; t.count > uint64(room/size) {
			if f.big {
				t.at = int64(min(f.order.Uint64(value), math.MaxInt64))
			} else {
				t.at = int64(f.order.Uint32(value))
			}
		}
		d.tags = append(d.tags, t)
	}
	// Some writers end a file with the last directory, without the offset 0 that
	// ends the chain.
	if end := at + int64(len(raw)); end < f.Size() {
		var err error
		if d.next, err = f.offset(ctx, end); err != nil {
			d.next = 0
		}
	}
	return d, nil
}

func (d *ifd) find(id uint16) (tag, bool) {
	for _, t := range d.tags {
		if t.id == id {
			return t, true
		}
	}
	return tag{}, false
}

// inside reports whether the values of a tag lie in the file.
func (f *file) inside(t tag) bool {
	size := f.Size()
	return t.at <= size && t.count <= uint64((size-t.at)/t.size())
}

// check returns an error for a tag that has more than most values, or has them outside
// the file, and for one too many. It is for opening a file, by one goroutine.
func (f *file) check(t tag, most uint64) error {
	switch {
	case t.count > most:
		return formats.Invalid("tiff: tag %d has %d values", t.id, t.count)
	case !f.inside(t):
		return formats.Invalid("tiff: the %d values of tag %d lie outside the file", t.count, t.id)
	}
	if f.taken += t.count * uint64(t.size()); f.taken > maxRead {
		return formats.Unsupported("tiff: tags of more than %d bytes", maxRead)
	}
	return nil
}

// number reads one value of a tag of whole numbers.
func (f *file) number(ctx context.Context, t tag, i uint64) (uint64, error) {
	var b [8]byte
	size := t.size()
	if err := f.Read(ctx, b[:size], t.at+int64(i)*size); err != nil {
		return 0, err
	}
	return f.decode(t.typ, b[:]), nil
}

// decode reads an unsigned whole number. Other types give MaxUint64.
func (f *file) decode(typ uint16, b []byte) uint64 {
	switch typ {
	case 1, 7:
		return uint64(b[0])
	case 3:
		return uint64(f.order.Uint16(b))
	case 4, 13:
		return uint64(f.order.Uint32(b))
	case 16, 18:
		return f.order.Uint64(b)
	}
	return math.MaxUint64
}

// numbers reads all values of a tag of whole numbers, of which there may be at most most.
func (f *file) numbers(ctx context.Context, t tag, most uint64) ([]uint64, error) {
	raw, err := f.raw(ctx, t, most)
	if err != nil {
		return nil, err
	}
	list := make([]uint64, t.count)
	for i := range list {
		list[i] = f.decode(t.typ, raw[int64(i)*t.size():])
	}
	return list, nil
}

// floats reads all values of a tag of numbers of any type.
func (f *file) floats(ctx context.Context, t tag) ([]float64, error) {
	raw, err := f.raw(ctx, t, maxValues)
	if err != nil {
		return nil, err
	}
	list := make([]float64, t.count)
	for i := range list {
		b := raw[int64(i)*t.size():]
		switch t.typ {
		case 5:
			list[i] = float64(f.order.Uint32(b)) / float64(f.order.Uint32(b[4:]))
		case 6:
			list[i] = float64(int8(b[0]))
		case 8:
			list[i] = float64(int16(f.order.Uint16(b)))
		case 9:
			list[i] = float64(int32(f.order.Uint32(b)))
		case 10:
			list[i] = float64(int32(f.order.Uint32(b))) / float64(int32(f.order.Uint32(b[4:])))
		case 11:
			list[i] = float64(math.Float32frombits(f.order.Uint32(b)))
		case 12:
			list[i] = math.Float64frombits(f.order.Uint64(b))
		case 17:
			list[i] = float64(int64(f.order.Uint64(b)))
		default:
			list[i] = float64(f.decode(t.typ, b))
		}
	}
	return list, nil
}

// bytes reads the bytes of a tag of at most most.
func (f *file) bytes(ctx context.Context, t tag, most uint64) ([]byte, error) {
	if t.size() != 1 {
		return nil, formats.Invalid("tiff: tag %d is not text: type %d", t.id, t.typ)
	}
	return f.raw(ctx, t, most)
}

// raw reads the values of a tag of at most most values as they are stored.
func (f *file) raw(ctx context.Context, t tag, most uint64) ([]byte, error) {
	if err := f.check(t, most); err != nil {
		return nil, err
	}
	b := make([]byte, int64(t.count)*t.size())
	return b, f.Read(ctx, b, t.at)
}

// text reads a tag of type ASCII, which ends with the first NUL.
func (f *file) text(ctx context.Context, t tag, most uint64) (string, error) {
	b, err := f.bytes(ctx, t, most)
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(s, "\ufffd"), err
}
