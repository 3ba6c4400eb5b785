package lzma

// Bit models are adaptive probabilities, of 11 bits, that the next bit is 0.
const (
	modelBits = 11
	modelHalf = 1 << (modelBits - 1)
	moveBits  = 5

	states     = 12 // what the last few symbols were
	posStates  = 16 // at most, by the position in the output
	lenStates  = 4  // of distances, by the length of the match
	firstLen   = 2
	alignBits  = 4
	endSlots   = 14 // distances from this slot on have bits without a model
	maxLitBits = 4  // lc + lp of LZMA2
)

// Props are the properties of an LZMA stream: how many bits of the last byte
// (LC) and of the position (LP) a literal depends on, and of the position (PB)
// all else.
type Props struct{ LC, LP, PB int }

// DefaultProps are what encoders use unless told otherwise.
var DefaultProps = Props{LC: 3, LP: 0, PB: 2}

// propsOf returns the properties that a byte encodes.
func propsOf(b byte) (Props, bool) {
	p := Props{LC: int(b % 9), LP: int(b / 9 % 5), PB: int(b / 45)}
	return p, p.PB <= 4
}

// Valid reports whether a stream can have such properties.
func (p Props) Valid() bool {
	return p.LC >= 0 && p.LC <= 8 && p.LP >= 0 && p.LP <= 4 && p.PB >= 0 && p.PB <= 4
}

// model is all that adapts, and what of the past it depends on.
type model struct {
	props Props
	state int
	rep   [4]uint32 // the last distances, less one

	isMatch    [states][posStates]uint16
	isRep      [states]uint16
	isRep0     [states]uint16
	isRep1     [states]uint16
	isRep2     [states]uint16
	isRep0Long [states][posStates]uint16
	slot       [lenStates][64]uint16
	special    [128]uint16 // distances of the slots 4 to 13
	align      [1 << alignBits]uint16
	length     lengths
	repLength  lengths
	literal    []uint16
}

type lengths struct {
	choice   [2]uint16
	low, mid [posStates][8]uint16
	high     [256]uint16
}

// reset makes everything equally likely.
func (m *model) reset(p Props) {
	m.props, m.state, m.rep = p, 0, [4]uint32{}
	for i := range m.isMatch {
		half(m.isMatch[i][:])
		half(m.isRep0Long[i][:])
	}
	half(m.isRep[:])
	half(m.isRep0[:])
	half(m.isRep1[:])
	half(m.isRep2[:])
	for i := range m.slot {
		half(m.slot[i][:])
	}
	half(m.special[:])
	half(m.align[:])
	m.length.reset()
	m.repLength.reset()
	n := 0x300 << (p.LC + p.LP)
	if cap(m.literal) < n {
		m.literal = make([]uint16, n)
	}
	m.literal = m.literal[:n]
	half(m.literal)
}

func (l *lengths) reset() {
	half(l.choice[:])
	for i := range l.low {
		half(l.low[i][:])
		half(l.mid[i][:])
	}
	half(l.high[:])
}

func half(p []uint16) {
	for i := range p {
		p[i] = modelHalf
	}
}
