package kernels

// Adler32 continues the Adler-32 checksum sum (1 to begin with) over p, as
// RFC 1950 section 9 defines it.
func Adler32(sum uint32, p []byte) uint32 {
	a, b := sum&0xffff, sum>>16
	for len(p) > 0 {
		// The longest run for which no 32-bit sum overflows before it is
		// reduced: 5552 bytes, rounded down to whole vectors.
		run := p[:min(len(p), adlerRun)]
		p = p[len(run):]
		var done int
		a, b, done = adlerArch(a, b, run)
		for _, c := range run[done:] {
			a += uint32(c)
			b += a
		}
		a %= adlerMod
		b %= adlerMod
	}
	return b<<16 | a
}

const (
	adlerMod = 65521
	adlerRun = 5536
)
