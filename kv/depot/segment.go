package depot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"github.com/zarrdb/zarrdb/kv"
)

// The bytes of a segment are those of docs/format-remote.md.
const (
	segmentMagic    = "zarrdb segment1\n"
	rangeMagic      = "zdbrang1"
	rangeHeaderSize = 64

	// SegmentBytes is a good size of a segment: one request uploads a segment.
	SegmentBytes = 64 << 20
	maxSegment   = 5 << 30
)

// Range is a range of a pack to upload.
type Range struct {
	Pack     [16]byte
	From, To uint64
	// Body has the bytes: byte 0 is that at From.
	Body io.ReaderAt
}

// Segment is an object with ranges of packs.
type Segment struct {
	Name Name
	// Extents are the ranges and their places.
	Extents []Extent
	body    sections
	sent    bool
}

// Segment lays out ranges in the next segment of a push. [Push.Upload] uploads it, or else
// [Push.Publish] does.
func (p *Push) Segment(ranges []Range) (*Segment, error) {
	s := &Segment{Name: p.name()}
	s.body.add(bytes.NewReader([]byte(segmentMagic)), headerSize)
	for _, r := range ranges {
		if r.From >= r.To || r.To > maxOffset {
			return nil, fmt.Errorf("depot: range from %d to %d of a pack", r.From, r.To)
		}
		s.body.add(bytes.NewReader(appendRange(nil, &r)), rangeHeaderSize)
		s.Extents = append(s.Extents, Extent{r.Pack, r.From, r.To, s.Name, uint64(s.body.size)})
		n := int64(r.To - r.From)
		s.body.add(r.Body, n)
		if pad := -n & 7; pad > 0 {
			s.body.add(bytes.NewReader(make([]byte, pad)), pad)
		}
		if s.body.size > maxSegment {
			return nil, fmt.Errorf("depot: %w: a segment of more than 5 GiB", kv.ErrTooLarge)
		}
	}
	return s, nil
}

// Size is the length of the object.
func (s *Segment) Size() int64 { return s.body.size }

func appendRange(b []byte, r *Range) []byte {
	b = append(append(b, rangeMagic...), r.Pack[:]...)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, r.From), r.To)
	b = append(b, make([]byte, 20)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Upload uploads a segment, if it was not uploaded yet. It may run beside others.
func (p *Push) Upload(ctx context.Context, s *Segment) error {
	if s.sent {
		return nil
	}
	err := kv.SetValue(ctx, p.d.store, s.Name.Segment(), kv.FromReaderAt(&s.body, s.body.size, kv.ID{}))
	if err != nil {
		return fmt.Errorf("depot: upload %v: %w", s.Name.Segment(), err)
	}
	s.sent = true
	return nil
}

// ParseSegment returns the ranges that a segment of size bytes tells of itself, of that name. It
// reads the headers of ranges only. The error is kv.ErrCorrupt where something else is; the ranges before are right.
func ParseSegment(r io.ReaderAt, size int64, name Name) ([]Extent, error) {
	var head [rangeHeaderSize]byte
	if size < headerSize {
		return nil, corrupt("not a segment")
	}
	if err := readAt(r, head[:headerSize], 0); err != nil {
		return nil, err
	}
	if string(head[:headerSize]) != segmentMagic {
		return nil, corrupt("not a segment")
	}
	var out []Extent
	for at := int64(headerSize); at < size; {
		if size-at < rangeHeaderSize {
			return out, corrupt("segment %v ends within a header, at %d", name, at)
		}
		if err := readAt(r, head[:], at); err != nil {
			return out, err
		}
		e := Extent{[16]byte(head[8:24]), binary.LittleEndian.Uint64(head[24:]), binary.LittleEndian.Uint64(head[32:]), name, uint64(at) + rangeHeaderSize}
		if string(head[:8]) != rangeMagic || crc32.Checksum(head[:60], castagnoli) != binary.LittleEndian.Uint32(head[60:]) || e.From >= e.To || e.To > maxOffset {
			return out, corrupt("segment %v has no range at %d", name, at)
		}
		n := int64(e.To-e.From+7) &^ 7
		if at += rangeHeaderSize; n > size-at {
			return out, corrupt("segment %v has %d bytes, %d are missing", name, size, n-(size-at))
		}
		out, at = append(out, e), at+n
	}
	return out, nil
}

func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return corrupt("%d of %d bytes at %d", n, len(b), off)
	}
	return fmt.Errorf("depot: read a segment at %d: %w", off, err)
}

// sections are readers one behind the other.
type sections struct {
	parts []section
	size  int64
}

type section struct {
	r     io.ReaderAt
	at, n int64
}

func (s *sections) add(r io.ReaderAt, n int64) {
	s.parts = append(s.parts, section{r, s.size, n})
	s.size += n
}

// ReadAt implements [io.ReaderAt].
func (s *sections) ReadAt(b []byte, off int64) (n int, err error) {
	i := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].at+s.parts[i].n > off })
	for ; n < len(b) && i < len(s.parts); i++ {
		p := &s.parts[i]
		skip := off + int64(n) - p.at
		want := min(int64(len(b)-n), p.n-skip)
		k, err := p.r.ReadAt(b[n:n+int(want)], skip)
		if n += k; int64(k) < want {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// ascending sorts extents.
func ascending(e []Extent) []Extent {
	return slices.SortedFunc(slices.Values(e), func(a, b Extent) int { return a.before(&b) })
}
