package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
)

// TestPipelinesHTTP opens the same pipelines as TestPipelines from a web server.
func TestPipelinesHTTP(t *testing.T) {
	srv := httptest.NewServer(http.FileServer(http.Dir("testdata/urlpipe")))
	t.Cleanup(srv.Close)
	checkPipelines(t, func(dir string) string { return srv.URL + "/" + filepath.Base(dir) + "/" })
}

// TestRemoteSecrets opens what is not there with a user and a token.
func TestRemoteSecrets(t *testing.T) {
	srv := httptest.NewServer(http.FileServer(http.Dir(t.TempDir())))
	defer srv.Close()
	base := strings.Replace(srv.URL, "//", "//joe:hidden@", 1)
	for _, address := range []string{base + "/x?sig=hidden", base + "/x/?sig=hidden|zarr3:", base + "/x.zip?sig=hidden|zip:|zarr3:", base + "/x?sig=hidden|nope:", base + "/x?sig=hidden|zip:/a|json:|zip:"} {
		src, err := OpenSource(bg, address, nil)
		if err == nil {
			_, err = src.Node(bg)
			if cerr := src.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "joe") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// bucket starts a server like S3 with a bucket "b", and has s3: URLs lead there.
func bucket(t *testing.T) {
	t.Helper()
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bkt"))
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": srv.URL, "AWS_NO_SIGN_REQUEST": "yes", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		t.Setenv(name, value)
	}
}

// storeAt opens what a URL names for writing.
func storeAt(t *testing.T, url string) kv.Store {
	t.Helper()
	src := openURL(t, url)
	d := must.Get(src.destination(bg, url))(t)
	return d.store
}

// TestPipelinesS3 opens the same pipelines as TestPipelines from a bucket.
func TestPipelinesS3(t *testing.T) {
	bucket(t)
	from := must.Get(dirkv.Open("testdata/urlpipe", &dirkv.Options{ReadOnly: true}))(t)
	defer from.Close()
	to := storeAt(t, "s3://bkt/deep/")
	for key, err := range from.List(bg, kv.ListOptions{}) {
		must.Do(t, err)
		v, err := kv.Get(bg, from, key)
		if err == nil {
			err = to.Set(bg, key, v)
		}
		must.Do(t, err)
	}
	checkPipelines(t, func(dir string) string { return "s3://bkt/deep/" + filepath.Base(dir) + "/" })
}

// TestExportToStore exports to stores that are no directories, and back.
func TestExportToStore(t *testing.T) {
	bucket(t)
	keys := smallStore(t)
	src := openURL(t, memoryURL(t, keys))
	for _, dest := range []string{"s3://bkt/a/b", "s3://bkt/other.zarr/", memoryURL(t, nil) + "x"} {
		res, err := Export(bg, src, dest, ExportOptions{})
		if err != nil || res.Keys != int64(len(keys)) {
			t.Fatalf("%s: %+v, %v", dest, res, err)
		}
		sameContents(t, contents(t, storeAt(t, dest)), keys)

		if _, err := Export(bg, src, dest, ExportOptions{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s again: %v", dest, err)
		}
		store := storeAt(t, dest)
		must.Do(t, store.Set(bg, "stranger", nil))
		if _, err := Export(bg, src, dest, ExportOptions{Resume: true}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s with a stranger resumed: %v", dest, err)
		}
		if _, err := Export(bg, src, dest, ExportOptions{Overwrite: true}); err != nil {
			t.Errorf("%s overwritten: %v", dest, err)
		}
		sameContents(t, contents(t, store), keys)

		// What is no store is left alone.
		must.Do(t, kv.DeletePrefix(bg, store, ""))
		must.Do(t, store.Set(bg, "photo.jpg", []byte("x")))
		if _, err := Export(bg, src, dest, ExportOptions{Overwrite: true}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s over a photo: %v", dest, err)
		}
	}
	for _, dest := range []string{"s3://bkt/a.zip", "s3://bkt/x|zip:", "http://127.0.0.1/x"} {
		if _, err := Export(bg, src, dest, ExportOptions{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", dest, err)
		}
	}
}

// TestImportFromStore imports a hierarchy from a bucket and finds it the same.
func TestImportFromStore(t *testing.T) {
	bucket(t)
	keys := smallStore(t)
	must.Get(Export(bg, openURL(t, memoryURL(t, keys)), "s3://bkt/in", ExportOptions{}))(t)
	db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
	defer closeChecked(t, db)
	must.Get(db.Import(bg, openURL(t, "s3://bkt/in"), ImportOptions{}))(t)
	view := must.Get(db.At(context.Background(), "main"))(t)
	got := contents(t, view)
	for k := range keys {
		if got[k] != keys[k] {
			t.Errorf("%s differs", k)
		}
	}
	if names := slices.Collect(func(yield func(string) bool) {
		for k := range got {
			if _, ok := keys[k]; !ok && !yield(k) {
				return
			}
		}
	}); len(names) > 0 {
		t.Errorf("more than what was imported: %q", names)
	}
}

// TestPipelineGS opens an archive in a bucket of a server like that of Google.
func TestPipelineGS(t *testing.T) {
	archive := []byte(zipped(t, map[string]string{"in/x.txt": "inside"}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Goog-Generation", "5")
		switch {
		case r.URL.EscapedPath() != "/storage/v1/b/bkt/o/deep%2Fa%20b.zip":
			http.NotFound(w, r)
		case r.URL.Query().Get("alt") == "media":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(archive))
		default:
			fmt.Fprintf(w, `{"size": "%d", "generation": "5"}`, len(archive))
		}
	}))
	defer srv.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	if b := fileOf(t, openURL(t, "gs://bkt/deep/a%20b.zip|zip:in/x.txt")); string(b) != "inside" {
		t.Errorf("%q", b)
	}
	if _, err := openURL(t, "gs://bkt/deep/none.zip").File(bg); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
}
