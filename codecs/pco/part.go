package pco

import (
	"math"
	"math/bits"
	"slices"
)

// part is one variable of a page on its way out.
type part struct {
	width   uint // of a latent, in bits
	latents []uint64
	moments [7]uint64
	order   int // number of moments
	bins    []bin
	log     uint     // of their table
	numbers []uint16 // of the bins of latents
	coder   coder

	sorted, spare, lowers []uint64
	groups                grouping
}

// prepare computes the differences of p.latents and chooses their coding.
func (p *part) prepare(level int) {
	p.moments = [7]uint64{}
	p.latents = differences(p.latents, p.moments[:p.order], p.width)
	p.sorted = append(p.sorted[:0], p.latents...)
	p.sort()
	p.chooseBins(min(level, maxBinsLog))
	p.numberBins()
	p.coder.encode(p.numbers, p.bins, p.log)
}

func (p *part) sort() {
	p.spare = resize(p.spare, len(p.sorted))
	sortUint64(p.sorted, p.spare)
}

// guess estimates the bits of a sample, which consists of pieces, and the order
// of differences: order, or the best one if that is Auto. It overwrites
// p.sorted.
func (p *part) guess(sample []uint64, piece, order, level int) (cost float64, best int) {
	width := p.width
	orders := []int{0, 1, 2, 3, 4, 5, 6, 7}
	if order != Auto {
		orders = []int{order}
	}
	cost = math.Inf(1)
	for _, o := range orders {
		p.sorted = p.sorted[:0]
		for from := 0; from < len(sample); from += piece {
			start := len(p.sorted)
			p.sorted = append(p.sorted, sample[from:from+piece]...)
			left := differences(p.sorted[start:], p.moments[:o], width)
			p.sorted = p.sorted[:start+len(left)]
		}
		p.sort()
		p.groups.cut(p.sorted, 1<<level)
		// Each order costs a latent at the start of the page.
		if c := p.groups.join(p.sorted, width) + float64(o)*float64(width); c < cost {
			cost, best = c, o
		} else if o > best+1 {
			break
		}
	}
	return cost, best
}

// numberBins sets p.numbers to the bins of the latents.
func (p *part) numberBins() {
	p.numbers = resize(p.numbers, len(p.latents))
	if len(p.bins) <= 1 {
		clear(p.numbers)
		return
	}
	size := 1 << bits.Len(uint(len(p.bins)-1))
	p.lowers = resize(p.lowers, size)
	for i := range p.lowers {
		p.lowers[i] = math.MaxUint64
		if i < len(p.bins) {
			p.lowers[i] = p.bins[i].lower
		}
	}
	last := len(p.bins) - 1
	for i, l := range p.latents {
		at := 0
		for step := size / 2; step > 0; step /= 2 {
			// Without a jump, which would be mispredicted.
			_, less := bits.Sub64(l, p.lowers[at+step], 0)
			at += step & (int(less) - 1)
		}
		p.numbers[i] = uint16(min(at, last))
	}
}

// writeBins writes how the latents are coded.
func (p *part) writeBins(w *writer) {
	w.put(uint64(p.log), 4)
	w.put(uint64(len(p.bins)), 15)
	for _, b := range p.bins {
		w.put(uint64(b.weight-1), p.log)
		w.put(b.lower, p.width)
		w.put(uint64(b.width), uint(bits.Len(p.width)))
	}
}

// writeBatch writes the batch of latents from one on, if it is there.
func (p *part) writeBatch(w *writer, from int) {
	to := min(from+batchSize, len(p.latents))
	if len(p.bins) > 1 {
		for i := from; i < to; i++ {
			w.put(uint64(p.coder.values[i]), uint(p.coder.sizes[i]))
		}
	}
	for i := from; i < to; i++ {
		b := &p.bins[p.numbers[i]]
		w.put(p.latents[i]-b.lower, uint(b.width))
	}
}

// differences replaces latents by their differences, len(moments) times over,
// and returns the latents that are left; each time the first goes to moments.
func differences(latents, moments []uint64, width uint) []uint64 {
	if len(moments) == 0 {
		return latents
	}
	for o := range moments {
		if len(latents) == 0 {
			break
		}
		moments[o] = latents[0]
		for i := range latents[1:] {
			latents[i] = latents[i+1] - latents[i]
		}
		latents = latents[:len(latents)-1]
		moments[o] &= low(width)
	}
	center, mask := uint64(1)<<(width-1), low(width)
	for i, l := range latents {
		latents[i] = (l ^ center) & mask
	}
	return latents
}

// sortUint64 sorts a by its bytes, from the lowest on, and leaves out bytes that
// are the same in all numbers. It overwrites another slice of the same length.
func sortUint64(a, other []uint64) {
	if len(a) < 512 {
		slices.Sort(a)
		return
	}
	var diff uint64
	for _, v := range a {
		diff |= v ^ a[0]
	}
	src, dst := a, other
	for shift := uint(0); diff>>shift != 0; shift += 8 {
		if diff>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for _, v := range src {
			at[byte(v>>shift)]++
		}
		sum := 0
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, v := range src {
			b := byte(v >> shift)
			dst[at[b]] = v
			at[b]++
		}
		src, dst = dst, src
	}
	if &src[0] != &a[0] {
		copy(a, src)
	}
}
