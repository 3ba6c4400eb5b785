package s3kv

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/remote"
)

var bg = context.Background()

// alone makes sure that nothing about the machine's own configuration counts.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS", "AWS_NO_SIGN_REQUEST", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// fake is a server in the process with an empty bucket.
func fake(t *testing.T) (url string) {
	t.Helper()
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	srv := httptest.NewServer(gofakes3.New(backend).Server())
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
	url := fake(t)
	n := 0
	kvtest.Run(t, func(t *testing.T) kv.Reader {
		// A view of its own for each test, below one bucket of one server.
		n++
		return kv.Sub(open(t, Options{Endpoint: url, Anonymous: true}), fmt.Sprintf("t%d", n))
	}, kvtest.Options{
		Invalid: []string{"..", "../a", "a/..", "a/./b", "."},
		Holds: func(key string) bool {
			if testing.Short() && strings.HasPrefix(key, "many") {
				return false // a listing for every beginning of every key
			}
			// The server in the process lists without escapes, and XML has none
			// for control characters. It takes "a//b" for "a/b".
			return validKey(key) == nil && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' }) && !strings.Contains(key, "//")
		},
		Steps: 150,
	})
}

// signed is a bucket behind a check of the signature: it makes the same one
// from what it knows.
type signed struct {
	t                  *testing.T
	key, secret, token string
	region             string
	mu                 sync.Mutex
	seen               []string
	next               http.Handler
	wrong              int
}

func (s *signed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.RequestURI)
	got, want := r.Header.Get("Authorization"), s.authorization(r)
	if s.key != "" && got != want || s.key == "" && got != "" || r.Header.Get("X-Amz-Security-Token") != s.token {
		s.wrong++
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><StringToSign>%s</StringToSign></Error>", got)
		return
	}
	s.next.ServeHTTP(w, r)
}

// authorization is what the header of a request must be (Signature Version 4), at
// the time and for the headers that it names.
func (s *signed) authorization(r *http.Request) string {
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	date := r.Header.Get("X-Amz-Date")
	list := strings.Split(names, ";")
	for _, name := range []string{"host", "x-amz-content-sha256", "x-amz-date"} {
		if len(date) != len("20060102T150405Z") || !slices.Contains(list, name) {
			return "no date, or too little that is signed"
		}
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	lines := []string{r.Method, path, strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")}
	for _, name := range list {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		lines = append(lines, name+":"+value)
	}
	lines = append(lines, "", names, r.Header.Get("X-Amz-Content-Sha256"))
	canonical := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	scope := []string{date[:8], s.region, "s3", "aws4_request"}
	key := []byte("AWS4" + s.secret)
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	for _, part := range scope {
		key = mac(part)
	}
	of := strings.Join(scope, "/")
	sum := mac(fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", date, of, canonical))
	return fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", s.key, of, names, sum)
}

// TestCredentials checks which credentials of the environment and the files
// sign.
func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		env        map[string]string
		files      [2]string // config, credentials
		o          Options
		key, token string
		region     string
	}{
		"nobody":          {region: "us-east-1"},
		"variables":       {env: map[string]string{"AWS_ACCESS_KEY_ID": "K1", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "T", "AWS_REGION": "eu-1"}, key: "K1", token: "T", region: "eu-1"},
		"default profile": {files: [2]string{"[default]\nregion = eu-2\n", "[default]\naws_access_key_id = K2\naws_secret_access_key = hidden\n"}, key: "K2", region: "eu-2"},
		"named profile": {
			env:   map[string]string{"AWS_PROFILE": "p"},
			files: [2]string{"[profile p]\nregion = eu-3\n", "[default]\naws_access_key_id = K2\naws_secret_access_key = x\n[p]\naws_access_key_id = K3\naws_secret_access_key = hidden\naws_session_token = T3\n"},
			key:   "K3", token: "T3", region: "eu-3",
		},
		"variables before files": {env: map[string]string{"AWS_ACCESS_KEY_ID": "K4", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_DEFAULT_REGION": "eu-4"}, files: [2]string{"[default]\nregion = eu-2\n", "[default]\naws_access_key_id = K2\naws_secret_access_key = x\n"}, key: "K4", region: "eu-4"},
		"asked to be nobody":     {env: map[string]string{"AWS_ACCESS_KEY_ID": "K5", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_NO_SIGN_REQUEST": "YES"}, region: "us-east-1"},
		"options":                {env: map[string]string{"AWS_ACCESS_KEY_ID": "K6", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_REGION": "x"}, o: Options{Region: "eu-6"}, key: "K6", region: "eu-6"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			backend := s3mem.New()
			must.Do(t, backend.CreateBucket("bucket"))
			check := &signed{t: t, key: test.key, secret: "hidden", token: test.token, region: test.region, next: gofakes3.New(backend).Server()}
			srv := httptest.NewServer(check)
			defer srv.Close()
			t.Setenv("AWS_ENDPOINT_URL", srv.URL)
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			for i, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
				if test.files[i] != "" {
					file := filepath.Join(t.TempDir(), name)
					must.Do(t, os.WriteFile(file, []byte(test.files[i]), 0o600))
					t.Setenv(name, file)
				}
			}
			view := open(t, test.o)
			key := "a b/c+d=é&%2F~'(x)!"
			must.Do(t, view.Set(bg, key, []byte("value")))
			if b, err := view.Get(bg, key, kv.Span(1, 2)); err != nil || string(b) != "al" {
				t.Errorf("%q, %v", b, err)
			}
			v := must.Get(view.Locate(bg, key))(t)
			if err := v.View(bg, kv.Last(2), func(b []byte) error {
				if string(b) != "ue" {
					t.Errorf("%q", b)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if keys, err := kv.Keys(bg, view, "a b/"); err != nil || !slices.Equal(keys, []string{key}) {
				t.Errorf("%q, %v", keys, err)
			}
			if err := view.Delete(bg, key); err != nil {
				t.Error(err)
			}
			if check.wrong > 0 {
				t.Errorf("%d requests with a wrong signature", check.wrong)
			}
			// A refusal reveals nothing of the secret.
			check.secret, check.key = "another", "K"
			if _, err := view.Get(bg, key, kv.All()); err == nil || !strings.Contains(err.Error(), "403 Forbidden (SignatureDoesNotMatch)") || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "Signature=") {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// TestContainerRole takes the credentials that a container is given, and asks for
// them again when they have run out.
func TestContainerRole(t *testing.T) {
	alone(t)
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	check := &signed{t: t, key: "ROLE", secret: "hidden", token: "T0", region: "us-east-1", next: gofakes3.New(backend).Server()}
	srv := httptest.NewServer(check)
	defer srv.Close()
	lives := time.Hour
	asked := 0
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "for us" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		check.mu.Lock()
		check.token = fmt.Sprintf("T%d", asked)
		check.mu.Unlock()
		fmt.Fprintf(w, `{"AccessKeyId":"ROLE","SecretAccessKey":"hidden","Token":"T%d","Expiration":%q}`, asked, time.Now().Add(lives).UTC().Format(time.RFC3339))
		asked++
	}))
	defer role.Close()
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL+"/creds")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "for us")
	for _, want := range []int{1, 4} { // once, and then each time
		view := open(t, Options{})
		for range 3 {
			must.Do(t, view.Set(bg, "k", []byte("v")))
		}
		if asked != want {
			t.Errorf("asked %d times, want %d", asked, want)
		}
		lives = -time.Hour
		t.Setenv("AWS_ROLE_ARN", "another") // somebody else
	}
	if check.wrong > 0 {
		t.Errorf("%d requests with a wrong signature", check.wrong)
	}
}

// TestFailures tries again what may pass, and says of the rest what it is.
func TestFailures(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		status int
		code   string
		tries  int
	}{
		{503, "SlowDown", 3}, {500, "InternalError", 3}, {400, "RequestTimeout", 3}, {429, "TooManyRequests", 3}, {502, "", 3},
		{400, "ExpiredToken", 1}, {403, "RequestTimeTooSkewed", 1}, {403, "AccessDenied", 1}, {404, "NoSuchBucket", 1}, {405, "MethodNotAllowed", 1},
	} {
		n := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n++
			w.WriteHeader(test.status)
			fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", test.code)
		}))
		defer srv.Close()
		view := open(t, Options{Endpoint: srv.URL, Anonymous: true, Remote: remote.Options{Tries: 3, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}})
		_, get := view.Get(bg, "k", kv.Span(0, 3))
		_, list := kv.Keys(bg, view, "")
		for op, err := range map[string]error{"get": get, "list": list, "set": view.Set(bg, "k", []byte("v")), "delete": view.Delete(bg, "k")} {
			var e *remote.Error
			if !errors.As(err, &e) || e.Status != test.status || e.Code != test.code || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%s, %d %s: %v", op, test.status, test.code, err)
			}
		}
		if n != 4*test.tries {
			t.Errorf("%d %s: %d requests, want %d", test.status, test.code, n, 4*test.tries)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "f")
	must.Do(t, os.WriteFile(file, []byte("[default\naws_secret_access_key = hidden\n"), 0o600))
	for name, test := range map[string]struct {
		bucket string
		o      Options
		env    [2]string
		want   string
	}{
		"bucket":        {bucket: "a/b", want: "bucket"},
		"no bucket":     {bucket: "", want: "bucket"},
		"endpoint":      {bucket: "b-b", o: Options{Endpoint: "host:1"}, want: "endpoint"},
		"user":          {bucket: "b-b", o: Options{Endpoint: "http://joe:hidden@host"}, want: "user"},
		"region":        {bucket: "b-b", o: Options{Region: "x.evil.example/"}, want: "region"},
		"profile":       {bucket: "b-b", o: Options{Profile: "none"}, want: "no profile"},
		"malformed ini": {bucket: "b-b", env: [2]string{"AWS_CONFIG_FILE", file}, want: "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.env[0] != "" {
				t.Setenv(test.env[0], test.env[1])
			}
			_, err := Open(test.bucket, &test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hidden") {
				t.Error(err)
			}
		})
	}
}

// rounds is a RoundTripper that needs no network.
type rounds func(*http.Request) (*http.Response, error)

func (f rounds) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRegions finds a bucket that is not where it is looked for.
func TestRegions(t *testing.T) {
	alone(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "K")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hidden")
	var hosts []string
	answer := func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.Method+" "+r.URL.String())
		rec := httptest.NewRecorder()
		home := "eu-west-9"
		rec.Header().Set("X-Amz-Bucket-Region", home)
		switch {
		case !strings.Contains(r.URL.Host, home):
			rec.WriteHeader(http.StatusMovedPermanently)
		case !strings.Contains(r.Header.Get("Authorization"), "/"+home+"/s3/"):
			t.Errorf("signed %s", r.Header.Get("Authorization"))
		default:
			_, _ = rec.WriteString("xyz")
		}
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	}
	for bucket, want := range map[string][]string{
		"bucket": {"GET https://bucket.s3.us-east-1.amazonaws.com/k%20k", "GET https://bucket.s3.eu-west-9.amazonaws.com/k%20k", "GET https://bucket.s3.eu-west-9.amazonaws.com/k%20k"},
		"a.b.c":  {"GET https://s3.us-east-1.amazonaws.com/a.b.c/k%20k", "GET https://s3.eu-west-9.amazonaws.com/a.b.c/k%20k", "GET https://s3.eu-west-9.amazonaws.com/a.b.c/k%20k"},
	} {
		hosts = nil
		view := must.Get(Open(bucket, &Options{Remote: remote.Options{Transport: rounds(answer)}}))(t)
		for range 2 {
			if b, err := view.Get(bg, "k k", kv.All()); err != nil || string(b) != "xyz" {
				t.Errorf("%q, %v", b, err)
			}
		}
		if !slices.Equal(hosts, want) {
			t.Errorf("asked %q, want %q", hosts, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{Region: "cn-north-1"}, "https://bucket.s3.cn-north-1.amazonaws.com.cn/k"},
		{Options{Endpoint: "http://h:9000"}, "http://h:9000/bucket/k"},
		{Options{Endpoint: "http://h:9000/deep/"}, "http://h:9000/deep/bucket/k"},
		{Options{Endpoint: "https://h", VirtualHost: true}, "https://bucket.h/k"},
	} {
		got := ""
		test.o.Remote.Transport = rounds(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			rec := httptest.NewRecorder()
			resp := rec.Result()
			resp.Request = r
			return resp, nil
		})
		if _, err := open(t, test.o).Get(bg, "k", kv.All()); err != nil || got != test.want {
			t.Errorf("asked %s, %v; want %s", got, err, test.want)
		}
	}
}

// TestOddListings reads what servers might list.
func TestOddListings(t *testing.T) {
	alone(t)
	page := func(more string, keys ...string) string {
		s := "<ListBucketResult>" + more
		for _, k := range keys {
			s += "<Contents><Key>" + k + "</Key></Contents>"
		}
		return s + "</ListBucketResult>"
	}
	const more = "<IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>"
	for name, test := range map[string]struct {
		pages []string
		keys  []string
		err   string
	}{
		"markers":          {[]string{page("", "a/", "a/x", "a/y/", "b")}, []string{"a/x", "b"}, ""},
		"escaped":          {[]string{page("<EncodingType>url</EncodingType>", "a+b%0A", "c%2Bd")}, []string{"a b\n", "c+d"}, ""},
		"bad escape":       {[]string{page("<EncodingType>url</EncodingType>", "a%zz")}, nil, "invalid URL escape"},
		"dots":             {[]string{page("", "../x", "a/../b", "c")}, []string{"c"}, ""},
		"two pages":        {[]string{page(more, "a", "b"), page("", "c")}, []string{"a", "b", "c"}, ""},
		"empty first page": {[]string{page(more), page("", "c")}, []string{"c"}, ""},
		"no order":         {[]string{page("", "b", "a")}, []string{"b"}, "impossible answer"},
		"twice":            {[]string{page(more, "a"), page("", "a")}, []string{"a"}, "impossible answer"},
		"same token":       {[]string{page(more, "a"), page(more, "b"), page(more, "c")}, []string{"a", "b"}, "does not send them"},
		"no token":         {[]string{page("<IsTruncated>true</IsTruncated>", "a")}, nil, "no continuation token"},
		"no XML":           {[]string{"<html>"}, nil, "malformed"},
		"nothing":          {[]string{""}, nil, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n++
				_, _ = w.Write([]byte(test.pages[n-1]))
			}))
			defer srv.Close()
			view := open(t, Options{Endpoint: srv.URL})
			var keys []string
			var last error
			for k, err := range view.List(bg, kv.ListOptions{}) {
				if last = err; err == nil {
					keys = append(keys, k)
				}
			}
			if !slices.Equal(keys, test.keys) || (last == nil) != (test.err == "") || last != nil && !strings.Contains(last.Error(), test.err) {
				t.Errorf("%q, %v", keys, last)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	alone(t)
	url := fake(t)
	if _, err := open(t, Options{Endpoint: url}).Get(bg, "k", kv.All()); err != kv.ErrNotFound {
		t.Error(err)
	}
	other := must.Get(Open("other", &Options{Endpoint: url}))(t)
	var e *remote.Error
	if _, err := other.Get(bg, "k", kv.All()); !errors.As(err, &e) || e.Code != "NoSuchBucket" {
		t.Errorf("a bucket that is not there: %v", err)
	}
	if _, err := kv.Keys(bg, other, ""); !errors.As(err, &e) || e.Code != "NoSuchBucket" {
		t.Errorf("a bucket that is not there: %v", err)
	}
	for _, missing := range []bool{false, true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code></Error>"))
		}))
		defer srv.Close()
		if _, err := open(t, Options{Endpoint: srv.URL, Forbidden: missing}).Get(bg, "k", kv.All()); missing != (err == kv.ErrNotFound) {
			t.Errorf("403 as missing %v: %v", missing, err)
		}
		if _, err := open(t, Options{Endpoint: srv.URL, Forbidden: missing}).GetTagged(bg, "k", kv.NoValue, 100); err == nil || errors.Is(err, kv.ErrNotFound) {
			t.Errorf("tagged: %v", err)
		}
	}
}

// TestDeletePrefix removes more than one batch of keys.
func TestDeletePrefix(t *testing.T) {
	alone(t)
	view := open(t, Options{Endpoint: fake(t)})
	want := map[string]bool{"x": true, "y": true}
	for k := range want {
		must.Do(t, view.Set(bg, k, nil))
	}
	for i := range 40 {
		must.Do(t, view.Set(bg, fmt.Sprintf("d/%d", i), []byte("v")))
	}
	must.Do(t, kv.DeletePrefix(bg, view, "d/"))
	if keys, err := kv.Keys(bg, view, ""); err != nil || !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
		t.Errorf("%q, %v", keys, err)
	}
}
