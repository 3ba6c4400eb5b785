package convert

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// FuzzFillAttribute reads any JSON as the _FillValue that xarray writes; what is
// written is read as the same.
func FuzzFillAttribute(f *testing.F) {
	for _, s := range []string{`"AAAAAAAA+H8="`, `"NaN"`, `1e300`, `-5`, `"x"`, `null`, `"AAA="`} {
		f.Add([]byte(s))
	}
	types := []dtype.Type{dtype.NewFloat(64), dtype.NewFloat(32), dtype.NewInt(16)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		for _, typ := range types {
			elem, ok := parseFillAttribute(typ, raw)
			if !ok {
				continue
			}
			text := fillAttributeV3(typ, elem)
			again, ok := parseFillAttribute(typ, text)
			if printed := fillAttributeV3(typ, again); !ok || len(elem) != typ.Size() || !bytes.Equal(printed, text) {
				t.Fatalf("%s as %v is %x, written as %s, read as %x", raw, typ, elem, text, again)
			}
		}
	})
}
