package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// problems checks references and returns what is wrong as "KEY error".
func problems(t testing.TB, s *Source, o RefCheckOptions) (found []string, r *RefCheckReport) {
	t.Helper()
	o.Problem = func(p RefProblem) error {
		what := "?"
		switch {
		case errors.Is(p.Err, ErrForbidden):
			what = "forbidden"
		case errors.Is(p.Err, ErrUnreachable):
			what = "unreachable"
		case errors.Is(p.Err, kv.ErrChanged):
			what = "changed"
		}
		found = append(found, p.Key+" "+what)
		return nil
	}
	r = must.Get(s.CheckReferences(bg, o))(t)
	slices.Sort(found)
	return found, r
}

func TestCheckReferences(t *testing.T) {
	chunks := `,"t/0":["a",0,3],"t/1":["a",2,2],"t/2":["none"],"t/3":["/etc/passwd"],"t/4":"inline","t/5":["b"],"t/6":["b",3,0]`
	base := folder(t, map[string]string{"a": "abc", "b": "xyz", "refs.json": setOf(7, chunks)})
	want := []string{"t/1 unreachable", "t/2 unreachable", "t/3 forbidden"}
	set := openFollow(t, base+"/refs.json", Follow{})
	if found, r := problems(t, set, RefCheckOptions{}); !slices.Equal(found, want) || r.Done != 6 || r.Problems != 3 {
		t.Errorf("set: %q, %+v", found, r)
	}
	if found, r := problems(t, set, RefCheckOptions{From: 2}); !slices.Equal(found, want[1:]) || r.Done != 6 {
		t.Errorf("set, from the third on: %q, %+v", found, r)
	}

	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	db := openDB(t, linkOptions(t, ""))
	// It was longer, and the other one was there.
	must.Do(t, errors.Join(os.WriteFile(base+"/a", []byte("abcd"), 0o666), os.WriteFile(base+"/none", nil, 0o666)))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{To: "n"})
	must.Do(t, errors.Join(os.WriteFile(base+"/a", []byte("abc"), 0o666), os.Remove(base+"/none")))
	want = []string{"t/0 changed", "t/1 changed", "t/2 unreachable", "t/3 forbidden"}
	closeChecked(t, db)
	check := func() ([]string, *RefCheckReport) {
		src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "n", nil))(t)
		defer src.Close()
		return problems(t, src, RefCheckOptions{})
	}
	for i := range want {
		want[i] = "n/" + want[i]
	}
	if found, r := check(); !slices.Equal(found, want) || r.Done != 6 {
		t.Errorf("database: %q, %+v", found, r)
	}
	must.Do(t, os.WriteFile(base+"/b", []byte("longer"), 0o666))
	want = append(want, "n/t/5 changed", "n/t/6 changed")
	if found, _ := check(); !slices.Equal(found, want) {
		t.Errorf("after a change: %q", found)
	}
	stop := errors.New("stop")
	_, err := set.CheckReferences(bg, RefCheckOptions{Problem: func(RefProblem) error { return stop }})
	if err != stop {
		t.Errorf("stopped by the caller: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := set.CheckReferences(ctx, RefCheckOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := openFollow(t, memoryURL(t, map[string]string{".zgroup": `{"zarr_format":2}`}), Follow{}).CheckReferences(bg, RefCheckOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("of a store: %v", err)
	}
}

// What was localised reads the same and needs the files no more.
func TestLocalize(t *testing.T) {
	base := folder(t, map[string]string{"a": "abc" + strings.Repeat("x", 2000), "refs.json": setOf(3, `,"t/0":["a",0,1],"t/2":["a",2,1],"big":["a"]`)})
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	db = reopened(t, db)
	local := func(path string) (keys, bytes int64) {
		t.Helper()
		s, err := db.Begin(bg, "")
		must.Do(t, err)
		defer s.Abort()
		if keys, bytes, err = db.Localize(bg, s, path, LocalizeOptions{}); err != nil {
			t.Fatal(err)
		}
		must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
		return keys, bytes
	}
	if k, b := local("t"); k != 2 || b != 2 {
		t.Errorf("%d keys, %d bytes", k, b)
	}
	if k, b := local(""); k != 1 || b != 2003 {
		t.Errorf("%d keys, %d bytes", k, b)
	}
	if k, _ := local(""); k != 0 {
		t.Errorf("again: %d keys", k)
	}
	must.Do(t, os.Remove(base+"/a"))
	if b, err := values(t, at(t, db, "")); err != nil || string(b) != "a\xffc" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := values(t, at(t, db, "main~2")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the version before: %v", err)
	}
	s := must.Get(db.Begin(bg, ""))(t)
	defer s.Abort()
	if _, _, err := db.Localize(bg, s, "nowhere", LocalizeOptions{}); err == nil {
		t.Error("nothing was localised")
	}
}

// A selection copies the chunks that it touches, whole shards, and no values change.
func TestLocalizeSelection(t *testing.T) {
	const codec = `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1],"codecs":[{"name":"bytes"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]`
	grid := `{"name":"regular","configuration":{"chunk_shape":[2]}}`
	sharded := `{"zarr_format":3,"node_type":"array","shape":[6],"data_type":"uint8","chunk_grid":` + grid +
		`,"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":` + codec + `,"dimension_names":["x"]}`
	shard := func(i int) string { // two elements of a byte, then their offsets and lengths
		b := []byte{byte(2*i + 1), byte(2*i + 2)}
		for _, v := range []uint64{0, 1, 1, 1} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return string(b)
	}
	base := folder(t, map[string]string{
		"a": "0123456789ab", "s0": shard(0), "s1": shard(1), "s2": shard(2),
		// Chunk 3 is not stored, 4 is stored in the set.
		"v2.json": setOf(12, `,"t/0":["a",0,1],"t/1":["a",1,1],"t/2":["a",2,1],"t/4":"i","t/5":["a",5,1],"t/10":["a",10,1],"t/11":["a",11,1]`),
		"v3.json": `{"zarr.json":{"zarr_format":3,"node_type":"group"},"s/zarr.json":` + sharded + `,"s/c/0":["s0"],"s/c/1":["s1"],"s/c/2":["s2"]}`,
	})
	for _, c := range []struct {
		set, path, sel string
		want           []string // keys that stop being virtual
		bytes          int64
	}{
		{"v2.json", "t", "1", []string{"t/1"}, 1}, // not t/10 and t/11
		{"v2.json", "/t/", "2:6", []string{"t/2", "t/5"}, 2},
		{"v2.json", "t", "::5", []string{"t/0", "t/10", "t/5"}, 3},
		{"v2.json", "t", "3:5", nil, 0},
		{"v2.json", "t", "4:4", nil, 0},
		{"v3.json", "s", "x=3", []string{"s/c/1"}, 34},
		{"v3.json", "s", "x=1:3", []string{"s/c/0", "s/c/1"}, 68},
	} {
		db := openDB(t, linkOptions(t, t.TempDir()))
		linkSet(t, db, base+"/"+c.set, Follow{}, ImportOptions{})
		db = reopened(t, db)
		was := head(t, db, "")
		path := names.Clean(c.path)
		before := sumOf(t, array(t, at(t, db, ""), path))
		sel := must.Get(zarr.ParseSelection(c.sel, array(t, at(t, db, ""), path).DimensionNames()))(t)
		now := commit(t, db, "", "localise", func(s *Session) error {
			keys, n, err := db.Localize(bg, s, c.path, LocalizeOptions{Select: &sel})
			if keys != int64(len(c.want)) || n != c.bytes {
				t.Errorf("%s[%s]: %d keys, %d bytes", c.path, c.sel, keys, n)
			}
			return err
		})
		var changed []string
		for d, err := range db.store.Diff(bg, was, now, "") {
			must.Do(t, err)
			if d.Old == nil || d.New == nil || d.Old.Kind != "virtual" || d.New.Kind == "virtual" {
				t.Errorf("%s[%s]: %s: %+v became %+v", c.path, c.sel, d.Key, d.Old, d.New)
			}
			changed = append(changed, d.Key)
		}
		slices.Sort(changed)
		if !slices.Equal(changed, c.want) {
			t.Errorf("%s[%s]: localised %q, want %q", c.path, c.sel, changed, c.want)
		}
		if lines := valueLines(t, db, was, now); lines != nil {
			t.Errorf("%s[%s]: changed values %q", c.path, c.sel, lines)
		}
		if after := sumOf(t, array(t, at(t, db, ""), path)); after != before {
			t.Errorf("%s[%s]: reads otherwise", c.path, c.sel)
		}
	}

	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/v2.json", Follow{}, ImportOptions{})
	s := must.Get(db.Begin(bg, ""))(t)
	defer s.Abort()
	for _, c := range []struct {
		path string
		sel  zarr.Selection
		want error
	}{
		{"", zarr.Sel(), zarr.ErrKind},
		{"none", zarr.Sel(), zarr.ErrNotFound},
		{"t", zarr.Sel(zarr.At(12)), zarr.ErrSelection},
	} {
		if keys, _, err := db.Localize(bg, s, c.path, LocalizeOptions{Select: &c.sel}); !errors.Is(err, c.want) || keys != 0 {
			t.Errorf("/%s: %d keys, %v, want %v", c.path, keys, err, c.want)
		}
	}
}

// TestCheckReferencesAgain finds what changed on a server since the check before,
// of a database and of a set that stay open.
func TestCheckReferencesAgain(t *testing.T) {
	o := newOrigin(t, map[string][]byte{"/a": []byte("abc"), "/b": []byte("xyz")})
	follow := Follow{Allow: []string{o.URL}}
	name := folder(t, map[string]string{"refs.json": strings.ReplaceAll(setOf(3, `,"t/0":["ORIGIN/a",0,3],"t/1":["ORIGIN/b",0,3],"t/2":["ORIGIN/b",1,1]`), "ORIGIN", o.URL)}) + "/refs.json"
	adapters := hasty(remote.Options{})
	open := func(url string) *Source {
		t.Helper()
		src := must.Get(OpenSource(bg, url, &SourceOptions{Adapters: adapters, Follow: follow}))(t)
		t.Cleanup(func() { src.Close() })
		return src
	}
	set := open(name)
	opts := linkOptions(t, t.TempDir())
	opts.Adapters, opts.Follow = adapters, follow
	db := openDB(t, opts)
	must.Get(db.Import(bg, set, ImportOptions{Link: true, Validate: ValidateAll}))(t)
	closeChecked(t, db)
	version := open(db.Dir() + "/|zarrdb:")
	for _, step := range []struct {
		change            func()
		inSet, inDatabase string
	}{
		{func() {}, "", ""},
		{func() { o.files["/b"] = []byte("xy") }, "t/1 unreachable", "t/1 changed,t/2 changed"},
		{func() { delete(o.files, "/b") }, "t/1 unreachable,t/2 unreachable", "t/1 unreachable,t/2 unreachable"},
		{func() { o.files["/b"] = []byte("xyz") }, "", ""},
		{func() { o.tag = `"2"` }, "", "t/0 changed,t/1 changed,t/2 changed"},
	} {
		o.mu.Lock()
		step.change()
		o.mu.Unlock()
		if found, _ := problems(t, set, RefCheckOptions{}); strings.Join(found, ",") != step.inSet {
			t.Errorf("set: %q, want %q", found, step.inSet)
		}
		if found, _ := problems(t, version, RefCheckOptions{}); strings.Join(found, ",") != step.inDatabase {
			t.Errorf("database: %q, want %q", found, step.inDatabase)
		}
	}
}

// TestCheckReferencesInArchive looks beside the set for what it refers to.
func TestCheckReferencesInArchive(t *testing.T) {
	url := memoryURL(t, map[string]string{"x.zip": zipped(t, map[string]string{
		"d/refs.json": setOf(6, `,"t/0":["a/part",1,2],"t/1":["a/part",3,2],"t/2":["none"],"t/3":["../e"],"t/4":["`+virtual.Inside+`a/part",0,1],"t/5":["/etc/passwd"]`),
		"d/a/part":    "zarr", "e": "secret",
	})})
	src := openFollow(t, url+"x.zip|zip:d/refs.json", Follow{})
	want := []string{"t/1 unreachable", "t/2 unreachable", "t/3 forbidden", "t/5 forbidden"}
	if found, r := problems(t, src, RefCheckOptions{}); !slices.Equal(found, want) || r.Done != 6 {
		t.Errorf("%q, %+v", found, r)
	}
}

// TestCheckReferencesInParts stops a check at each problem, and between any two
// references, and goes on: every problem is seen once.
func TestCheckReferencesInParts(t *testing.T) {
	var chunks strings.Builder
	want := []string{}
	for i := range 20 {
		url := "a"
		if i%3 == 0 {
			url = "none"
			want = append(want, fmt.Sprintf("t/%02d", i))
		}
		fmt.Fprintf(&chunks, `,"t/%02d":[%q,0,1]`, i, url)
	}
	base := folder(t, map[string]string{"a": "a", "refs.json": setOf(20, chunks.String())})
	src := openFollow(t, base+"/refs.json", Follow{})
	for at := range int64(22) {
		var found []string
		r, err := src.CheckReferences(bg, RefCheckOptions{From: at, Problem: func(p RefProblem) error {
			found = append(found, p.Key)
			return nil
		}})
		rest := want[min((int(at)+2)/3, len(want)):]
		if err != nil || !slices.Equal(found, rest) || r.Done != 20 || r.Problems != int64(len(rest)) {
			t.Errorf("from %d: %q, %+v, %v", at, found, r, err)
		}
	}
	stop := errors.New("stop")
	var found []string
	for from := int64(0); from < 20; {
		seen := false
		r, err := src.CheckReferences(bg, RefCheckOptions{From: from, Problem: func(p RefProblem) error {
			if seen {
				return stop
			}
			seen = true
			found = append(found, p.Key)
			return nil
		}})
		if err != nil && err != stop || r.Done <= from {
			t.Fatalf("from %d: %+v, %v", from, r, err)
		}
		from = r.Done
	}
	if !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}
