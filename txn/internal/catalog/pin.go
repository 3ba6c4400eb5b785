package catalog

import (
	"encoding/binary"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Pin keeps a version and the places of its payloads: the packs that it names
// are not rewritten and no hole is made in them while the pin is there. Exports
// of references into packs need that, because others read them by file and
// offset.
type Pin struct {
	Name   string
	Commit CommitID
	Time   time.Time // when it was made
	Note   string    // what it is for
}

// Pins is the table of pins, by name.
var Pins = Table[string, Pin]{
	space: index.SpacePin,
	key:   func(name string) []byte { return []byte(name) },
	encode: func(p Pin) (key, value []byte) {
		b := append([]byte{version}, p.Commit[:]...)
		b = binary.AppendVarint(b, p.Time.UnixNano())
		return []byte(p.Name), appendString(b, p.Note)
	},
	Decode: decodePin,
}

func decodePin(key, b []byte) (Pin, error) {
	r := reader{b: b}
	r.version()
	p := Pin{Name: string(key), Commit: r.id()}
	p.Time = r.time()
	p.Note = r.str()
	if err := r.end(); err != nil {
		return p, corrupt("pin %q: %v", key, err)
	}
	return p, nil
}
