package pco

import (
	"math"
	"math/bits"
	"slices"
)

// maxBinsLog bounds the number of bins, and the size of their table.
const maxBinsLog = 10

// grouping is a cut of sorted latents into groups, and the cheapest way to join
// neighbours to bins.
type grouping struct {
	ends []int     // where a group ends
	cost []float64 // bits of the groups up to one, at best
	from []int     // the first group of the last bin then
}

// chooseBins sets bins to the bins for p.sorted, of about 1<<level groups, and
// log to the base-2 logarithm of the size of their table.
func (p *part) chooseBins(level int) {
	p.bins, p.log = p.bins[:0], 0
	if len(p.sorted) == 0 {
		return
	}
	g := &p.groups
	g.cut(p.sorted, 1<<level)
	g.join(p.sorted, p.width)
	for end := len(g.ends); end > 0; {
		from := g.from[end-1]
		start, stop := g.start(from), g.ends[end-1]
		p.bins = append(p.bins, bin{
			lower:  p.sorted[start],
			weight: uint32(stop - start),
			width:  uint8(bits.Len64(p.sorted[stop-1] - p.sorted[start])),
		})
		end = from
	}
	slices.Reverse(p.bins)
	if len(p.bins) == 1 {
		p.bins[0].weight = 1
		return
	}
	p.log = tableLog(len(p.bins))
	scaleWeights(p.bins, len(p.sorted), p.log)
}

// tableLog returns the log of the table for n bins: large enough for weights to
// be precise, and small enough for a cache.
func tableLog(n int) uint {
	least := uint(bits.Len(uint(n - 1)))
	return min(least+4, max(least+2, 10))
}

func (g *grouping) start(group int) int {
	if group == 0 {
		return 0
	}
	return g.ends[group-1]
}

// cut makes groups of sorted, about n and of about the same size. Equal latents
// stay together, and are a group of their own if they are many.
func (g *grouping) cut(sorted []uint64, n int) {
	g.ends = g.ends[:0]
	last := 0
	add := func(end int) {
		if end > last {
			g.ends = append(g.ends, end)
			last = end
		}
	}
	for i := 1; i < n; i++ {
		at := int(int64(i) * int64(len(sorted)) / int64(n))
		if at <= last {
			continue
		}
		l := sorted[at]
		first, _ := slices.BinarySearch(sorted[last:at], l)
		first += last
		add(first)
		if first < at {
			past := at + 1
			for past < len(sorted) && sorted[past] == l {
				past++
			}
			add(past)
		}
	}
	add(len(sorted))
}

// join finds the cheapest bins and returns their size in bits, with the latents.
func (g *grouping) join(sorted []uint64, width uint) float64 {
	if len(sorted) == 0 {
		return 0
	}
	all := log2(len(sorted))
	g.cost, g.from = resize(g.cost, len(g.ends)), resize(g.from, len(g.ends))
	describe := float64(width) + 20
	for j, end := range g.ends {
		upper := sorted[end-1]
		best := math.Inf(1)
		for i := j; i >= 0; i-- {
			start := g.start(i)
			cost := describe + float64(end-start)*(float64(bits.Len64(upper-sorted[start]))+all-log2(end-start))
			if i > 0 {
				cost += g.cost[i-1]
			}
			if cost < best {
				best, g.from[j] = cost, i
			}
		}
		g.cost[j] = best
	}
	return g.cost[len(g.ends)-1]
}

// logs are the logarithms of 1 to 2, in steps.
var logs = func() (t [1 << 8]float64) {
	for i := range t {
		t[i] = math.Log2(1 + (float64(i)+0.5)/float64(len(t)))
	}
	return t
}()

// log2 returns about the logarithm of n > 0, to some thousandths.
func log2(n int) float64 {
	e := bits.Len(uint(n)) - 1
	return float64(e) + logs[uint8(uint64(n)<<8>>e)]
}

// scaleWeights turns counts, which sum to n, into weights that sum to 1<<log;
// none becomes 0.
func scaleWeights(binList []bin, n int, log uint) {
	size := uint64(1) << log
	counts := make([]uint32, len(binList))
	sum := 0
	for i := range binList {
		b := &binList[i]
		counts[i] = b.weight
		b.weight = uint32(max((uint64(b.weight)*size+uint64(n)/2)/uint64(n), 1))
		sum += int(b.weight)
	}
	// The difference to 1<<log is distributed, one by one, where it costs least.
	for sum != int(size) {
		step := sign(int(size) - sum)
		best, at := math.Inf(-1), 0
		for i, b := range binList {
			if step < 0 && b.weight == 1 {
				continue
			}
			// The bits that the bin's latents gain, estimated by the derivative.
			gain := float64(step) * float64(counts[i]) / float64(b.weight)
			if gain > best {
				best, at = gain, i
			}
		}
		binList[at].weight = uint32(int(binList[at].weight) + step)
		sum += step
	}
}

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}
