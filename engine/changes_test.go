package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

func TestNodeChanges(t *testing.T) {
	db := openDB(t, nil)
	v2 := line(6, 2)
	v2.Version = zarr.V2
	first := commit(t, db, "", "begin", func(s *Session) error {
		for _, p := range []string{"a", "g/b", "g/gone", "g/moved"} {
			if err := create(s, p, line(6, 2)); err != nil {
				return err
			}
		}
		return s.Set(bg, "g/notes.txt", []byte("one"))
	})
	second := commit(t, db, "", "change", func(s *Session) error {
		return errors.Join(
			put(s, "a", 0, 100),
			put(s, "a", 4, 0, 0),
			setAttr(s, "g", "title", "new"),
			setAttr(s, "g/b", "units", "K"),
			array(t, s, "g/b").Resize(bg, []int64{8}, zarr.ResizeOptions{}),
			s.Remove(bg, "g/gone"),
			s.Rename(bg, "g/moved", "g/here"),
			create(s, "g/new/c", line(4, 2)),
			s.Set(bg, "g/notes.txt", []byte("two")),
		)
	})
	changes := func(from, to txn.CommitID, path string) (lines []string) {
		t.Helper()
		list := must.Get(db.NodeChanges(bg, from, to, path))(t)
		for _, c := range list {
			lines = append(lines, strings.Split(c.String(), "\n")...)
		}
		return lines
	}
	for _, c := range []struct {
		from, to txn.CommitID
		path     string
		want     []string
	}{
		{first, first, "", nil},
		{first, second, "", []string{
			"~ /a chunks: 1 removed, 1 changed",
			"~ /g other keys: 1",
			"    attributes.title: (none) -> \"new\"",
			"~ /g/b",
			"    shape: [6] -> [8]",
			"    attributes.units: (none) -> \"K\"",
			"- /g/gone chunks: 3 removed",
			"> /g/here renamed from /g/moved",
			"+ /g/new",
			"+ /g/new/c chunks: 2 added",
		}},
		{second, first, "g/b", []string{
			"~ /g/b",
			"    shape: [8] -> [6]",
			"    attributes.units: \"K\" -> (none)",
		}},
		{first, second, "a", []string{"~ /a chunks: 1 removed, 1 changed"}},
		{first, second, "nope", nil},
	} {
		if got := changes(c.from, c.to, c.path); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s at /%s:\n%s\nwant\n%s", c.from.Short(), c.to.Short(), c.path, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if _, err := db.NodeChanges(bg, first, txn.CommitID{1}, ""); !errors.Is(err, txn.ErrNoRef) {
		t.Errorf("a version that is not there: %v", err)
	}
}

func TestNodeChangesOfV2(t *testing.T) {
	db := openDB(t, nil)
	spec := line(6, 2)
	spec.Version = zarr.V2
	first := commit(t, db, "", "begin", func(s *Session) error {
		if err := create(s, "x", spec); err != nil {
			return err
		}
		return setAttr(s, "x", "a", 1)
	})
	second := commit(t, db, "", "change", func(s *Session) error {
		if _, err := s.CreateGroup(bg, "h", 0, attributes(t, "z", 1)); err != nil {
			return err
		}
		return errors.Join(setAttr(s, "x", "a", 2), setAttr(s, "", "b", 1), put(s, "x", 0, 9))
	})
	list, err := db.NodeChanges(bg, first, second, "")
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if c := list[1]; c.Path != "h" || c.Kind != "added" || len(c.Fields) > 0 {
		t.Errorf("h %+v", c)
	}
	if c := list[0]; c.Path != "" || c.Kind != "changed" || !slices.Equal(c.Fields, []string{"attributes.b: (none) -> 1"}) {
		t.Errorf("root %+v", c)
	}
	if c := list[2]; c.Path != "x" || c.ChunksChanged != 1 || !slices.Equal(c.Fields, []string{"attributes.a: 1 -> 2"}) {
		t.Errorf("x %+v", c)
	}
}

func TestStats(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error {
		if err := create(s, "g/x", line(6, 2)); err != nil {
			return err
		}
		return create(s, "y", zarr.Spec{Shape: []int64{1000}, Chunks: []int64{500}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)})
	})
	must.Do(t, db.store.CreateTag(bg, "v1", head(t, db, "")))
	st, err := db.Stats(bg, "")
	must.Do(t, err)
	if st.Branches != 1 || st.Tags != 1 || st.Sessions != 0 || st.Commits != 2 || st.Groups != 2 || st.Arrays != 2 ||
		st.Keys != 9 || st.Inline+st.Native != st.Keys || st.Native < 2 || st.Virtual != 0 || st.Bytes < 4000 ||
		st.Packs != 1 || st.PackBytes < 4000 || st.IndexBytes == 0 {
		t.Errorf("%+v", st)
	}
	commit(t, db, "", "odd", func(s *Session) error { return s.Set(bg, "odd/zarr.json", []byte("{}")) })
	if st, err = db.Stats(bg, ""); err != nil || st.Unreadable != 1 || st.Arrays != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	empty := must.Get(db.Stats(bg, "main~2"))(t)
	if empty.Keys != 0 || empty.Commits != 1 || empty.Arrays != 0 || empty.Groups != 0 || empty.Bytes != 0 {
		t.Errorf("the first version: %+v", empty)
	}
}

func TestMembers(t *testing.T) {
	db := openDB(t, nil)
	if n := len(members(t, at(t, db, ""), "")); n != 0 {
		t.Errorf("%d members of an empty database", n)
	}
	commit(t, db, "", "x", func(s *Session) error {
		return errors.Join(
			create(s, "g/x", line(6, 2)),
			create(s, "y", line(6, 2)),
			s.Set(bg, "old/.zarray", []byte(arrayV2())),
			s.Set(bg, "papers/2024/a.pdf", []byte("pdf")),
			s.Set(bg, "papers//without a name/b.pdf", []byte("pdf")),
			s.Set(bg, "readme", []byte("text")),
			s.Set(bg, "odd/zarr.json", []byte(`{"zarr_format":3}`)),
		)
	})
	s := at(t, db, "")
	for path, want := range map[string][]string{
		"":            {"g 3 group", "odd error", "old 2 array", "papers", "y 3 array"},
		"g":           {"x 3 array"},
		"/g/":         {"x 3 array"},
		"y":           nil,
		"papers":      {"2024"},
		"papers/2024": nil,
		"nope":        {" error"},
	} {
		if got := members(t, s, path); !slices.Equal(got, want) {
			t.Errorf("members of /%s: %q, want %q", path, got, want)
		}
	}
}

func members(t *testing.T, s *Snapshot, path string) (list []string) {
	t.Helper()
	for m, err := range s.Members(bg, path) {
		line := m.Name
		switch {
		case err != nil:
			line += " error"
		case m.Node != nil:
			kind := "group"
			if _, ok := m.Node.Array(); ok {
				kind = "array"
			}
			line += " " + m.Node.Version().String() + " " + kind
		}
		list = append(list, line)
	}
	return list
}
