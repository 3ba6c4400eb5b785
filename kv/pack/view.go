package pack

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"runtime/debug"
	"sync"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// View calls fn once with the bytes [off, off+n) of the payload at a. They
// belong to the store, may be mapped from a file, must not be changed, and are
// invalid when fn returns. The error of fn is returned as it is.
//
// A page that cannot be read becomes an error instead of the end of the process where
// fn touches it on its own goroutine. Other goroutines that touch the bytes for fn use
// mmap.Catch, and fn returns its error or panics with the fault; system calls that get the
// bytes return an error, which fn returns. Panics of fn pass through.
//
// A block of 64 KiB that this process compared with its checksum through the same map is not
// compared again, unless Options.VerifyReads is set or fn returns an error: damage of the file
// since then shows in [Store.Reread] and [Store.Verify] only.
//
// Errors: kv.ErrRange for a range outside the payload, [CorruptError] for an
// address where there is no payload, for damage, and for bytes that cannot be
// read; ErrFailed for a payload that a failure took. A CorruptError replaces an error of fn.
func (s *Store) View(ctx context.Context, a Address, off, n uint64, fn func([]byte) error) error {
	return s.viewOr(ctx, a, off, n, s.o.VerifyReads, fn)
}

// Reread is [Store.View], but compares every block with its checksum.
func (s *Store) Reread(ctx context.Context, a Address, off, n uint64, fn func([]byte) error) error {
	return s.viewOr(ctx, a, off, n, true, fn)
}

func (s *Store) viewOr(ctx context.Context, a Address, off, n uint64, all bool, fn func([]byte) error) error {
	if s.o.borrow != nil {
		return s.viewBorrowed(ctx, a, off, n, all, fn)
	}
	return s.view(ctx, a, off, n, all, fn)
}

// view is [Store.View] for a pack that is not borrowed. all compares every block.
func (s *Store) view(ctx context.Context, a Address, off, n uint64, all bool, fn func([]byte) error) error {
	r, err := s.locate(ctx, a, off, n)
	if err != nil {
		return err
	}
	if n == 0 {
		return fn([]byte{})
	}
	if b, g := r.memory(); g != nil {
		defer g.unref()
		return fn(b)
	}
	h, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	if h.data != nil {
		return r.viewMap(h, all, fn)
	}
	defer h.unref()
	return r.viewFile(h, fn)
}

// Locate returns the file and the offset in it where the payload at a begins,
// for programs that read packs without this one. The path is below the
// directory that Open was given. Bytes that are not in the file yet are
// written first.
func (s *Store) Locate(a Address) (path string, fileOffset int64, err error) {
	r, h, err := s.inFile(context.Background(), a)
	if err != nil {
		return "", 0, err
	}
	defer h.unref()
	at, err := r.base(h)
	return s.path(a.Pack), int64(at), err
}

// part is a range of a payload that exists as far as the sizes tell.
type part struct {
	p      *pack
	a      Address
	off, n uint64
	// zero says that a sum was 0 and right. In a hole of a file all sums are 0, and zeros may have
	// the sum 0: the record tells, see present.
	zero bool
}

func (s *Store) locate(ctx context.Context, a Address, off, n uint64) (part, error) {
	if err := s.check(ctx); err != nil {
		return part{}, err
	}
	if off > a.Length || n > a.Length-off {
		return part{}, fmt.Errorf("pack: %w: %d bytes from %d of %d", kv.ErrRange, n, off, a.Length)
	}
	if n > math.MaxInt-blockSize*2 {
		return part{}, fmt.Errorf("%w: read of %d bytes", errTooLarge, n)
	}
	p := s.lookup(a.Pack)
	if s.o.borrow != nil && (p == nil || (a.Length > p.size.Load() || a.Offset > p.size.Load()-a.Length) && !p.mapped(&a)) {
		var err error
		if p, err = s.borrow(ctx, a, false); err != nil {
			return part{}, err
		}
	}
	if p == nil {
		return part{}, &CorruptError{Pack: a.Pack, Offset: a.Offset, Length: a.Length, Reason: "there is no such pack"}
	}
	size := p.size.Load()
	front := fixedSize + sumSize*blocks(min(a.Length, MaxPayloadBytes)) + backSize
	if a.Length > size || a.Offset > size-a.Length || a.Offset < fileHeaderSize+front || a.Offset%smallAlign != 0 {
		p.mu.Lock()
		missing := p.missing
		p.mu.Unlock()
		if missing {
			return part{}, p.corrupt(a.Offset, a.Length, "the file is missing")
		}
		return part{}, p.corrupt(a.Offset, a.Length, "no payload can be here")
	}
	if !p.alive.Load() {
		p.mu.Lock()
		err := p.lost(a.Offset + a.Length)
		p.mu.Unlock()
		if err != nil {
			return part{}, err
		}
	}
	return part{p: p, a: a, off: off, n: n}, nil
}

// memory returns the part if it is in a buffer.
func (r *part) memory() ([]byte, *segment) {
	if r.a.Offset+r.a.Length <= r.p.memFrom.Load() {
		return nil, nil
	}
	return r.p.inMemory(r.a.Offset+r.off, r.n)
}

// errGone is the message for a payload whose space was given back.
const errGone = "the range was given back"

// acquire returns a handle through which the payload can be read. While it is
// held, the space of the payload is not given back.
func (r *part) acquire(ctx context.Context) (*handle, error) {
	s := r.p.s
	h, err := s.files.acquire(r.p, r.a.Offset+r.a.Length)
	for err == errReturned {
		if _, err = s.borrow(ctx, r.a, false); err == nil {
			h, err = s.files.acquire(r.p, r.a.Offset+r.a.Length)
		}
	}
	if err == nil && r.p.isGone(&r.a) {
		h.unref()
		return nil, r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	return h, err
}

// base is where the payload begins in the file. Its sums are in the same piece.
func (r *part) base(h *handle) (uint64, error) {
	lead := r.sums(0)
	at, ok := h.lay.find(r.a.Offset-lead, lead+r.a.Length)
	if !ok || h.data != nil && at+lead+r.a.Length > uint64(len(h.data)) {
		return 0, r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	return at + lead, nil
}

// window is the range of whole blocks around the part, relative to the
// payload.
func (r *part) window() (from, to uint64) {
	return r.off &^ (blockSize - 1), min(roundUp(r.off+r.n, blockSize), r.a.Length)
}

// sums is where the sums of the blocks from byte from of the payload on are,
// relative to the payload: that many bytes before it.
func (r *part) sums(from uint64) uint64 {
	return backSize + sumSize*(blocks(r.a.Length)-from/blockSize)
}

// check compares one block, which begins at byte at of the payload.
func (r *part) check(block []byte, at uint64, sum []byte) error {
	want := binary.LittleEndian.Uint32(sum)
	if blockSum(r.p.salt, block, r.a.Offset+at) != want {
		return r.p.corrupt(r.a.Offset+at, uint64(len(block)), "checksum mismatch")
	}
	r.zero = r.zero || want == 0
	return nil
}

// present checks that there is a record: the distance to its header, before the payload, is never 0.
func (r *part) present(back []byte) error {
	if r.zero && binary.LittleEndian.Uint32(back) == 0 {
		return r.p.corrupt(r.a.Offset, r.a.Length, "a hole is here")
	}
	return nil
}

// checkAll compares the blocks of b, which begins at byte at of the payload.
func (r *part) checkAll(b []byte, at uint64, sums []byte) error {
	for i := 0; len(b) > 0; i += sumSize {
		block := b[:min(blockSize, len(b))]
		if err := r.check(block, at, sums[i:]); err != nil {
			return err
		}
		b, at = b[len(block):], at+uint64(len(block))
	}
	return nil
}

// compare compares the blocks of a window of a mapped payload that begins at base: all blocks, or
// the blocks that were not compared before.
func (r *part) compare(h *handle, base, from, to uint64, all bool) error {
	sums := h.data[base-r.sums(from):]
	for ; from < to; from += blockSize {
		end := min(from+blockSize, to)
		if all || !h.seen.has(base+from, end-from, r.a.Length) {
			if err := r.check(h.data[base+from:base+end], from, sums); err != nil {
				h.seen.forget()
				return err
			}
			h.seen.add(base+from, end-from, r.a.Length)
		}
		sums = sums[sumSize:]
	}
	if r.zero {
		if err := r.present(h.data[base-backSize:]); err != nil {
			h.seen.forget()
			return err
		}
	}
	return nil
}

// viewMap is View for a mapped pack. It gives the handle back.
func (r *part) viewMap(h *handle, all bool, fn func([]byte) error) (err error) {
	defer h.unref()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer r.fault(h, &err)
	base, err := r.base(h)
	if err != nil {
		return err
	}
	from, to := r.window()
	if to-from >= aheadLarge {
		r.p.ahead(h, base+from-min(base, headerBytes), base+to) // with the sums
	}
	if err := r.compare(h, base, from, to, all); err != nil {
		return err
	}
	at, end := base+r.off, base+r.off+r.n
	if err := fn(h.data[at:end:end]); err != nil {
		if damage := r.compare(h, base, from, to, true); damage != nil {
			return damage // the bytes may be the reason
		}
		return err
	}
	return nil
}

// fault turns a page of the map that could not be read into an error. All
// other panics pass through. It must be deferred itself.
func (r *part) fault(h *handle, err *error) {
	p := recover()
	if p == nil {
		return
	}
	at, ok := mmap.Faulted(p, h.data)
	if !ok {
		panic(p)
	}
	h.seen.forget()
	*err = r.p.corrupt(at, 1, "cannot be read")
}

// viewFile is View with pread.
func (r *part) viewFile(h *handle, fn func([]byte) error) error {
	from, to := r.window()
	n, table := int(to-from), sumSize*int(blocks(to)-from/blockSize)
	// A small record is read with its sums at once. A large one is not: the
	// kernel copies pages to addresses that are not aligned at a third of the
	// speed.
	if r.a.Length < largeFrom {
		lead := int(r.sums(0))
		buf := getBuffer(lead + n)
		defer putBuffer(buf)
		b := (*buf)[:lead+n]
		if err := r.pread(h, b, r.a.Offset-uint64(lead)); err != nil {
			return err
		}
		if err := r.checkAll(b[lead:], 0, b); err != nil {
			return err
		}
		if err := r.present(b[lead-backSize:]); err != nil {
			return err
		}
		return fn(b[lead+int(r.off) : lead+int(r.off+r.n) : lead+int(r.off+r.n)])
	}
	buf := getBuffer(n + table)
	defer putBuffer(buf)
	b, sums := (*buf)[:n], (*buf)[n:n+table]
	if err := r.readBlocks(h, b, sums, from); err != nil {
		return err
	}
	return fn(b[r.off-from : r.off-from+r.n : r.off-from+r.n])
}

// readBlocks fills b with blocks from byte from of the payload on, and sums
// with theirs, and compares them.
func (r *part) readBlocks(h *handle, b, sums []byte, from uint64) error {
	if err := r.pread(h, sums, r.a.Offset-r.sums(from)); err != nil {
		return err
	}
	if err := r.pread(h, b, r.a.Offset+from); err != nil {
		return err
	}
	if err := r.checkAll(b, from, sums); err != nil || !r.zero {
		return err
	}
	var back [backSize]byte
	if err := r.pread(h, back[:], r.a.Offset-backSize); err != nil {
		return err
	}
	return r.present(back[:])
}

// pread fills b from a logical offset.
func (r *part) pread(h *handle, b []byte, off uint64) error {
	base, err := r.base(h)
	if err != nil {
		return err
	}
	n, err := readAt(h.f, b, base+off-r.a.Offset)
	if err == io.EOF {
		return r.p.corrupt(off+uint64(n), uint64(len(b)-n), "behind the end of the file")
	}
	if err != nil {
		return r.p.corrupt(off, uint64(len(b)), err.Error())
	}
	return nil
}

// Buffers are pooled by powers of two up to maxPooled.
const (
	minPooled = 12 // bits: 4 KiB
	maxPooled = 24 // 16 MiB
)

var buffers [maxPooled + 1]sync.Pool

// getBuffer returns a buffer of at least n bytes.
func getBuffer(n int) *[]byte {
	class := max(bits.Len(uint(n-1)), minPooled)
	if class > maxPooled {
		b := make([]byte, n)
		return &b
	}
	if b, ok := buffers[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 1<<class)
	return &b
}

func putBuffer(b *[]byte) {
	if class := bits.Len(uint(len(*b) - 1)); class <= maxPooled && len(*b) == 1<<class {
		buffers[class].Put(b)
	}
}
