package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// An import that is interrupted says if what it copied can be resumed.
func TestInterruptedImports(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var at string
	var interrupt context.CancelFunc
	set := `{".zgroup": "{\"zarr_format\":2}",
		"x/.zarray": "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"|u1\",\"compressor\":null,\"filters\":null,\"fill_value\":0,\"order\":\"C\"}",
		"x/0": ["data", 0, 1], "x/.zattrs": ["attributes"]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refs.json":
			fmt.Fprint(w, set)
		case at:
			interrupt() // in the middle of it
			<-r.Context().Done()
		case "/attributes":
			fmt.Fprint(w, "{}")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	for _, test := range []struct {
		at   string
		args []string
		text string
	}{
		{"/attributes", []string{"--link"}, "interrupted"},
		{"/attributes", nil, "interrupted"},
		{"/data", nil, "interrupted; what was copied is kept: the same command with --resume goes on"},
	} {
		path := filepath.Join(t.TempDir(), "a", "w.zdb")
		ctx, cancel := context.WithCancel(context.Background())
		at, interrupt = test.at, cancel
		var stdout, stderr bytes.Buffer
		code := run(ctx, append([]string{"import", path, srv.URL + "/refs.json"}, test.args...), strings.NewReader(""), &stdout, &stderr)
		cancel()
		if code != exitInterrupted || stderr.String() != "zarrdb: "+test.text+"\n" {
			t.Errorf("%v: %d, %s", test.args, code, stderr.String())
		}
	}
}

// An export that is interrupted says so if it can be resumed.
func TestInterruptedExports(t *testing.T) {
	set := `{".zgroup": "{\"zarr_format\":2}",
		"x/.zarray": "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"|u1\",\"compressor\":null,\"filters\":null,\"fill_value\":0,\"order\":\"C\"}",
		"x/0": ["data", 0, 1]}`
	var interrupt context.CancelFunc
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/refs.json":
			fmt.Fprint(w, set)
		case interrupt != nil:
			interrupt() // in the middle of it
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "x")
		}
	}))
	defer srv.Close()
	const plain = "interrupted"
	const again = "interrupted; what was copied is kept: the same command with --resume goes on"
	for _, test := range []struct {
		dest string
		args []string
		text string
	}{
		{"out.zarr", nil, again},
		{"out.zip", nil, plain},
		{"other.zarr", []string{"--format", "zarr3"}, plain},
	} {
		args := append([]string{"export", srv.URL + "/refs.json|kerchunk:", filepath.Join(t.TempDir(), test.dest)}, test.args...)
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(context.Background())
		interrupt = cancel
		code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
		cancel()
		if code != exitInterrupted || stderr.String() != "zarrdb: "+test.text+"\n" {
			t.Errorf("%v: %d, %s", args, code, stderr.String())
		}
		if test.text == plain {
			continue
		}
		interrupt = nil
		stderr.Reset()
		if code := run(t.Context(), append(args, "--resume"), strings.NewReader(""), &stdout, &stderr); code != exitOK {
			t.Errorf("resumed: %d, %s", code, stderr.String())
		}
	}
}
