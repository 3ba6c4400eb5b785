package cli

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
)

// A database that is open elsewhere is an error that says by whom, at once or
// after --wait.
func TestLockedDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	db, err := engine.Create(context.Background(), dir, nil)
	if err == nil {
		err = db.Close()
	}
	alone := exec.Command("alone", dir)
	in, err2 := alone.StdinPipe()
	out, err3 := alone.StdoutPipe()
	must.Do(t, errors.Join(err, err2, err3, alone.Start()))
	defer alone.Wait()
	defer in.Close()
	must.Get(out.Read(make([]byte, 4)))(t)
	try := func(ctx context.Context, args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
		return code, stderr.String()
	}
	said := regexp.MustCompile(`^zarrdb: .*w\.zdb is in use by \S+ \(process \d+ on .*, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\): that process keeps others out; see --wait\n$`)
	for _, args := range [][]string{
		{"log", dir}, {"ls", dir}, {"ls", "file://" + dir + "|zarrdb:"}, {"put", dir, "key"}, {"gc", dir},
		{"import", filepath.Join(t.TempDir(), "new.zdb"), dir}, {"export", dir, t.TempDir() + "/new.zarr"},
		{"clone", dir, dir + "2"}, {"restore", dir, dir + "2"},
		{"log", dir, "--wait", "0s"}, {"--wait", "1ns", "log", dir}, {"read", dir, "--wait", "1ns"},
	} {
		if code, text := try(t.Context(), args...); code != exitFailed || !said.MatchString(text) {
			t.Errorf("%v: %d, %s", args, code, text)
		}
	}
	for _, wrong := range []string{"-1s", "5", "soon"} {
		if code, text := try(t.Context(), "log", dir, "--wait", wrong); code != exitUsage || !strings.Contains(text, "30s, 5m or 1h") {
			t.Errorf("--wait %s: %d, %s", wrong, code, text)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if code, text := try(gone, "log", dir, "--wait", "1h"); code != exitInterrupted || text != "zarrdb: interrupted\n" {
		t.Errorf("interrupted: %d, %s", code, text)
	}

	type result struct {
		code int
		text string
	}
	done := make(chan result)
	go func() {
		code, text := try(t.Context(), "log", dir, "--wait", "1h")
		done <- result{code, text}
	}()
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if r := <-done; r.code != exitOK || r.text != "" {
		t.Errorf("after waiting: %d, %s", r.code, r.text)
	}
}
