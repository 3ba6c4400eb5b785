package catalog

import (
	"encoding/binary"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// Pin keeps a version under a name.
type Pin struct {
	Name   string // the key
	Commit CommitID
	Time   time.Time
	Note   string
}

// Pins is the table of pins.
var Pins = Table[string, *Pin]{
	space: index.SpacePin,
	key:   func(name string) []byte { return []byte(name) },
	encode: func(p *Pin) (key, value []byte) {
		b := append([]byte{version}, p.Commit[:]...)
		b = binary.AppendVarint(b, p.Time.UnixNano())
		return []byte(p.Name), appendString(b, p.Note)
	},
	Decode: func(key, b []byte) (*Pin, error) {
		r := reader{b: b}
		r.version()
		p := &Pin{Name: string(key), Commit: r.id(), Time: r.time(), Note: r.str()}
		if err := r.end(); err != nil {
			return nil, Corrupt("pin %q: %v", key, err)
		}
		return p, nil
	},
}
