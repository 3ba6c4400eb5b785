package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// A clone, backup or restore that was interrupted says that it can be taken up.
func TestInterruptedTransfers(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "w.zdb")
	try := func(ctx context.Context, args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, strings.NewReader("value"), &stdout, &stderr)
		return code, stderr.String()
	}
	must := func(args ...string) {
		t.Helper()
		if code, text := try(context.Background(), args...); code != exitOK {
			t.Fatalf("%v: %d, %s", args, code, text)
		}
	}
	must("init", db)
	must("put", db, "a")
	must("backup", db, filepath.Join(dir, "saved.zdb"))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"clone", db, filepath.Join(dir, "clone.zdb")},
		{"backup", db, filepath.Join(dir, "backup.zdb")},
		{"restore", filepath.Join(dir, "saved.zdb"), filepath.Join(dir, "restored.zdb")},
	} {
		code, text := try(gone, args...)
		if code != exitInterrupted || text != "zarrdb: interrupted; what was copied is kept: the same command goes on\n" {
			t.Errorf("%v: %d, %s", args, code, text)
		}
		must(args...)
	}
}
