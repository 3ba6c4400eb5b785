//go:build amd64 && !noasm

package kernels

// eachArch runs f with every set of instructions that this processor has.
func eachArch(f func(arch string)) {
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
		f(a.name)
	}
}
