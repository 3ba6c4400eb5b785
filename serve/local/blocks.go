package local

import (
	"fmt"
	"os"
	"sync"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A block is memory of a client that stays mapped on both sides, so that values cost
// neither a map nor fresh pages:
//
//	set, block 3, descriptor ──▶ add ──▶ map, read the value from it
//	set, block 3             ──▶ use ──▶      read the value from it
//	forget, block 3          ──▶ forget: unmapped when no request uses it

// A client has at most so many blocks, and so many bytes in them: their pages are memory
// of this process too. Other users have less.
const (
	maxBlocks       = 64
	ownBlockBytes   = 4 << 30
	otherBlockBytes = 256 << 20
)

func maxBlockBytes(who *serve.Principal) int64 {
	if who.Admin {
		return ownBlockBytes
	}
	return otherBlockBytes
}

// blocks are the blocks of a connection, by the numbers that the client gave them.
type blocks struct {
	limit int64 // bytes

	mu    sync.Mutex
	known map[uint32]*block
	bytes int64
}

type block struct {
	b         []byte
	users     int
	forgotten bool
}

// use returns the block of a number until give is called; f is its memory, or nil if
// the block is known.
func (s *blocks) use(number uint32, f *os.File) (*block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[number]
	switch {
	case k == nil && f == nil:
		return nil, fmt.Errorf("%w: block %d is not known; pass its descriptor", ErrRequest, number)
	case k != nil && f != nil:
		return nil, fmt.Errorf("%w: block %d is known already", ErrRequest, number)
	case k == nil:
		var err error
		if k, err = s.add(number, f); err != nil {
			return nil, fmt.Errorf("block %d: %w", number, err)
		}
	}
	k.users++
	return k, nil
}

// add maps a block. s.mu is held.
func (s *blocks) add(number uint32, f *os.File) (*block, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if len(s.known) >= maxBlocks || fi.Size() > s.limit-s.bytes {
		return nil, fmt.Errorf("%w: at most %d blocks with %d bytes are kept; forget others", ErrLimit, maxBlocks, s.limit)
	}
	b, err := mapSealed(f, fi.Size())
	if err != nil {
		return nil, err
	}
	if s.known == nil {
		s.known = map[uint32]*block{}
	}
	k := &block{b: b}
	s.known[number] = k
	s.bytes += int64(len(b))
	return k, nil
}

// give ends a use.
func (s *blocks) give(k *block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.users--
	s.end(k)
}

// forget unmaps a block as soon as no request uses it.
func (s *blocks) forget(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[number]; k != nil {
		delete(s.known, number)
		k.forgotten = true
		s.end(k)
	}
}

// close forgets all blocks.
func (s *blocks) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.known {
		k.forgotten = true
		s.end(k)
	}
	s.known = nil
}

func (s *blocks) end(k *block) {
	if k.forgotten && k.users == 0 {
		s.bytes -= int64(len(k.b))
		_ = mmap.Unmap(k.b)
	}
}

// span returns n bytes at off.
func (k *block) span(off, n int64) ([]byte, error) {
	if off < 0 || n > int64(len(k.b)) || off > int64(len(k.b))-n {
		return nil, fmt.Errorf("%w: the block has %d bytes, %d at %d are needed", ErrRequest, len(k.b), n, off)
	}
	return k.b[off : off+n], nil
}

// forget takes note that a client gives up a block.
func (c *conn) forget(f *wire.Frame) {
	c.drop(f)
	var in wire.Forget
	if wire.ParseJSON(f.Op, f.Meta, &in) == nil {
		c.blocks.forget(in.Block)
	}
}
