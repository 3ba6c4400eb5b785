//go:build amd64 && !noasm

package kernels

import "testing"

// eachArch runs f with every set of instructions that this processor has.
func eachArch(t *testing.T, f func(*testing.T)) {
	avx2, gfni := hasAVX2, hasGFNI
	defer func() { hasAVX2, hasGFNI = avx2, gfni }()
	for _, a := range []struct {
		name       string
		avx2, gfni bool
	}{{"gfni", true, true}, {"avx2", true, false}, {"generic", false, false}} {
		if a.avx2 && !avx2 || a.gfni && !gfni {
			continue
		}
		hasAVX2, hasGFNI = a.avx2, a.gfni
		t.Run(a.name, f)
	}
}
