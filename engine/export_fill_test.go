package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Where metadata of v2 cannot say what missing chunks hold, they are written.
func TestExportWritesMissingChunks(t *testing.T) {
	db := openDB(t, linkOptions(t, ""))
	spec := zarr.Spec{Shape: []int64{6, 3}, Chunks: []int64{2, 2}, DataType: "int16", DimensionNames: []string{"y", "x"}, Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":5}}]`)}
	commit(t, db, "", "store", func(s *Session) error {
		if _, err := s.CreateGroup(bg, "", zarr.V3, zarr.Attributes{}); err != nil {
			return err
		}
		for _, name := range []string{"a", "full", "unnamed"} {
			spec := spec
			if name == "unnamed" { // not for xarray: the fill value stays
				spec.DimensionNames = nil
			}
			a, err := s.CreateArray(bg, name, spec)
			if err != nil {
				return err
			}
			sel := zarr.Sel(zarr.At(2), zarr.At(0))
			if name == "full" {
				sel = zarr.Sel()
			}
			if err := zarr.Fill(bg, a, sel, int16(5)); err != nil {
				return err
			}
		}
		return nil
	})
	closeChecked(t, db)
	database := func() *Source {
		src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", nil))(t)
		t.Cleanup(func() { src.Close() })
		return src
	}
	src := database()
	want := map[string]bool{"a": true, "full": true, "unnamed": false}
	check := func(view kv.Reader) {
		t.Helper()
		for name, all := range want {
			a := must.Get(zarr.OpenArray(bg, view, name, nil))(t)
			if null := a.Meta().NullFill; null != all {
				t.Errorf("%s: fill value null is %v", name, null)
			}
			for i := range int64(3) {
				for j := range int64(2) {
					b, err := kv.Get(bg, view, a.ChunkKey([]int64{i, j}))
					if stored := all || i == 1 && j == 0; stored != (err == nil) || stored && len(b) == 0 {
						t.Errorf("%s: chunk %d.%d: %d bytes, %v", name, i, j, len(b), err)
					}
				}
			}
			sum := int16(0)
			got, _, err := zarr.Read[int16](bg, a, zarr.Sel())
			for _, v := range got {
				sum += v
			}
			if wantSum := map[bool]int16{true: 90, false: 5}[name == "full"]; err != nil || sum != wantSum {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "v2")
	must.Get(Export(bg, src, dir, ExportOptions{Format: zarr.V2}))(t)
	check(openURL(t, "file://"+filepath.ToSlash(dir)).at.View)
	set := filepath.Join(t.TempDir(), "set.json")
	must.Get(ExportReferences(bg, src, set, ExportReferencesOptions{Format: zarr.V2, Inline: true}))(t)
	check(openURL(t, "file://"+filepath.ToSlash(set)+"|kerchunk:").at.View)
	must.Do(t, src.Close())
	db = openAt(t, db.Dir(), linkOptions(t, ""))
	check(at(t, db, "").Converted(zarr.V2))

	commit(t, db, "", "sparse", func(s *Session) error {
		spec := spec
		spec.Shape, spec.Chunks = []int64{1 << 40, 1}, []int64{1, 1}
		_, err := s.CreateArray(bg, "sparse", spec)
		return err
	})
	closeChecked(t, db)
	_, err := Export(bg, database(), filepath.Join(t.TempDir(), "v2"), ExportOptions{Format: zarr.V2})
	if !errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "/sparse: ") {
		t.Errorf("an array of too many missing chunks: %v", err)
	}
}
