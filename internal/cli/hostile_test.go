//go:build linux

package cli

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	hostileGroup = `{"zarr_format":3,"node_type":"group"}`
	hostileArray = `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},` +
		`"chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"fill_value":0}`
)

// TestHostileStores runs commands that read on stores that are small on disk and
// claim much. A command may fail, with one line; it may not take more than a GiB or
// twenty seconds of work, panic, or run for ever.
func TestHostileStores(t *testing.T) {
	sparse := func(key string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			writeKeys(t, dir, map[string]string{"zarr.json": hostileGroup, "a/zarr.json": hostileArray, "a/c/0": "0123456789abcdef"})
			f := filepath.Join(dir, key)
			must.Do(t, os.WriteFile(f, nil, 0o666))
			if err := os.Truncate(f, 8<<40); err != nil {
				t.Skip(err) // the file system has no sparse files
			}
		}
	}
	deep := strings.Repeat("a/", 2000) + "x"
	for name, c := range map[string]struct {
		make func(t *testing.T, path string) // a directory, unless file is set
		file string
		want string // in what info, tree, import or export says
	}{
		"sparse group":    {sparse("zarr.json"), "", "too large"},
		"sparse array":    {sparse("a/zarr.json"), "", "too large"},
		"sparse chunk":    {sparse("a/c/0"), "", "too large"},
		"sparse file":     {sparse("readme"), "", "too large"},
		"sparse set":      {sparseFile, "set.json", "not recognised"},
		"sparse archive":  {sparseFile, "set.zip", "not recognised"},
		"no name":         {zipOf(map[string]string{"zarr.json": hostileGroup, "a//b": "1"}), "s.zip", "a/"},
		"no name, set":    {setOf(map[string]string{"zarr.json": hostileGroup, "a//b": "1"}), "s.json", "a/"},
		"many names":      {zipOf(map[string]string{"zarr.json": hostileGroup, deep: "1"}), "s.zip", "limit of 512"},
		"many names, set": {setOf(map[string]string{"zarr.json": hostileGroup, deep: "1"}), "s.json", "limit of 512"},
		"attributes":      {manyAttributes, "", "k499999"},
		"nested": {func(t *testing.T, dir string) {
			writeKeys(t, dir, map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"group","attributes":{"a":` + strings.Repeat("[", 1<<20)})
		}, "", "nested deeper"},
		"inflating set": {inflating, "s.json.gz", "limit exceeded"},
		"lying member":  {lyingMember, "s.zip", "corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			if c.file != "" {
				path = filepath.Join(path, c.file)
			}
			c.make(t, path)
			if strings.HasSuffix(path, ".json.gz") {
				path += "|kerchunk:"
			}
			hostileCommands(t, path, c.want)
		})
	}
	t.Run("lying server", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", int64(1)<<62)
			if r.Method == http.MethodGet {
				_, _ = conn.Write([]byte(hostileGroup))
			}
		}))
		defer s.Close()
		hostileCommands(t, s.URL+"/store/|zarr3:", "too large")
	})
}

// hostileCommands runs each command that reads, one of which must say want.
func hostileCommands(t *testing.T, path, want string) {
	dir := t.TempDir()
	db := filepath.Join(dir, "w.zdb")
	hostileRun(t, "init", db)
	said := ""
	for _, args := range [][]string{
		{"info", path}, {"tree", path}, {"ls", path}, {"keys", path}, {"read", path},
		{"import", db, path}, {"export", path, filepath.Join(dir, "out.zarr")}, {"export", path, filepath.Join(dir, "out.zip")}, {"refs", "expand", path},
	} {
		said += hostileRun(t, args...)
	}
	if !strings.Contains(said, want) {
		t.Errorf("nothing says %q: %.2000q", want, said)
	}
}

// hostileRun runs the program, of which it bounds memory and time, and returns the
// end of what it said.
func hostileRun(t *testing.T, args ...string) string {
	t.Helper()
	// The bound is for what never ends, not for what is slow.
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 8388608; exec zarrdb "$@"`, "sh"}, args...)...)
	out := tail{most: 64 << 10}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if ctx.Err() != nil || code < 0 || code == exitUsage || bytes.Contains(out.b, []byte("goroutine ")) {
		t.Errorf("%.200q: %v: %.2000s", args, err, out.b)
	}
	// A process begins with the most that the one which started it has ever had.
	var own syscall.Rusage
	must.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &own))
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && usage.Maxrss > max(1<<20, own.Maxrss) {
		t.Errorf("%.200q took %d MiB", args, usage.Maxrss>>10)
	}
	// Time of the processor, which other programs make a little longer. The longest of these
	// commands takes two seconds; what follows a claim of terabytes would take hours.
	if took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); took > 20*time.Second {
		t.Errorf("%.200q took %v", args, took)
	}
	return string(out.b)
}

// tail keeps the end of what is written.
type tail struct {
	b    []byte
	most int
}

func (w *tail) Write(b []byte) (int, error) {
	w.b = append(w.b, b...)
	w.b = w.b[max(0, len(w.b)-w.most):]
	return len(b), nil
}

func writeKeys(t *testing.T, dir string, keys map[string]string) {
	t.Helper()
	for key, value := range keys {
		name := filepath.Join(dir, key)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must.Do(t, os.WriteFile(name, []byte(value), 0o666))
	}
}

func writeHostile(t *testing.T, path string, b []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, b, 0o666))
}

func sparseFile(t *testing.T, path string) {
	writeHostile(t, path, nil)
	if err := os.Truncate(path, 8<<40); err != nil {
		t.Skip(err)
	}
}

func manyAttributes(t *testing.T, dir string) {
	attrs := map[string]int{}
	for i := range 500_000 {
		attrs[fmt.Sprintf("k%06d", i)] = i
	}
	doc := must.Get(json.Marshal(map[string]any{"zarr_format": 3, "node_type": "group", "attributes": attrs}))(t)
	writeKeys(t, dir, map[string]string{"zarr.json": string(doc)})
}

func zipOf(keys map[string]string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for key, value := range keys {
			w, err := z.Create(key)
			if err == nil {
				_, err = io.WriteString(w, value)
			}
			must.Do(t, err)
		}
		must.Do(t, z.Close())
		writeHostile(t, path, b.Bytes())
	}
}

func setOf(keys map[string]string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		b := must.Get(json.Marshal(map[string]any{"version": 1, "refs": keys}))(t)
		writeHostile(t, path, b)
	}
}

// lyingMember writes an archive of which a stored member claims 2^62 bytes.
func lyingMember(t *testing.T, path string) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "zarr.json", Method: zip.Store, CompressedSize64: 1 << 62, UncompressedSize64: 1 << 62})
	if err == nil {
		_, err = io.WriteString(w, hostileGroup)
	}
	if err == nil {
		err = z.Close()
	}
	must.Do(t, err)
	writeHostile(t, path, b.Bytes())
}

// inflating writes a set in gzip that begins as JSON and goes on with white space,
// far more of it than a set has.
func inflating(t *testing.T, path string) {
	var zeros bytes.Buffer
	w := gzip.NewWriter(&zeros)
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		must.Get(w.Write(blank))(t)
	}
	must.Do(t, w.Close())
	var b bytes.Buffer
	head := gzip.NewWriter(&b)
	_, _ = io.WriteString(head, `{"version":1,"refs":{`)
	must.Do(t, head.Close())
	for range 1024 { // members of one stream: 64 GiB
		b.Write(zeros.Bytes())
	}
	writeHostile(t, path, b.Bytes())
}
