package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
)

// Record is a record that a scan found.
type Record struct {
	Address
	Owner Owner
	// Header is the offset of the record's header.
	Header uint64
}

// Records yields the records of a pack from offset from on, which is the
// beginning (0) or any other place. It reads headers, not payloads: [Store.Verify]
// compares payloads. Where it finds no header it yields a [CorruptError] for the
// stretch up to the next one and goes on; other errors end it. It sees every
// record in the file, in the index or not.
func (s *Store) Records(ctx context.Context, id ID, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := s.check(ctx); err != nil {
			yield(Record{}, err)
			return
		}
		p := s.lookup(id)
		if p == nil {
			yield(Record{}, &CorruptError{Pack: id, Reason: "there is no such pack"})
			return
		}
		f, err := s.openPack(id)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer f.Close()
		size, err := fileSize(f)
		if err != nil {
			yield(Record{}, err)
			return
		}
		lay, err := p.checkFile(f)
		if err != nil && (!yield(Record{}, err) || errors.Is(err, errFormat)) {
			return
		}
		for _, e := range lay.after(from, uint64(size)) {
			sc := scanner{ctx: ctx, p: p, f: f, size: e.from + e.n, shift: e.at - e.from}
			if !sc.run(max(from, e.from), yield) {
				return
			}
		}
	}
}

// scanner walks through a file by headers.
type scanner struct {
	ctx  context.Context
	p    *pack
	f    io.ReaderAt
	size uint64 // where the extent ends
	// shift is the file offset of a byte less its logical offset.
	shift uint64
	step  int    // how much of the file is read at one time, 0 is scanBytes
	buf   []byte // of the extent from at on
	at    uint64
}

const (
	// scanBytes is how much of the file is read at one time by a walk,
	// headerBytes by a look at one header.
	scanBytes   = 128 << 10
	headerBytes = 512
)

// read returns n ≤ scanBytes bytes at off, fewer at the end of the file.
func (c *scanner) read(off uint64, n int) ([]byte, error) {
	if off >= c.size {
		return nil, nil
	}
	n = int(min(uint64(n), c.size-off))
	if off < c.at || off+uint64(n) > c.at+uint64(len(c.buf)) {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		if c.step == 0 {
			c.step = scanBytes
		}
		want := max(c.step, n)
		if cap(c.buf) < want {
			c.buf = make([]byte, want)
		}
		c.buf = c.buf[:min(uint64(want), c.size-off)]
		m, err := c.f.ReadAt(c.buf, int64(off+c.shift))
		if m < n {
			c.buf = c.buf[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("pack: read %v at %d: %w", c.p.id, off, err)
		}
		c.buf, c.at = c.buf[:m], off
	}
	i := off - c.at
	return c.buf[i : i+uint64(n)], nil
}

// run yields the records of the extent and reports whether to go on.
func (c *scanner) run(from uint64, yield func(Record, error) bool) bool {
	pos := roundUp(max(min(from, c.size), fileHeaderSize), smallAlign)
	lost := pos // where the stretch without a header begins
	for pos < c.size {
		h, ok, err := parseHeader(c.read, pos, c.size, c.p.salt)
		if err == nil && !ok {
			pos, err = c.seek(pos + smallAlign)
			if err == nil && pos < c.size {
				continue
			}
		}
		if lost < pos {
			if !yield(Record{}, c.p.corrupt(lost, min(pos, c.size)-lost, "no record")) {
				return false
			}
		}
		if err != nil {
			yield(Record{}, err)
			return false
		}
		if !ok {
			return true
		}
		pos = h.next()
		lost = pos
		if h.skip {
			continue
		}
		a := Address{Pack: c.p.id, Offset: h.payload, Length: h.length}
		if !yield(Record{Address: a, Owner: h.owner, Header: h.at}, nil) {
			return false
		}
	}
	return true
}

// seek finds the next place that looks like a header, or the end.
func (c *scanner) seek(pos uint64) (uint64, error) {
	for pos < c.size {
		b, err := c.read(pos, scanBytes/2)
		if err != nil {
			return pos, err
		}
		for i := 0; i+4 <= len(b); i += smallAlign {
			if m := [4]byte(b[i:]); m == recordMagic || m == skipMagic {
				return pos + uint64(i), nil
			}
		}
		pos = roundUp(pos+uint64(len(b)), smallAlign)
	}
	return c.size, nil
}

// checkHeader compares the header of a record with its address.
func (s *Store) checkHeader(ctx context.Context, r *part, file *handle, owner []Owner) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer r.fault(file, &err)
	base, err := r.base(file)
	if err != nil {
		return err
	}
	c := scanner{ctx: ctx, p: r.p, f: file.f, size: r.p.size.Load(), shift: base - r.a.Offset, step: headerBytes}
	if file.data != nil {
		c.f = bytes.NewReader(file.data)
	}
	back, err := c.read(r.a.Offset-backSize, backSize)
	if err != nil {
		return err
	}
	distance := uint64(binary.LittleEndian.Uint32(back))
	if distance > r.a.Offset {
		return r.p.corrupt(r.a.Offset-backSize, backSize, "no header")
	}
	h, ok, err := parseHeader(c.read, r.a.Offset-distance, c.size, r.p.salt)
	if err != nil {
		return err
	}
	if !ok || h.skip || h.payload != r.a.Offset || h.length != r.a.Length {
		return r.p.corrupt(r.a.Offset-distance, distance, "no header of this payload")
	}
	for _, o := range owner {
		if o.Array != h.owner.Array || !bytes.Equal(o.Key, h.owner.Key) {
			return r.p.corrupt(h.at, h.payload-h.at, "the payload of another owner")
		}
	}
	return nil
}
