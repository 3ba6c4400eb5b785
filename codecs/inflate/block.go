package inflate

const (
	maxMatch = 258

	// fastIn and fastOut bound the bytes that one round of the fast loop reads
	// and writes: two refills; three literals and a match, rounded up to the
	// width of the stores.
	fastIn  = 16
	fastOut = 3 + maxMatch + 32

	// fastRun bounds one call of the fast loop, because assembly cannot be
	// interrupted: some milliseconds.
	fastRun = 1 << 20
)

// Why the fast loop ended.
const (
	outOfRoom = iota
	blockEnd
	badLength
	badDist
	farDist
)

// block decodes symbols up to the end of the block.
func (d *decoder) block() error {
	for {
		if len(d.out)-d.at < fastOut && d.limit-d.at >= fastOut {
			if err := d.grow(fastOut); err != nil {
				return err
			}
		}
		if len(d.src)-d.pos >= fastIn && len(d.out)-d.at >= fastOut {
			d.lastIn = len(d.src) - fastIn
			d.lastOut = min(len(d.out)-fastOut, d.at+fastRun)
			switch fastLoop(d) {
			case outOfRoom:
				if d.at > d.lastOut {
					continue
				}
			case blockEnd:
				return nil
			case badLength:
				return d.corrupt("a length of no code")
			case badDist:
				return d.corrupt("a distance of no code")
			case farDist:
				return d.corrupt("a distance beyond the start")
			}
		}
		if done, err := d.symbol(); done || err != nil {
			return err
		}
	}
}

// symbol decodes one symbol with all checks, and reports whether it was the end
// of the block.
func (d *decoder) symbol() (done bool, err error) {
	d.refill()
	e, err := d.lookUp(d.lit[:], litBits)
	if err != nil {
		return false, err
	}
	switch {
	case e&literal != 0:
		if err := d.grow(1); err != nil {
			return false, err
		}
		d.skip(uint64(e & takeMask))
		d.out[d.at] = byte(e >> 8)
		d.at++
		return false, nil
	case e&^takeMask == endOfBlock:
		d.skip(uint64(e & takeMask))
		return true, nil
	case e&special != 0:
		return false, d.corrupt("a length of no code")
	}
	length := value(e, d.word)
	d.skip(uint64(e & takeMask))

	d.refill()
	e, err = d.lookUp(d.dist[:], distBits)
	if err != nil {
		return false, err
	}
	if e&special != 0 {
		return false, d.corrupt("a distance of no code")
	}
	dist := value(e, d.word)
	d.skip(uint64(e & takeMask))
	if dist > d.at-d.base {
		return false, d.corrupt("a distance beyond the start")
	}
	if err := d.grow(length); err != nil {
		return false, err
	}
	for range length {
		d.out[d.at] = d.out[d.at-dist]
		d.at++
	}
	return false, nil
}

// lookUp returns the entry of the next symbol, after checking that the stream
// has all its bits.
func (d *decoder) lookUp(table []uint32, tableBits uint64) (uint32, error) {
	e := table[d.word&(1<<tableBits-1)]
	if e&special != 0 {
		if start, mask := subtable(e); mask != 0 {
			if d.count < tableBits {
				return 0, d.truncated()
			}
			d.skip(tableBits)
			e = table[start+d.word&mask]
		}
	}
	if d.count < uint64(e&takeMask) {
		return 0, d.truncated()
	}
	return e, nil
}
