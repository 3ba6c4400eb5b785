package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// TestPipelines opens what testdata/urlpipe lists.
func TestPipelines(t *testing.T) {
	checkPipelines(t, func(abs string) string {
		return "file://" + (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath() + "/"
	})
}

// checkPipelines opens what testdata/urlpipe lists, below the URL that base
// gives for each directory.
func checkPipelines(t *testing.T, base func(dir string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/urlpipe/*/expect.json")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b := must.Get(os.ReadFile(file))(t)
		var spec struct{ Cases []pipeline }
		if err := json.Unmarshal(b, &spec); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		abs := must.Get(filepath.Abs(filepath.Dir(file)))(t)
		for _, c := range spec.Cases {
			t.Run(filepath.Base(filepath.Dir(file))+"/"+c.URL, func(t *testing.T) { c.check(t, base(abs)) })
		}
	}
}

type pipeline struct {
	URL      string
	Resolved string
	Error    string
	Node     *fixtureNode
	File     *struct {
		Size   int64
		SHA256 string
	}
	JSON json.RawMessage
	List []string
}

func (c pipeline) check(t *testing.T, base string) {
	src, err := OpenSource(bg, base+c.URL, nil)
	if c.Error != "" {
		if err == nil {
			defer src.Close()
			if _, err = src.File(bg); err == nil {
				return // a file that is no node: which of both is an error is not said
			}
			_, err = src.Node(bg)
		}
		if err == nil {
			t.Errorf("opened, but %s", c.Error)
		}
		return
	}
	must.Do(t, err)
	defer src.Close()
	switch {
	case c.Node != nil:
		n := must.Get(src.Node(bg))(t)
		a, ok := n.Array()
		if !ok || !slices.Equal(a.Shape(), c.Node.Shape) || sumOf(t, a) != c.Node.SHA {
			t.Errorf("another array: %v", n.Meta())
		}
	case c.File != nil:
		b := fileOf(t, src)
		if sum := sha256.Sum256(b); int64(len(b)) != c.File.Size || hex.EncodeToString(sum[:]) != c.File.SHA256 {
			t.Errorf("%d bytes, want %d, or other ones", len(b), c.File.Size)
		}
	case c.JSON != nil:
		if b := fileOf(t, src); !sameDocument(b, c.JSON) {
			t.Errorf("%s, want %s", b, c.JSON)
		}
	case c.List != nil:
		view := must.Get(src.Store())(t)
		keys, err := kv.Keys(bg, view, "")
		if err != nil || !slices.Equal(keys, c.List) {
			t.Errorf("keys %q, %v; want %q", keys, err, c.List)
		}
	}
	if c.Resolved != "" {
		if got, err := src.Detect(bg); err != nil || got != base+c.Resolved {
			t.Errorf("detected %s, %v; want %s", got, err, base+c.Resolved)
		}
	}
}

func fileOf(t *testing.T, src *Source) []byte {
	t.Helper()
	v := must.Get(src.File(bg))(t)
	b := must.Get(kv.ReadValue(bg, v, kv.All()))(t)
	return b
}

// TestPipelineTable opens URLs of a small world: a database with two versions,
// an archive, a store in memory.
func TestPipelineTable(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, filepath.Join(dir, "w.zdb"), &Options{Create: true, Author: "t"})
	first := commit(t, db, "", "one", func(s *Session) error {
		if err := create(s, "g/x", line(3, 2)); err != nil {
			return err
		}
		return s.Set(bg, "files/s.zip", []byte(zipped(t, map[string]string{"a/b.txt": "inside"})))
	})
	commit(t, db, "", "two", func(s *Session) error { return put(s, "g/x", 0, 100) })
	for name, id := range map[string]txn.CommitID{"v1": first, "both": first} {
		must.Do(t, db.store.CreateTag(bg, name, id))
	}
	for name, id := range map[string]txn.CommitID{"team/next": first, "both": head(t, db, "")} {
		must.Do(t, db.store.CreateBranch(bg, name, id))
	}
	old := must.Get(db.store.Lookup(bg, first))(t)
	closeChecked(t, db)
	mem := memoryURL(t, contentsOfVersion(t, db.Dir()))
	memory := strings.TrimSuffix(mem, "/")
	must.Do(t, os.WriteFile(filepath.Join(dir, "v1 store"), nil, 0o666))

	const one, two = 0, 100 // the first element in each version
	zdb := "file://" + filepath.ToSlash(dir) + "/w.zdb/|zarrdb:"
	for _, c := range []struct {
		url  string
		node int32
		file string
		err  error
	}{
		{url: zdb + "g/x", node: two},
		{url: zdb + "/g/x/", node: two},
		{url: zdb + "@branch.main/g/x", node: two},
		{url: zdb + "@main/g/x", node: two},
		{url: zdb + "@main~1/g/x", node: one},
		{url: zdb + "@tag.v1/g/x", node: one},
		{url: zdb + "@v1/g/x", node: one},
		{url: zdb + "@" + first.String() + "/g/x", node: one},
		{url: zdb + "@" + first.Short() + "/g/x", node: one},
		{url: zdb + "@branch.team%2Fnext/g/x", node: one},
		{url: zdb + "@tag.both/g/x", node: one},
		{url: zdb + "@branch.both/g/x", node: two},
		{url: zdb + "@" + old.Time.Format("2006-01-02T15:04:05.999999999Z07:00") + "/g/x", node: one},
		{url: zdb + "|zarr3:g/x", node: two},
		{url: zdb + "g/|zarr:x", node: two},
		{url: zdb + "files/s.zip|zip:a/b.txt", file: "inside"},
		{url: zdb + "files/s.zip|zip:a/b.txt|byte-range:2-4", file: "si"},
		{url: mem + "|zarr:g/x", node: two},
		{url: memory + "/g/x", node: two},
		{url: memory + "/g/x/|zarr3:", node: two},
		{url: memory + "/files/s.zip|zip:a/b.txt", file: "inside"},
		{url: memory + "/g/x/zarr.json|json:/shape/0", file: "3"},
		{url: filepath.Join(dir, "w.zdb", "FORMAT"), file: "zarrdb 1\n"},

		{url: zdb + "@tag.main/g/x", err: txn.ErrNoRef},
		{url: zdb + "@branch.v1/g/x", err: txn.ErrNoRef},
		{url: zdb + "@nope/g/x", err: txn.ErrNoRef},
		{url: zdb + "@1999-01-01T00:00:00Z/g/x", err: txn.ErrNoRef},
		{url: zdb + "g/nope", err: zarr.ErrNotFound},
		{url: zdb + "|zarr2:g/x", err: zarr.ErrNotFound},
		{url: zdb + "../x", err: zurl.ErrURL},
		{url: zdb + "g%2F..%2F..%2Fx", err: zurl.ErrURL},
		{url: zdb + "|nosuch:", err: ErrFormat},
		{url: "nosuch://x/y", err: ErrFormat},
		{url: mem + "|zarr3:g/x|zarr3:", err: zurl.ErrURL},
		{url: mem + "|zip:", err: zurl.ErrURL},
		{url: memory + "/g|zip:", err: kv.ErrNotFound},
		{url: memory + "/g/x/zarr.json|zip:", err: kv.ErrCorrupt},
		{url: memory + "/g/x/zarr.json|gzip:", err: kv.ErrCorrupt},
		{url: memory + "/g/x/zarr.json|byte-range:0-99999", err: kv.ErrRange},
		{url: memory + "/g/x/zarr.json|json:/nope", err: kv.ErrNotFound},
		{url: memory + "/files/s.zip|json:", err: kv.ErrCorrupt},
		{url: mem + "|zarrdb:", err: ErrFormat},
		{url: filepath.Join(dir, "none"), err: fs.ErrNotExist},
		{url: filepath.Join(dir, "w.zdb", "FORMAT") + "/", err: ErrFormat},
		{url: "file://" + filepath.ToSlash(dir) + "/v1%20store|zarr:", err: ErrFormat},
		{url: "file://" + filepath.ToSlash(dir) + "/v1%20store", err: ErrFormat},
		{url: "file://elsewhere/x", err: zurl.ErrURL},
		{url: "", err: zurl.ErrURL},
	} {
		src, err := OpenSource(bg, c.url, nil)
		if err == nil {
			if c.file != "" {
				if got := string(fileOf(t, src)); got != c.file {
					t.Errorf("%s: %q, want %q", c.url, got, c.file)
				}
			} else {
				var n *zarr.Node
				if n, err = src.Node(bg); err == nil && c.err == nil {
					a, _ := n.Array()
					v, _, rerr := zarr.Read[int32](bg, a, zarr.Sel())
					if rerr != nil || v[0] != c.node {
						t.Errorf("%s: %v, %v; want %d first", c.url, v, rerr, c.node)
					}
				}
			}
			if cerr := src.Close(); cerr != nil {
				t.Errorf("%s: close: %v", c.url, cerr)
			}
		}
		if !errors.Is(err, c.err) || err != nil && c.err == nil {
			t.Errorf("%s: error %v, want %v", c.url, err, c.err)
		}
		where, _, _ := strings.Cut(c.url, "|")
		if err != nil && !errors.Is(err, zarr.ErrNotFound) && !strings.Contains(err.Error(), strings.TrimSuffix(where, "/")) {
			t.Errorf("%s: the error does not say where: %v", c.url, err)
		}
	}
}

// contentsOfVersion reads the newest version of a database on disk.
func contentsOfVersion(t *testing.T, dir string) map[string]string {
	t.Helper()
	src := must.Get(OpenDatabaseSource(bg, dir, "", "", "", nil))(t)
	defer src.Close()
	view := must.Get(src.Store())(t)
	return contents(t, view)
}

func TestDetection(t *testing.T) {
	deflated := func(s string) string { return zipped(t, map[string]string{"zarr.json": s}) }
	for _, c := range []struct {
		what string
		keys map[string]string
		at   string // of a file in it
		want string // adapters, "" for none
	}{
		{"v2 array", map[string]string{".zarray": arrayV2()}, "", "|zarr2:"},
		{"v2 group", map[string]string{".zgroup": `{"zarr_format":2}`, "meta": "{}"}, "", "|zarr2:"},
		{"v3", map[string]string{"zarr.json": arrayV3()}, "", "|zarr3:"},
		{"both", map[string]string{"zarr.json": arrayV3(), ".zarray": arrayV2()}, "", ""},
		{"v1", map[string]string{
			"meta":  `{"zarr_format":1,"shape":[2],"chunks":[2],"dtype":"<i4","compression":"none","compression_opts":null,"fill_value":0,"order":"C"}`,
			"attrs": "{}",
		}, "", "|zarr:"},
		{"early draft", map[string]string{
			"zarr.json":            `{"zarr_format":"https://purl.org/zarr/spec/protocol/core/3.0","metadata_encoding":"https://purl.org/zarr/spec/protocol/core/3.0","metadata_key_suffix":".json","extensions":[]}`,
			"meta/root.group.json": `{"attributes":{}}`,
		}, "", "|zarr:"},
		{"earlier draft", map[string]string{"meta/group.json": `{"attributes":{}}`}, "", "|zarr:"},
		{"earlier draft without a root", map[string]string{"meta/a.g/b.a/array.json": `{}`}, "", "|zarr:"},
		{"something named meta", map[string]string{"meta/a.json": `{}`}, "", ""},
		{"archive", map[string]string{"a.zip": deflated(arrayV3())}, "a.zip", "|zip:|zarr3:"},
		{"archive without groups", map[string]string{"a.zip": zipped(t, map[string]string{"readme": "x", "x/y/zarr.json": arrayV3()})}, "a.zip", "|zip:|zarr:"},
		{"archive of something else", map[string]string{"a.zip": zipped(t, map[string]string{"x/readme": "x"})}, "a.zip", ""},
		{"directory without groups", map[string]string{"x/.zarray": arrayV2()}, "", ""},
		{"something named FORMAT", map[string]string{"FORMAT": "pdf"}, "", ""},
		{"nothing", map[string]string{"readme": "x"}, "", ""},
		{"a text", map[string]string{"readme": "x"}, "readme", ""},
		{"an empty file", map[string]string{"readme": ""}, "readme", ""},
	} {
		url := memoryURL(t, c.keys) + c.at
		got, err := openURL(t, url).Detect(bg)
		switch {
		case c.want == "" && !errors.Is(err, ErrFormat):
			t.Errorf("%s: %s, %v", c.what, got, err)
		case c.want != "" && (err != nil || got != url+c.want):
			t.Errorf("%s: %s, %v; want %s", c.what, got, err, url+c.want)
		}
	}
}

// A registry of one's own: what is not in it is not known.
func TestRegisteredAdapters(t *testing.T) {
	a := source.NewAdapters()
	a.RegisterRoot("memory", func(_ context.Context, _ *source.Env, part zurl.Part) (source.Place, error) {
		key, err := part.Key()
		name, path, _ := strings.Cut(key, "/")
		return source.Place{View: Memory(name), Path: path}, err
	})
	upper := source.Adapter{Open: func(ctx context.Context, _ *source.Env, from source.Place, _ zurl.Part) (source.Place, error) {
		v, err := from.File(ctx)
		if err != nil {
			return from, err
		}
		b, err := kv.ReadValue(ctx, v, kv.All())
		if err != nil {
			return from, err
		}
		m := kv.NewMem()
		return source.Place{View: m, Path: "file", Kind: source.File}, m.Set(ctx, "file", bytes.ToUpper(b))
	}}
	a.RegisterAdapter("upper", upper)
	url := memoryURL(t, map[string]string{"a": "text"})
	src := must.Get(OpenSource(bg, url+"a|upper:", &SourceOptions{Adapters: a}))(t)
	if got := string(fileOf(t, src)); got != "TEXT" {
		t.Errorf("got %q", got)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenSource(bg, url+"a|gzip:", &SourceOptions{Adapters: a}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"gzip"`) {
		t.Errorf("error %v", err)
	}
	roots, adapters := a.Schemes()
	if !slices.Equal(roots, []string{"memory"}) || !slices.Equal(adapters, []string{"upper"}) {
		t.Errorf("schemes %v %v", roots, adapters)
	}
	defer func() {
		if recover() == nil {
			t.Error("a scheme was registered twice")
		}
	}()
	a.RegisterAdapter("upper", upper)
}
