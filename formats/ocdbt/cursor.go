package ocdbt

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/formats"
)

// cursor reads a body from front to back. After its first error it returns zeros.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = formats.Invalid(format, args...)
		c.b = nil
	}
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("it ends too early, or a number has more than 64 bits")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// column reads the same field of n things.
func (c *cursor) column(n int, field func(i int) *uint64) {
	for i := range n {
		*field(i) = c.uvarint()
	}
}

// skipStatistics skips the counts that a writer made of n trees (index.rst, "num_keys[i]"
// and following), which nothing here trusts.
func (c *cursor) skipStatistics(n int) {
	for range 3 * n {
		c.uvarint()
	}
}

// atMost reads a number that must not be greater.
func (c *cursor) atMost(most uint64, what string) uint64 {
	v := c.uvarint()
	if v > most {
		c.fail("%s is %d, more than %d", what, v, most)
		return 0
	}
	return v
}

// count reads a number of things that take at least each bytes in the rest.
func (c *cursor) count(most uint64, each int, what string) int {
	return int(c.atMost(min(most, uint64(len(c.b)/each)), what))
}

func (c *cursor) bytes(n int) []byte {
	if n > len(c.b) {
		c.fail("it ends too early")
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// end makes sure that everything was read.
func (c *cursor) end() error {
	if len(c.b) > 0 {
		c.fail("%d bytes too many", len(c.b))
	}
	return c.err
}
