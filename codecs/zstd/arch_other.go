//go:build !amd64 || noasm

package zstd

// searchArch has nothing better than plain Go.
func (e *Encoder) searchArch(src []byte, from int) (anchor int) { return e.searchGeneric(src, from) }

const hasReplay = false

// replayArch does no sequences.
func (r *replay) replayArch(int) int { return 0 }
