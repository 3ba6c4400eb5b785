package zipkv

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func crcOf(s string) uint32 { return crc32.ChecksumIEEE([]byte(s)) }

func sample() map[string][]byte {
	return map[string][]byte{
		"zarr.json": []byte(`{"zarr_format":3,"node_type":"group"}`),
		"a/c/0/0":   bytes.Repeat([]byte("0123456789"), 1000),
		"a/c/0/1":   {},
		"é/漢":       []byte("unicode"),
		"noise":     {0x8f, 0x12, 0xe7, 0x00, 0x55},
	}
}

func TestWriterAgainstStd(t *testing.T) {
	data := write(t, sample())
	z := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	got := map[string][]byte{}
	for _, f := range z.File {
		if f.Method != zip.Store || f.NonUTF8 || f.Mode() != 0o644 || f.Modified.Year() != 1980 {
			t.Errorf("%q: method %d, %v, %v", f.Name, f.Method, f.Mode(), f.Modified)
		}
		in, err := f.Open()
		must.Do(t, err)
		if got[f.Name], err = io.ReadAll(in); err != nil {
			t.Errorf("%q: %v", f.Name, err)
		}
	}
	for key, value := range sample() {
		if !bytes.Equal(got[key], value) {
			t.Errorf("%q has %d bytes, want %d", key, len(got[key]), len(value))
		}
	}
	if len(got) != len(sample()) {
		t.Errorf("%d members", len(got))
	}
}

// TestWriterAgainstOthers lets other programs check an archive, where they are.
func TestWriterAgainstOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.zip")
	ran := false
	z := must.Get(Create(path))(t)
	z.limit32, z.limit16 = 50, 3 // zip64 throughout
	for _, key := range []string{"a", "b/c", "é", "z"} {
		must.Do(t, z.Set(ctx, key, bytes.Repeat([]byte(key), 100)))
	}
	must.Do(t, z.Close())
	for _, cmd := range [][]string{{"unzip", "-t", path}, {"python3", "-m", "zipfile", "-t", path}} {
		if _, err := exec.LookPath(cmd[0]); err != nil {
			continue
		}
		ran = true
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		// Where the locale has no é, unzip prints its number. Python says
		// what is damaged, but does not fail.
		named := cmd[0] != "unzip" || bytes.Contains(out, []byte("é")) || bytes.Contains(out, []byte("#U00e9"))
		if err != nil || !named || bytes.Contains(out, []byte("corrupted")) {
			t.Errorf("%s: %v\n%s", cmd[0], err, out)
		}
	}
	if !ran {
		t.Skip("neither unzip nor python3 is here")
	}
}

// TestDeterministic writes, reads and writes again.
func TestDeterministic(t *testing.T) {
	first := write(t, sample())
	r := openBytes(t, first)
	var b bytes.Buffer
	z := newWriter(&b)
	for key, err := range r.List(ctx, kv.ListOptions{}) {
		must.Do(t, err)
		v := must.Get(r.Locate(ctx, key))(t)
		must.Do(t, z.SetValue(ctx, key, v))
	}
	must.Do(t, z.Close())
	if !bytes.Equal(b.Bytes(), first) {
		t.Errorf("%d bytes became %d other ones", len(first), b.Len())
	}
}

// TestLargeValue writes a value that is read in pieces, with the same result
// as one that is not.
func TestLargeValue(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), (atOnce+1<<20)/16)
	v := &countedValue{Value: kv.Bytes(big)}
	var b bytes.Buffer
	z := newWriter(&b)
	err := z.SetValue(ctx, "big", v)
	if err == nil {
		err = z.Close()
	}
	if err != nil || v.views != 2*2 {
		t.Errorf("%v, %d views", err, v.views)
	}
	if got, err := openBytes(t, b.Bytes()).Get(ctx, "big", kv.All()); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// One that changes between its two readings.
	z = newWriter(io.Discard)
	if err := z.SetValue(ctx, "big", &changingValue{Value: kv.Bytes(big)}); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("a value that changes: %v", err)
	}
	if err := z.Set(ctx, "next", nil); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("after it: %v", err)
	}
}

type changingValue struct {
	kv.Value
	views int
}

func (v *changingValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	return v.Value.View(ctx, rng, func(b []byte) error {
		b = bytes.Clone(b)
		if v.views++; v.views > 2 { // after the first reading
			b[0]++
		}
		return fn(b)
	})
}

func TestZip64(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		var b bytes.Buffer
		z := newWriter(&b)
		z.limit32, z.limit16 = uint64(rnd.IntN(500)), uint64(rnd.IntN(20))
		want := map[string][]byte{}
		for i := range rnd.IntN(20) {
			key := fmt.Sprintf("k%02d", i)
			want[key] = bytes.Repeat([]byte(key), rnd.IntN(100))
			must.Do(t, z.Set(ctx, key, want[key]))
		}
		must.Do(t, z.Close())
		r := openBytes(t, b.Bytes())
		std, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil || len(std.File) != len(want) || r.Len() != len(want) {
			t.Fatalf("%v, %d members, want %d", err, r.Len(), len(want))
		}
		for key, value := range want {
			if got, err := r.Get(ctx, key, kv.All()); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%q: %d bytes, %v, want %d", key, len(got), err, len(value))
			}
			in := must.Get(std.Open(key))(t)
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, value) {
				t.Errorf("std: %q: %d bytes, %v, want %d", key, len(got), err, len(value))
			}
		}
	}
}

// TestManyMembers has more members than 16 bits count.
func TestManyMembers(t *testing.T) {
	const n = 70_000
	var b bytes.Buffer
	z := newWriter(&b)
	for i := range n {
		must.Do(t, z.Set(ctx, fmt.Sprintf("c/%d", i), []byte{byte(i)}))
	}
	must.Do(t, z.Close())
	r := openBytes(t, b.Bytes())
	if got, err := r.Get(ctx, "c/69999", kv.All()); r.Len() != n || err != nil || got[0] != byte(69999%256) {
		t.Errorf("%d members, %v, %v", r.Len(), got, err)
	}
	// As written by programs that count modulo 65536 and know no zip64.
	at := bytes.LastIndex(b.Bytes(), []byte("PK\x06\x06"))
	dirSize, dirAt := le.Uint64(b.Bytes()[at+40:]), le.Uint64(b.Bytes()[at+48:])
	old := append([]byte{}, b.Bytes()[:at]...)
	old = le.AppendUint32(old, sigEnd)
	old = le.AppendUint32(old, 0)
	old = le.AppendUint16(old, n%65536)
	old = le.AppendUint16(old, n%65536)
	old = le.AppendUint32(old, uint32(dirSize))
	old = le.AppendUint32(old, uint32(dirAt))
	old = le.AppendUint16(old, 0)
	if r := openBytes(t, old); r.Len() != n {
		t.Errorf("%d members", r.Len())
	}
}

func TestWriterRefuses(t *testing.T) {
	z := newWriter(io.Discard)
	must.Do(t, z.Set(ctx, "m", nil))
	for _, key := range []string{"", "/a", "a/", "../a", "a/./b", `a\b`, "a\x00", "\xff", strings.Repeat("x", 65536)} {
		if err := z.Set(ctx, key, nil); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Set(%.20q): %v, want ErrInvalidKey", key, err)
		}
	}
	// In order, out of order, and again.
	for _, c := range []struct {
		key  string
		want error
	}{{"m", errExists}, {"n", nil}, {"n", errExists}, {"a", nil}, {"m", errExists}, {"a", errExists}, {"o", nil}, {"b", nil}, {"o", errExists}} {
		if err := z.Set(ctx, c.key, nil); !errors.Is(err, c.want) {
			t.Errorf("Set(%q): %v, want %v", c.key, err, c.want)
		}
	}
	if err := z.Delete(ctx, "never"); err != nil {
		t.Errorf("Delete of a key that was not set: %v", err)
	}
	if err := z.Delete(ctx, "a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Delete: %v", err)
	}
	// A value that cannot be read leaves the archive as it was.
	fault := errors.New("fault")
	if err := z.SetValue(ctx, "f", &failingValue{Value: kv.Bytes("x"), err: fault}); !errors.Is(err, fault) {
		t.Errorf("SetValue: %v", err)
	}
	if err := z.SetValue(ctx, "g", &failingValue{Value: kv.Bytes(make([]byte, atOnce+1)), err: fault}); !errors.Is(err, fault) {
		t.Errorf("SetValue: %v", err)
	}
	for _, key := range []string{"f", "g"} {
		if err := z.Set(ctx, key, nil); err != nil {
			t.Errorf("Set(%q) after a value could not be read: %v", key, err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := z.Set(canceled, "c", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Set under a canceled context: %v", err)
	}
	if err := z.Close(); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{"Set": z.Set(ctx, "x", nil), "Delete": z.Delete(ctx, "x"), "Close": z.Close(), "Abort": z.Abort()} {
		if err != kv.ErrClosed {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.zip")
	files := func() []string {
		entries := must.Get(os.ReadDir(dir))(t)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if _, err := Create(filepath.Join(dir, "none", "a.zip")); err == nil {
		t.Error("Create in a missing directory succeeded")
	}
	// Until Close there is nothing at path, and after Abort never was.
	z := must.Get(Create(path))(t)
	must.Do(t, z.Set(ctx, "a", []byte("old")))
	if slices.Contains(files(), "a.zip") {
		t.Error("the archive is there before Close")
	}
	if err := z.Abort(); err != nil || len(files()) != 0 {
		t.Errorf("after Abort: %v, %v", err, files())
	}
	for _, value := range []string{"old", "new"} {
		z := must.Get(Create(path))(t)
		must.Do(t, z.Set(ctx, "a", []byte(value)))
		if err := z.Close(); err != nil || !slices.Equal(files(), []string{"a.zip"}) {
			t.Errorf("after Close: %v, %v", err, files())
		}
		r := must.Get(openFile(path))(t)
		if b, err := r.Get(ctx, "a", kv.All()); err != nil || string(b) != value {
			t.Errorf("%q, %v, want %q", b, err, value)
		}
	}
	// What cannot be finished leaves the old archive.
	z = must.Get(Create(path))(t)
	z.file.Close()
	if err := z.Set(ctx, "a", nil); err != nil {
		t.Fatal(err) // still in the buffer
	}
	if err := z.Close(); err == nil {
		t.Error("Close with a broken file succeeded")
	}
	if !slices.Equal(files(), []string{"a.zip"}) {
		t.Errorf("left: %v", files())
	}
}

// TestOutputFails lets the output fail at each byte.
func TestOutputFails(t *testing.T) {
	fault := errors.New("fault")
	whole := write(t, sample())
	for k := 0; k <= len(whole); k += 37 {
		z := newWriter(&failingWriter{left: k, err: fault})
		z.out.Reset(&failingWriter{left: k, err: fault})
		var err error
		for key, value := range sample() {
			if err = z.Set(ctx, key, value); err != nil {
				break
			}
		}
		if e := z.Close(); err == nil {
			err = e
		}
		if k < len(whole) && !errors.Is(err, fault) {
			t.Errorf("output fails at %d of %d bytes: %v", k, len(whole), err)
		}
	}
}

type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		n := w.left
		w.left = 0
		return n, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

// TestMoreThan4GiB writes and reads real zip64 offsets and sizes, with zeros
// that are not kept.
func TestMoreThan4GiB(t *testing.T) {
	if os.Getenv("ZARRDB_LARGE_TESTS") == "" {
		t.Skip("set ZARRDB_LARGE_TESTS: it moves 10 GB through memory")
	}
	const big = 4<<30 + 5
	s := &sparse{}
	z := newWriter(s)
	for _, key := range []string{"a", "b"} {
		must.Do(t, z.SetValue(ctx, key, kv.FromReaderAt(zeros{}, big, kv.ID{})))
	}
	must.Do(t, z.Set(ctx, "c", []byte("behind")))
	must.Do(t, z.Close())
	r := must.Get(Open(ctx, kv.FromReaderAt(s, s.size, kv.ID{})))(t)
	if b, err := r.Get(ctx, "c", kv.All()); err != nil || string(b) != "behind" {
		t.Errorf("%q, %v", b, err)
	}
	v, err := r.Locate(ctx, "b")
	if err != nil || v.Size() != big {
		t.Fatalf("%v, %v", v, err)
	}
	if b, err := kv.ReadValue(ctx, v, kv.Last(3)); err != nil || !bytes.Equal(b, make([]byte, 3)) {
		t.Errorf("%v, %v", b, err)
	}
	if std, err := zip.NewReader(s, s.size); err != nil || len(std.File) != 3 || std.File[1].UncompressedSize64 != big {
		t.Errorf("std: %v", err)
	}
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// sparse keeps only writes that are not all zeros.
type sparse struct {
	size  int64
	parts []struct {
		at int64
		b  []byte
	}
}

func (s *sparse) Write(p []byte) (int, error) {
	if len(bytes.TrimLeft(p, "\x00")) > 0 {
		s.parts = append(s.parts, struct {
			at int64
			b  []byte
		}{s.size, bytes.Clone(p)})
	}
	s.size += int64(len(p))
	return len(p), nil
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), s.size-off))
	clear(p[:n])
	for _, part := range s.parts {
		if lo, hi := max(off, part.at), min(off+int64(n), part.at+int64(len(part.b))); lo < hi {
			copy(p[lo-off:hi-off], part.b[lo-part.at:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
