package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// tryLink links a set and returns the error.
func tryLink(t testing.TB, db *DB, url string, f Follow, o ImportOptions) (*ImportResult, error) {
	t.Helper()
	src := must.Get(OpenSource(bg, url, &SourceOptions{Follow: f}))(t)
	defer src.Close()
	o.Link = true
	return db.Import(bg, src, o)
}

// A linked chunk at the edge of a smaller shape is copied in with the elements that
// stay. If it cannot be read, the error names it and the shape stays.
func TestResizeOfLinkedChunk(t *testing.T) {
	base := folder(t, map[string]string{"x": "abcdefgh", "set.json": `{".zgroup":{"zarr_format":2},"t/.zarray":{"zarr_format":2,"shape":[8],"chunks":[4],` +
		`"dtype":"|u1","compressor":null,"filters":null,"fill_value":45,"order":"C"},"t/0":["x",0,4],"t/1":["x",4,4]}`})
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/set.json", Follow{}, ImportOptions{})
	commit(t, db, "main", "resize", func(s *Session) error {
		a := array(t, s, "t")
		return errors.Join(a.Resize(bg, []int64{6}, zarr.ResizeOptions{}), a.Resize(bg, []int64{8}, zarr.ResizeOptions{}))
	})
	if got, err := values(t, at(t, db, "")); string(got) != "abcdef--" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	s, err := db.Begin(bg, "main")
	must.Do(t, err)
	defer s.Close()
	must.Do(t, os.Remove(filepath.Join(base, "x")))
	if got, err := s.Get(bg, "t/1", kv.All()); string(got) != "ef--" || err != nil {
		t.Errorf("the chunk at the edge is %q, %v", got, err)
	}
	err = array(t, s, "t").Resize(bg, []int64{2}, zarr.ResizeOptions{})
	if err == nil || !strings.Contains(err.Error(), "resize t: chunk t/0: ") || array(t, s, "t").Shape()[0] != 8 {
		t.Errorf("a chunk that is gone: %v", err)
	}
}

// A set goes to a path of which the groups are made as the set has them, and a
// part of a set is linked alone.
func TestLinkPlaces(t *testing.T) {
	v3 := `{"zarr.json":{"zarr_format":3,"node_type":"group"},"t/zarr.json":{"zarr_format":3,"node_type":"array","shape":[1],"data_type":"int8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},` +
		`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]},"t/c/0":["x",1,1]}`
	v2 := strings.TrimSuffix(setOf(1, `,"t/0":["x",1,1]`), "}") + `,"u/.zgroup":{"zarr_format":2},"u/other":["x",2,1]}`
	base := folder(t, map[string]string{"x": "0123", "v2.json": v2, "v3.json": v3})
	for version, name := range map[zarr.Version]string{zarr.V2: "v2", zarr.V3: "v3"} {
		db := openDB(t, linkOptions(t, t.TempDir()))
		linkSet(t, db, base+"/"+name+".json", Follow{}, ImportOptions{To: name + "/b/c"})
		s := at(t, db, "")
		for _, path := range []string{name, name + "/b", name + "/b/c"} {
			if n, err := s.Node(bg, path); err != nil || n.Meta().Array || n.Version() != version {
				t.Errorf("/%s: %v, %v", path, n, err)
			}
		}
		if a := array(t, s, name+"/b/c/t"); a.Meta().Version != version {
			t.Errorf("%s: %v", name, a.Meta().Version)
		}
	}
	db := openDB(t, linkOptions(t, t.TempDir()))
	if res := linkSet(t, db, base+"/v2.json|kerchunk:t", Follow{}, ImportOptions{To: "part"}); res.Nodes != 1 || res.Keys != 2 {
		t.Errorf("%+v", res)
	}
	keys := contents(t, at(t, db, ""))
	if keys["part/0"] != "1" || keys["part/.zarray"] == "" || keys["part/u/other"] != "" || keys["u/other"] != "" {
		t.Errorf("a part: %v", keys)
	}
	before := head(t, db, "")
	if _, err := tryLink(t, db, base+"/v3.json", Follow{}, ImportOptions{To: "a/__b"}); err == nil {
		t.Error("to a name that is reserved")
	}
	unchanged(t, db, before)
}

// A copy of metadata above what is linked or joined is not left as it was.
func TestLinkConsolidated(t *testing.T) {
	base := folder(t, map[string]string{"refs.json": setOf(1, `,"t/0":"x"`)})
	for _, how := range []string{"link", "append", "copied append"} {
		db := openDB(t, nil)
		commit(t, db, "", "old", func(s *Session) error {
			const old = `{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2}}}`
			return errors.Join(s.Set(bg, ".zgroup", []byte(`{"zarr_format":2}`)), s.Set(bg, ".zmetadata", []byte(old)))
		})
		var err error
		if how == "link" {
			_, err = tryLink(t, db, base+"/refs.json", Follow{}, ImportOptions{To: "n"})
		} else {
			_, err = appendAll(db, "time", how == "append", ImportOptions{To: "n"}, pieces(t, dailySet(0), dailySet(1))...)
		}
		must.Do(t, err)
		if copied := contents(t, at(t, db, ""))[".zmetadata"]; copied != "" && !strings.Contains(copied, `"n/t/.zarray"`) {
			t.Errorf("%s: %s", how, copied)
		}
	}
}

// A stored session is as it was saved when linking into it fails.
func TestLinkIntoSession(t *testing.T) {
	base := folder(t, map[string]string{"bad.json": setOf(1, `,"t/0":["x",-1,1]`)})
	db := openDB(t, nil)
	s := must.Get(db.Begin(bg, ""))(t)
	id := s.ID()
	must.Do(t, errors.Join(s.Set(bg, "note", []byte("mine")), s.Detach(bg)))
	if _, err := tryLink(t, db, base+"/bad.json", Follow{}, ImportOptions{Session: &id}); err == nil {
		t.Fatal("no error")
	}
	s = must.Get(db.Resume(bg, id))(t)
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	if keys := contents(t, at(t, db, "")); len(keys) != 1 || keys["note"] != "mine" {
		t.Errorf("%v", keys)
	}
}

// The folder of a set may be followed if a reference leads there, and not else;
// what cannot be remembered is an error.
func TestLinkGrantsWhatIsFollowed(t *testing.T) {
	base := folder(t, map[string]string{
		"x": "0", "in.json": setOf(2, `,"t/0":["x",0,1],"t/1":["s3://b/x",0,1]`), "out.json": setOf(2, `,"t/0":["s3://b/x",0,1],"t/1":"i"`),
	})
	zip := memoryURL(t, map[string]string{"x.zip": zipped(t, map[string]string{"refs.json": setOf(1, `,"t/0":["s3://b/x",0,1]`)})}) + "x.zip|zip:refs.json"
	for url, granted := range map[string]bool{base + "/in.json": true, base + "/out.json": false, zip: false} {
		config := t.TempDir()
		db := openDB(t, linkOptions(t, config))
		linkSet(t, db, url, Follow{}, ImportOptions{})
		files := must.Get(filepath.Glob(config + "/follow/*.json"))(t)
		text := ""
		for _, name := range files {
			b := must.Get(os.ReadFile(name))(t)
			text += string(b)
		}
		if strings.Contains(text, "file://"+filepath.ToSlash(base)) != granted || strings.Contains(text, virtual.Inside) {
			t.Errorf("%s: granted %s", url, text)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	must.Do(t, os.WriteFile(file, nil, 0o666))
	db := openDB(t, linkOptions(t, file))
	if res, err := tryLink(t, db, base+"/in.json", Follow{}, ImportOptions{}); err != nil || res.NotGranted == nil {
		t.Errorf("%+v, %v", res, err)
	}
	res, err := appendAll(db, "time", true, ImportOptions{To: "n"}, pieceOf(dailySet(0).write(t, "f0.json"), Follow{Allow: []string{"s3://b/"}}))
	if err != nil || res.NotGranted == nil {
		t.Errorf("appended: %+v, %v", res, err)
	}
}

// An import names what reading does not follow, and an open database follows it as soon
// as that is granted, also by another that has it open.
func TestLinkedElsewhere(t *testing.T) {
	config, dir, far := t.TempDir(), t.TempDir(), filepath.ToSlash(t.TempDir())+"/"
	array := `{"zarr_format":2,"shape":[2],"chunks":[1],"dtype":"|u1","compressor":null,"filters":null,"fill_value":0,"order":"C"}`
	set := fmt.Sprintf(`{"a/.zarray":%s,"a/0":["file://%sx"],"a/1":["s3://bucket/y/z",0,1]}`, array, far)
	for name, text := range map[string]string{far + "x": "\x07", dir + "/set.json": set} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	db := openDB(t, linkOptions(t, config))
	url := "file://" + filepath.ToSlash(dir) + "/set.json"
	if res := linkSet(t, db, url, Follow{}, ImportOptions{}); !slices.Equal(res.Forbidden, []string{"file://" + far, "s3://bucket/"}) {
		t.Errorf("%q is not followed", res.Forbidden)
	}
	read := func() error {
		snap, err := db.At(bg, "main")
		must.Do(t, err)
		defer snap.Close()
		_, err = kv.Get(bg, snap, "a/0")
		return err
	}
	if err := read(); !errors.Is(err, ErrForbidden) || !strings.HasSuffix(err.Error(), fmt.Sprintf(": to follow it, allow %q", "file://"+far)) {
		t.Error(err)
	}
	other := must.Get(db.Handle(linkOptions(t, config)))(t)
	defer closeChecked(t, other)
	must.Do(t, other.Grant(Follow{Allow: []string{"file://" + far}}))
	if err := read(); err != nil {
		t.Error(err)
	}
	if res := linkSet(t, db, url, Follow{Allow: []string{"s3://bucket/y"}}, ImportOptions{Overwrite: true}); len(res.Forbidden) > 0 {
		t.Errorf("%q is not followed", res.Forbidden)
	}
	if err := other.Revoke("s3://bucket/y", "https://h/"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked what was not granted: %v", err)
	}
	must.Do(t, other.Revoke("s3://bucket/y/", "file://"+far))
	if res := linkSet(t, db, url, Follow{}, ImportOptions{Overwrite: true}); !slices.Equal(res.Forbidden, []string{"file://" + far, "s3://bucket/"}) {
		t.Errorf("%q is not followed, after it was revoked", res.Forbidden)
	}
	mine := openDB(t, linkOptions(t, config)) // a database of its own has its own grants
	if res := linkSet(t, mine, url, Follow{}, ImportOptions{}); len(res.Forbidden) != 2 {
		t.Errorf("%q is not followed", res.Forbidden)
	}
}

// What is named as forbidden can be allowed, and is not what the import itself grants.
func TestLinkedForbidden(t *testing.T) {
	config, dir := t.TempDir(), t.TempDir()
	array := `{"zarr_format":2,"shape":[4],"chunks":[1],"dtype":"|u1","compressor":null,"filters":null,"fill_value":0,"order":"C"}`
	set := fmt.Sprintf(`{"a/.zarray":%s,"a/0":["s3://b/in/x",0,1],"a/1":["s3://b/in/y",0,1],"a/2":["https://h/x::s3://c/y",0,1],"a/3":["s3://d/../x",0,1]}`, array)
	must.Do(t, os.WriteFile(dir+"/set.json", []byte(set), 0o600))
	db := openDB(t, linkOptions(t, config))
	url := "file://" + filepath.ToSlash(dir) + "/set.json"
	// One file of a folder may be allowed, and another one not.
	for allow, want := range map[string][]string{"s3://b/in/x": {"s3://b/"}, "s3://b/in": nil} {
		if res := linkSet(t, db, url, Follow{Allow: []string{allow}}, ImportOptions{Overwrite: true, Validate: ValidateNone}); !slices.Equal(res.Forbidden, want) {
			t.Errorf("%s: %q is not followed", allow, res.Forbidden)
		}
		must.Do(t, db.Revoke(allow))
	}
}

// What a set says of files is compared with them when it is linked, and recorded
// as it was found.
func TestLinkFiles(t *testing.T) {
	doc := `{"zarr_format":2,"shape":[1],"chunks":[1],"dtype":"|i1","compressor":null,"filters":null,"fill_value":0,"order":"C"}`
	meta := func(ref string) string { return `{".zgroup":{"zarr_format":2},"t/.zarray":` + ref + `}` }
	base := folder(t, map[string]string{
		"x": "0123", "empty": "", "meta": doc, "o/x": "0123",
		"empty.json": setOf(1, `,"t/0":["empty",0,1]`), "all.json": setOf(1, `,"t/0":["empty"]`), "nothing.json": setOf(1, `,"t/0":["empty",0,0]`), "behind.json": setOf(1, `,"t/0":["x",5,0]`),
		"far.json": setOf(1, `,"t/0":["s3://b/x",9223372036854775807,1]`), "much.json": setOf(1, `,"t/0":["s3://b/x",0,9223372036854775807]`),
		"doc.json": meta(`["meta"]`), "no.json": meta(`["meta",0,0]`), "none.json": meta(`["none"]`), "long.json": meta(fmt.Sprintf(`["meta",1,%d]`, len(doc))), "huge.json": meta(`["huge"]`), "range.json": meta(`["huge",0,67108865]`),
	})
	slash := filepath.ToSlash(base)
	must.Do(t, errors.Join(os.Truncate(base+"/meta", int64(len(doc))), os.WriteFile(base+"/huge", nil, 0o666), os.Truncate(base+"/huge", policy.MaxDocument+1)))
	db := openDB(t, linkOptions(t, t.TempDir()))
	before := head(t, db, "")
	for name, want := range map[string]error{
		"far.json": ErrUnreachable, "much.json": ErrUnreachable,
		"empty.json": ErrNotHere, "behind.json": ErrNotHere, "none.json": ErrUnreachable, "long.json": ErrUnreachable, "huge.json": zarr.ErrTooLarge, "range.json": zarr.ErrTooLarge,
	} {
		if _, err := tryLink(t, db, base+"/"+name, Follow{}, ImportOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		unchanged(t, db, before)
	}
	if res := linkSet(t, db, base+"/no.json", Follow{}, ImportOptions{}); len(res.Unreadable) != 1 {
		t.Errorf("a document of no bytes: %+v", res)
	}
	for _, name := range []string{"all.json", "nothing.json", "doc.json"} {
		linkSet(t, db, base+"/"+name, Follow{}, ImportOptions{Overwrite: true})
	}

	// URLs are absolute. Of a file that stands for another one nothing is recorded.
	urls := []string{"x", slash + "/x", "file://" + slash + "/x", "s3://b/x", "nobody://b/x"}
	chunks := ""
	for i, url := range urls {
		chunks += fmt.Sprintf(`,"t/%d":[%q,%d,1]`, i, url, i%4)
	}
	must.Do(t, os.WriteFile(base+"/urls.json", []byte(setOf(len(urls), chunks)), 0o666))
	maps := Follow{Map: []Mapping{{From: "nobody://b", To: slash + "/o"}, {From: "file://" + slash + "/x", To: slash + "/o/x"}}}
	for _, f := range []Follow{{Map: maps.Map[:1]}, maps} {
		linkSet(t, db, base+"/urls.json", f, ImportOptions{Overwrite: true})
		s := at(t, db, "")
		for i, url := range urls {
			v, err := s.Value(bg, fmt.Sprintf("t/%d", i))
			if i < 3 {
				url = "file://" + slash + "/x"
			}
			if err != nil || v.URL != url || (v.Validator != "") != (i < 3 && len(f.Map) == 1) {
				t.Errorf("%d: %+v, %v", i, v, err)
			}
		}
	}
}

// A file belongs to its own URL, however like the one before it is.
func TestLinkURLsAlike(t *testing.T) {
	base := folder(t, map[string]string{"s": "0", "http": "0", "aa": "0", "ab": "0"})
	slash := "file://" + filepath.ToSlash(base) + "/"
	urls := []string{"s3://b/s", "s", "https://h/s", "http", "aa", "ab", "s3://b/t", "file://" + filepath.ToSlash(base) + "/s", "s3://b/s", "s"}
	chunks := ""
	for i, url := range urls {
		chunks += fmt.Sprintf(`,"t/%d":[%q,0,1]`, i, url)
	}
	must.Do(t, os.WriteFile(base+"/refs.json", []byte(setOf(len(urls), chunks)), 0o666))
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	parquet := toParquet(t, base+"/refs.json")
	linkSet(t, db, parquet, Follow{}, ImportOptions{To: "p"})
	linkSet(t, db, parquet+"/", Follow{}, ImportOptions{To: "q"}) // the same folder
	s := at(t, db, "")
	for i, url := range urls {
		here := !strings.Contains(url, "://") || strings.HasPrefix(url, "file:")
		if !strings.Contains(url, "://") {
			url = slash + url
		}
		for _, key := range []string{"t", "p/t", "q/t"} {
			if v, err := s.Value(bg, fmt.Sprintf("%s/%d", key, i)); err != nil || v.URL != url || (v.Validator != "") != here {
				t.Errorf("%s/%d: %+v, %v, want %s", key, i, v, err, url)
			}
		}
	}
}

// Of the files of a set on a server nothing is asked, unless all are to be.
func TestLinkFromServer(t *testing.T) {
	o := newOrigin(t, map[string][]byte{"/d/refs.json": []byte(setOf(1, `,"t/0":["x",0,1]`)), "/d/x": []byte("0")})
	opts := linkOptions(t, t.TempDir())
	opts.Adapters = hasty(remote.Options{})
	db := openDB(t, opts)
	for validate, asked := range map[Validate]bool{ValidateLocal: false, ValidateAll: true, ValidateNone: false} {
		src, err := OpenSource(bg, o.URL+"/d/refs.json", &SourceOptions{Adapters: opts.Adapters})
		must.Do(t, err)
		o.requests()
		_, err = db.Import(bg, src, ImportOptions{Link: true, Validate: validate, Overwrite: true})
		must.Do(t, errors.Join(err, src.Close()))
		if is := strings.Contains(fmt.Sprint(o.requests()), "/d/x"); is != asked {
			t.Errorf("%v: asked %v", validate, is)
		}
		if v, err := at(t, db, "").Value(bg, "t/0"); err != nil || v.URL != o.URL+"/d/x" || (v.Validator != "") != asked {
			t.Errorf("%v: %+v, %v", validate, v, err)
		}
	}
}

// A check looks at every range, however many there are, in the part that is
// named, and asks again when it is made again.
func TestCheckReferencesRanges(t *testing.T) {
	var chunks strings.Builder
	const many = 2*batchEntries + 100
	var want []string
	for i := range many {
		url, at := "a", 0
		switch i {
		case 0, batchEntries - 1, batchEntries, 2 * batchEntries, many - 1:
			url = "none"
		case 7: // the difference of lengths would be less than nothing
			at = 5
		}
		if url != "a" || at > 0 {
			want = append(want, fmt.Sprintf("t/%d", i))
		}
		fmt.Fprintf(&chunks, `,"t/%d":[%q,%d,1]`, i, url, at)
	}
	base := folder(t, map[string]string{"a": "abc", "refs.json": strings.TrimSuffix(setOf(many, chunks.String()), "}") + `,"u/0":["none"],"u/1":["a",0,3],"u/2":"none"}`})
	src := openFollow(t, base+"/refs.json", Follow{})
	for from, rest := range map[int64][]string{0: want, 1: want[1:], 8: want[2:], batchEntries: want[3:], many - 1: want[5:], many: nil} {
		var found []string
		var last Progress
		r, err := src.CheckReferences(bg, RefCheckOptions{From: from, Progress: func(p Progress) { last = p }, Problem: func(p RefProblem) error {
			if !strings.HasPrefix(p.Key, "u/") {
				found = append(found, p.Key)
			}
			return nil
		}})
		if err != nil || !slices.Equal(found, rest) || r.Done != many+2 || r.Problems != int64(len(rest))+1 {
			t.Errorf("from %d: %q, %+v, %v", from, found, r, err)
		}
		if last.Keys > 0 && last.Keys < from {
			t.Errorf("from %d: progress %+v", from, last)
		}
	}
	part := openFollow(t, base+"/refs.json|kerchunk:u", Follow{})
	if found, r := problems(t, part, RefCheckOptions{}); !slices.Equal(found, []string{"0 unreachable"}) || r.Done != 2 {
		t.Errorf("a part: %q, %+v", found, r)
	}
	must.Do(t, os.WriteFile(base+"/none", []byte("abc"), 0o666))
	if found, r := problems(t, part, RefCheckOptions{}); len(found) > 0 || r.Done != 2 {
		t.Errorf("again: %q, %+v", found, r)
	}
}

// A check that is cancelled while it asks a server does not count what it did
// not see.
func TestCheckReferencesCancelled(t *testing.T) {
	o := newOrigin(t, map[string][]byte{"/refs.json": []byte(setOf(2, `,"t/0":["a",0,1],"t/1":["b",0,1]`)), "/a": []byte("a")})
	src := must.Get(OpenSource(bg, o.URL+"/refs.json", &SourceOptions{Adapters: hasty(remote.Options{})}))(t)
	defer src.Close()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	o.mu.Lock()
	o.before = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path == "/b" {
			cancel()
		}
		return false
	}
	o.mu.Unlock()
	r, err := src.CheckReferences(ctx, RefCheckOptions{Problem: func(p RefProblem) error {
		t.Errorf("problem %+v", p)
		return nil
	}})
	if !errors.Is(err, context.Canceled) || r.Done != 0 || r.Problems != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Paths are cleaned, and what cannot be read is named.
func TestLocalizePlaces(t *testing.T) {
	base := folder(t, map[string]string{"a": "abc", "refs.json": setOf(2, `,"t/0":["a",0,1],"t/1":["a",1,1]`)})
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	db = reopened(t, db)
	s := must.Get(db.Begin(bg, ""))(t)
	defer s.Abort()
	bad := must.Get(zarr.ParseSelection("7", nil))(t)
	if _, _, err := db.Localize(bg, s, "t", LocalizeOptions{Select: &bad}); !errors.Is(err, zarr.ErrSelection) {
		t.Errorf("a selection outside: %v", err)
	}
	if keys, n, err := db.Localize(bg, s, "/t/", LocalizeOptions{}); keys != 2 || n != 2 || err != nil {
		t.Errorf("%d keys, %d bytes, %v", keys, n, err)
	}
	other := must.Get(db.Begin(bg, ""))(t)
	defer other.Abort()
	must.Do(t, os.Remove(base+"/a"))
	if _, _, err := db.Localize(bg, other, "t", LocalizeOptions{}); !errors.Is(err, ErrUnreachable) || !strings.HasPrefix(err.Error(), "localize ") || !strings.Contains(err.Error(), "t/") {
		t.Errorf("error %v", err)
	}
}

// A URL that nothing reads is refused, also behind others of its host that are read.
func TestCheckReadableAfterOthers(t *testing.T) {
	for _, bad := range []string{"https://host/b%zz", "https://host/d/../b", "https://host/./b", "https://host/..", "https://host/a|b::c", "https://host/b?q=%zz"} {
		fresh := func() *linkedFiles { return &linkedFiles{adapters: []*Adapters{DefaultAdapters()}} }
		alone, f := fresh().checkReadable(bad), fresh()
		must.Do(t, f.checkReadable("https://host/a"))
		behind := f.checkReadable(bad)
		if (alone == nil) != (behind == nil) || alone != nil && !errors.Is(behind, ErrNotHere) {
			t.Errorf("%s: %v alone, %v behind another", bad, alone, behind)
		}
	}
}
