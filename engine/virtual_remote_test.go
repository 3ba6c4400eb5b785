package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// elsewhere is a kind of server that references lead to.
type elsewhere struct {
	name string
	url  func(o *origin) string // of what lies below the server's path
	path string
	// signed is what requests carry, "" if they are not signed.
	signed string
}

var elsewheres = []elsewhere{
	{"http", func(o *origin) string { return o.URL + "/top/" }, "/top/", ""},
	{"s3", func(*origin) string { return "s3://bkt/top/" }, "/bkt/top/", "AWS4-HMAC-SHA256 Credential=KEYID/"},
	{"gs", func(*origin) string { return "gs://bkt/top/" }, "/storage/v1/b/bkt/o/top/", ""},
}

// endpoints has s3: and gs: URLs lead to a server, with credentials for S3.
func endpoints(t *testing.T, o *origin) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": o.URL, "AWS_ACCESS_KEY_ID": "KEYID", "AWS_SECRET_ACCESS_KEY": "HIDDEN", "AWS_SESSION_TOKEN": "TOKEN", "AWS_NO_SIGN_REQUEST": "",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true",
		"STORAGE_EMULATOR_HOST": o.URL,
	} {
		t.Setenv(name, value)
	}
}

// follows is a database that links a set and follows what f says.
func follows(t *testing.T, set string, f Follow) *DB {
	t.Helper()
	opts := memOptions()
	opts.Adapters, opts.Follow = hasty(remote.Options{}), f
	db := openDB(t, opts)
	src := must.Get(OpenSource(bg, folder(t, map[string]string{"refs.json": set})+"/refs.json", &SourceOptions{Adapters: opts.Adapters}))(t)
	defer src.Close()
	must.Get(db.Import(bg, src, ImportOptions{Link: true, Validate: ValidateNone}))(t)
	return db
}

// TestLinkChangedElsewhere finds out on each kind of server that a file is another
// one than was linked, or is gone.
func TestLinkChangedElsewhere(t *testing.T) {
	data := numbered(40)
	for _, kind := range elsewheres {
		t.Run(kind.name, func(t *testing.T) {
			o := newOrigin(t, map[string][]byte{kind.path + "a": data})
			generation := "5"
			o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
				o.mu.Lock()
				defer o.mu.Unlock()
				b, ok := o.files[r.URL.Path]
				switch {
				case !ok:
					http.NotFound(w, r)
				case kind.name == "gs" && r.URL.Query().Get("alt") != "media" && r.Method == http.MethodGet:
					fmt.Fprintf(w, `{"size":"%d","generation":%q}`, len(b), generation)
				default:
					w.Header().Set("ETag", o.tag)
					w.Header().Set("X-Goog-Generation", generation)
					http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
				}
				return true
			}
			endpoints(t, o)
			top := kind.url(o)
			opts := linkOptions(t, t.TempDir())
			opts.Adapters, opts.Follow = hasty(remote.Options{}), Follow{Allow: []string{top}}
			db := openDB(t, opts)
			set := tiles(20, "null", []string{fmt.Sprintf("[%q,20,20]", top+"a"), fmt.Sprintf("[%q,0,20]", top+"a")})
			src := must.Get(OpenSource(bg, folder(t, map[string]string{"refs.json": set})+"/refs.json", &SourceOptions{Adapters: opts.Adapters, Follow: opts.Follow}))(t)
			defer src.Close()
			must.Get(db.Import(bg, src, ImportOptions{Link: true, Validate: ValidateAll}))(t)
			change := func(tag, number string, b []byte) {
				o.mu.Lock()
				defer o.mu.Unlock()
				if o.tag, generation = tag, number; b == nil {
					delete(o.files, kind.path+"a")
				} else {
					o.files[kind.path+"a"] = b
				}
			}
			read := func() ([]byte, error) {
				db = reopened(t, db)
				return values(t, at(t, db, ""))
			}
			want := append(slices.Clone(data[20:]), data[:20]...)
			if b, err := read(); err != nil || !bytes.Equal(b, want) {
				t.Fatalf("%v, %v", b, err)
			}
			change(`"2"`, "6", slices.Repeat([]byte{7}, 40))
			if _, err := read(); !errors.Is(err, kv.ErrChanged) {
				t.Errorf("another version: %v", err)
			}
			change(`"1"`, "5", data)
			if b, err := read(); err != nil || !bytes.Equal(b, want) {
				t.Errorf("as it was: %v, %v", b, err)
			}
			change("", "", nil)
			if _, err := read(); !errors.Is(err, ErrUnreachable) || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("gone: %v", err)
			}
		})
	}
}

// TestVirtualElsewhere reads virtual chunks from each kind of server, and sends requests to
// no other, whatever the server and the set say.
func TestVirtualElsewhere(t *testing.T) {
	data := numbered(61)
	for _, kind := range elsewheres {
		t.Run(kind.name, func(t *testing.T) {
			o := newOrigin(t, map[string][]byte{kind.path + "d/a b": data, kind.path + "e/a": data, "/bkt/secret": data, "/secret": data})
			inner := newOrigin(t, map[string][]byte{"/d/a": data})
			endpoints(t, o)
			top := kind.url(o)
			var header http.Header
			look := func(_ http.ResponseWriter, r *http.Request, _ int) bool {
				o.mu.Lock()
				header = r.Header
				o.mu.Unlock()
				return false
			}
			o.before = look
			ref := func(url string, i int) string { return fmt.Sprintf(`[%q,%d,20]`, url, i*20) }
			set := tiles(20, "null", []string{ref(top+"d/a b", 2), ref(top+"d/a b", 0), ref(top+"d/a b", 1)})
			want := bytes.Join([][]byte{data[40:60], data[:20], data[20:40]}, nil)

			db := follows(t, set, Follow{Allow: []string{top + "d/"}})
			for range 2 {
				if got := readAll(t, at(t, db, "")); !bytes.Equal(got, want) {
					t.Error("other values")
				}
				o.want(t, "allowed", "GET "+kind.path+"d/a b 0-59")
			}
			if got := header.Get("Authorization"); !strings.HasPrefix(got, kind.signed) || kind.signed == "" && got != "" {
				t.Errorf("sent as %q", got)
			}

			// What is not allowed is not asked for, nor is what a mapping takes away.
			for what, f := range map[string]Follow{"nothing": {}, "a neighbour": {Allow: []string{top + "e/", top + "d/a"}}, "another server": {Allow: []string{inner.URL + "/"}}} {
				if _, err := values(t, at(t, follows(t, set, f), "")); !errors.Is(err, ErrForbidden) {
					t.Errorf("%s allowed: %v", what, err)
				}
				o.want(t, what)
			}
			for _, url := range []string{top + "d/../e/a", top + "d/%2e%2e/e/a", top + "d/../../secret", top + `d\..\e\a`, inner.URL + "/d/a", "/etc/passwd", "file:///etc/passwd", "http://169.254.169.254/latest/meta-data/"} {
				set := tiles(20, "null", []string{ref(url, 0)})
				if _, err := values(t, at(t, follows(t, set, Follow{Allow: []string{top + "d/"}}), "")); !errors.Is(err, ErrForbidden) {
					t.Errorf("%s: %v", url, err)
				}
				o.want(t, url)
			}
			inner.want(t, "what is forbidden")

			// Mapped to a folder, and from a server that is gone.
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, "a b"), data, 0o666))
			if got := readAll(t, at(t, follows(t, set, Follow{Map: []Mapping{{From: top + "d/", To: dir}}}), "")); !bytes.Equal(got, want) {
				t.Error("mapped to a folder: other values")
			}
			o.want(t, "mapped away")
			gone := strings.ReplaceAll(set, top, "https://gone.invalid/x/")
			if got := readAll(t, at(t, follows(t, gone, Follow{Map: []Mapping{{From: "https://gone.invalid/x", To: strings.TrimSuffix(top, "/")}}}), "")); !bytes.Equal(got, want) {
				t.Error("mapped to the server: other values")
			}
			o.want(t, "mapped here", "GET "+kind.path+"d/a b 0-59")

			// A redirect leads nowhere, whatever kind, and takes nothing along.
			for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
				for _, to := range []string{inner.URL + "/d/a", strings.Replace(inner.URL, "127.0.0.1", "localhost", 1) + "/d/a", "file:///etc/passwd", "http://169.254.169.254/"} {
					o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
						http.Redirect(w, r, to, status)
						return true
					}
					_, err := values(t, at(t, db, ""))
					if err == nil || strings.Contains(err.Error(), "HIDDEN") || strings.Contains(err.Error(), "TOKEN") {
						t.Errorf("%d to %s: %v", status, to, err)
					}
				}
			}
			inner.want(t, "redirects")

			// Missing files and buckets are errors, not fill values.
			o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
				http.NotFound(w, r)
				return true
			}
			if _, err := values(t, at(t, db, "")); !errors.Is(err, ErrUnreachable) {
				t.Errorf("missing: %v", err)
			}
			o.before = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			if _, err := values(t, at(t, db, "")); err == nil {
				t.Error("403 is not an error")
			}
		})
	}
}

// TestVirtualWaitsAlone has one reader wait for a server, which must not keep
// another from giving up.
func TestVirtualWaitsAlone(t *testing.T) {
	o := newOrigin(t, map[string][]byte{"/a": []byte("abcdefgh")})
	asked, answer := make(chan struct{}), make(chan struct{})
	o.before = func(_ http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			close(asked)
			<-answer
		}
		return false
	}
	opts := memOptions()
	opts.Adapters, opts.Follow = hasty(remote.Options{}), Follow{Allow: []string{o.URL}}
	files := openDB(t, opts).files
	src := tree.Source{URL: o.URL + "/a"}
	first := make(chan error)
	go func() {
		_, err := files.Locate(bg, src, 0, 4)
		first <- err
	}()
	<-asked
	ended, cancel := context.WithCancel(bg)
	cancel()
	second := make(chan error)
	go func() {
		_, err := files.Locate(ended, src, 0, 4)
		second <- err
	}()
	select {
	case err := <-second:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the second: %v", err)
		}
	case <-time.After(time.Minute): // waits for the first
		t.Error("the second reader waits for the first")
		defer func() { <-second }()
	}
	close(answer)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}

// TestGrantsAreReadAgain has the memory of what references may follow fail once.
func TestGrantsAreReadAgain(t *testing.T) {
	dir := folder(t, map[string]string{"a": "abcdefgh"})
	db := openDB(t, memOptions())
	files := db.files
	boom := errors.New("too many open files")
	db.env.Recall = func() (Follow, error) {
		if boom != nil {
			return Follow{}, boom
		}
		return Follow{Allow: []string{dir}}, nil
	}
	src := tree.Source{URL: "file://" + dir + "/a"}
	if _, err := files.Locate(bg, src, 0, 4); !errors.Is(err, boom) {
		t.Errorf("%v, want %v", err, boom)
	}
	boom = nil
	v, err := files.Locate(bg, src, 0, 4)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if b, err := kv.ReadValue(bg, v, kv.All()); err != nil || string(b) != "abcd" {
		t.Errorf("%q, %v", b, err)
	}
}
