package engine

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
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
	for _, url := range []string{base + "/x?sig=hidden", base + "/x/?sig=hidden|zarr3:", base + "/x.zip?sig=hidden|zip:|zarr3:", base + "/x?sig=hidden|nope:", base + "/x?sig=hidden|zip:/a|json:|zip:"} {
		src, err := OpenSource(bg, url, nil)
		if err == nil {
			_, err = src.Node(bg)
			if cerr := src.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "joe") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
