package pack

import (
	"hash/crc32"
	"testing"
)

// The sum of a block does not depend on how its pages are fetched.
func TestBlockSum(t *testing.T) {
	for _, n := range []int{0, 1, 63, 65, pageSize - 1, pageSize, pageSize + 1, 3*pageSize + 5, blockSize} {
		b := noise[7 : 7+n : 7+n]
		if got, want := blockSum(5, b, 0), crc32.Checksum(b, castagnoli)^5; got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}
