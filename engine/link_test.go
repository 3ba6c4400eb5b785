package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// linkOptions are those of a small database that remembers in a directory of
// the test.
func linkOptions(t testing.TB, config string) *Options {
	o := memOptions()
	o.FS = nil
	o.ConfigDir = config
	return o
}

func linkSet(t testing.TB, db *DB, url string, f Follow, o ImportOptions) *ImportResult {
	t.Helper()
	o.Link = true
	res := must.Get(db.Import(bg, openFollow(t, url, f), o))(t)
	if res.NotGranted != nil {
		t.Fatal(res.NotGranted)
	}
	return res
}

func TestLinkReferenceSets(t *testing.T) {
	for _, c := range refCases(t, "*") {
		if c.Kind != "references" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			config, path := t.TempDir(), t.TempDir()+"/t.zdb"
			set := c.set(t)
			db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
			linkSet(t, db, set, c.follow(), ImportOptions{To: "a/b"})
			first := head(t, db, "")
			if res := linkSet(t, db, set, c.follow(), ImportOptions{To: "a/b", Overwrite: true}); res.Commit.ID != first {
				t.Error("the same set made a commit")
			}
			closeChecked(t, db)

			db = openAt(t, path, linkOptions(t, config))
			s := at(t, db, "")
			for _, a := range c.Arrays {
				if sum := sumOf(t, array(t, s, "a/b/"+a.Path)); sum != a.SHA {
					t.Errorf("%s: other values", a.Path)
				}
			}
			var keys map[string]struct{}
			c.read(t, c.Keys, &keys)
			for key := range keys {
				if ok, err := kv.Exists(bg, s, "a/b/"+key); !ok || err != nil {
					t.Errorf("%s: %v, %v", key, ok, err)
				}
			}
		})
	}
}

// What is wrong with a set is found when it is linked, as far as anybody can tell
// without reading what it refers to, and nothing is committed.
func TestLinkInvalid(t *testing.T) {
	linked := map[string]bool{"absolute_path": true} // whether the path may be followed is decided by the reader
	here := map[string]bool{"missing_file": true, "unknown_scheme": true, "past_end_of_file": true}
	db := openDB(t, linkOptions(t, t.TempDir()))
	first := head(t, db, "")
	for _, c := range refCases(t, "invalid/*") {
		if c.Refs == "" {
			continue
		}
		try := func(o ImportOptions) error {
			src, err := OpenSource(bg, filepath.Join(c.dir, c.Refs), nil)
			if err != nil {
				return err
			}
			defer src.Close()
			o.Link, o.To = true, c.name
			_, err = db.Import(bg, src, o)
			return err
		}
		err := try(ImportOptions{})
		if (err == nil) != linked[c.name] || here[c.name] && !errors.Is(err, ErrNotHere) {
			t.Errorf("%s: %v", c.name, err)
		}
		if here[c.name] {
			if !strings.Contains(err.Error(), `key "x/0"`) {
				t.Errorf("%s: the key is not named: %v", c.name, err)
			}
			if err := try(ImportOptions{Validate: ValidateNone}); err != nil {
				t.Errorf("%s, not validated: %v", c.name, err)
			}
		} else if err != nil && head(t, db, "") != first {
			t.Errorf("%s: there is a commit", c.name)
		}
		first = head(t, db, "")
	}
	noSessions(t, db)
}

// Whether a scheme can be read is told by its meaning, not by its spelling.
func TestLinkSchemes(t *testing.T) {
	db := openDB(t, linkOptions(t, t.TempDir()))
	for url, linked := range map[string]bool{
		"local:///data/a": true, "LOCAL:///data/a": true, "File:///data/a": true, "HTTPS://host/a": true,
		"localx:///data/a": false, "files:///data/a": false, "Nobody://host/a": false,
	} {
		for _, before := range []string{url, "https://host/b"} { // each URL is looked at, whatever came before
			set := folder(t, map[string]string{"refs.json": setOf(2, fmt.Sprintf(`,"t/0":[%q,0,1],"t/1":[%q,0,1]`, before, url))}) + "/refs.json"
			src, err := OpenSource(bg, set, nil)
			must.Do(t, err)
			_, err = db.Import(bg, src, ImportOptions{Link: true, To: "n", Overwrite: true})
			if (err == nil) != linked || !linked && !errors.Is(err, ErrNotHere) {
				t.Errorf("%s behind %s: %v", url, before, err)
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// setOf is a set with one array of int8 chunks of one element, whose chunks
// are as given.
func setOf(n int, chunks string) string {
	return fmt.Sprintf(`{".zgroup":{"zarr_format":2},"t/.zarray":{"zarr_format":2,"shape":[%d],"chunks":[1],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"}%s}`, n, chunks)
}

// values reads the array t.
func values(t testing.TB, h hierarchy) ([]byte, error) {
	t.Helper()
	a := array(t, h, "t")
	b := make([]byte, a.Shape()[0])
	return b, a.ReadBytes(bg, zarr.Sel(), b)
}

// What references may follow is remembered outside of the database.
func TestLinkGrants(t *testing.T) {
	base := folder(t, map[string]string{"s/part": "abc", "o/part": "xyz"})
	slash := filepath.ToSlash(base)
	text := setOf(4, `,"t/0":["part",0,1],"t/1":["file://`+slash+`/s/part",1,1],"t/2":["`+slash+`/o/part",2,1],"t/3":["s3://b/part",0,1]`)
	must.Do(t, os.WriteFile(base+"/s/refs.json", []byte(text), 0o666))
	config, path := t.TempDir(), base+"/t.zdb"
	try := func(config string, f Follow) string {
		t.Helper()
		o := linkOptions(t, config)
		o.Follow = f
		db := must.Get(Open(bg, path, o))(t)
		defer closeChecked(t, db)
		s := must.Get(db.At(bg, ""))(t)
		defer s.Close()
		out := ""
		for i := range 4 {
			b, err := kv.Get(bg, s, fmt.Sprintf("t/%d", i))
			switch {
			case err == nil:
				out += string(b)
			case errors.Is(err, ErrForbidden):
				out += "-"
			default:
				t.Error(err)
			}
		}
		return out
	}
	db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
	linkSet(t, db, base+"/s/refs.json", Follow{}, ImportOptions{})
	closeChecked(t, db)
	other := Follow{Allow: []string{slash + "/o"}, Map: []Mapping{{From: "s3://b", To: slash + "/o"}}}
	for _, c := range []struct {
		config string
		f      Follow
		want   string
	}{
		{config, Follow{}, "ab--"},
		{config, other, "abzx"},
		{t.TempDir(), Follow{}, "----"},
		{t.TempDir(), other, "--zx"},
		{t.TempDir(), Follow{Allow: []string{slash}}, "abz-"},
	} {
		if got := try(c.config, c.f); got != c.want {
			t.Errorf("%+v: read %q, want %q", c.f, got, c.want)
		}
	}

	// Importing with more rights grants more, and keeps what was granted.
	db = must.Get(Open(bg, path, linkOptions(t, config)))(t)
	linkSet(t, db, base+"/s/refs.json", other, ImportOptions{Overwrite: true})
	closeChecked(t, db)
	if got := try(config, Follow{}); got != "abzx" {
		t.Errorf("read %q", got)
	}
	files, err := filepath.Glob(config + "/follow/*.json")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	must.Do(t, os.WriteFile(files[0], []byte(`{"allow":["relative"]}`), 0o600))
	db = openAt(t, path, linkOptions(t, config))
	if _, err := kv.Get(bg, at(t, db, ""), "t/0"); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("with a broken memory: %v", err)
	}
}

// A file that changed after the import is an error.
func TestLinkChangedFile(t *testing.T) {
	base := folder(t, map[string]string{"a": "abc", "refs.json": setOf(3, `,"t/0":["a",0,1],"t/1":["a",1,1]`)})
	for _, c := range []struct {
		name     string
		validate Validate
		change   func() error
		want     error
	}{
		{"same", ValidateLocal, func() error { return nil }, nil},
		{"touched", ValidateLocal, func() error {
			return os.Chtimes(base+"/a", time.Time{}, time.Unix(1, 0))
		}, kv.ErrChanged},
		{"touched, all", ValidateAll, func() error {
			return os.Chtimes(base+"/a", time.Time{}, time.Unix(2, 0))
		}, kv.ErrChanged},
		{"longer", ValidateLocal, func() error { return os.WriteFile(base+"/a", []byte("abcd"), 0o666) }, kv.ErrChanged},
		{"longer, not asked", ValidateNone, func() error { return os.WriteFile(base+"/a", []byte("abcde"), 0o666) }, nil},
		{"too short, not asked", ValidateNone, func() error { return os.WriteFile(base+"/a", []byte("a"), 0o666) }, ErrUnreachable},
		{"gone", ValidateNone, func() error { return os.Remove(base + "/a") }, ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Do(t, os.WriteFile(base+"/a", []byte("abc"), 0o666))
			db := openDB(t, linkOptions(t, t.TempDir()))
			linkSet(t, db, base+"/refs.json", Follow{Allow: []string{"s3://x"}}, ImportOptions{Validate: c.validate})
			db = reopened(t, db)
			if b, err := values(t, at(t, db, "")); err != nil || string(b) != "ab\xff" {
				t.Fatalf("%q, %v", b, err)
			}
			must.Do(t, c.change())
			b, err := values(t, at(t, db, ""))
			if !errors.Is(err, c.want) || err == nil && string(b) != "ab\xff" {
				t.Errorf("%q, %v; want %v", b, err, c.want)
			}
			if errors.Is(err, kv.ErrNotFound) {
				t.Error("the error passes for a missing chunk")
			}
		})
	}
}

// reopened closes a database and opens it again.
func reopened(t testing.TB, db *DB) *DB {
	t.Helper()
	closeChecked(t, db)
	o := db.opts
	return openAt(t, db.Dir(), &o)
}

// An updated set changes what is different, and nothing else.
func TestLinkUpdate(t *testing.T) {
	base := folder(t, map[string]string{"x": "0123456789"})
	write := func(n int, chunks string) {
		must.Do(t, os.WriteFile(base+"/refs.json", []byte(setOf(n, chunks)), 0o666))
	}
	db := openDB(t, linkOptions(t, t.TempDir()))
	write(4, `,"t/3":["x",3,1],"t/0":["x",0,1],"t/2":"inline","notes":"text"`)
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	was := head(t, db, "")
	if _, err := db.Import(bg, openFollow(t, base+"/refs.json", Follow{}), ImportOptions{Link: true}); !errors.Is(err, zarr.ErrExists) {
		t.Errorf("over what is there: %v", err)
	}
	write(5, `,"t/0":["x",0,1],"t/3":["x",4,1],"t/4":["x",4,1]`)
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{Overwrite: true})
	var changed []string
	for c, err := range db.store.Diff(bg, was, head(t, db, ""), "") {
		must.Do(t, err)
		changed = append(changed, c.Key)
	}
	slices.Sort(changed)
	if want := []string{"notes", "t/.zarray", "t/2", "t/3", "t/4"}; !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}
}

// The cost of a changed reference, some pages, does not depend on the number of references. A
// set without changes writes no page.
func TestLinkUpdateCost(t *testing.T) {
	const n = 30_000
	set := func(changed int) string {
		var chunks strings.Builder
		for i := range n {
			at := i
			if i == changed {
				at = 7
			}
			fmt.Fprintf(&chunks, `,"t/%d":["s3://b/x%d",%d,1]`, i, i/8, at)
		}
		return folder(t, map[string]string{"refs.json": setOf(n, chunks.String())}) + "/refs.json"
	}
	db := openDB(t, nil)
	linkSet(t, db, set(-1), Follow{}, ImportOptions{})
	// A copy of the index that is made behind the commit counts as written.
	must.Get(db.store.Checkpoints())(t)
	first := head(t, db, "")
	for _, c := range []struct {
		changed int
		most    int64
	}{{-1, 0}, {n / 2, 16 << 10}} {
		if _, err := db.store.Checkpoints(); err != nil { // waits for one that is made behind the commit
			t.Fatal(err)
		}
		before := db.DiskUse().IndexWritten
		linkSet(t, db, set(c.changed), Follow{}, ImportOptions{Overwrite: true})
		if got := db.DiskUse().IndexWritten - before; got > c.most || (head(t, db, "") == first) != (c.most == 0) {
			t.Errorf("changing %d wrote %d bytes to the index", c.changed, got)
		}
	}
	var changed []string
	for c, err := range db.store.Diff(bg, first, head(t, db, ""), "") {
		must.Do(t, err)
		changed = append(changed, c.Key)
	}
	if want := []string{fmt.Sprintf("t/%d", n/2)}; !slices.Equal(changed, want) {
		t.Errorf("changed %q", changed)
	}
}

// What is wrong is refused, and nothing is left of it.
func TestLinkRefused(t *testing.T) {
	files := map[string]string{
		"x":             "0123456789",
		"store/.zgroup": `{"zarr_format":2}`,
		"past.json":     setOf(1, `,"t/0":["x",4,7]`),
		"huge.json":     setOf(1, `,"t/0":["s3://b/x",4611686018427387904,1]`),
		"escape.json":   setOf(1, `,"t/0":["../x",0,1]`),
		"nodes.json":    `{"a/b":"text","t/0":["x",0,1]}`,
		"bad.json":      setOf(1, `,"t/0":["x",-1,1]`),
		"doc.json":      `{".zgroup":["none"]}`,
		"cut.json":      setOf(1, `,"t/0":["x",0,1]`)[:170],
		"good.json":     setOf(300, strings.Repeat(`,"t/0":["x",0,1]`, 300)),
	}
	for _, name := range slices.Collect(maps.Keys(files)) {
		if strings.HasSuffix(name, ".json") {
			files[name+".gz"] = string(gzipped(t, []byte(files[name])))
		}
	}
	files["broken.json.gz"] = files["good.json.gz"][:len(files["good.json.gz"])-9]
	base := folder(t, files)
	db := openDB(t, linkOptions(t, t.TempDir()))
	was := head(t, db, "")
	for name, text := range map[string]string{
		"escape.json": "t/0", "nodes.json": "no array and no group", "bad.json": "t/0",
		"doc.json": ".zgroup", "cut.json": "ends early", "store": "neither a reference set", "past.json": "t/0", "huge.json": "t/0", "broken.json.gz": "gzip",
	} {
		for _, name := range []string{name, name + ".gz"} {
			if name == "store.gz" || strings.HasSuffix(name, ".gz.gz") {
				continue
			}
			_, err := db.Import(bg, openFollow(t, base+"/"+name, Follow{}), ImportOptions{Link: true, To: "new"})
			if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), base+"/"+name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	url := memoryURL(t, map[string]string{"x.zip": zipped(t, map[string]string{"refs.json": setOf(1, `,"t/0":["x",0,1]`)})})
	if _, err := db.Import(bg, openFollow(t, url+"x.zip|zip:refs.json", Follow{}), ImportOptions{Link: true}); !errors.Is(err, ErrForbidden) {
		t.Errorf("relative references in an archive: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	src := openFollow(t, base+"/good.json", Follow{})
	_, err := db.Import(ctx, src, ImportOptions{Link: true, Progress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if list, err := db.Sessions(bg); err != nil || len(list) > 0 {
		t.Errorf("sessions %v, %v", list, err)
	}
	if head(t, db, "") != was {
		t.Error("something was committed")
	}
	if err := src.IsReferenceSet(bg); err != nil {
		t.Error(err)
	}
}

// A metadata document that a set refers to is copied.
func TestLinkDocuments(t *testing.T) {
	base := folder(t, map[string]string{
		"x":         "0123456789",
		"meta":      `..{"zarr_format":2,"shape":[1],"chunks":[1],"dtype":"|i1","compressor":null,"filters":null,"fill_value":0,"order":"C"}`,
		"refs.json": `{".zgroup":{"zarr_format":2},"t/0":["x",3,1],"t/.zarray":["meta",2,118],"t/.zattrs":"{}"}`,
	})
	b, err := os.ReadFile(base + "/meta")
	must.Do(t, err)
	text := strings.Replace(`{".zgroup":{"zarr_format":2},"t/0":["x",3,1],"t/.zarray":["meta",2,N],"t/.zattrs":"{}"}`, "N", fmt.Sprint(len(b)-2), 1)
	must.Do(t, os.WriteFile(base+"/refs.json", []byte(text), 0o666))
	db := openDB(t, linkOptions(t, t.TempDir()))
	id := commit(t, db, "", "group", func(s *Session) error {
		_, err := s.CreateGroup(bg, "g", zarr.V2, zarr.Attributes{})
		return err
	})
	s := must.Get(db.Begin(bg, ""))(t)
	sid := s.ID()
	must.Do(t, s.Detach(bg))
	res := linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{To: "g/h", Session: &sid})
	if res.Commit != nil || head(t, db, "") != id || res.Nodes != 2 || res.Keys != 4 {
		t.Errorf("%+v", res)
	}
	s = must.Get(db.Resume(bg, sid))(t)
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	db = reopened(t, db)
	a := array(t, at(t, db, ""), "g/h/t")
	v := make([]byte, 1)
	if err := a.ReadBytes(bg, zarr.Sel(), v); err != nil || v[0] != '3' {
		t.Errorf("%q, %v", v, err)
	}
}
