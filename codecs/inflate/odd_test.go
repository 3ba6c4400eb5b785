package inflate

import (
	"math/bits"
	"math/rand/v2"
)

// bitWriter writes a deflate stream bit by bit.
type bitWriter struct {
	out  []byte
	bits uint
	made int // bytes that the stream decodes to
}

func (w *bitWriter) put(v uint64, n int) {
	for i := range n {
		if w.bits%8 == 0 {
			w.out = append(w.out, 0)
		}
		w.out[len(w.out)-1] |= byte(v>>i&1) << (w.bits % 8)
		w.bits++
	}
}

// symbol writes the canonical code of s among the given lengths, or nothing if
// it has none.
func (w *bitWriter) symbol(lens []int, s int) {
	n := lens[s]
	if n == 0 {
		return
	}
	code := 0
	for t, m := range lens {
		if m != 0 && (m < n || m == n && t < s) {
			code += 1 << (15 - m)
		}
	}
	w.put(uint64(bits.Reverse16(uint16(code>>(15-n)))>>(16-n)), n)
}

// randomLens returns a complete code of n symbols, some of which have no code.
func randomLens(r *rand.Rand, n, longest int) []int {
	lens := make([]int, n)
	leaves := []int{1, 1}
	for len(leaves) < 2+r.IntN(n-1) {
		// Splitting long codes more often than short ones makes the code deep.
		i := len(leaves) - 1 - r.IntN(min(len(leaves), 1+r.IntN(6)))
		if leaves[i] == longest {
			i = r.IntN(len(leaves))
			if leaves[i] == longest {
				break
			}
		}
		leaves[i]++
		leaves = append(leaves, leaves[i])
	}
	for i, s := range r.Perm(n)[:len(leaves)] {
		lens[s] = leaves[i]
	}
	return lens
}

// oddStream returns a stream of dynamic blocks with random codes. Many are
// good; others end early or use what does not exist.
func oddStream(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 77))
	w := &bitWriter{}
	for blocks := 1 + r.IntN(3); blocks > 0; blocks-- {
		final := uint64(0)
		if blocks == 1 {
			final = 1
		}
		w.put(final, 1)
		if r.IntN(5) == 0 {
			w.put(1, 2)
			lens := make([]int, maxLit)
			for s := range lens {
				lens[s] = [...]int{8, 9, 7, 8}[b2i(s > 143)+b2i(s > 255)+b2i(s > 279)]
			}
			dists := make([]int, maxDist)
			for s := range dists {
				dists[s] = 5
			}
			w.tokens(r, lens, dists, usableLit+2*b2i(r.IntN(4) == 0), usableDis+2*b2i(r.IntN(4) == 0))
			continue
		}
		w.put(2, 2)
		lits, dists := randomLens(r, 257+r.IntN(30), 15), randomLens(r, 2+r.IntN(29), 15)
		switch r.IntN(6) {
		case 0: // no distances
			dists = []int{0}
		case 1: // a single one
			dists = make([]int, 1+r.IntN(30))
			dists[r.IntN(len(dists))] = 1
		case 2: // sometimes not complete
			lits[r.IntN(len(lits))] = r.IntN(16)
		}
		if lits[256] == 0 && r.IntN(8) != 0 {
			for s, n := range lits {
				if n != 0 {
					lits[s], lits[256] = 0, n
					break
				}
			}
		}
		w.put(uint64(len(lits)-257), 5)
		w.put(uint64(len(dists)-1), 5)
		w.put(15, 4)
		// Lengths 0 to 15 and the three repeats: 19 codes, of 4 and 5 bits.
		clens := make([]int, maxClen)
		for s := range clens {
			clens[s] = 4 + b2i(s >= 13)
		}
		for _, s := range clenOrder {
			w.put(uint64(clens[s]), 3)
		}
		for _, n := range append(append([]int(nil), lits...), dists...) {
			w.symbol(clens, n)
		}
		w.tokens(r, lits, dists, len(lits), len(dists))
	}
	if r.IntN(4) == 0 {
		w.out = w.out[:r.IntN(len(w.out))+1]
	}
	return w.out
}

// tokens writes literals and matches and the end of the block. Now and then a
// match reaches beyond the start.
func (w *bitWriter) tokens(r *rand.Rand, lits, dists []int, nLits, nDists int) {
	made := w.made
	for range r.IntN(2000) {
		s := r.IntN(256)
		if made > 3 && r.IntN(3) == 0 && nLits > 257 {
			s = 257 + r.IntN(nLits-257)
		}
		if lits[s] == 0 {
			continue
		}
		if s < 256 {
			w.symbol(lits, s)
			made++
			continue
		}
		var near []int
		for d := range nDists {
			if dists[d] != 0 && (d >= usableDis || int(distBase[d]) <= made || r.IntN(2000) == 0) {
				near = append(near, d)
			}
		}
		if len(near) == 0 {
			continue
		}
		w.symbol(lits, s)
		if s < usableLit {
			extra := r.Uint64() & (1<<lengthExtra[s-257] - 1)
			w.put(extra, int(lengthExtra[s-257]))
			made += int(lengthBase[s-257]) + int(extra)
		}
		d := near[r.IntN(len(near))]
		w.symbol(dists, d)
		if d < usableDis {
			extra := r.Uint64() & (1<<distExtra[d] - 1)
			if int(distBase[d])+int(extra) > made {
				extra = 0
			}
			w.put(extra, int(distExtra[d]))
		}
	}
	w.symbol(lits, 256)
	w.made = made
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
