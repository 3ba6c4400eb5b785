// Package digest names bytes by their content.
//
//	bytes ──BLAKE3──▶ 32 bytes ──first 20──▶ Sum
//
// Pages, payloads and commits are named by it. Twenty bytes keep index pages
// small, and a collision still takes 2^80 work to build.
package digest

import (
	"encoding/hex"
	"sync"

	"github.com/zeebo/blake3"
)

// Size is the length of a Sum in bytes.
const Size = 20

// Sum is the first 20 bytes of the BLAKE3 hash of some bytes.
type Sum [Size]byte

// chunk is what BLAKE3 hashes in one piece.
const chunk = 1024

var hashers = sync.Pool{New: func() any { return blake3.New() }}

// Of returns the sum of b. It does not allocate; safe for concurrent use.
func Of(b []byte) Sum {
	if len(b) <= chunk {
		full := blake3.Sum256(b)
		return Sum(full[:Size])
	}
	// A hasher is 11 KiB, which take longer to clear than a chunk to hash.
	h := hashers.Get().(*blake3.Hasher)
	defer hashers.Put(h)
	h.Reset()
	_, _ = h.Write(b)
	var full [32]byte
	h.Sum(full[:0])
	return Sum(full[:Size])
}

// String prints the sum as 40 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s is the zero Sum, which no bytes are known to have.
func (s Sum) IsZero() bool { return s == Sum{} }
