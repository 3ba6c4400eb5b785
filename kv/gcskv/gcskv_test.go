package gcskv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/remote"
)

var bg = context.Background()

// alone makes sure that nothing about the machine's own configuration counts.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"STORAGE_EMULATOR_HOST", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GS_NO_SIGN_REQUEST"} {
		t.Setenv(name, "")
	}
	t.Setenv("NO_GCE_CHECK", "true")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("APPDATA", t.TempDir())
}

// fake speaks as much of the JSON API as is used, for one bucket.
type fake struct {
	mu         sync.Mutex
	objects    map[string]object
	generation int64
	pageSize   int
	token      string // that requests must come with
	log        []string
}

type object struct {
	value      []byte
	generation string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, r.Method+" "+r.RequestURI)
	const api = "/storage/v1/b/bucket/o"
	query := r.URL.Query()
	rest, isObject := strings.CutPrefix(r.URL.EscapedPath(), api+"/")
	key, err := url.PathUnescape(rest)
	o, found := f.objects[key]
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Header.Get("Authorization") != f.token:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error": {"code": 401, "message": "who is %s", "errors": [{"reason": "authError"}]}}`, r.Header.Get("Authorization"))
	case r.Method == http.MethodPost && r.URL.Path == "/upload"+api:
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		now := cmp.Or(f.objects[query.Get("name")].generation, "0")
		if query.Has("ifGenerationMatch") && query.Get("ifGenerationMatch") != now {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		f.generation++
		f.objects[query.Get("name")] = object{b, strconv.FormatInt(f.generation, 10)}
		fmt.Fprintf(w, `{"generation": "%d"}`, f.generation)
	case r.URL.Path == api:
		f.list(w, query)
	case !isObject:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error": {"code": 404, "message": "The specified bucket does not exist.", "errors": [{"reason": "notFound"}]}}`)
	case !found:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "No such object: bucket/%s", key)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case query.Get("alt") != "media":
		fmt.Fprintf(w, `{"size": "%d", "generation": "%s", "md5Hash": "XrY7u+Ae7tCTyyK7j1rNww==", "updated": "2025-01-02T03:04:05.678Z"}`, len(o.value), o.generation)
	case query.Has("ifGenerationMatch") && query.Get("ifGenerationMatch") != o.generation:
		w.WriteHeader(http.StatusPreconditionFailed)
	case query.Get("ifGenerationNotMatch") == o.generation:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("X-Goog-Generation", o.generation)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.value))
	}
}

func (f *fake) list(w http.ResponseWriter, q url.Values) {
	type item struct {
		Name string `json:"name"`
	}
	var answer struct {
		Items         []item   `json:"items,omitempty"`
		Prefixes      []string `json:"prefixes,omitempty"`
		NextPageToken string   `json:"nextPageToken,omitempty"`
	}
	n, last := 0, q.Get("pageToken")
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		name, below := key, false
		if q.Get("delimiter") != "" && ok {
			if dir, _, isDir := strings.Cut(rest, "/"); isDir {
				name, below = q.Get("prefix")+dir+"/", true
			}
		}
		if !ok || key < q.Get("startOffset") || name <= last {
			continue
		}
		if n == f.pageSize {
			answer.NextPageToken = last
			break
		}
		if n++; below {
			answer.Prefixes = append(answer.Prefixes, name)
		} else {
			answer.Items = append(answer.Items, item{name})
		}
		last = name
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func serve(t *testing.T, f *fake) string {
	t.Helper()
	if f.objects == nil {
		f.objects = map[string]object{}
	}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL
}

func open(t *testing.T, o Options) *View {
	t.Helper()
	v := must.Get(Open("bucket", &o))(t)
	return v
}

func TestConformance(t *testing.T) {
	alone(t)
	conform(t, func(t *testing.T) string { return serve(t, &fake{pageSize: 50}) }, "", nil)
}

// TestConformanceServer runs the suite against a server that is not ours, whose
// URL is in ZARRDB_GCS_ENDPOINT, with a bucket "bucket".
func TestConformanceServer(t *testing.T) {
	url := os.Getenv("ZARRDB_GCS_ENDPOINT")
	if url == "" {
		t.Skip("ZARRDB_GCS_ENDPOINT names no server")
	}
	alone(t)
	must.Do(t, kv.DeletePrefix(bg, open(t, Options{Endpoint: url}), ""))
	conform(t, func(*testing.T) string { return url }, "t%d/", func(key string) bool { return !strings.ContainsAny(key, "\n\r") })
}

// conform runs the suite, each test below a prefix of its own if that is not "".
func conform(t *testing.T, start func(*testing.T) string, prefix string, holds func(string) bool) {
	n := 0
	kvtest.Run(t, func(t *testing.T) kv.Reader {
		view := open(t, Options{Endpoint: start(t)})
		if prefix == "" {
			return view
		}
		n++
		return kv.Sub(view, fmt.Sprintf(prefix, n))
	}, kvtest.Options{
		Invalid: []string{"..", "."},
		Holds: func(key string) bool {
			return validKey(key) == nil && (holds == nil || holds(key)) && (!testing.Short() || !strings.HasPrefix(key, "many"))
		},
		Steps: 150,
	})
}

func TestCredentials(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "adc.json")
	must.Do(t, os.WriteFile(file, []byte(`{"type": "hidden"`), 0o600))
	f := &fake{objects: map[string]object{"k": {[]byte("v"), "1"}}}
	google := answers(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "storage.googleapis.com" || r.URL.Scheme != "https" {
			t.Errorf("asked %s", r.URL)
		}
		rec := httptest.NewRecorder()
		r.RequestURI = r.URL.RequestURI()
		f.ServeHTTP(rec, r)
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	})
	for name, test := range map[string]struct {
		env  map[string]string
		want string // the header
		err  string
	}{
		"nobody":       {},
		"token":        {env: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "hidden"}, want: "Bearer hidden"},
		"asked not to": {env: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "hidden", "GS_NO_SIGN_REQUEST": "YES"}},
		"bad file":     {env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}, err: "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			f.token = test.want
			view := open(t, Options{Remote: remote.Options{Transport: google}})
			b, err := view.Get(bg, "k", kv.All())
			if test.err == "" && (err != nil || string(b) != "v") || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) || err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("%q, %v", b, err)
			}
			f.token = "another"
			if _, err := view.Get(bg, "k", kv.All()); err == nil || strings.Contains(err.Error(), "hidden") || test.err == "" && !strings.Contains(err.Error(), "401 Unauthorized (authError)") {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// answers is a RoundTripper that needs no network.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestToken fetches a token with a file of credentials, once.
func TestToken(t *testing.T) {
	alone(t)
	fetched := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "fresh", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer issuer.Close()
	file := filepath.Join(t.TempDir(), "adc.json")
	text := fmt.Sprintf(`{"type": "external_account", "audience": "//iam.googleapis.com/x", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"token_url": %q, "credential_source": {"file": %q}}`, issuer.URL, file)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for range 3 {
		req := httptest.NewRequest(http.MethodGet, "https://storage.googleapis.com/", nil)
		if err := sign(req); err != nil || req.Header.Get("Authorization") != "Bearer fresh" {
			t.Fatalf("%v, %q", err, req.Header.Get("Authorization"))
		}
	}
	if fetched != 1 {
		t.Errorf("the token was fetched %d times", fetched)
	}
}

func TestRequests(t *testing.T) {
	alone(t)
	f := &fake{objects: map[string]object{"a b/c+d": {[]byte("0123"), "7"}}, pageSize: 10}
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(serve(t, f), "http://"))
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "hidden") // not for an emulator
	view := open(t, Options{})
	v := must.Get(view.Locate(bg, "a b/c+d"))(t)
	must.Do(t, v.View(bg, kv.Span(1, 2), func([]byte) error { return nil }))
	want := []string{
		"GET /storage/v1/b/bucket/o/a%20b%2Fc+d?fields=size%2Cgeneration%2Cmd5Hash%2Cupdated",
		"GET /storage/v1/b/bucket/o/a%20b%2Fc+d?alt=media&ifGenerationMatch=7",
	}
	if !slices.Equal(f.log, want) {
		t.Errorf("requests %q, want %q", f.log, want)
	}
	if got := v.(kv.Validator).Validator(); got != "generation:7 size:4" {
		t.Errorf("validator %q", got)
	}
	if got := kv.StampOf(v); got.ETag != `"5eb63bbbe01eeed093cb22bb8f5acdc3"` || !got.Modified.Equal(time.Date(2025, 1, 2, 3, 4, 5, 678e6, time.UTC)) {
		t.Errorf("stamp %+v", got)
	}
}

func TestMissing(t *testing.T) {
	alone(t)
	url := serve(t, &fake{})
	other := must.Get(Open("other", &Options{Endpoint: url}))(t)
	var e *remote.Error
	if _, err := other.Get(bg, "k", kv.All()); !errors.As(err, &e) || e.Status != 404 {
		t.Errorf("a bucket that is not there: %v", err)
	}
	if _, err := other.Locate(bg, "k"); !errors.As(err, &e) || e.Status != 404 {
		t.Errorf("a bucket that is not there: %v", err)
	}
	if _, err := kv.Keys(bg, other, ""); !errors.As(err, &e) || e.Code != "notFound" {
		t.Errorf("a bucket that is not there: %v", err)
	}
	closed := serve(t, &fake{token: "x"})
	for _, missing := range []bool{false, true} {
		if _, err := open(t, Options{Endpoint: closed, Forbidden: missing}).Get(bg, "k", kv.All()); missing != (err == kv.ErrNotFound) {
			t.Errorf("401 as missing %v: %v", missing, err)
		}
	}
}

// TestOddAnswers reads what servers might say.
func TestOddAnswers(t *testing.T) {
	alone(t)
	for name, answer := range map[string]string{
		"nothing": "", "no JSON": "<html>", "no size": `{"generation": "1"`, "negative": `{"size": "-5", "generation": "1"}`, "no generation": `{"size": "5"}`, "a number": `{"size": 5, "generation": 1}`,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		v, err := open(t, Options{Endpoint: srv.URL}).Locate(bg, "k")
		if !errors.Is(err, remote.ErrAnswer) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		srv.Close()
	}
	for name, bucket := range map[string]string{"empty": "", "slash": "a/b", "dots": "..", "upper": "Bucket", "query": "abc?x"} {
		if _, err := Open(bucket, nil); err == nil {
			t.Errorf("%s bucket opened", name)
		}
	}
	for _, endpoint := range []string{"ftp://h", "http://joe:hidden@h", "http://"} {
		if _, err := Open("bucket", &Options{Endpoint: endpoint}); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
