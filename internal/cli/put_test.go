package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
)

// runHere runs a command in this process.
func runHere(t *testing.T, stdin io.Reader, args ...string) (code int, messages string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = run(t.Context(), args, stdin, &out, &problems)
	return code, problems.String()
}

// A long value goes from a pipe or a file into the database without being held in memory.
func TestPutStreams(t *testing.T) {
	if !mmap.Supported {
		t.Skip("a value is read into memory here")
	}
	dir := filepath.Join(t.TempDir(), "w.zdb")
	if code, problems := runHere(t, nil, "init", dir); code != 0 {
		t.Fatal(problems)
	}
	const size = 96 << 20
	name := filepath.Join(t.TempDir(), "value")
	f, err := os.Create(name)
	must.Do(t, err)
	must.Do(t, errors.Join(f.Truncate(size+1), f.Close()))
	for _, source := range []string{"-", name} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, problems := runHere(t, io.LimitReader(ones{}, size), "put", dir, "long", source)
		runtime.ReadMemStats(&after)
		if code != 0 {
			t.Fatal(problems)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > size/2 {
			t.Errorf("put %s allocated %d bytes for a value of %d", source, n, size)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".zarrdb-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
	// An input without end stops when the disk has no room to store it.
	defer func(free func(string) (uint64, error)) { diskFree = free }(diskFree)
	diskFree = func(string) (uint64, error) { return 40 << 20, nil }
	if code, problems := runHere(t, ones{}, "put", dir, "endless"); code == 0 || !strings.Contains(problems, "has 41943040 free") {
		t.Errorf("%d, %s", code, problems)
	}
}

// ones is an input without end.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}
