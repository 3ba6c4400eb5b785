package codecs

import "github.com/zarrdb/zarrdb/zarr/dtype"

type word struct {
	Offset, Size, Count int
	Order               dtype.Order
}

func wordsOf(t dtype.Type) []word { return appendWords(nil, t, 0) }

func appendWords(ws []word, t dtype.Type, off int) []word {
	switch t.Kind() {
	case dtype.Int, dtype.Uint, dtype.Float, dtype.Datetime, dtype.Timedelta:
		return append(ws, word{off, t.Size(), 1, t.Order()})
	case dtype.Complex:
		return append(ws, word{off, t.Size() / 2, 2, t.Order()})
	case dtype.FixedUTF32:
		return append(ws, word{off, 4, t.Size() / 4, t.Order()})
	case dtype.Struct:
		for _, f := range t.Fields() {
			ws = appendWords(ws, f.Type, off+f.Offset)
		}
	case dtype.Subarray:
		e, shape := t.Elem()
		n := 1
		for _, s := range shape {
			n *= s
		}
		for i := range n {
			ws = appendWords(ws, e, off+i*e.Size())
		}
	}
	return ws
}
