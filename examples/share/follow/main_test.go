package main

import (
	"bytes"
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

// Both programs run at the same time, and follow prints every version.
func TestShare(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../record", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	var out bytes.Buffer
	follow := exec.Command(filepath.Join(bin, "follow"), dir)
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
