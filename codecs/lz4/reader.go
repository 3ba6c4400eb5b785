package lz4

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
)

const window = 64 << 10 // how far back a match reaches

// NewReader returns a reader of the bytes that the block src decodes to. Its memory, 128 KiB, does
// not grow with the block. It reads src up to the end. Read returns the error of src, or one that
// says that the block is damaged; it does not bound the bytes that come. One goroutine at a time.
// See the description of the LZ4 block format, "Compressed block format".
func NewReader(src io.Reader) io.Reader {
	return &reader{src: bufio.NewReaderSize(src, window)}
}

type reader struct {
	src             *bufio.Reader
	past            [window]byte // a ring
	done            int          // bytes decoded
	literals, match int          // bytes to come of the sequence in hand
	distance, token int
	err             error
}

func (r *reader) Read(p []byte) (n int, err error) {
	for n < len(p) && r.err == nil {
		switch at := r.done % window; {
		case r.literals > 0:
			k, err := io.ReadFull(r.src, p[n:n+min(len(p)-n, r.literals, window-at)])
			copy(r.past[at:], p[n:n+k])
			n, r.done, r.literals = n+k, r.done+k, r.literals-k
			if err == io.EOF {
				err = errBlock
			}
			r.fail(err)
			if r.literals == 0 {
				r.fail(r.behindLiterals())
			}
		case r.match > 0:
			from := (r.done - r.distance) % window
			k := copy(p[n:], r.past[from:from+min(r.match, r.distance, window-from, window-at)])
			copy(r.past[at:], p[n:n+k])
			n, r.done, r.match = n+k, r.done+k, r.match-k
		default:
			r.fail(r.next())
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// fail keeps the first error. A block that ends within a sequence is damaged.
func (r *reader) fail(err error) {
	if err == io.ErrUnexpectedEOF {
		err = errBlock
	}
	if r.err == nil {
		r.err = err
	}
}

// next reads the token of a sequence. The error is io.EOF at the end of the block.
func (r *reader) next() error {
	token, err := r.src.ReadByte()
	if err != nil {
		return err
	}
	r.token = int(token)
	if r.literals, err = r.length(r.token >> 4); err == nil && r.literals == 0 {
		err = r.behindLiterals()
	}
	return err
}

// behindLiterals reads the match of a sequence, which the last has not.
func (r *reader) behindLiterals() error {
	if _, err := r.src.Peek(1); err != nil {
		if err == io.EOF && r.token&15 != 0 {
			err = errBlock
		}
		return err
	}
	var distance [2]byte
	_, err := io.ReadFull(r.src, distance[:])
	if err != nil {
		return err
	}
	r.distance = int(binary.LittleEndian.Uint16(distance[:]))
	if r.match, err = r.length(r.token & 15); err == nil && (r.distance == 0 || r.distance > r.done) {
		err = errBlock
	}
	r.match += minMatch
	return err
}

// length adds the bytes that belong to a length whose part in the token is n.
func (r *reader) length(n int) (int, error) {
	for more := n == 15; more; {
		b, err := r.src.ReadByte()
		if err != nil || n > math.MaxInt32-255 {
			return 0, errBlock
		}
		n += int(b)
		more = b == 255
	}
	return n, nil
}
