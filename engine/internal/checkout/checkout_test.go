package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// What happens to a file depends on the index, the version, the file and the choice, and a change is lost only by choice.
func TestDecide(t *testing.T) {
	entry := func(id byte) *Entry { return &Entry{Ref: kv.ID{id}} }
	want := func(id byte) *Want { return &Want{Ref: kv.ID{id}} }
	file := &File{}
	for i, c := range []struct {
		s                      Step
		same, equals, adopting bool
		choice                 Choice
		want                   Action
	}{
		{s: Step{Entry: entry(1), Want: want(1), File: file}, same: true, want: Stay},
		{s: Step{Entry: entry(1), Want: want(2), File: file}, same: true, want: Write},
		{s: Step{Entry: entry(1), File: file}, same: true, want: Remove},
		{s: Step{Want: want(1)}, same: true, want: Write},
		{s: Step{Want: want(1)}, same: true, adopting: true, choice: Keep, want: Take},
		{s: Step{Want: want(1), File: file}, equals: true, want: Adopt},
		{s: Step{Entry: entry(1), Want: want(2), File: file}, equals: true, want: Adopt},
		{s: Step{Entry: entry(1), Want: want(1), File: file}, want: Stay},
		{s: Step{Entry: entry(1), Want: want(1)}, want: Stay},
		{s: Step{Entry: entry(1)}, want: Nothing},
		{s: Step{File: file}, want: Nothing},
		{s: Step{Entry: entry(1), Want: want(2), File: file}, want: Lost},
		{s: Step{Entry: entry(1), Want: want(2)}, want: Lost},
		{s: Step{Entry: entry(1), File: file}, want: Lost},
		{s: Step{Want: want(2), File: file}, want: Lost},
		{s: Step{Entry: entry(1), Want: want(2), File: file}, choice: Keep, want: Take},
		{s: Step{Entry: entry(1), File: file}, choice: Keep, want: Nothing},
		{s: Step{Entry: entry(1), Want: want(1), File: file}, choice: Discard, want: Write},
		{s: Step{Entry: entry(1), Want: want(2)}, choice: Discard, want: Write},
		{s: Step{File: file}, choice: Discard, want: Remove},
	} {
		if got := c.s.Decide(c.same, c.equals, c.adopting, c.choice); got != c.want {
			t.Errorf("case %d: %d, want %d", i, got, c.want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	for key, want := range map[string]bool{
		".DS_Store": true, "a/.zarray.tmp": true, "a/c/0.__lock": true, ".git/config": true, "a/0.0.abc.partial": true, "a/zarr.json~": true, "Thumbs.db": true,
		"a/.zarray": false, "a/.zattrs": false, ".zmetadata": false, "a/c/0/0": false, "a/0.0": false, "OME/METADATA.ome.xml": false,
	} {
		if got := LeftOut(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}

func TestScope(t *testing.T) {
	s := NewScope([]string{"/g/b/", "g/b/x", "g/b-c", "g/b"})
	if !slices.Equal(s, Scope{"g/b", "g/b-c"}) || NewScope([]string{"a", "/"}) != nil {
		t.Fatal(s)
	}
	if s := NewScope([]string{"/g/b/x", "/z", "g/b", "a"}); !slices.Equal(s, Scope{"a", "g/b", "z"}) {
		t.Error(s)
	}
	for key, want := range map[string]bool{"zarr.json": true, "g/.zattrs": true, "g/.zmetadata": false, "g/b/c/0": true, "g/b-c/zarr.json": true, "g/b-d/zarr.json": false, "a/zarr.json": false, "g/note": false} {
		if s.Has(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
	if p := s.Prefixes(); !slices.IsSorted(p) || !slices.Contains(p, "g/b/") || !slices.Contains(p, "g/zarr.json") {
		t.Error(p)
	}
	f := Folds{}
	if err := errors.Join(f.Add("a/c/0"), f.Add("a/c/1")); err != nil {
		t.Error(err)
	}
	if err := f.Add("A/x"); !errors.Is(err, kv.ErrInvalidKey) {
		t.Error(err)
	}
}

// An index is read as it was written, whatever the keys; one that is cut or damaged is an error.
func TestIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	b := must.Get(Open(dir, true))(t)
	defer b.Close()
	var all []Entry
	for i := range 50 {
		sum := digest.Of([]byte{byte(i)})
		e := Entry{Key: fmt.Sprintf("a b/\n\"%d", i), Ref: kv.ID(sum), Sum: sum, Mark: Mark{int64(i), fmt.Sprintf("%d-x", i)}}
		if i%3 == 0 {
			e.Ref, e.Mark = kv.ID{1}, Mark{}
		}
		all = append(all, e)
	}
	name := must.Get(b.NewIndex(func(add func(Entry) error) error {
		for _, e := range all {
			must.Do(t, add(e))
		}
		return nil
	}))(t)
	read := func() (got []Entry, err error) {
		entries, _, err := b.Index(name)
		must.Do(t, err)
		for e, err := range entries {
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	}
	if got := must.Get(read())(t); !slices.Equal(got, all) {
		t.Fatal(got)
	}
	path := filepath.Join(b.Side, name)
	text := must.Get(os.ReadFile(path))(t)
	for n := 0; n < len(text); n += 97 {
		must.Do(t, os.WriteFile(path, text[:n], 0o666))
		if _, err := read(); err == nil {
			t.Fatalf("cut at %d", n)
		}
	}
	must.Do(t, b.Save(context.Background(), &State{Format: 2}))
	if _, err := b.Load(context.Background()); err == nil {
		t.Error("a newer format was read")
	}
}
