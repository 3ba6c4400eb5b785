package txn

import (
	"bytes"
	"testing"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// FuzzRemote reads any bytes as roots and as a value of a session. What is read is printed as
// it was.
func FuzzRemote(f *testing.F) {
	root := Root{Name: digest.Of(nil), Height: 1, Size: 300, Entries: 9, Bytes: 99}
	f.Add(Roots{Start: root, Work: root, Life: 7}.AppendBinary(nil))
	f.Add(Roots{Life: 1}.AppendBinary(nil))
	f.Add(AppendValue(nil, &Value{Kind: tree.KindInline, Inline: []byte("x")}))
	f.Add(AppendValue(nil, &Value{Kind: tree.KindVirtual, Source: tree.Source{URL: "file:///x"}, Offset: 1, Length: 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseRoots(b); err == nil {
			again, err := ParseRoots(r.AppendBinary(nil))
			if err != nil || again != r {
				t.Errorf("%+v is read as %+v, %v", r, again, err)
			}
		}
		if v, err := ParseValue(b); err == nil {
			printed := AppendValue(nil, &v)
			again, err := ParseValue(printed)
			if err != nil || !bytes.Equal(AppendValue(nil, &again), printed) {
				t.Errorf("%+v is read as %+v, %v", v, again, err)
			}
		}
	})
}
