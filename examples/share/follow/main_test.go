package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const want = `reading 0 [20 0 0 0 0]
reading 1 [20 20.5 0 0 0]
reading 2 [20 20.5 21.5 0 0]
reading 3 [20 20.5 21.5 21 0]
reading 4 [20 20.5 21.5 21 19.5]
`

// TestMain runs follow if its argument is in the environment.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FOLLOW"); dir != "" {
		os.Args = []string{"follow", dir}
		main()
		return
	}
	os.Exit(m.Run())
}

// Both programs run at the same time, and follow prints every version.
func TestShare(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../record").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	var out bytes.Buffer
	follow := exec.Command(self)
	follow.Env = append(os.Environ(), "FOLLOW="+dir)
	follow.Stdout, follow.Stderr = &out, &out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(filepath.Join(bin, "record"), dir).CombinedOutput(); err != nil {
		_ = follow.Process.Kill() // it would wait for the rest
		t.Errorf("record: %v\n%s", err, text)
	}
	if err := follow.Wait(); err != nil || out.String() != want {
		t.Errorf("follow: %v\n%s\nwant\n%s", err, &out, want)
	}
}
