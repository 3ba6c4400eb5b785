//go:build !amd64 || noasm

package lz4

// encodeArch has nothing better than plain Go.
func (e *Encoder) encodeArch(*writer, int) (done, ok bool) { return false, false }
