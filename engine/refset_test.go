package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// refCase is a reference set that kerchunk, fsspec or VirtualiZarr wrote. The
// sets belong to package refs; testdata there says who wrote them.
type refCase struct {
	name, dir string
	Kind      string
	Refs      string
	Keys      string
	Expanded  string
	URLMap    map[string]string `json:"url_map"`
	Arrays    []fixtureNode
}

func refCases(t testing.TB, pattern string) (list []*refCase) {
	t.Helper()
	files, err := filepath.Glob("../refs/testdata/fixtures/" + pattern + "/expect.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		dir := must.Get(filepath.Abs(filepath.Dir(file)))(t)
		c := &refCase{name: filepath.Base(dir), dir: dir}
		c.read(t, "expect.json", c)
		list = append(list, c)
	}
	return list
}

func (c *refCase) read(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err == nil {
		err = json.Unmarshal(bytes.ReplaceAll(b, []byte("@CASE@"), []byte(c.dir)), v)
	}
	if err != nil {
		t.Fatalf("%s/%s: %v", c.dir, name, err)
	}
}

// set is the path of the set, of which placeholders are filled in.
func (c *refCase) set(t testing.TB) string {
	t.Helper()
	path := filepath.Join(c.dir, c.Refs)
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(b, []byte("@CASE@")) {
		return path
	}
	tmp := t.TempDir()
	must.Do(t, os.CopyFS(tmp, os.DirFS(c.dir)))
	c.dir = tmp
	path = filepath.Join(tmp, c.Refs)
	must.Do(t, os.WriteFile(path, bytes.ReplaceAll(b, []byte("@CASE@"), []byte(tmp)), 0o666))
	return path
}

func (c *refCase) follow() (f Follow) {
	for from, to := range c.URLMap {
		f.Map = append(f.Map, Mapping{From: from, To: "file://" + filepath.ToSlash(c.dir) + "/" + to})
	}
	return f
}

func openFollow(t testing.TB, url string, f Follow) *Source {
	t.Helper()
	src := must.Get(OpenSource(bg, url, &SourceOptions{Follow: f}))(t)
	t.Cleanup(func() { src.Close() })
	return src
}

func nodeOf(t testing.TB, url string, f Follow) *zarr.Array {
	t.Helper()
	n := must.Get(openFollow(t, url, f).Node(bg))(t)
	a, ok := n.Array()
	if !ok {
		t.Fatalf("%s is not an array", url)
	}
	return a
}

// Sets read as stores, with the kerchunk step and where it is detected.
func TestReferenceSets(t *testing.T) {
	for _, c := range refCases(t, "*") {
		if c.Kind != "references" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			set := c.set(t)
			for _, a := range c.Arrays {
				if sum := sumOf(t, nodeOf(t, set+"|kerchunk:|zarr:"+a.Path, c.follow())); sum != a.SHA {
					t.Errorf("%s: other values", a.Path)
				}
			}
			var keys map[string]struct {
				Size   int
				SHA256 string
			}
			c.read(t, c.Keys, &keys)
			store := must.Get(openFollow(t, set+"|kerchunk:", c.follow()).Store())(t)
			for key, want := range keys {
				b := must.Get(kv.Get(bg, store, key))(t)
				if sum := sha256.Sum256(b); len(b) != want.Size || hex.EncodeToString(sum[:]) != want.SHA256 {
					t.Errorf("%s: %d bytes instead of %d, or others", key, len(b), want.Size)
				}
			}
			if url, err := openFollow(t, set, c.follow()).Detect(bg); err != nil || !strings.Contains(url, "|kerchunk:|zarr2:") {
				t.Errorf("detected %s, %v", url, err)
			}
		})
	}
}

// folder writes files below a new directory.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	base := t.TempDir()
	for name, text := range files {
		path := filepath.Join(base, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
	}
	return base
}

func TestFollow(t *testing.T) {
	base := folder(t, map[string]string{
		"set/refs.json": `{"in":["data/a"],"out":["../other/a"],"abs":["BASE/other/a"],"s3":["s3://bucket/x/a"],"far":["nowhere://h/a"],"gone":["data/none"],"long":["data/a",1,9]}`,
		"set/data/a":    "inside",
		"other/a":       "outside",
	})
	name := base + "/set/refs.json"
	text := must.Get(os.ReadFile(name))(t)
	must.Do(t, os.WriteFile(name, bytes.ReplaceAll(text, []byte("BASE"), []byte(filepath.ToSlash(base))), 0o666))
	slash := filepath.ToSlash(base)
	open := Follow{Allow: []string{slash + "/other"}, Map: []Mapping{{From: "s3://bucket", To: "file://" + slash}, {From: "s3://bucket/x", To: "file://" + slash + "/other"}}}
	for _, c := range []struct {
		key  string
		f    Follow
		want string
		err  error
	}{
		{"in", Follow{}, "inside", nil},
		{"out", Follow{}, "", ErrForbidden},
		{"out", open, "", ErrForbidden}, // dots lead out of the folder, whatever is allowed
		{"abs", Follow{}, "", ErrForbidden},
		{"abs", open, "outside", nil},
		{"s3", Follow{}, "", ErrForbidden},
		{"s3", open, "outside", nil},
		{"far", open, "", ErrForbidden},
		{"far", Follow{Allow: []string{"nowhere://h"}}, "", ErrFormat},
		{"gone", Follow{}, "", ErrUnreachable},
		{"long", Follow{}, "", ErrUnreachable},
	} {
		store := must.Get(openFollow(t, name+"|kerchunk:", c.f).Store())(t)
		b, err := kv.Get(bg, store, c.key)
		if string(b) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.key, b, err, c.want, c.err)
		}
	}
	if _, err := OpenSource(bg, name, &SourceOptions{Follow: Follow{Allow: []string{"relative"}}}); err == nil {
		t.Error("a relative prefix is allowed")
	}
}

// A symbolic link does not lead out of where references may go.
func TestFollowLinks(t *testing.T) {
	base := folder(t, map[string]string{"set/refs.json": `{"a":["link"],"b":["dir/secret"]}`, "out/secret": "secret"})
	for _, link := range [][2]string{{"../out/secret", "/set/link"}, {"../out", "/set/dir"}} {
		if err := os.Symlink(link[0], base+link[1]); err != nil {
			t.Skip(err)
		}
	}
	store := must.Get(openFollow(t, base+"/set/refs.json|kerchunk:", Follow{}).Store())(t)
	for _, key := range []string{"a", "b"} {
		if b, err := kv.Get(bg, store, key); err == nil {
			t.Errorf("%s: %q through a link", key, b)
		}
	}
}

// A set may lie in an archive, with the files that it refers to.
func TestReferencesInArchive(t *testing.T) {
	url := memoryURL(t, map[string]string{"x.zip": zipped(t, map[string]string{
		"d/refs.json": `{"k":["a/part",1,2]}`,
		"d/a/part":    "zarr",
		"d/bad.json":  `{"k":["a/..",1]}`,
	})})
	store := must.Get(openFollow(t, url+"x.zip|zip:d/refs.json|kerchunk:", Follow{}).Store())(t)
	if b, err := kv.Get(bg, store, "k"); string(b) != "ar" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	bad := must.Get(openFollow(t, url+"x.zip|zip:d/bad.json|kerchunk:", Follow{}).Store())(t)
	if keys, err := kv.Keys(bg, bad, ""); err == nil {
		t.Errorf("a damaged set has the keys %q", keys)
	}
}

// Copying a set into a database leaves nothing that refers elsewhere.
func TestImportReferenceSet(t *testing.T) {
	c := refCases(t, "nc4_inline_small")[0]
	db := openDB(t, nil)
	must.Get(db.Import(bg, openFollow(t, c.set(t), Follow{}), ImportOptions{}))(t)
	s := at(t, db, "")
	for _, a := range c.Arrays {
		if sum := sumOf(t, array(t, s, a.Path)); sum != a.SHA {
			t.Errorf("%s: other values", a.Path)
		}
	}
	for v, err := range s.Values(bg, "") {
		if err != nil || v.Kind == "virtual" {
			t.Error(v, err)
		}
	}
}
