//go:build unix

package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/zarrdb/zarrdb/internal/must"
)

// objects starts a server like S3 whose object bkt/f has the given text, and which takes
// requests with one access key only.
func objects(t *testing.T, text, key string) (endpoint string) {
	t.Helper()
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bkt"))
	must.Get(backend.PutObject("bkt", "f", nil, strings.NewReader(text), int64(len(text)), nil))(t)
	fake := gofakes3.New(backend).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A command follows references with the endpoint, the key and the allowed prefixes of its own
// process, whichever process has the database open.
func TestReferencesOfCaller(t *testing.T) {
	dir := t.TempDir()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "f", time.Unix(1, 0), strings.NewReader("web-file"))
	}))
	t.Cleanup(web.Close)
	theirs := objects(t, "holders-", "HOLDER")
	mine := objects(t, "callers-", "CALLER")
	for name, value := range map[string]string{
		"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config"),
		"AWS_ENDPOINT_URL_S3": theirs, "AWS_ACCESS_KEY_ID": "HOLDER", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(name, value)
	}
	set := filepath.Join(dir, "refs.json")
	document := `"{\"zarr_format\":2,\"shape\":[8],\"chunks\":[8],\"dtype\":\"|u1\",\"compressor\":null,\"filters\":null,\"fill_value\":0,\"order\":\"C\"}"`
	text := `{"version":1,"refs":{".zgroup":"{\"zarr_format\":2}","s3/.zarray":` + document + `,"web/.zarray":` + document + `,"file/.zarray":` + document +
		`,"s3/0":["s3://bkt/f",0,8],"web/0":["` + web.URL + `/f",0,8],"file/0":["` + filepath.Join(dir, "f") + `",0,8]}}`
	for name, text := range map[string]string{set: text, filepath.Join(dir, "f"): "the file"} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	db := filepath.Join(dir, "w.zdb")
	must.Get(runProcess("import", db, set, "--link", "--allow", "s3://bkt/", "--allow", web.URL+"/", "--validate", "none"))(t)
	holding(t, db)
	id := must.Get(runProcess("session", "begin", db))(t)
	read := func(array string, args, env []string) (int, string) {
		c := exec.Command("zarrdb", append([]string{"read", db + ":" + array, "-o", "-"}, args...)...)
		c.Env = append(os.Environ(), env...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		_ = c.Run()
		return c.ProcessState.ExitCode(), out.String()
	}
	caller := []string{"AWS_ENDPOINT_URL_S3=" + mine, "AWS_ACCESS_KEY_ID=CALLER", "AWS_SESSION_TOKEN="}
	type row struct {
		array string
		env   []string
		code  int
		want  string
	}
	for _, c := range []row{
		{"s3", caller, exitOK, "callers-"},
		{"s3", []string{"TZ=Asia/Tokyo"}, exitOK, "holders-"},
		{"s3", []string{"AWS_CONFIG_FILE=" + dir}, exitFailed, "is a directory"},
		{"s3", []string{"XDG_CONFIG_HOME=" + dir}, exitFailed, "not permitted"},
		{"web", []string{"XDG_CONFIG_HOME=" + dir}, exitFailed, "not permitted"},
		{"web", caller, exitOK, "web-file"},
		{"file", append(caller, "HOME=/", "XDG_CONFIG_HOME="+dir), exitFailed, "not permitted"},
		{"s3", nil, exitOK, "holders-"},
	} {
		for _, args := range [][]string{nil, {"--session", strings.TrimSpace(id)}} {
			if code, out := read(c.array, args, c.env); code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("%s %v with %q: exit code %d: %s", c.array, args, c.env, code, out)
			}
		}
	}
}
