package object

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/internal/msgpack"
)

// packer writes MessagePack.
type packer struct {
	out    []byte
	single bool
}

func (e *packer) float(v float64) {
	if e.single {
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xca), math.Float32bits(float32(v)))
		return
	}
	bits := math.Float64bits(v)
	if v != v {
		bits = 0x7ff8 << 48 // the NaN of Python
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
			e.out = msgpack.AppendInt(e.out, v)
		} else if v, err := strconv.ParseUint(word, 10, 64); err == nil {
			e.out = msgpack.AppendUint(e.out, v)
		} else {
			// NaN and Infinity too; a number out of range becomes infinite.
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
	e.out = msgpack.AppendText(e.out, s)
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
	head := msgpack.AppendList
	if open == '{' {
		head = msgpack.AppendMap
	}
	e.out = slices.Insert(e.out, start, head(nil, n)...)
	return err
}
