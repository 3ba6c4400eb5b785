package zipkv

import (
	"archive/zip"
	"bytes"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// The .NET Framework stored backslashes in names, which unzip takes for slashes where
// the system is one that has them. Elsewhere a backslash is part of a name, which no
// store can have as a key.
func TestBackslashesOfWindows(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range []struct {
		name string
		host uint16
	}{{`g\`, 0}, {`g\a\0.0`, 0}, {`g\a\.zarray`, 10}, {"g/.zgroup", 0}, {`on\unix`, 3}, {`both/of\them`, 0}, {`..\out`, 0}} {
		f := must.Get(w.CreateHeader(&zip.FileHeader{Name: m.name, CreatorVersion: m.host << 8, Method: zip.Store}))(t)
		if _, err := f.Write([]byte(m.name)); err != nil && m.name != `g\` {
			t.Fatal(err)
		}
	}
	must.Do(t, w.Close())
	r := must.Get(Open(ctx, kv.Bytes(b.Bytes())))(t)
	keys, err := kv.Keys(ctx, r, "")
	if want := []string{"g/.zgroup", "g/a/.zarray", "g/a/0.0"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("keys %q, %v, want %q", keys, err, want)
	}
	if got, err := r.Get(ctx, "g/a/0.0", kv.All()); err != nil || string(got) != `g\a\0.0` {
		t.Errorf("%q, %v", got, err)
	}
	if want := []string{`on\unix`, `both/of\them`, "../out"}; !slices.Equal(r.Refused(), want) {
		t.Errorf("refused %q, want %q", r.Refused(), want)
	}
}
