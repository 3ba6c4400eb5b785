package cli

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/arrowfile"
	"github.com/zarrdb/zarrdb/internal/must"
)

// serving runs the serve command, and returns where it listens and what ends it.
func serving(t *testing.T, args ...string) (urls []string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(WithTables(t.Context(), arrowfile.Formats()))
	r, w := io.Pipe()
	var messages strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve", "--listen", "localhost:0"}, args...), nil, w, &messages)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	for want := strings.Count(strings.Join(args, " "), ".zdb") + strings.Count(strings.Join(args, " "), "--s3"); len(urls) < want && lines.Scan(); {
		_, url, _ := strings.Cut(lines.Text(), " at ")
		urls = append(urls, url)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return urls, func() {
		t.Helper()
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("exit code %d: %s", got, &messages)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(b)
}

// A database is served under its name, over HTTP and S3, and commands go on working.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	for _, args := range [][]string{{"init", dir}, {"create", dir + ":temp", "--shape", "4", "--dtype", "int8"}} {
		if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
			t.Fatal(code)
		}
	}
	for _, args := range [][]string{{"gc", dir}, {"backup", dir, dir + ".copy"}} {
		if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
			t.Fatal(code)
		}
	}
	urls, end := serving(t, dir, "--s3", "localhost:0")
	defer end()
	_, counts := get(t, strings.TrimSuffix(urls[0], "/weather.zdb/v/main/")+"/-/metrics")
	for _, want := range []string{"versions{%s} 2", "sessions{%s} 0", `disk_used_bytes{%s} \d`, `disk_free_bytes{%s} \d`, `gc_age_seconds{%s} \d`, `backup_age_seconds{%s} \d`} {
		if line := "(?m)^zarrdb_" + fmt.Sprintf(want, `database="weather.zdb"`); !regexp.MustCompile(line).MatchString(counts) {
			t.Errorf("no metric %s in\n%s", line, counts)
		}
	}
	if len(urls) != 2 || !strings.HasSuffix(urls[0], "/weather.zdb/v/main/") {
		t.Fatalf("served at %q", urls)
	}
	if status, body := get(t, urls[0]+"temp/zarr.json"); status != 200 || !strings.Contains(body, `"int8"`) {
		t.Errorf("GET: %d, %s", status, body)
	}
	if status, _ := get(t, urls[0]+"none"); status != 404 {
		t.Errorf("GET of what is not there: %d", status)
	}
	root := strings.TrimSuffix(urls[0], "/weather.zdb/v/main/")
	if status, body := get(t, root+"/-/api/log?db=weather.zdb"); status != 200 || !strings.Contains(body, "create temp") {
		t.Errorf("log: %d, %s", status, body)
	}
	if status, body := get(t, urls[1]+"/weather.zdb/main/temp/zarr.json"); status != 200 || !strings.Contains(body, `"int8"`) {
		t.Errorf("S3: %d, %s", status, body)
	}
}

// A served version is listed and imported without consolidated metadata, with keys that are no chunks.
func TestImportServed(t *testing.T) {
	dir := t.TempDir()
	db, notes := filepath.Join(dir, "weather.zdb"), filepath.Join(dir, "notes.txt")
	must.Do(t, os.WriteFile(notes, []byte("read me"), 0o600))
	command := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if code := run(t.Context(), args, nil, &out, os.Stderr); code != 0 {
			t.Fatalf("%q: exit code %d", args, code)
		}
		return out.String()
	}
	command("init", db)
	command("create", db+":g", "--group")
	command("create", db+":g/temp", "--shape", "4", "--dtype", "int8", "--chunks", "2")
	command("write", db+":g/temp", "--select", ":2", "--value", "7")
	command("put", db, "g/notes", notes)
	command("branch", db, "exp/one")
	urls, end := serving(t, db)
	defer end()
	root := strings.TrimSuffix(urls[0], "v/main/")
	for i, c := range []struct{ url, at, keys string }{
		{"v/main/", "g/", "5 keys"},
		{"v/main", "g/", "5 keys"},
		{"v/exp:one/", "g/", "5 keys"},
		{"v/exp%3Aone", "g/", "5 keys"},
		{"v/main/g/", "", "4 keys"},
		{"v/main/g/temp", "", "2 keys"},
		{"v3/main/", "g/", "4 keys"}, // of nodes alone
		{"v2/main/", "g/", "3 nodes"},
	} {
		to := filepath.Join(dir, fmt.Sprint(i)+".zdb")
		if got := command("import", to, root+c.url); !strings.Contains(got, c.keys) {
			t.Errorf("import %s: %s, want %s", c.url, got, c.keys)
		}
		array := to + ":" + c.at + "temp"
		if c.url == "v/main/g/temp" {
			array = to
		}
		if got := command("read", array); got != "[7, 7, 0, 0]\n" {
			t.Errorf("import %s: %s", c.url, got)
		}
	}
	if got := command("ls", urls[0]+"g/"); got != "temp\n" {
		t.Errorf("ls: %s", got)
	}
}

// The address that is printed works as it is, whatever the name of the database is.
func TestServePrintsURLs(t *testing.T) {
	for _, name := range []string{"my data.zdb", "100%.zdb", "a?b#c.zdb", "é.zdb"} {
		if runtime.GOOS == "windows" && strings.Contains(name, "?") {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		for _, args := range [][]string{{"init", dir}, {"create", dir + ":t", "--shape", "2", "--dtype", "int8"}} {
			if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
				t.Fatal(code)
			}
		}
		urls, end := serving(t, dir)
		if status, _ := get(t, urls[0]+"t/zarr.json"); status != 200 {
			t.Errorf("%s: GET %s: %d", name, urls[0], status)
		}
		end()
	}
}

// A server of one database makes no database inside it: it has no directory of databases.
func TestServeOneMakesNoBucket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	if code := run(t.Context(), []string{"init", dir}, nil, io.Discard, os.Stderr); code != 0 {
		t.Fatal(code)
	}
	if got := databasesIn(dir); got != nil {
		t.Errorf("databases in a database: %q", got)
	}
	if engine.IsDatabase(filepath.Join(dir, "index")) || !engine.IsDatabase(dir) {
		t.Error("the index of a database is taken for a database, or the database is not")
	}
}

// What would let strangers in does not start.
func TestServeIsClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	if code := run(t.Context(), []string{"init", dir}, nil, io.Discard, os.Stderr); code != 0 {
		t.Fatal(code)
	}
	for _, args := range [][]string{
		{"--listen", ":0"},
		{"--listen", ""},
		{"--listen", "unix:"},
		{"--listen", "localhost:0", "--s3", ""},
		{"--listen", "localhost:0", "--keys", ""},
		{"--listen", "localhost:0", "--origin", ""},
		{"--listen", "localhost:0", "--s3", "0.0.0.0:0"},
		{"--listen", "localhost:0", "--tls-cert", "c.pem"},
	} {
		if code := run(t.Context(), append([]string{"serve", dir}, args...), nil, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// A target that is no database has the reports that need no versions, and both formats.
func TestServeTarget(t *testing.T) {
	dir := t.TempDir()
	db, zip := filepath.Join(dir, "w.zdb"), filepath.Join(dir, "a.zip")
	for _, args := range [][]string{
		{"init", db}, {"create", db, "--group"}, {"create", db + ":g/temp", "--shape", "4", "--chunks", "2", "--dtype", "int8"},
		{"export", db, zip},
	} {
		if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
			t.Fatal(args, code)
		}
	}
	urls, end := serving(t, db, "other="+zip)
	defer end()
	root := strings.Join(strings.Split(urls[0], "/")[:3], "/")
	for _, name := range []string{"w.zdb", "other"} {
		for path, want := range map[string]string{
			"/-/api/tree?db=%s":                        "int8",
			"/-/api/tree?db=%s&path=g":                 "int8",
			"/-/api/ls?db=%s&path=g":                   "temp",
			"/-/api/info?db=%s&path=g/temp&rev=main":   "int8",
			"/-/api/read?db=%s&path=g/temp&select=1:3": "[0,0]",
			"/%s/v2/main/g/temp/.zarray":               `"|i1"`,
			"/%s/v3/main/g/temp/zarr.json":             `"int8"`,
			"/-/metrics?db=%s":                         `zarrdb_chunk_cache_misses_total{database="w.zdb"}`,
		} {
			path = strings.ReplaceAll(path, "%s", name)
			if status, body := get(t, root+path); status != 200 || !strings.Contains(strings.ReplaceAll(body, " ", ""), want) {
				t.Errorf("%s: %d, %.300s", path, status, body)
			}
		}
	}
	for path, want := range map[string]int{
		"/-/api/info?db=other&path=none": 404, "/-/api/tree?db=other&rev=v1": 404, "/-/api/log?db=other": 501, "/other/v2/v1/.zgroup": 404,
	} {
		if status, body := get(t, root+path); status != want {
			t.Errorf("%s: %d, want %d: %s", path, status, want, body)
		}
	}
}

// A server opens a database again after its directory was moved away and back, and serves a directory's databases as they
// come, whatever state the others are in.
func TestServeOpensAgain(t *testing.T) {
	in := t.TempDir()
	dir := func(name string) string { return filepath.Join(in, name) }
	create := func(name string) {
		t.Helper()
		for _, args := range [][]string{{"init", dir(name)}, {"create", dir(name) + ":t", "--shape", "2", "--dtype", "int8"}} {
			if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != 0 {
				t.Fatal(args, code)
			}
		}
	}
	create("w.zdb")
	create("broken.zdb")
	must.Do(t, os.WriteFile(filepath.Join(dir("broken.zdb"), "index", "CURRENT"), []byte("x"), 0o600))
	for _, name := range must.Get(filepath.Glob(filepath.Join(dir("broken.zdb"), "index", "MANIFEST*")))(t) {
		must.Do(t, os.Remove(name))
	}
	urls, end := serving(t, in, "--s3", "localhost:0")
	defer end()
	until := func(path string, want int) {
		t.Helper()
		root := strings.Join(strings.Split(urls[0], "/")[:3], "/")
		var status int
		var body string
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
			if status, body = get(t, root+path); status == want {
				return
			}
		}
		t.Errorf("%s: %d, want %d: %s", path, status, want, body)
	}
	until("/w.zdb/v/main/t/zarr.json", 200)
	until("/broken.zdb/v/main/t/zarr.json", 503)
	until("/-/ready", 503)
	until("/-/ready?db=w.zdb", 200)
	create("new.zdb")
	until("/new.zdb/v/main/t/zarr.json", 200)
	must.Do(t, os.Rename(dir("w.zdb"), filepath.Join(t.TempDir(), "away")))
	until("/w.zdb/v/main/t/zarr.json", 404)
	create("w.zdb") // another one at the same path
	until("/w.zdb/v/main/t/zarr.json", 200)
	must.Do(t, os.RemoveAll(dir("w.zdb")))
	until("/w.zdb/v/main/t/zarr.json", 404)
	if _, err := os.Stat(dir("w.zdb")); !os.IsNotExist(err) {
		t.Errorf("the server has made a removed database again: %v", err)
	}
	must.Do(t, os.RemoveAll(dir("broken.zdb")))
	until("/broken.zdb/v/main/", 404)
	until("/-/ready", 200)
}

// A certificate is read again when its files change; files without a valid certificate leave the old certificate in use.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	f := serveFlags{cert: filepath.Join(dir, "c.pem"), key: filepath.Join(dir, "k.pem")}
	write := func(serial int64, at time.Time) {
		t.Helper()
		private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		form := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
		der := must.Get(x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private))(t)
		key := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
		for name, block := range map[string]*pem.Block{f.cert: {Type: "CERTIFICATE", Bytes: der}, f.key: {Type: "PRIVATE KEY", Bytes: key}} {
			must.Do(t, errors.Join(os.WriteFile(name, pem.EncodeToMemory(block), 0o600), os.Chtimes(name, at, at)))
		}
	}
	begun := time.Now().Add(-time.Hour)
	write(1, begun)
	var log strings.Builder
	config, cert, err := f.tls(slog.New(slog.NewTextHandler(&log, nil)))
	must.Do(t, err)
	serial := func(want int64) {
		t.Helper()
		now := must.Get(config.GetCertificate(nil))(t)
		if got := must.Get(x509.ParseCertificate(now.Certificate[0]))(t).SerialNumber.Int64(); got != want {
			t.Errorf("certificate %d, want %d", got, want)
		}
	}
	serial(1)
	write(2, begun.Add(time.Minute))
	serial(1) // within the second
	cert.looked = time.Time{}
	serial(2)
	must.Do(t, os.WriteFile(f.key, nil, 0o600))
	cert.looked = time.Time{}
	serial(2)
	if !strings.Contains(log.String(), "not valid") {
		t.Errorf("log: %s", log.String())
	}
	write(3, begun)
	reloadAll(cert.log, nil, cert) // upon SIGHUP
	serial(3)
}
