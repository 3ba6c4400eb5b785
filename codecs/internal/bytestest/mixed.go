package bytestest

import (
	"bytes"
	"math/rand/v2"
)

// Mixed returns n new bytes that follow from r: runs, noise of some bits, and
// copies of earlier bytes, each of a random length up to 1<<log, log > 0.
func Mixed(r *rand.Rand, n, log int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		k := 1 + r.IntN(1<<r.IntN(log))
		switch r.IntN(4) {
		case 0:
			b = append(b, bytes.Repeat([]byte{byte(r.Uint32())}, k)...)
		case 1:
			mask := byte(1<<r.IntN(9) - 1)
			for range k {
				b = append(b, byte(r.Uint32())&mask)
			}
		default:
			from := r.IntN(len(b) + 1)
			for i := range k {
				if from+i >= len(b) {
					break
				}
				b = append(b, b[from+i])
			}
		}
	}
	return b[:n]
}
