//go:build !amd64 || noasm

package kernels

// Without assembly these do nothing, and the generic twins do all elements.

func shuffleArch(dst, src []byte, size, stride, n int) int          { return 0 }
func unshuffleArch(dst, src []byte, size, stride, n int) int        { return 0 }
func bitsToBytesArch(dst, src []byte, planes, stride, n int) int    { return 0 }
func bytesToBitsArch(dst, src []byte, planes, stride, n int) int    { return 0 }
func swapArch(dst, src []byte, size int) int                        { return 0 }
func adlerArch(a, b uint32, p []byte) (newA, newB uint32, done int) { return a, b, 0 }
