package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/zarr"
)

// A pattern expands to files of a bucket or a folder; a source without a pattern is returned unchanged.
func TestExpandSources(t *testing.T) {
	bucket(t)
	to := storeAt(t, "s3://bkt/in/")
	dir := filepath.ToSlash(t.TempDir())
	for _, key := range []string{"2024/b.nc", "2024/a.nc", "2024/a.txt", "2024/sub/c.nc", "2023/x y.nc", "2023/100%.nc", "2024/s.zarr/zarr.json", "2024/[a].nc"} {
		must.Do(t, to.Set(bg, key, []byte("x")))
		name := dir + "/in/" + key
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, nil, 0o666)))
	}
	for pattern, want := range map[string][]string{
		"2024/*.nc":         {"2024/%5Ba%5D.nc", "2024/a.nc", "2024/b.nc"},
		"*/*.nc":            {"2023/100%25.nc", "2023/x%20y.nc", "2024/%5Ba%5D.nc", "2024/a.nc", "2024/b.nc"},
		"2024/[ab].nc|x:y":  {"2024/a.nc|x:y", "2024/b.nc|x:y"},
		"2024/*.zarr":       {"2024/s.zarr"},
		"2024/s*/":          {"2024/s.zarr/", "2024/sub/"},
		"*/sub/*.nc":        {"2024/sub/c.nc"},
		"2024/a.nc":         {"2024/a.nc"},
		"2024/%5Ba%5D.nc|*": {"2024/%5Ba%5D.nc|*"},
		"*/%5Ba%5D.nc":      {"2024/%5Ba%5D.nc"}, // no set of characters
		"2025/*":            nil,
		"*/*/*/*.x":         nil,
	} {
		for _, root := range []string{"s3://bkt/in/", "file://" + dir + "/in/"} {
			got, err := ExpandSources(t.Context(), []string{root + pattern}, nil)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], root)
			}
			if !slices.Equal(got, want) || (err == nil) != (want != nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v, %v, want %v", root+pattern, got, err, want)
			}
		}
	}
	t.Chdir(dir)
	got, err := ExpandSources(t.Context(), []string{"in/2024/[a].nc", "in/2024/*.nc|hdf5:a", "x.zarr", "in/202?/a.*", "memory://x", "https://[::1]:80/a"}, nil)
	if want := []string{"in/2024/[a].nc", "in/2024/[a].nc|hdf5:a", "in/2024/a.nc|hdf5:a", "in/2024/b.nc|hdf5:a", "x.zarr", "in/2024/a.nc", "in/2024/a.txt", "memory://x", "https://[::1]:80/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ExpandSources(t.Context(), []string{"in/2023/1*"}, nil); err != nil || !strings.HasSuffix(got[0], "/in/2023/100%25.nc") {
		t.Errorf("%v, %v", got, err)
	}
}

// Classic NetCDF files read the same in place, copied and linked, and join along their records.
func TestNetCDF3(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../formats/netcdf3/testdata")))
	elements := func(a *zarr.Array) []byte {
		t.Helper()
		n := a.Type().Size()
		for _, s := range a.Shape() {
			n *= int(s)
		}
		b := make([]byte, n)
		must.Do(t, a.ReadBytes(bg, zarr.Sel(), b))
		return b
	}
	inPlace := func(s *Source, path string) []byte {
		t.Helper()
		a, _ := must.Get(s.NodeAt(bg, path))(t).Array()
		return elements(a)
	}
	for _, name := range []string{"cdf1_mixed", "cdf5_mixed", "cdf2_records", "single_stream", "no_records"} {
		src := openURL(t, filepath.Join(dir, name+".nc"))
		if full, err := src.Detect(bg); err != nil || !strings.HasSuffix(full, ".nc|netcdf3:") {
			t.Fatal(full, err)
		}
		for _, link := range []bool{false, true} {
			db := openDB(t, nil)
			must.Get(db.Import(bg, src, ImportOptions{Link: link}))(t)
			count := 0
			for n, err := range at(t, db, "").Walk(bg, "") {
				must.Do(t, err)
				if a, ok := n.Array(); ok {
					count++
					if got := elements(a); string(got) != string(inPlace(src, n.Path())) {
						t.Errorf("%s, link %v: %s %v differs", name, link, n.Path(), a.Shape())
					}
				}
			}
			if count == 0 {
				t.Error(name, "has no arrays")
			}
		}
	}
	file := filepath.Join(dir, "cdf2_records.nc")
	for _, link := range []bool{false, true} {
		var pieces []Piece
		for range 3 {
			pieces = append(pieces, pieceOf(file, Follow{}))
		}
		plan := must.Get(PlanAppend(bg, pieces, AppendOptions{Dim: "time", Link: link}))(t)
		db := openDB(t, nil)
		must.Get(db.Append(bg, plan, ImportOptions{Link: link}))(t)
		for _, path := range []string{"a", "b", "c"} {
			a := array(t, at(t, db, ""), path)
			if one := inPlace(openURL(t, file), path); string(elements(a)) != strings.Repeat(string(one), 3) {
				t.Errorf("link %v: %s %v joined differs", link, path, a.Shape())
			}
		}
	}
}

// The directories above a store are opened once, not for each array that may be part of an image or
// each coordinate beside it.
func TestOpensAboveOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.ToSlash(t.TempDir()) + "/x/y.zarr"
	store := must.Get(dirkv.Create(filepath.FromSlash(dir), nil))(t)
	defer store.Close()
	for _, path := range []string{"a", "b", "c"} {
		must.Get(zarr.Create(bg, store, path, zarr.Spec{Shape: []int64{2, 2}, DataType: "uint8"}, nil))(t)
	}
	adapters, opened := DefaultAdapters(), 0
	adapters.ReplaceRoot("file", func(_ context.Context, e *source.Env, part zurl.Part) (source.Place, error) {
		opened++
		view, err := dirkv.Open(must.Get(part.OSPath())(t), &dirkv.Options{ReadOnly: true})
		e.OnClose(view.Close)
		return source.Place{View: view, Kind: source.Directory}, err
	})
	for _, url := range []string{dir, dir + "/a"} {
		src := must.Get(OpenSource(bg, url, &SourceOptions{Adapters: adapters}))(t)
		opened = 0
		for range 3 {
			if url == dir {
				must.Get(src.Survey(bg))(t)
				must.Get(src.NodeAt(bg, "b"))(t)
			} else if _, err := src.Sibling(bg, "c"); err != nil {
				t.Error(err)
			}
		}
		must.Do(t, src.Close())
		if opened > 2 {
			t.Errorf("%s: opened %d directories above it", url, opened)
		}
	}
}
