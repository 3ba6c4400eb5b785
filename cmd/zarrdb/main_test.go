package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
)

// The test binary is the program itself when it is told so, for tests that
// need a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("ZARRDB_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// zarrdb runs a command in this process.
func zarrdb(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// must runs a command that has to work and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := zarrdb(args...)
	if code != exitOK {
		t.Fatalf("zarrdb %q: exit %d: %s", args, code, errs)
	}
	return out
}

// child is a command in a process of its own.
func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ZARRDB_TEST_MAIN=1")
	return cmd
}

// demoDir runs the demonstration into a new directory.
func demoDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, "demo", "--dir", dir)
	return dir
}

func TestDemo(t *testing.T) {
	out := must(t, "demo")
	for _, want := range []string{"$ zarrdb import", "24.7, 26.16", "~ /ocean/sst chunks: 1 changed", "byte for byte"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demonstration does not show %q", want)
		}
	}
}

// Every kind of failure has its exit code and one line that says what and where.
func TestExitCodes(t *testing.T) {
	dir := demoDir(t)
	db := filepath.Join(dir, "climate.zdb")
	bad := filepath.Join(dir, "bad.zarr")
	if err := os.MkdirAll(bad, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bad, "zarr.json"), []byte(`{"zarr_format":3,"node_type":"array"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "unknown command", []string{"frobnicate"}},
		{exitUsage, "unknown flag", []string{"ls", "--frobnicate", db}},
		{exitUsage, "arguments given", []string{"tag"}},
		{exitUsage, "unknown command", []string{"session", "frobnicate"}},
		{exitNotFound, "nope", []string{"read", db + ":nope"}},
		{exitNotFound, "nope", []string{"log", db + "@nope"}},
		{exitNotFound, "not a zarrdb database", []string{"log", dir}},
		{exitNotFound, "nope", []string{"get", db, "nope"}},
		{exitFailed, "URL", []string{"info", "s3:/x"}},
		{exitFailed, "exists already", []string{"tag", db, "v1"}},
		{exitFailed, "zarr.json", []string{"info", bad}},
		{exitFailed, "zarr.json", []string{"import", filepath.Join(dir, "new.zdb"), bad}},
		{exitFailed, "exists", []string{"import", db, filepath.Join(dir, "climate.zip")}},
		{exitFailed, "exists", []string{"init", db}},
	} {
		code, out, errs := zarrdb(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("%q: exit %d, want %d: %q (%q)", c.args, code, c.code, errs, out)
		}
	}
}

func TestConflictExit(t *testing.T) {
	db := filepath.Join(demoDir(t), "climate.zdb")
	must(t, "branch", db, "other")
	must(t, "attrs", db+":ocean/sst", "--set", `units="K"`)
	must(t, "attrs", db+"@other:ocean/sst", "--set", `units="F"`)
	code, _, errs := zarrdb("merge", db, "other")
	if code != exitConflict || !strings.Contains(errs, "units") || !strings.Contains(errs, "ocean/sst") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestSessionAcrossCommands(t *testing.T) {
	dir := demoDir(t)
	db := filepath.Join(dir, "climate.zdb")
	id := strings.TrimSpace(must(t, "session", "begin", db))
	must(t, "write", db+":ocean/sst", "--select", "0", "-i", filepath.Join(dir, "correction.npy"), "--session", id)
	must(t, "rm", db+":sun", "--session", id)
	if out := must(t, "ls", db); !strings.Contains(out, "sun/") {
		t.Error("what a session removed is gone outside of it")
	}
	if out := must(t, "session", "list", db); !strings.Contains(out, id) {
		t.Errorf("the session is not listed: %s", out)
	}
	must(t, "session", "commit", db, id, "-m", "both")
	if out := must(t, "ls", db); strings.Contains(out, "sun/") {
		t.Error("the commit did not remove it")
	}
	if out := must(t, "read", db+":ocean/sst", "--select", "0,:2"); strings.TrimSpace(out) != "[24.5, 25.9]" {
		t.Errorf("read %s", out)
	}
	if out := must(t, "log", db, "--oneline", "-n", "1"); !strings.Contains(out, "both") {
		t.Errorf("log %s", out)
	}
}

func TestInfoJSON(t *testing.T) {
	db := filepath.Join(demoDir(t), "climate.zdb")
	var info map[string]any
	if err := json.Unmarshal([]byte(must(t, "info", db+"@v1:ocean/sst", "--json")), &info); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"node_type": "array", "zarr_format": "3", "path": "ocean/sst", "shape": "[61 12]", "data_type": "float32",
		"chunk_shape": "[16 12]", "fill_value": "NaN", "dimension_names": "[year month]",
	} {
		if got := fmt.Sprint(info[field]); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}

// The same elements in every form that read writes, and .npy back in.
func TestReadForms(t *testing.T) {
	dir := demoDir(t)
	db := filepath.Join(dir, "climate.zdb")
	npy, csv := filepath.Join(dir, "a.npy"), filepath.Join(dir, "a.csv")
	must(t, "read", db+":ocean/sst", "--select", "0:2", "-o", npy)
	must(t, "read", db+":ocean/sst", "--select", "0:2,:3", "-o", csv)
	raw := must(t, "read", db+":ocean/sst", "--select", "0:2", "-o", "-")
	f, err := os.Open(npy)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := readNpy(f)
	if err != nil || fmt.Sprint(got.shape) != "[2 12]" || string(got.data) != raw {
		t.Errorf("npy: %v, %v", got, err)
	}
	if b, err := os.ReadFile(csv); err != nil || strings.Count(string(b), "\n") != 2 || strings.Count(string(b), ",") != 4 {
		t.Errorf("csv: %q, %v", b, err)
	}
	must(t, "write", db+":ocean/sst", "--select", "2:4", "-i", npy)
	if again := must(t, "read", db+":ocean/sst", "--select", "2:4", "-o", "-"); again != raw {
		t.Error("what was written does not read back")
	}
}

func TestSecondProcessIsToldWho(t *testing.T) {
	dir := demoDir(t)
	db := filepath.Join(dir, "climate.zdb")
	held, err := engine.Open(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	out, err := child("log", db).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second process got %v: %s", err, out)
	}
}

// kill -9 at random moments of a loop of commits and of imports: the head is
// the old or the new commit, and everything is sound.
func TestKill(t *testing.T) {
	dir := demoDir(t)
	db, zip := filepath.Join(dir, "climate.zdb"), filepath.Join(dir, "climate.zip")
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for i := range rounds {
		before := must(t, "log", db, "--oneline", "-n", "1")
		args := []string{"import", db, zip, "--to", fmt.Sprintf("copy%d", i), "-m", fmt.Sprintf("import %d", i)}
		if i%2 == 0 {
			args = []string{"attrs", db + ":ocean/sst", "--set", fmt.Sprintf("round=%d", i), "-m", fmt.Sprintf("round %d", i)}
		}
		c := child(args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // when it dies is left to chance, what must hold is not
		_ = c.Process.Kill()
		_ = c.Wait()
		after := must(t, "log", db, "--oneline", "-n", "1")
		if after != before && !strings.Contains(after, fmt.Sprintf(" %d", i)) {
			t.Fatalf("round %d: the head went from %q to %q", i, before, after)
		}
		must(t, "fsck", db, "--full")
		if i%2 == 1 {
			code, _, errs := zarrdb(append(args, "--resume", "--overwrite")...)
			if code != exitOK {
				t.Fatalf("round %d: import again: exit %d: %s", i, code, errs)
			}
			must(t, "export", db+fmt.Sprintf(":copy%d", i), filepath.Join(dir, fmt.Sprintf("out%d", i)))
			if _, err := sameAsBundled(filepath.Join(dir, fmt.Sprintf("out%d", i))); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	db := filepath.Join(demoDir(t), "climate.zdb")
	packs, err := filepath.Glob(filepath.Join(db, "packs", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal("no packs", err)
	}
	for _, p := range packs {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := 200; i < len(b); i += 300 {
			b[i] ^= 0x40
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, _, errs := zarrdb("fsck", db, "--full")
	if code != exitCorrupt || !strings.Contains(errs, "payload at") {
		t.Errorf("fsck: exit %d: %.300s", code, errs)
	}
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "a@b:c d.zdb")
	must(t, "init", odd)
	for in, want := range map[string]target{
		odd:                           {db: odd},
		odd + ":x/y":                  {db: odd, path: "x/y"},
		odd + "@v1":                   {db: odd, rev: "v1"},
		odd + "@main@{1:00}~2:x/":     {db: odd, rev: "main@{1:00}~2", path: "x"},
		odd + "|zarrdb:":              {url: odd + "|zarrdb:"},
		filepath.Join(dir, "nothing"): {url: filepath.Join(dir, "nothing")},
		"file:///x|zip:":              {url: "file:///x|zip:"},
	} {
		if got := parseTarget(in); got != want {
			t.Errorf("%s is %+v, want %+v", in, got, want)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	root := newRoot()
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Short == "" || c.GroupID == "" && c.Name() != "version" {
			t.Errorf("%s has no short help or no group", c.Name())
		}
	}
	if out := must(t, "completion", "bash"); !strings.Contains(out, "zarrdb") {
		t.Error("no completion")
	}
}
