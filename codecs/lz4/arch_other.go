//go:build !amd64 || noasm

package lz4

// encodeArch has nothing better than plain Go.
func (e *Encoder) encodeArch(*writer, int) (done, ok bool) { return false, false }

const (
	maxArch   = 0
	hasDecode = false
)

func decodeArch(_, _ []byte, di, si int) (newDi, newSi int) { return di, si }
