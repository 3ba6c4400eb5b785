package s3kv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// tokens is a service that gives credentials for a token, as STS does
// (AssumeRoleWithWebIdentity).
type tokens struct {
	check *signed // the bucket, which takes the newest credentials

	mu    sync.Mutex
	lives time.Duration
	asked []string // role, session and token of each request
	fail  string   // code of the answer
}

func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodPost || r.ParseForm() != nil || r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("Version") != "2011-06-15" {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	s.asked = append(s.asked, strings.Join([]string{r.Form.Get("RoleArn"), r.Form.Get("RoleSessionName"), r.Form.Get("WebIdentityToken")}, " "))
	if s.fail != "" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>token %s</Message></Error><RequestId>1</RequestId></ErrorResponse>`, s.fail, r.Form.Get("WebIdentityToken"))
		return
	}
	s.check.mu.Lock()
	s.check.token = fmt.Sprintf("T%d", len(s.asked))
	s.check.mu.Unlock()
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
		`<AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey><SessionToken>T%d</SessionToken><Expiration>%s</Expiration>`+
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, len(s.asked), time.Now().Add(s.lives).UTC().Format(time.RFC3339))
}

// newTokens starts the service and a bucket; file holds the token.
func newTokens(t *testing.T) (s *tokens, file string) {
	t.Helper()
	alone(t)
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	check := &signed{t: t, key: "ROLE", secret: "hidden", region: "us-east-1", next: gofakes3.New(backend).Server()}
	bucket := httptest.NewServer(check)
	t.Cleanup(bucket.Close)
	s = &tokens{check: check, lives: time.Hour}
	sts := httptest.NewServer(s)
	t.Cleanup(sts.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", bucket.URL)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	file = filepath.Join(t.TempDir(), "token")
	writeToken(t, file, "first")
	return s, file
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(token), 0o600))
}

// TestWebIdentity takes a role for a token, and again with the token that is in
// the file then when the credentials have run out.
func TestWebIdentity(t *testing.T) {
	s, file := newTokens(t)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/reader")
	t.Setenv("AWS_ROLE_SESSION_NAME", "test")
	view := open(t, Options{})
	set := func() {
		t.Helper()
		must.Do(t, view.Set(bg, "k", []byte("v")))
	}
	s.lives = -time.Hour // it has run out when it comes
	set()
	writeToken(t, file, "second")
	s.lives = time.Hour
	set()
	writeToken(t, file, "third")
	set()
	want := []string{"arn:aws:iam::1:role/reader test first", "arn:aws:iam::1:role/reader test second"}
	if strings.Join(s.asked, ",") != strings.Join(want, ",") {
		t.Errorf("asked with %q, want %q", s.asked, want)
	}
	if s.check.wrong > 0 {
		t.Errorf("%d requests with a wrong signature", s.check.wrong)
	}
}

// A profile names a role and a token too; keys of the environment come first.
func TestWebIdentityOfProfile(t *testing.T) {
	s, file := newTokens(t)
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("[profile web]\nrole_arn = R\nrole_session_name = S\nweb_identity_token_file = %s\n", file)
	must.Do(t, os.WriteFile(config, []byte(text), 0o600))
	t.Setenv("AWS_CONFIG_FILE", config)
	must.Do(t, open(t, Options{Profile: "web"}).Set(bg, "k", []byte("v")))
	if len(s.asked) != 1 || s.asked[0] != "R S first" {
		t.Errorf("asked with %q", s.asked)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "K")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "own")
	s.check.key, s.check.secret, s.check.token = "K", "own", ""
	if err := open(t, Options{Profile: "web"}).Set(bg, "k", []byte("v")); err != nil {
		t.Error(err)
	}
	if len(s.asked) != 1 || s.check.wrong > 0 {
		t.Errorf("asked with %q, %d wrong signatures", s.asked, s.check.wrong)
	}
}

// A configured role that cannot be assumed is an error: no request is sent
// anonymously, and the error does not quote the token.
func TestWebIdentityRefused(t *testing.T) {
	s, file := newTokens(t)
	t.Setenv("AWS_ROLE_ARN", "R")
	for _, test := range []struct {
		name, file, fail, want string
	}{
		{"refused", file, "AccessDenied", "AccessDenied"},
		{"no token", file + "-none", "", "token-none"},
	} {
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", test.file)
		s.fail = test.fail
		view := open(t, Options{Forbidden: true, Remote: remote.Options{Tries: 1}})
		for range 2 {
			_, err := view.Get(bg, "k", kv.All())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "first") || err == kv.ErrNotFound {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if len(s.check.seen) > 0 {
			t.Errorf("%s: the bucket was asked: %q", test.name, s.check.seen)
		}
	}
	// It is asked for again.
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	s.fail = ""
	if err := open(t, Options{}).Set(bg, "k", []byte("v")); err != nil {
		t.Error(err)
	}
}

// machine is the metadata service of a machine with the role "reader".
type machine struct {
	asked  atomic.Int32
	answer atomic.Pointer[func(w http.ResponseWriter) bool] // false: as if the service were healthy
}

func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked.Add(1)
	if f := m.answer.Load(); f != nil && (*f)(w) {
		return
	}
	const roles = "/latest/meta-data/iam/security-credentials/"
	switch r.Method + r.URL.Path {
	case "PUT/latest/api/token":
		fmt.Fprint(w, "token")
	case "GET" + roles:
		fmt.Fprint(w, "reader")
	case "GET" + roles + "reader":
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"ROLE","SecretAccessKey":"hidden","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	default:
		http.NotFound(w, r)
	}
}

// newMachine starts a metadata service and a bucket that takes its role.
func newMachine(t *testing.T) (*machine, *signed) {
	t.Helper()
	s, _ := newTokens(t)
	m := &machine{}
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", srv.URL)
	return m, s.check
}

// TestMachineRoleFailsOnce checks that a metadata service which fails, as it may
// while a machine starts, makes that request fail and no other.
func TestMachineRoleFailsOnce(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter) bool{
		"error":         func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusServiceUnavailable); return true },
		"throttled":     func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusTooManyRequests); return true },
		"token is lost": func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusUnauthorized); return true },
		"broken":        func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			m, check := newMachine(t)
			m.answer.Store(&answer)
			view := open(t, Options{Remote: remote.Options{Tries: 1}})
			if err := view.Set(bg, "k", []byte("v")); err == nil || !strings.Contains(err.Error(), "AWS_EC2_METADATA_DISABLED") {
				t.Errorf("while the service fails: %v", err)
			}
			if len(check.seen) > 0 {
				t.Errorf("the bucket was asked: %q", check.seen)
			}
			m.answer.Store(nil)
			for range 2 {
				if err := view.Set(bg, "k", []byte("v")); err != nil {
					t.Errorf("when the service works: %v", err)
				}
			}
			if check.wrong > 0 {
				t.Errorf("%d requests with a wrong signature", check.wrong)
			}
		})
	}
}

// TestMachineWithoutRole checks that requests are anonymous if the metadata
// service knows no role or is not there, and that this does not last.
func TestMachineWithoutRole(t *testing.T) {
	for name, closed := range map[string]bool{"no role": false, "no service": true} {
		t.Run(name, func(t *testing.T) {
			m, check := newMachine(t)
			notFound := func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true }
			m.answer.Store(&notFound)
			check.key = "" // anonymous
			r := &role{}
			r.Endpoint = os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
			healthy := r.Endpoint
			if closed {
				srv := httptest.NewServer(nil)
				srv.Close()
				r.Endpoint = srv.URL
			}
			view := open(t, Options{Remote: remote.Options{Tries: 1}})
			view.b.identity = &identity{sources: []credentials.Provider{r}}
			for range 3 {
				must.Do(t, view.Set(bg, "k", []byte("v")))
			}
			if !closed && m.asked.Load() != 1 {
				t.Errorf("the service was asked %d times in a row, want 1", m.asked.Load())
			}
			view.b.o.Forbidden = true
			if err := view.Set(bg, "k", []byte("v")); (err != nil) != closed {
				t.Errorf("where 403 is a missing key: %v", err)
			}
			view.b.o.Forbidden = false
			m.answer.Store(nil)
			r.Endpoint, view.b.identity.until, check.key = healthy, time.Time{}, "ROLE"
			if err := view.Set(bg, "k", []byte("v")); err != nil {
				t.Error(err)
			}
			if check.wrong > 0 {
				t.Errorf("%d requests with a wrong signature", check.wrong)
			}
		})
	}
}

// TestIncompleteCredentials checks that credentials which are configured and
// cannot be had are an error that names the place, not anonymous access, and
// that they are asked for again.
func TestIncompleteCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	for name, test := range map[string]struct{ id, config, want string }{
		"half of the variables": {id: "K", want: "AWS_SECRET_ACCESS_KEY"},
		"half of the keys":      {config: "aws_access_key_id = ROLE\n", want: `profile "default"`},
		"program":               {config: "credential_process = /none/none none\n", want: `profile "default"`},
		"sign-on":               {config: "sso_role_name = r\nsso_session = hidden\n", want: "aws sso login"},
		"role of another":       {config: "role_arn = R\nsource_profile = other\n", want: "source_profile"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTokens(t)
			t.Setenv("AWS_ACCESS_KEY_ID", test.id)
			t.Setenv("AWS_CONFIG_FILE", file)
			writeToken(t, file, "[default]\n"+test.config)
			view := open(t, Options{Remote: remote.Options{Tries: 1}})
			for range 2 {
				if err := view.Set(bg, "k", []byte("v")); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hidden") {
					t.Errorf("%v, want %q", err, test.want)
				}
			}
			if len(s.check.seen) > 0 {
				t.Errorf("the bucket was asked: %q", s.check.seen)
			}
			if test.id != "" {
				return
			}
			writeToken(t, file, "[default]\naws_access_key_id = ROLE\naws_secret_access_key = hidden\n")
			if err := view.Set(bg, "k", []byte("v")); err != nil || s.check.wrong > 0 {
				t.Errorf("%v, %d wrong signatures", err, s.check.wrong)
			}
		})
	}
}

// Keys that another program writes into the file of credentials count from then on,
// for a view that is open too.
func TestChangedKeysOfProfile(t *testing.T) {
	s, _ := newTokens(t)
	file := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	view := open(t, Options{Remote: remote.Options{Tries: 1}})
	for i, key := range []string{"K1", "K2", "K3"} {
		writeToken(t, file, fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = own\n", key))
		at := time.Now().Add(time.Duration(i) * time.Minute)
		must.Do(t, os.Chtimes(file, at, at))
		s.check.key, s.check.secret = key, "own"
		for _, v := range []*View{view, open(t, Options{Remote: remote.Options{Tries: 1}})} {
			if err := v.Set(bg, "k", []byte("v")); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if s.check.wrong > 0 {
		t.Errorf("%d wrong signatures", s.check.wrong)
	}
}

// slowKeys answer when they may.
type slowKeys struct {
	credentials.EnvAWS
	asked, may chan struct{}
}

func (k *slowKeys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	close(k.asked)
	<-k.may
	return credentials.Value{AccessKeyID: "K"}, nil
}

// A request that waits for the credentials that another one asks for ends when its
// context does.
func TestWaitForCredentialsEnds(t *testing.T) {
	k := &slowKeys{asked: make(chan struct{}), may: make(chan struct{})}
	id := &identity{sources: []credentials.Provider{k}}
	first := make(chan error, 1)
	go func() {
		_, err := id.get(bg, false)
		first <- err
	}()
	<-k.asked
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := id.get(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(k.may)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
