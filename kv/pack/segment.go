package pack

import (
	"math"
	"sync"
	"sync/atomic"
)

// segmentBytes is the size of the write buffer. Larger writes gain little, and
// a commit of one small chunk should not need a large buffer.
const segmentBytes = 256 << 10

// segment is a range of a growing pack that is not in the file yet. Records
// are put into it by several appenders at once, each into its own part.
type segment struct {
	base uint64 // offset of buf[0]
	buf  []byte // capacity is the room
	refs atomic.Int32

	// Under pack.mu:
	filling int  // appenders that still write into buf
	writing bool // a goroutine writes it to the file
}

var segmentPool = sync.Pool{New: func() any { b := make([]byte, 0, segmentBytes); return &b }}

// newSegment returns an empty segment with room for n bytes.
func newSegment(base uint64, n int) *segment {
	g := &segment{base: base}
	if n <= segmentBytes {
		g.buf = *segmentPool.Get().(*[]byte)
	} else {
		g.buf = make([]byte, 0, n)
	}
	g.refs.Store(1)
	return g
}

func (g *segment) unref() {
	if g.refs.Add(-1) == 0 && cap(g.buf) == segmentBytes {
		b := g.buf[:0]
		g.buf = nil
		segmentPool.Put(&b)
	}
}

// begin and done enclose the filling of a part. pack.mu is held.
func (g *segment) begin() {
	g.filling++
	g.refs.Add(1) // a failure may drop it meanwhile
}

func (g *segment) done() {
	g.filling--
	g.unref()
}

func (g *segment) end() uint64 { return g.base + uint64(len(g.buf)) }

// grow extends the segment to offset to and returns the part from offset from
// on, with zeros before it. g.end() <= from <= to.
func (g *segment) grow(from, to uint64) []byte {
	old := len(g.buf)
	g.buf = g.buf[:to-g.base]
	clear(g.buf[old : from-g.base])
	return g.buf[from-g.base:]
}

// room reports whether offset to still fits.
func (g *segment) room(to uint64) bool { return to-g.base <= uint64(cap(g.buf)) }

// inMemory returns the part [off, off+n) of a record that is in a buffer, with
// a reference to its segment, or nil if it is in the file.
func (p *pack) inMemory(off, n uint64) ([]byte, *segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.live {
		if g.base <= off && off+n <= g.end() {
			g.refs.Add(1)
			return g.buf[off-g.base : off-g.base+n : off-g.base+n], g
		}
	}
	return nil, nil
}

// removeLive forgets a segment that was written or given up. p.mu is held.
func (p *pack) removeLive(g *segment) {
	for i, h := range p.live {
		if h == g {
			p.live = append(p.live[:i], p.live[i+1:]...)
			g.unref()
			break
		}
	}
	p.setMemFrom()
}

// setMemFrom updates p.memFrom for readers. p.mu is held.
func (p *pack) setMemFrom() {
	from := uint64(math.MaxUint64)
	for _, g := range p.live {
		from = min(from, g.base)
	}
	p.memFrom.Store(from)
}
