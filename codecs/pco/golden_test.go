package pco

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"testing"
)

// typeNamed returns the type that numpy calls so.
func typeNamed(t testing.TB, name string) Type {
	t.Helper()
	for typ := Uint32; typ <= Int8; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatalf("no type %q", name)
	return 0
}

type golden struct {
	Name, Type, SHA256 string
	Size               int
	Data               []byte
}

func readGolden(t testing.TB) []golden {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/pcodec.json"))(t)
	var file struct{ Cases []golden }
	must.Do(t, json.Unmarshal(raw, &file))
	if len(file.Cases) < 150 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	return file.Cases
}

// TestGolden decodes what pcodec wrote.
func TestGolden(t *testing.T) {
	for _, g := range readGolden(t) {
		t.Run(g.Name, func(t *testing.T) {
			typ := typeNamed(t, g.Type)
			got := must.Get(Decode([]byte("before"), g.Data, typ, int64(g.Size)))(t)
			if string(got[:6]) != "before" || len(got) != 6+g.Size {
				t.Fatalf("%d bytes, want %d", len(got)-6, g.Size)
			}
			if sum := sha256.Sum256(got[6:]); hex.EncodeToString(sum[:]) != g.SHA256 {
				t.Fatal("other numbers")
			}
		})
	}
}
