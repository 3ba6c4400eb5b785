// Package digest names bytes by their content.
//
//	bytes ──BLAKE3──▶ 32 bytes ──first 20──▶ Sum
//
// Pages, payloads and commits are named by it. Twenty bytes keep index pages
// small, and a collision still takes 2^80 work to build.
package digest

import (
	"encoding/hex"

	"github.com/zeebo/blake3"
)

// Size is the length of a Sum in bytes.
const Size = 20

// Sum is the first 20 bytes of the BLAKE3 hash of some bytes.
type Sum [Size]byte

// Of returns the sum of b. It does not allocate; safe for concurrent use.
func Of(b []byte) Sum {
	full := blake3.Sum256(b)
	return Sum(full[:Size])
}

// String prints the sum as 40 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s is the zero Sum, which no bytes are known to have.
func (s Sum) IsZero() bool { return s == Sum{} }
