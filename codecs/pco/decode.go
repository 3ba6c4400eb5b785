package pco

import (
	"math"
	"slices"
	"sync"
)

// decoder is the state of decoding one file.
type decoder struct {
	r     reader
	major uint8
	chunk
	// extra are the distances of lookback.
	extra, primary, secondary variable
}

// Some 25 KiB, and the tables of tANS.
var decoderPool = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) variables() [3]*variable {
	return [3]*variable{&d.extra, &d.primary, &d.secondary}
}

// Decode appends the numbers in src, little-endian, to dst. They must be of type
// t, and no more than max bytes. Bytes after the end of the file are an error.
// On an error it returns dst unchanged.
//
// Errors are ErrCorrupt and ErrTooLarge. It is safe for concurrent use.
func Decode(dst, src []byte, t Type, max int64) ([]byte, error) {
	d := decoderPool.Get().(*decoder)
	d.r.reset(src)
	d.typ = t
	out, err := d.decode(dst, max)
	d.r.src = nil
	// A dictionary may be much larger than the rest.
	if cap(d.dict) > 1<<16 {
		d.dict = nil
	}
	for _, v := range d.variables() {
		if cap(v.past) > 1<<16 {
			v.past = nil
		}
	}
	decoderPool.Put(d)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (d *decoder) decode(dst []byte, room int64) ([]byte, error) {
	uniform, err := d.readHeader()
	if err != nil {
		return nil, err
	}
	room = min(room, int64(math.MaxInt-len(dst)))
	for {
		t := Type(d.r.bits(8))
		if err := d.r.check(); err != nil {
			return nil, err
		}
		if t == 0 {
			break
		}
		if t != d.typ || uniform != 0 && t != uniform {
			return nil, corrupt("numbers of %v, not %v", t, d.typ)
		}
		n := int(d.r.bits(24)) + 1
		size := int64(n) * int64(d.typ.Size())
		if room -= size; room < 0 {
			return nil, ErrTooLarge
		}
		if err := d.readChunk(); err != nil {
			return nil, err
		}
		start := len(dst)
		dst = slices.Grow(dst, int(size))[:start+int(size)]
		if err := d.readPage(dst[start:], n); err != nil {
			return nil, err
		}
	}
	if d.r.left() > 0 {
		return nil, corrupt("%d bytes behind the end", d.r.left()/8)
	}
	return dst, nil
}

// readHeader reads up to the first chunk and returns the type that all chunks
// have to have, or 0.
func (d *decoder) readHeader() (Type, error) {
	r := &d.r
	for i := range len(magic) {
		if byte(r.bits(8)) != magic[i] {
			return 0, corrupt("no %q at the start", magic)
		}
	}
	var uniform Type
	// The first versions have no number of their own for the file.
	d.major = uint8(r.bits(8))
	if standalone := d.major; standalone >= 2 {
		if standalone > standaloneMax {
			return 0, corrupt("file version %d is not known", standalone)
		}
		if standalone >= 3 {
			uniform = Type(r.bits(8))
		}
		// The number of numbers, only a hint.
		r.bits(uint(r.bits(6)) + 1)
		if err := r.align(); err != nil {
			return 0, err
		}
		d.major = uint8(r.bits(8))
	}
	if d.major > majorMax {
		return 0, corrupt("format version %d is not known", d.major)
	}
	if d.major >= 4 {
		r.bits(8) // minor version: its features are marked in the chunks
	}
	return uniform, r.check()
}

// readPage reads the n numbers of a chunk into dst.
func (d *decoder) readPage(dst []byte, n int) error {
	r, c := &d.r, &d.chunk
	for _, v := range d.variables() {
		if v.used {
			if err := v.readPage(r, c, n); err != nil {
				return err
			}
		}
	}
	if err := r.align(); err != nil {
		return err
	}
	size := d.typ.Size()
	for left := n; left > 0; {
		batch := min(left, batchSize)
		for _, v := range d.variables() {
			if !v.used {
				continue
			}
			stored := v.stored
			if v == &d.extra {
				stored = d.primary.stored
			}
			known := min(batch, max(left-stored, 0))
			if err := v.read(r, known); err != nil {
				return err
			}
			if err := v.undo(c, d.extra.latents[:], known, batch); err != nil {
				return err
			}
		}
		if err := d.join(batch); err != nil {
			return err
		}
		store(dst[(n-left)*size:], d.primary.latents[:batch], d.typ)
		left -= batch
	}
	return r.align()
}
