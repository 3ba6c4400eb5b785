package catalog

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// Packs is the table of packs: how far each is durable.
var Packs = Table[pack.ID, pack.Info]{
	space: index.SpacePack,
	key:   func(id pack.ID) []byte { return id[:] },
	encode: func(i pack.Info) (key, value []byte) {
		b := binary.AppendUvarint([]byte{version}, i.End)
		var flags byte
		if i.Sealed {
			flags |= 1
		}
		return i.ID[:], append(b, flags)
	},
	Decode: decodePack,
}

func decodePack(key, b []byte) (pack.Info, error) {
	if len(key) != len(pack.ID{}) {
		return pack.Info{}, Corrupt("pack table: key %x", key)
	}
	r := reader{b: b}
	r.version()
	i := pack.Info{ID: pack.ID(key), End: r.uvarint()}
	i.Sealed = r.bytes(1)[0]&1 != 0
	if err := r.end(); err != nil {
		return i, Corrupt("pack table: %v: %v", i.ID, err)
	}
	return i, nil
}
