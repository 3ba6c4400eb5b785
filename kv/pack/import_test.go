package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// sealedWith makes a store with payloads and seals its packs.
func sealedWith(t *testing.T, dir string, fs vfs.FS, sizes ...int) (*Store, []Address) {
	t.Helper()
	s := must.Get(Open(dir, &Options{FS: fs, Incarnation: [8]byte{1}, Writers: 1}))(t)
	t.Cleanup(func() { _ = s.Close() })
	var list []Address
	for i, n := range sizes {
		a := must.Get(s.Append(context.Background(), Owner{Key: []byte(fmt.Sprint(i))}, bytes.Repeat([]byte{byte(i + 1)}, n)))(t)
		list = append(list, a)
	}
	s.Seal(list[0].Pack)
	must.Get(s.Sync(context.Background()))(t)
	return s, list
}

func extentOf(a Address) Extent { return Extent{a.Offset, a.Offset + a.Length} }

func mustImport(t *testing.T, to, from *Store, need ...Address) Imported {
	t.Helper()
	var list []Extent
	for _, a := range need {
		list = append(list, extentOf(a))
	}
	info, n, err := to.Import(context.Background(), from, need[0].Pack, list, nil)
	must.Do(t, err)
	if last := need[len(need)-1]; info.End < last.Offset+last.Length {
		t.Fatalf("%+v ends before %+v", info, last)
	}
	for _, a := range need {
		must.Do(t, to.Verify(context.Background(), a, func([]byte) error { return nil }))
	}
	return n
}

func TestImport(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000, 70_000, 5, 0, 3000, 300_000, 600)
	fs := vfs.NewMem()
	open := func(table ...Info) *Store {
		t.Helper()
		s := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}, Table: table}))(t)
		return s
	}
	to := open()
	first := mustImport(t, to, from, all[1], all[4])
	if first.Equal != 0 || first.Written < 73_000 || first.Written > 77_000 {
		t.Errorf("%+v", first)
	}
	if again := mustImport(t, to, from, all[1], all[4]); again.Written != 0 || again.Equal != first.Written {
		t.Errorf("again: %+v", again)
	}
	if err := to.Verify(context.Background(), all[0], func([]byte) error { return nil }); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a payload that was not copied: %v", err)
	}
	table := to.Infos()
	must.Do(t, to.Close())
	// After a restart, and rewritten without the first payload, it takes more.
	to = open(table...)
	out, err := to.Reclaim(context.Background(), all[0].Pack, []Extent{extentOf(all[4])}, math.MaxUint64)
	if err != nil || !out.Rewritten {
		t.Fatalf("%+v, %v", out, err)
	}
	if rest := mustImport(t, to, from, all...); rest.Equal < 3000 || rest.Equal > 4000 {
		t.Errorf("all: %+v", rest)
	}
	table = to.Infos()
	must.Do(t, to.Close())
	to = open(table...)
	defer to.Close()
	if n := mustImport(t, to, from, all...); n.Written != 0 {
		t.Errorf("all again: %+v", n)
	}
	n := 0
	for rec, err := range to.Records(context.Background(), all[0].Pack, 0) {
		if err != nil || rec.Address != all[n] {
			t.Fatalf("record %d: %+v, %v", n, rec, err)
		}
		n++
	}
	if n != len(all) {
		t.Errorf("%d records of %d", n, len(all))
	}
}

// A file that a crash left without a header is made anew, one with another's
// bytes is refused.
func TestImportIntoWhatIsThere(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 100_000)
	name := "to/" + all[0].Pack.String() + packSuffix
	fs := vfs.NewMem()
	must.Do(t, fs.MkdirAll("to", 0o755))
	f := must.Get(fs.Create(name, vfs.WriteCategoryUnspecified))(t)
	f.Close()
	to := must.Get(Open("to", &Options{FS: fs, Incarnation: [8]byte{2}}))(t)
	mustImport(t, to, from, all...)
	to.Close()

	// The same name, other bytes: what grows is not written over.
	own := must.Get(Open("own", &Options{FS: fs, Incarnation: [8]byte{1}, Writers: 1}))(t)
	defer own.Close()
	a, err := own.Append(context.Background(), Owner{Key: []byte("0")}, make([]byte, 100_000))
	if err != nil || a != all[0] {
		t.Fatalf("%+v, %v", a, err)
	}
	must.Get(own.Sync(context.Background()))(t)
	if n := mustImport(t, own, from, a); n.Written != 0 {
		t.Errorf("over a pack that grows: %+v", n)
	}
	checkPayload(t, own, a, make([]byte, 100_000))
	if _, _, err := own.Import(context.Background(), from, ID{9}, nil, nil); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("of a pack that is not there: %v", err)
	}
}

// A file with a second name keeps its bytes: the store gets one of its own.
func TestImportLeavesLinksAlone(t *testing.T) {
	dir := t.TempDir()
	from, all := sealedWith(t, filepath.Join(dir, "from"), osfs.FS, 70_000, 70_000, 70_000)
	to := must.Get(Open(filepath.Join(dir, "to"), &Options{Incarnation: [8]byte{2}}))(t)
	defer to.Close()
	mustImport(t, to, from, all[0])
	second := filepath.Join(dir, "second")
	if err := os.Link(to.path(all[0].Pack), second); err != nil {
		t.Skip(err)
	}
	before := must.Get(os.ReadFile(second))(t)
	mustImport(t, to, from, all...)
	after, err := os.ReadFile(second)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the other name has other bytes, %v", err)
	}
}

func TestSubtract(t *testing.T) {
	for _, c := range []struct{ a, b, want []Extent }{
		{nil, nil, nil},
		{[]Extent{{0, 10}}, nil, []Extent{{0, 10}}},
		{[]Extent{{0, 10}}, []Extent{{0, 10}}, nil},
		{[]Extent{{0, 10}, {20, 30}}, []Extent{{5, 25}}, []Extent{{0, 5}, {25, 30}}},
		{[]Extent{{0, 100}}, []Extent{{10, 20}, {20, 30}, {50, 200}}, []Extent{{0, 10}, {30, 50}}},
		{[]Extent{{5, 6}, {8, 9}}, []Extent{{0, 5}, {9, 12}}, []Extent{{5, 6}, {8, 9}}},
	} {
		if got := Subtract(c.a, c.b); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v - %v = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
