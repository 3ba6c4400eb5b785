package cli

import (
	"bufio"
	"context"
	"github.com/zarrdb/zarrdb/internal/must"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// showing runs the ui command, and returns its address and what ends it.
func showing(t *testing.T, args ...string) (address *url.URL, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var messages strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"ui"}, args...), nil, w, &messages)
		_ = w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-code, &messages)
	}
	address = must.Get(url.Parse(strings.TrimSpace(line)))(t)
	return address, func() {
		t.Helper()
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("exit code %d: %s", got, &messages)
		}
	}
}

// The page is behind a secret; it shows a version of a database, and any other store.
func TestUI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	out := filepath.Join(t.TempDir(), "out.zarr")
	for _, args := range [][]string{{"init", dir}, {"create", dir + ":a/temp", "--shape", "4,4", "--dtype", "int8"}, {"export", dir, out}} {
		if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
			t.Fatal(code)
		}
	}
	for target, state := range map[string]string{
		dir + "@main:a/temp": "db=weather.zdb&path=a%2Ftemp&rev=main",
		out:                  "db=out.zarr",
	} {
		u, end := showing(t, target)
		if u.Fragment != "" && u.EscapedFragment() != state {
			t.Errorf("%s: %s", target, u.EscapedFragment())
		}
		u.Fragment, u.RawFragment = "", ""
		if status, body := get(t, u.String()); status != http.StatusOK || !strings.Contains(body, "main.js") {
			t.Error(status, body)
		}
		db, _, _ := strings.Cut(strings.TrimPrefix(state, "db="), "&")
		if status, body := get(t, u.ResolveReference(&url.URL{Path: "../api/window", RawQuery: "db=" + db + "&path=a/temp"}).String()); status != http.StatusOK || len(body) != 64 {
			t.Error(status, body)
		}
		secret, _, _ := strings.Cut(u.Path[1:], "/")
		if len(secret) < 20 {
			t.Errorf("secret %q", secret)
		}
		for _, path := range []string{"/", "/-/ui/", "/" + db + "/v/main/", "/-/api/names", "/-/health", "/x" + secret + "/-/ui/", "/" + secret + "x/-/ui/", "/" + secret[1:] + "/-/ui/"} {
			if status, body := get(t, "http://"+u.Host+path); status != http.StatusForbidden || strings.Contains(body, secret) {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		end()
	}
	for _, args := range [][]string{{"ui", dir, "--listen", ":0"}, {"ui", dir, "--listen", "unix:x"}, {"ui"}} {
		if code := run(t.Context(), args, nil, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%v: %d", args, code)
		}
	}
}

// The secret is not among the arguments of the browser, which all users may read.
func TestUIOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	program, seen := filepath.Join(dir, "browser"), filepath.Join(dir, "seen")
	must.Do(t, os.WriteFile(program, []byte("#!/bin/sh\n(echo \"$*\"; ls -ld \"$1\" \"${1%/*}\"; cat \"$1\") > "+seen+".part && mv "+seen+".part "+seen+"\n"), 0o700))
	t.Setenv("BROWSER", program)
	must.Get(runProcess("init", filepath.Join(dir, "w.zdb")))(t)
	address, end := showing(t, filepath.Join(dir, "w.zdb"), "--open")
	var text []byte
	for wait := time.Now().Add(time.Minute); text == nil && time.Now().Before(wait); time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(seen)
	}
	end()
	lines := strings.SplitN(string(text), "\n", 4)
	secret, _, _ := strings.Cut(address.Path[1:], "/")
	if len(lines) != 4 || strings.Contains(lines[0], secret) || !strings.HasPrefix(lines[2], "-rw------- ") || !strings.HasPrefix(lines[1], "drwx------ ") || !strings.Contains(lines[3], html.EscapeString(address.String())) {
		t.Errorf("%s: %s", address, text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "zarrdb-ui-*")); left != nil {
		t.Error(left)
	}
}

func TestShownName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "weather.zdb")
	must.Do(t, os.MkdirAll(dir, 0o755))
	t.Chdir(dir)
	for path, want := range map[string]string{
		".": "weather.zdb", "..": "data", "./": "weather.zdb", "../x.zarr/": "x.zarr", "s3://b/era5.zarr|zarr3:": "zarr3", "/": "store", "-x": "x",
	} {
		if got := shownName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// The page reads beside the process that has the database open, sees its commits, and goes on
// when that process is killed.
func TestUIBeside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	for _, args := range [][]string{{"init", dir}, {"create", dir + ":temp", "--shape", "4,4", "--dtype", "int8"}} {
		must.Get(runProcess(args...))(t)
	}
	holder := exec.Command("zarrdb", "serve", dir, "--listen", "localhost:0")
	out := must.Get(holder.StdoutPipe())(t)
	must.Do(t, holder.Start())
	gone := sync.OnceFunc(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	defer gone()
	must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	u, end := showing(t, dir)
	defer end()
	ask := func(query string) string {
		t.Helper()
		status, body := get(t, "http://"+u.Host+strings.TrimSuffix(u.Path, "ui/")+"api/"+query)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", query, status, body)
		}
		return body
	}
	all := func() {
		t.Helper()
		for _, query := range []string{"tree", "info?path=temp", "log?path=temp", "show", "stats", "branch", "tag", "blame?path=temp", "diff?rev=main~1&to=main", "read?path=temp", "sessions"} {
			name, rest, _ := strings.Cut(query, "?")
			ask(name + "?db=weather.zdb&" + rest)
		}
		if body := ask("window?db=weather.zdb&path=temp"); len(body) != 64 {
			t.Errorf("%q", body)
		}
	}
	all()
	must.Get(runProcess("write", dir+":temp", "--value", "3", "-m", "all three"))(t)
	if body := ask("log?db=weather.zdb&n=1"); !strings.Contains(body, "all three") {
		t.Error(body)
	}
	gone()
	all()
	must.Get(runProcess("write", dir+":temp", "--value", "4", "-m", "all four"))(t)
	if body := ask("log?db=weather.zdb&n=1"); !strings.Contains(body, "all four") {
		t.Error(body)
	}
}
