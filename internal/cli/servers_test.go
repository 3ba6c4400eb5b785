package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// serve starts a web server that lives as long as the script. It lists nothing.
func serveFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: serve DIR NAME")
	}
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	ts.Defer(srv.Close)
	ts.Setenv(args[1], srv.URL)
}

// bucket starts a server like S3 that lives as long as the script. The file requests has a line for each request.
// It refuses the keys in the file denied. If that is empty, it ends all connections.
func bucket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bucket NAME")
	}
	backend := s3mem.New()
	ts.Check(backend.CreateBucket(args[0]))
	h, log := gofakes3.New(backend).Server(), ts.MkAbs("requests")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666); err == nil {
			fmt.Fprintln(f, r.Method, r.URL.Path)
			_ = f.Close()
		}
		keys, err := os.ReadFile(ts.MkAbs("denied"))
		if err == nil && strings.TrimSpace(string(keys)) == "" {
			panic(http.ErrAbortHandler)
		}
		for key := range strings.FieldsSeq(string(keys)) {
			if strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") {
				http.Error(w, "<Error><Code>ExpiredToken</Code></Error>", http.StatusForbidden)
				return
			}
		}
		h.ServeHTTP(w, r)
	}))
	ts.Defer(srv.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_S3": srv.URL, "AWS_NO_SIGN_REQUEST": "yes", "AWS_CONFIG_FILE": "none", "AWS_SHARED_CREDENTIALS_FILE": "none"} {
		ts.Setenv(name, value)
	}
}
