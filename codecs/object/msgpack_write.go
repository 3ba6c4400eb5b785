package object

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// packer writes MessagePack.
type packer struct {
	out    []byte
	single bool
}

// head writes the head of something of n parts: one byte up to small, else code
// and two bytes, or code+1 and four.
func (e *packer) head(fix byte, small int, code byte, n int) {
	switch {
	case n <= small:
		e.out = append(e.out, fix|byte(n))
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, code), uint16(n))
	default:
		e.out = binary.BigEndian.AppendUint32(append(e.out, code+1), uint32(n))
	}
}

func (e *packer) text(s string) {
	if len(s) > 31 && len(s) < 256 {
		e.out = append(e.out, 0xd9, byte(len(s)))
	} else {
		e.head(0xa0, 31, 0xda, len(s))
	}
	e.out = append(e.out, s...)
}

// int writes a whole number in the shortest form.
func (e *packer) int(v int64) {
	be := binary.BigEndian
	switch {
	case v >= 0:
		e.uint(uint64(v))
	case v >= -32:
		e.out = append(e.out, byte(v))
	case v >= math.MinInt8:
		e.out = append(e.out, 0xd0, byte(v))
	case v >= math.MinInt16:
		e.out = be.AppendUint16(append(e.out, 0xd1), uint16(v))
	case v >= math.MinInt32:
		e.out = be.AppendUint32(append(e.out, 0xd2), uint32(v))
	default:
		e.out = be.AppendUint64(append(e.out, 0xd3), uint64(v))
	}
}

func (e *packer) uint(v uint64) {
	be := binary.BigEndian
	switch {
	case v < 128:
		e.out = append(e.out, byte(v))
	case v <= math.MaxUint8:
		e.out = append(e.out, 0xcc, byte(v))
	case v <= math.MaxUint16:
		e.out = be.AppendUint16(append(e.out, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		e.out = be.AppendUint32(append(e.out, 0xce), uint32(v))
	default:
		e.out = be.AppendUint64(append(e.out, 0xcf), v)
	}
}

func (e *packer) float(v float64) {
	if e.single {
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xca), math.Float32bits(float32(v)))
		return
	}
	bits := math.Float64bits(v)
	if v != v {
		bits = 0x7ff8 << 48 // that of Python
	}
	e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcb), bits)
}

// value writes a JSON value, which is valid.
func (e *packer) value(p *jsonScanner) error {
	start := p.skipBlanks()
	if start == len(p.text) {
		return p.bad("no value")
	}
	switch open := p.text[start]; open {
	case '[', '{':
		return e.members(p, open)
	case '"':
		return e.string(p)
	}
	if err := p.value(0); err != nil {
		return err
	}
	switch word := string(p.text[start:p.pos]); word {
	case "null":
		e.out = append(e.out, 0xc0)
	case "false":
		e.out = append(e.out, 0xc2)
	case "true":
		e.out = append(e.out, 0xc3)
	default:
		if v, err := strconv.ParseInt(word, 10, 64); err == nil {
			e.int(v)
		} else if v, err := strconv.ParseUint(word, 10, 64); err == nil {
			e.uint(v)
		} else {
			// NaN and Infinity too; what is out of range becomes infinite.
			v, _ := strconv.ParseFloat(word, 64)
			e.float(v)
		}
	}
	return nil
}

func (e *packer) string(p *jsonScanner) error {
	start := p.pos
	if err := p.string(); err != nil {
		return err
	}
	var s string
	if err := json.Unmarshal(p.text[start:p.pos], &s); err != nil {
		return err
	}
	e.text(s)
	return nil
}

// members writes a list or an object.
func (e *packer) members(p *jsonScanner, open byte) error {
	start, n := len(e.out), 0
	err := p.each(open, func() error {
		n++
		if open == '{' {
			if err := p.name(func() error { return e.string(p) }); err != nil {
				return err
			}
		}
		return e.value(p)
	})
	// The head says how many, so it comes last.
	h := packer{}
	if open == '{' {
		h.head(0x80, 15, 0xde, n)
	} else {
		h.head(0x90, 15, 0xdc, n)
	}
	e.out = slices.Insert(e.out, start, h.out...)
	return err
}
