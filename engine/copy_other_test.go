package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// TestCopyNodeFromAnotherDatabase copies every kind of value, which do not
// depend on the other database afterwards.
func TestCopyNodeFromAnotherDatabase(t *testing.T) {
	must.Set(t, &transfer.BatchKeys, 2)
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		from, to := openDB(t, nil), openDB(t, nil)
		consolidatedStore(t, from, v)
		source := at(t, from, "")
		spec := line(2000, 500) // chunks that lie in packs
		spec.Version = v
		commit(t, from, "", "more", func(s *Session) error { return create(s, "g/h/long", spec) })
		source = at(t, from, "")
		commit(t, to, "", "copy", func(s *Session) error {
			return errors.Join(s.CopyNode(bg, source, "g", "in/g"), s.CopyNode(bg, source, "x", "x"))
		})
		got := at(t, to, "")
		wantInts(t, got, "in/g/h/long", ints(t, source, "g/h/long")...)
		wantInts(t, got, "in/g/y", 0, 1, 2, 3, 4, 5)
		wantInts(t, got, "x", 0, 1, 2, 3, 4, 5)
		wantCopies(t, got, "in/g")
		_, err := to.Update(bg, "", "again", func(s *Session) error { return s.CopyNode(bg, source, "g", "in/g") })
		if !errors.Is(err, zarr.ErrExists) {
			t.Errorf("onto what is there: %v", err)
		}
	}
}

// TestCopyVirtualFromAnotherDatabase: what may be followed there need not be
// here, so virtual values become bytes.
func TestCopyVirtualFromAnotherDatabase(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "data"), []byte{1, 0, 0, 0, 2, 0, 0, 0}, 0o666))
	array := `{"zarr_format":2,"shape":[2],"chunks":[1],"dtype":"<i4","order":"C","fill_value":0,"compressor":null,"filters":null}`
	set := filepath.Join(folder, "refs.json")
	must.Do(t, os.WriteFile(set, []byte(`{"a/.zarray":`+array+`,"a/0":["data",0,4],"a/1":["data",4,4]}`), 0o666))
	path := filepath.Join(t.TempDir(), "from.zdb")
	from := openAt(t, path, &Options{Create: true, ConfigDir: folder})
	linkSet(t, from, set, Follow{}, ImportOptions{})
	closeChecked(t, from)
	from = openAt(t, path, &Options{ConfigDir: folder})
	source, to := at(t, from, ""), openDB(t, nil)
	commit(t, to, "", "copy", func(s *Session) error { return s.CopyNode(bg, source, "a", "b") })
	must.Do(t, os.Remove(filepath.Join(folder, "data")))
	wantInts(t, at(t, to, ""), "b", 1, 2)
}
