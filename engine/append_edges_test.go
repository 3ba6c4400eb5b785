package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// pieces are sets in files f0.json, f1.json and so on.
func pieces(t testing.TB, sets ...smallSet) (list []Piece) {
	t.Helper()
	for i, s := range sets {
		list = append(list, pieceOf(s.write(t, fmt.Sprintf("f%d.json", i)), Follow{}))
	}
	return list
}

// misfit makes sure that an append was refused with that text, in one line.
func misfit(t testing.TB, err error, want string) {
	t.Helper()
	if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// The text of a misfit names some files with what they have, and says how many
// more there are.
func TestMisfitText(t *testing.T) {
	var m misfits
	if err := m.err("time"); err != nil {
		t.Error(err)
	}
	want := misfitValue{"a.nc", "1"}
	for i := range 10 {
		m.add("t", "units", false, want, misfitValue{fmt.Sprintf("f%d.nc", i), fmt.Sprint(2 + i/4)})
		const text = "append along time: /t: units is 1 in a.nc, but 2 in f0.nc, f1.nc, f2.nc, f3.nc, 3 in f4.nc, f5.nc, f6.nc, f7.nc"
		switch err := m.err("time"); {
		case i == 7 && err.Error() != text, i == 8 && err.Error() != text+" and 1 more", i == 9 && err.Error() != text+" and 2 more":
			t.Errorf("%d files: %v", i+1, err)
		}
	}
	m.add("t", "shape", false, want, misfitValue{"f0.nc", "2"})
	if err := m.err("time"); !strings.HasSuffix(err.Error(), " and 2 more; /t: shape is 1 in a.nc, but 2 in f0.nc") {
		t.Error(err)
	}
	m.add("x", "units", false, want, misfitValue{"f0.nc", "2"})
	m.add("x", "units", false, want, misfitValue{"f1.nc", "2"})
	if err := m.err("time"); !strings.HasSuffix(err.Error(), "; /t: shape is 1 in a.nc, but 2 in f0.nc; /x: units is 1 in a.nc, but 2 in f0.nc, f1.nc") {
		t.Error(err)
	}
	for i := range 10 {
		m.add(fmt.Sprint("y", i), "units", false, want, misfitValue{"f0.nc", "2"})
	}
	if err := m.err("time"); !strings.HasSuffix(err.Error(), "/y5: units is 1 in a.nc, but 2 in f0.nc; and 4 other differences") {
		t.Error(err)
	}
}

// What can be joined with nothing is refused before anything is read or written.
func TestAppendUnfit(t *testing.T) {
	if _, err := PlanAppend(bg, nil, AppendOptions{Dim: "time", Link: true}); err == nil {
		t.Error("no piece")
	}
	if _, err := PlanAppend(bg, pieces(t, dailySet(0)), AppendOptions{Dim: "", Link: true}); err == nil {
		t.Error("no dimension")
	}
	plan := func(link bool, list ...Piece) error {
		t.Helper()
		p, err := PlanAppend(bg, list, AppendOptions{Dim: "time", Link: link})
		if err == nil {
			err = p.Fits(bg)
		}
		return err
	}
	twice := dailySet(0)
	twice.attrs("t")["_ARRAY_DIMENSIONS"] = []string{"time", "time"}
	misfit(t, plan(true, pieces(t, twice)...), `f0.json: /t: engine: does not fit: it has the dimension "time" twice`)

	// Longer than an array can be.
	long := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
	long.array("t", "|i1", []int{1, 1}, []int{1, 1}, []string{"time", "x"}, nil)
	long.doc("t")["shape"] = []int64{1 << 62, 1}
	misfit(t, plan(true, pieces(t, long, long)...), "/t: shape is 4611686018427387904 in f0.json, but longer than an array can be in f1.json")
	if err := plan(true, pieces(t, long)...); err != nil {
		t.Error(err)
	}

	// More than is written anew.
	short, much := smallSet{".zgroup": map[string]any{"zarr_format": 2}}, smallSet{".zgroup": map[string]any{"zarr_format": 2}}
	short.array("a", "<i2", []int{1}, []int{2}, []string{"time"}, nil)
	for over, want := range []string{"", "/a: chunk boundary is a last chunk of 2 that is not full in f0.json, but begins at 1, inside of it, with 16777218 bytes of coordinates (at most 16 MiB are written anew when linking) in f1.json"} {
		much.array("a", "<i2", []int{maxRewrite/2 + over}, []int{2}, []string{"time"}, nil)
		list := pieces(t, short, much)
		if err := plan(true, list...); want != "" {
			misfit(t, err, want)
		} else if err != nil {
			t.Error(err)
		}
		if err := plan(false, list...); err != nil {
			t.Errorf("copied: %v", err)
		}
		// Other chunks, from a boundary on.
		short.doc("a")["shape"], much.doc("a")["chunks"] = []int{2}, []int{3}
		list = pieces(t, short, much)
		if err := plan(true, list...); want != "" {
			misfit(t, err, "/a: chunk_grid is [2] in f0.json, but [3], with 16777218 bytes of coordinates (at most 16 MiB are written anew when linking) in f1.json")
		} else if err != nil {
			t.Error(err)
		}
		short.doc("a")["shape"], much.doc("a")["chunks"] = []int{1}, []int{2}
	}

	store := func(docs map[string]string) Piece {
		keys := maps.Clone(docs)
		url := memoryURL(t, keys)
		return Piece{Name: "store", Open: func(ctx context.Context) (*Source, error) { return OpenSource(ctx, url, nil) }}
	}
	v3 := func(grid, dims string) Piece {
		return store(map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"group"}`, "t/zarr.json": `{"zarr_format":3,"node_type":"array","shape":[2,2],"data_type":"int16","chunk_grid":` + grid +
			`,"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"dimension_names":` + dims + `}`})
	}
	regular := func(first int) string {
		return fmt.Sprintf(`{"name":"regular","configuration":{"chunk_shape":[%d,2]}}`, first)
	}
	one := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
	one.array("t", "<i2", []int{2, 2}, []int{1, 2}, []string{"time", "x"}, nil)
	misfit(t, plan(false, pieces(t, one)[0], v3(regular(1), `["time","x"]`)), "/t: zarr_format is 2 in f0.json, but 3 in store")
	misfit(t, plan(false, v3(regular(1), `["time",null]`), v3(regular(1), `["time","x"]`)), `/t: dimension_names is ["time" null] in store, but ["time" "x"] in store`)
	if err := plan(false, v3(regular(1), `["time",null]`), v3(regular(1), `["time",null]`)); err != nil {
		t.Error(err)
	}
	misfit(t, plan(false, v3(regular(1), `[null,null]`)), `no array has the dimension "time"; no dimension has a name`)
	rows := `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[1,1],[2]]}}`
	if err := plan(false, v3(rows, `["time","x"]`)); err != nil {
		t.Errorf("a rectilinear grid: %v", err)
	}
	if err := plan(false, v3(rows, `["y","x"]`)); !errors.Is(err, ErrMisfit) || strings.Contains(err.Error(), "renumbered") {
		t.Errorf("without the dimension: %v", err)
	}
	if err := plan(false, v3(regular(1), `["time","x"]`), v3(rows, `["time","x"]`)); err != nil {
		t.Errorf("chunks of other lengths: %v", err)
	}
	if err := plan(false, store(map[string]string{"meta": `{"zarr_format":1,"shape":[2],"chunks":[1],"dtype":"|i1","compression":"none","compression_opts":null,"fill_value":0,"order":"C"}`, "attrs": `{"_ARRAY_DIMENSIONS":["time"]}`})); !errors.Is(err, zarr.ErrNoForm) {
		t.Errorf("of Zarr v1: %v", err)
	}
}

// Bounds that coordinates name are written anew where their chunks do not fit,
// and nothing else of more than one dimension is.
func TestAppendBounds(t *testing.T) {
	set := func(day int, attr, name, group string) smallSet {
		s := dailySet(day)
		n := byte(4 * day)
		s.array("b", "|i1", []int{2, 2}, []int{3, 2}, []string{"time", "nv"}, map[string]string{"0.0": string([]byte{n, n + 1, n + 2, n + 3, 'z', 'z'})})
		if attr != "" {
			s.attrs("time")[attr] = name
		}
		if group != "" {
			delete(s, "g/.zgroup")
			s.rename("g/time", "")
			for _, name := range []string{"time", "b"} {
				s.rename(name, group+"/"+name)
			}
		}
		return s
	}
	const refused = "b: chunk boundary is a last chunk of 3 that is not full in f0.json, but begins at 2, inside of it in f1.json"
	for _, c := range []struct{ attr, name, group, want string }{
		{"bounds", "b", "", ""},
		{"climatology", "b", "", ""},
		{"bounds", "b", "h", ""},
		{"bounds", "c", "", refused},
		{"bounds", "x", "", refused},
		{"bounds", "h/b", "h", refused},
		{"", "", "", refused},
	} {
		list := pieces(t, set(0, c.attr, c.name, c.group), set(1, c.attr, c.name, c.group))
		db := openDB(t, nil)
		_, err := appendAll(db, "time", true, ImportOptions{}, list...)
		if c.want != "" {
			misfit(t, err, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := textOf(t, array(t, at(t, db, ""), names.Join(c.group, "b"))); got != "\x00\x01\x02\x03\x04\x05\x06\x07" {
			t.Errorf("%+v: bounds %q", c, got)
		}
	}
	// A name that is an array without the dimension, whose chunks do not matter.
	s := dailySet(0)
	s.attrs("time")["bounds"] = "x"
	s2 := dailySet(1)
	s2.attrs("time")["bounds"] = "x"
	s2.array("x", "|i1", []int{2}, []int{1}, []string{"x"}, map[string]string{"0": "a", "1": "b"})
	if _, err := appendAll(openDB(t, nil), "time", true, ImportOptions{}, pieces(t, s, s2)...); err != nil {
		t.Error(err)
	}
}

// Pieces of no length change nothing, wherever they stand; chunks that are not
// full may be the last ones only.
func TestAppendLengths(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	set := func(values string) smallSet {
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		n := len(values)
		s.array("time", "|i1", []int{n}, []int{2}, []string{"time"}, nil)
		s.array("t", "|i1", []int{1, n}, []int{1, 2}, []string{"x", "time"}, nil)
		for i := 0; i < n; i += 2 {
			chunk := (values + "z")[i : i+2] // what is beyond is nothing
			s[fmt.Sprintf("time/%d", i/2)], s[fmt.Sprintf("t/0.%d", i/2)] = []byte(chunk), []byte(chunk)
		}
		return s
	}
	for _, c := range []struct {
		values []string
		want   string // "" if it fits
	}{
		{[]string{"", "", ""}, ""},
		{[]string{"", "ab"}, ""},
		{[]string{"ab", "", "cd", ""}, ""},
		{[]string{"abc", "", ""}, ""},
		{[]string{"", "abcd", "efg"}, ""},
		{[]string{"abc", "d"}, "/t: chunk boundary is a last chunk of 2 that is not full in"},
		{[]string{"ab", "c", "", "de"}, "/t: chunk boundary is a last chunk of 2 that is not full in"},
	} {
		t.Run(fmt.Sprint(c.values), func(t *testing.T) {
			var sets []smallSet
			for _, v := range c.values {
				sets = append(sets, set(v))
			}
			joins(t, sets, true, func(mode string, db *DB, err error) {
				if c.want != "" && strings.Contains(mode, "link true") {
					misfit(t, err, c.want)
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", mode, err)
				}
				s, all := at(t, db, ""), strings.Join(c.values, "")
				for _, path := range []string{"time", "t"} {
					if got := textOf(t, array(t, s, path)); got != all {
						t.Errorf("%s: /%s holds %q, want %q", mode, path, got, all)
					}
				}
			})
		})
	}
}

// Labels of variable length are joined, must not repeat, and are encoded again where they
// begin inside a chunk.
func TestAppendTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	text := func(values ...string) string { // as numcodecs.VLenUTF8 has it
		b := []byte{byte(len(values)), 0, 0, 0}
		for _, v := range values {
			b = append(append(b, byte(len(v)), 0, 0, 0), v...)
		}
		return string(b)
	}
	set := func(notes string, values ...string) smallSet {
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		s.array("time", "|O", []int{len(values)}, []int{2}, []string{"time"}, map[string]string{"0": text(append(values, "")[:2]...)})
		s.array("notes", "|O", []int{2}, []int{2}, []string{"n"}, map[string]string{"0": text("a", notes)})
		for _, path := range []string{"time", "notes"} {
			s.doc(path)["filters"], s.doc(path)["fill_value"] = []any{map[string]any{"id": "vlen-utf8"}}, ""
		}
		return s
	}
	for _, c := range []struct {
		sets []smallSet
		want string // "" if it fits
	}{
		{[]smallSet{set("b", "one", "two"), set("b", "four", "three"), set("b", "five")}, ""},
		{[]smallSet{set("b", "one", "two"), set("b", "three", "two")}, `/time: "two" in f1.json is there already, in `},
		{[]smallSet{set("b", "one", "two"), set("c", "three")}, "/notes: values is one set of elements in"},
		{[]smallSet{set("b", "one"), set("b", "two", "four"), set("b", "three"), set("b", "five")}, ""},
	} {
		joins(t, c.sets, true, func(mode string, db *DB, err error) {
			if c.want != "" {
				misfit(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			if got := elements(t, array(t, at(t, db, ""), "time")); got != "\"one\"\n\"two\"\n\"four\"\n\"three\"\n\"five\"\n" {
				t.Errorf("%s: %s", mode, got)
			}
		})
	}
}

// What is at the destination is appended to, replaced or in the way.
func TestAppendTo(t *testing.T) {
	for _, link := range []bool{true, false} {
		t.Run(fmt.Sprint(link), func(t *testing.T) {
			db := openDB(t, nil)
			list := pieces(t, dailySet(0), dailySet(1))
			to := func(o ImportOptions, list ...Piece) error {
				_, err := appendAll(db, "time", link, o, list...)
				return err
			}
			holds := func(path, want string) {
				t.Helper()
				if got := textOf(t, array(t, at(t, db, ""), path)); got != want {
					t.Errorf("/%s holds %q, want %q", path, got, want)
				}
			}
			must.Do(t, to(ImportOptions{To: "/a/b/", Message: "the first", Author: "someone"}, list[0]))
			if c, err := db.store.Lookup(bg, head(t, db, "")); err != nil || c.Message != "the first" || c.Author != "someone" {
				t.Errorf("%+v, %v", c, err)
			}
			holds("a/b/time", "\x00\x01")
			commit(t, db, "", "more", func(s *Session) error { return s.Set(bg, "a/b/note", []byte("left")) })
			must.Do(t, to(ImportOptions{To: "a/b", Overwrite: true}, list[1]))
			holds("a/b/time", "\x02\x03")
			for key := range contents(t, at(t, db, "")) {
				if key == "a/b/note" {
					t.Error("what was there is left")
				}
			}

			// Keys that are no node are not removed unasked.
			before := commit(t, db, "", "note", func(s *Session) error { return s.Set(bg, "c/note", []byte("mine")) })
			if err := to(ImportOptions{To: "c"}, list[0]); !errors.Is(err, zarr.ErrExists) {
				t.Errorf("keys in the way: %v", err)
			}
			unchanged(t, db, before)
			must.Do(t, to(ImportOptions{To: "c", Overwrite: true}, list[0]))

			// An array that is not there, and one that has grown by itself.
			more := dailySet(1)
			more.rename("x", "y")
			misfit(t, to(ImportOptions{To: "c"}, pieces(t, more)...), "/y: array is missing in /c/y of the database, but there in f0.json")
			commit(t, db, "", "longer", func(s *Session) error {
				return array(t, s, "c/time").Resize(bg, []int64{3}, zarr.ResizeOptions{})
			})
			misfit(t, to(ImportOptions{To: "c"}, list[1]), "/time: length along time is 2 in /c/t of the database, but 3 in /c/time of the database")
			commit(t, db, "", "shorter", func(s *Session) error {
				return array(t, s, "c/time").Resize(bg, []int64{1}, zarr.ResizeOptions{})
			})
			misfit(t, to(ImportOptions{To: "c"}, list[1]), "/time: length along time is 2 in /c/t of the database, but 1 in /c/time of the database")
		})
	}
}

// An append goes into a stored session, which somebody else commits.
func TestAppendIntoSession(t *testing.T) {
	carefully(t) // nothing is saved but when all is complete
	for _, link := range []bool{true, false} {
		db := openDB(t, nil)
		before := head(t, db, "")
		s, err := db.Begin(bg, "")
		must.Do(t, err)
		id := s.ID()
		must.Do(t, s.Detach(bg))
		list := pieces(t, dailySet(0), dailySet(1))
		bad := dailySet(2)
		bad["x/0"] = []byte("aB")
		_, err = appendAll(db, "time", link, ImportOptions{Session: &id}, append(list, pieces(t, bad)...)...)
		misfit(t, err, "/x: values")
		res, err := appendAll(db, "time", link, ImportOptions{Session: &id}, list...)
		if err != nil || res.Commit != nil || res.Nodes != 7 || head(t, db, "") != before {
			t.Fatalf("%+v, %v", res, err)
		}
		s = must.Get(db.Resume(bg, id))(t)
		must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
		if got := textOf(t, array(t, at(t, db, ""), "time")); got != "\x00\x01\x02\x03" {
			t.Errorf("%q", got)
		}
	}
}

// What the pieces were compared with must still be so when the commit is made.
func TestAppendGuards(t *testing.T) {
	for _, link := range []bool{true, false} {
		for _, key := range []string{"x/0", "t/.zattrs", "new/.zgroup"} {
			db := openDB(t, nil)
			list := pieces(t, dailySet(0), dailySet(1), dailySet(2))
			must.Get(appendAll(db, "time", link, ImportOptions{To: "a"}, list[0]))(t)
			c := &counted{before: func(i, n int) error {
				if i == 1 && n == 2 {
					commit(t, db, "", "meanwhile", func(s *Session) error { return s.Set(bg, "a/"+key, []byte("{}")) })
				}
				return nil
			}}
			if _, err := appendAll(db, "time", link, ImportOptions{To: "a"}, c.pieces(list[1:])...); !errors.Is(err, txn.ErrConflict) {
				t.Errorf("/%s changed: %v", key, err)
			}
			noSessions(t, db)
		}
	}
}

// Of what no array has, that of the first piece is taken, and nothing where
// there is something already.
func TestAppendOtherKeys(t *testing.T) {
	a, b := dailySet(0), dailySet(1)
	a["notes"], b["notes"], b["g/more"], b["u/.zattrs"] = []byte("first"), []byte("second"), []byte("second"), map[string]any{}
	joins(t, []smallSet{a, b}, true, func(mode string, db *DB, err error) {
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		keys := contents(t, at(t, db, ""))
		_, more := keys["g/more"]
		_, attrs := keys["u/.zattrs"]
		if keys["notes"] != "first" || more || attrs {
			t.Errorf("%s: notes %q, more %v, attributes %v", mode, keys["notes"], more, attrs)
		}
	})
}

// An append of which nothing was saved is not resumable.
func TestAppendNotResumable(t *testing.T) {
	for _, link := range []bool{true, false} {
		db := openDB(t, nil)
		before := head(t, db, "")
		c := &counted{before: func(i, n int) error {
			if i == 1 && n == 2 {
				return errServer
			}
			return nil
		}}
		_, err := appendAll(db, "time", link, ImportOptions{}, c.pieces(pieces(t, dailySet(0), dailySet(1)))...)
		if !errors.Is(err, errServer) || errors.Is(err, ErrResumable) {
			t.Errorf("error %v", err)
		}
		unchanged(t, db, before)
	}
}

// Where one piece begins inside a chunk all of its array is read by the append,
// which may read the files: a chunk of another piece would have to be read to be
// completed, in a database that may not yet.
func TestAppendReadsAllToRewrite(t *testing.T) {
	base := folder(t, map[string]string{"f": "\x00\x01\x02\x03\x04\x05zzzz"})
	var list []Piece
	from := 0
	for i, n := range []int{3, 1, 2} { // the third fits, but not the second
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		s.array("time", "|i1", []int{n}, []int{4}, []string{"time"}, nil)
		s["time/0"] = []any{base + "/f", from, 4}
		list = append(list, pieceOf(s.write(t, fmt.Sprintf("f%d.json", i)), Follow{Allow: []string{filepath.ToSlash(base)}}))
		from += n
	}
	for _, step := range []int{1, 2, 3} {
		db := openDB(t, linkOptions(t, t.TempDir()))
		for lo := 0; lo < len(list); lo += step {
			if _, err := appendAll(db, "time", true, ImportOptions{}, list[lo:min(lo+step, len(list))]...); err != nil {
				t.Fatalf("%d at a time: %v", step, err)
			}
		}
		if got := array8(t, db, "time"); string(got) != "\x00\x01\x02\x03\x04\x05" {
			t.Errorf("%d at a time: %v", step, got)
		}
	}
}

// TestAppendRefusedStoresNothing: elements are compared before anything is copied,
// so a refused append takes no room in packs.
func TestAppendRefusedStoresNothing(t *testing.T) {
	const chunk = 200_000
	piece := func(first byte, lat byte) Piece {
		dims := func(names, shape, chunks string) string {
			return `{"zarr_format":3,"node_type":"array","shape":` + shape + `,"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":` + chunks + `}},
"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}],"dimension_names":` + names + `,"attributes":{}}`
		}
		keys := map[string]string{
			"zarr.json":      `{"zarr_format":3,"node_type":"group","attributes":{}}`,
			"time/zarr.json": dims(`["time"]`, "[2]", "[2]"), "time/c/0": string([]byte{first, first + 1}),
			"lat/zarr.json": dims(`["lat"]`, "[1]", "[1]"), "lat/c/0": string([]byte{lat}),
			"a/zarr.json": dims(`["time","x"]`, "[2,200000]", "[1,200000]"),
		}
		for i := range 2 {
			b := make([]byte, chunk)
			r := rand.New(rand.NewPCG(uint64(first), uint64(i)))
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			keys[fmt.Sprintf("a/c/%d/0", i)] = string(b)
		}
		return pieceOf(memoryURL(t, keys), Follow{})
	}
	db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
	_, err := appendAll(db, "time", false, ImportOptions{}, piece(1, 50))
	must.Do(t, err)
	before, had := head(t, db, ""), packBytes(t, db)
	for name, pieces := range map[string][]Piece{
		"times again":       {piece(1, 50)},
		"times go back":     {piece(5, 50), piece(3, 50)},
		"another latitude":  {piece(3, 51)},
		"the second's":      {piece(3, 50), piece(5, 51)},
		"of new ones":       {piece(7, 1), piece(9, 2)},
		"times of new ones": {piece(7, 1), piece(7, 1)},
	} {
		o := ImportOptions{}
		if strings.HasSuffix(name, "new ones") {
			o.To = "new"
		}
		if _, err := appendAll(db, "time", false, o, pieces...); !errors.Is(err, ErrMisfit) {
			t.Errorf("%s: %v", name, err)
		}
		if now := packBytes(t, db); now != had {
			t.Errorf("%s: packs grew by %d bytes", name, now-had)
			had = now
		}
		unchanged(t, db, before)
	}
	_, err = appendAll(db, "time", false, ImportOptions{}, piece(3, 50), piece(5, 50))
	must.Do(t, err)
	if now := packBytes(t, db); now-had < 4*chunk {
		t.Errorf("packs grew by %d bytes", now-had)
	}
}
