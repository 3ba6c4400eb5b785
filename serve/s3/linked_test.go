package s3

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// An object that is linked to a file says why the file cannot be read, and is never missing:
// a missing chunk would be read as the fill value.
func TestLinkedFiles(t *testing.T) {
	s := newSite(t, nil)
	dir := t.TempDir()
	file := filepath.Join(dir, "data.bin")
	must.Do(t, os.WriteFile(file, []byte("0123456789"), 0o600))
	link := func(name string, follow engine.Follow) {
		t.Helper()
		db, err := engine.Open(bg, name, &engine.Options{FS: vfs.NewMem(), Create: true, Follow: follow})
		must.Do(t, err)
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		_, err = db.Update(bg, "main", "m", func(e *engine.Session) error {
			return errors.Join(
				e.SetVirtual(bg, "here", tree.Source{URL: "file://" + filepath.ToSlash(file)}, 2, 4),
				e.SetVirtual(bg, "long", tree.Source{URL: "file://" + filepath.ToSlash(file)}, 2, 400),
				e.SetVirtual(bg, "other", tree.Source{URL: "file://" + filepath.ToSlash(file), Validator: `"another"`}, 2, 4),
				e.SetVirtual(bg, "gone", tree.Source{URL: "file://" + filepath.ToSlash(dir) + "/none"}, 2, 4),
			)
		})
		if err == nil {
			err = s.table.AddDatabase(name, db)
		}
		must.Do(t, err)
	}
	link("far", engine.Follow{Allow: []string{"file://" + filepath.ToSlash(dir) + "/"}})
	link("shut", engine.Follow{})
	c := s.client("reader", readerSecret)
	for _, test := range []struct {
		object, header string
		status         int
		code, body     string
	}{
		{"far/main/here", "", 200, "", "2345"},
		{"far/main/here", "Range: bytes=1-2", 206, "", "34"},
		{"far/main/long", "", 502, "LinkedFileUnreachable", "missing"},
		{"far/main/other", "", 409, "LinkedFileChanged", "has changed"},
		{"far/main/gone", "", 502, "LinkedFileUnreachable", "missing"},
		{"far/main/gone", "Range: bytes=1-2", 502, "LinkedFileUnreachable", "missing"},
		{"shut/main/here", "", 403, "AccessDenied", "may not read"},
	} {
		bucket, object, _ := strings.Cut(test.object, "/")
		c.bucket = bucket
		a := c.do("GET", object, "", "", test.header)
		if a.status != test.status || a.code != test.code || !strings.Contains(a.body, test.body) {
			t.Errorf("%s with %q: %+v", test.object, test.header, a)
		}
		if strings.Contains(a.body, dir) || a.head.Get("Content-Range") != "" && a.status >= 300 {
			t.Errorf("%s: %s, %v", test.object, a.body, a.head)
		}
	}
}

// No answer allows web pages to read: neither one with a body nor one without.
func TestNoOrigin(t *testing.T) {
	s := newSite(t, nil)
	_, in := s.begin()
	c := s.client("writer", writerSecret)
	for _, test := range []struct{ method, object, body string }{
		{"PUT", in + "c", "1"}, {"GET", "main/a/c/0/0", ""}, {"HEAD", "main/a/c/0/0", ""}, {"GET", "main/empty", ""}, {"DELETE", in + "c", ""}, {"GET", "main/none", ""}, {"HEAD", "main/none", ""},
	} {
		a := c.do(test.method, test.object, "", test.body)
		for name := range a.head {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: %s", test.method, test.object, name)
			}
		}
		if a.head.Get("Server") != "zarrdb" {
			t.Errorf("%s %s: server %q", test.method, test.object, a.head.Get("Server"))
		}
	}
}
