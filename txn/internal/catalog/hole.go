package catalog

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Hole is a payload that versions name and that is known to be damaged here: a copy was
// made of a damaged database, or a repair found no right bytes. That a record is there
// proves nothing: the payload may have been healed since.
type Hole struct {
	pack.Address
	Sum digest.Sum // of the right bytes
}

// Holes is the table of known holes.
var Holes = Table[pack.Address, Hole]{
	space: index.SpaceHole,
	key:   holeKey,
	encode: func(h Hole) (key, value []byte) {
		b := binary.AppendUvarint([]byte{version}, h.Length)
		return holeKey(h.Address), append(b, h.Sum[:]...)
	},
	Decode: decodeHole,
}

func holeKey(a pack.Address) []byte { return binary.BigEndian.AppendUint64(a.Pack[:], a.Offset) }

func decodeHole(key, b []byte) (h Hole, err error) {
	if len(key) != len(h.Pack)+8 {
		return h, Corrupt("hole: key %x", key)
	}
	r := reader{b: b}
	r.version()
	h.Pack, h.Offset, h.Length = pack.ID(key), binary.BigEndian.Uint64(key[len(h.Pack):]), r.uvarint()
	h.Sum = digest.Sum(r.id())
	if err := r.end(); err != nil {
		return h, Corrupt("hole in pack %v at %d: %v", h.Pack, h.Offset, err)
	}
	return h, nil
}

// KnownHoles reads all holes.
func KnownHoles(in Scanner) (map[pack.Address]digest.Sum, error) {
	out := map[pack.Address]digest.Sum{}
	for h, err := range Holes.All(in) {
		if err != nil {
			return nil, err
		}
		out[h.Address] = h.Sum
	}
	return out, nil
}

// AddressOf returns where the payload of a value lies.
func AddressOf(v tree.Value) pack.Address {
	return pack.Address{Pack: pack.ID(v.Pack), Offset: v.Offset, Length: v.Length}
}
