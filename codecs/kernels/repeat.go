package kernels

import "bytes"

// IsRepeat reports whether b is pattern repeated, the last one perhaps cut
// short. An empty b repeats every pattern; only an empty b repeats an empty
// pattern. It detects chunks of only the fill value, runs at memory speed and
// stops at the first difference.
func IsRepeat(b, pattern []byte) bool {
	if len(b) <= len(pattern) {
		return bytes.HasPrefix(pattern, b)
	}
	n := len(pattern)
	// A sequence has period n exactly if it equals itself moved by n. A short
	// piece first: most chunks differ early, and the long compare reads twice.
	if n == 0 || !bytes.Equal(b[:n], pattern) {
		return false
	}
	if head := n + 64; len(b) > head && !bytes.Equal(b[n:head], b[:head-n]) {
		return false
	}
	return bytes.Equal(b[n:], b[:len(b)-n])
}
