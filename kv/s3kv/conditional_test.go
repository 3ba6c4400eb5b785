package s3kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// TestConditionalOutcome tells a condition that does not hold from an answer that was lost, and
// never repeats the request.
func TestConditionalOutcome(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		status int // 0: the connection breaks
		code   string
		want   error // nil: another one
	}{
		{412, "PreconditionFailed", kv.ErrChanged}, {409, "ConditionalRequestConflict", kv.ErrChanged}, {404, "NoSuchKey", kv.ErrChanged},
		{500, "InternalError", kv.ErrUnknown}, {503, "SlowDown", kv.ErrUnknown}, {429, "", kv.ErrUnknown}, {400, "RequestTimeout", kv.ErrUnknown}, {0, "", kv.ErrUnknown},
		{507, "", kv.ErrUnknown}, {520, "", kv.ErrUnknown}, {202, "", kv.ErrUnknown},
		{200, "", kv.ErrUnknown}, // without a tag
		{403, "AccessDenied", nil}, {404, "NoSuchBucket", nil}, {501, "NotImplemented", nil},
	} {
		n := 0
		view := open(t, Options{Endpoint: "http://host", Anonymous: true, Remote: remote.Options{Transport: rounds(func(r *http.Request) (*http.Response, error) {
			n++
			_, err := io.Copy(io.Discard, r.Body)
			must.Do(t, err)
			if test.status == 0 {
				return nil, syscall.ECONNRESET
			}
			return &http.Response{StatusCode: test.status, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("<Error><Code>" + test.code + "</Code></Error>"))}, nil
		})}})
		tag, err := view.SetTagged(bg, "k", []byte("v"), `"old"`)
		if err == nil || tag != kv.NoValue || n != 1 || errors.Is(err, kv.ErrChanged) != (test.want == kv.ErrChanged) || errors.Is(err, kv.ErrUnknown) != (test.want == kv.ErrUnknown) {
			t.Errorf("%d %s: %q, %v after %d requests", test.status, test.code, tag, err, n)
		}
	}
}

// TestValueAgain sends the section of a file again after a failed try, whole.
func TestValueAgain(t *testing.T) {
	alone(t)
	var got [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := must.Get(io.ReadAll(r.Body))(t)
		if got = append(got, b); len(got) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	view := open(t, Options{Endpoint: srv.URL, Anonymous: true, Remote: remote.Options{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}})
	file := bytes.Repeat([]byte("0123456789"), 500_000)
	must.Do(t, view.SetValue(bg, "k", kv.FromReaderAt(io.NewSectionReader(bytes.NewReader(file), 5, 3_000_000), 3_000_000, kv.ID{})))
	if len(got) != 3 || !bytes.Equal(got[0], got[2]) || !bytes.Equal(got[2], file[5:3_000_005]) {
		t.Errorf("%d requests", len(got))
	}
}

// TestExpiredToken reads the credentials again when the server refuses them, and sends the
// request with the new ones: once, and only if there are new ones.
func TestExpiredToken(t *testing.T) {
	alone(t)
	for _, code := range []string{"ExpiredToken", "InvalidAccessKeyId"} {
		check := &signed{t: t, key: "K", secret: "S", token: code + "1", region: defaultRegion, next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"x"`)
		})}
		expired, gone, refused := "none", false, 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Security-Token") == expired {
				if refused++; gone {
					for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
						t.Setenv(name, "")
					}
				}
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
				return
			}
			check.ServeHTTP(w, r)
		}))
		defer srv.Close()
		t.Setenv("AWS_ACCESS_KEY_ID", "K")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "S")
		t.Setenv("AWS_SESSION_TOKEN", code+"1")
		view := open(t, Options{Endpoint: srv.URL, Remote: remote.Options{Tries: 1}})
		must.Do(t, view.Set(bg, "k", []byte("v")))
		expired = code + "1"
		var e *remote.Error
		if err := view.Set(bg, "k", []byte("v")); !errors.As(err, &e) || e.Code != code || refused != 1 {
			t.Errorf("without new credentials: %v, %d requests", err, refused)
		}
		check.token = code + "2"
		t.Setenv("AWS_SESSION_TOKEN", code+"2")
		if _, err := view.SetTagged(bg, "k", []byte("w"), kv.NoValue); err != nil || refused != 2 {
			t.Errorf("with new credentials: %v, %d refused", err, refused)
		}
		if _, err := view.Locate(bg, "k"); err != nil || refused != 2 || check.wrong > 0 {
			t.Errorf("afterwards: %v, %d refused, %d wrong signatures", err, refused, check.wrong)
		}
		expired, gone = code+"2", true
		if err := view.Set(bg, "k", []byte("v")); !errors.As(err, &e) || e.Code != code || refused != 3 {
			t.Errorf("credentials that are gone: %v, %d refused", err, refused)
		}
	}
}
