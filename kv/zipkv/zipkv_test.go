package zipkv

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

var ctx = context.Background()

func openBytes(t *testing.T, b []byte) *Reader {
	t.Helper()
	r := must.Get(Open(ctx, kv.Bytes(b)))(t)
	return r
}

// openFile opens the archive at a path.
func openFile(path string) (*Reader, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Open(ctx, kv.Bytes(b))
}

// write makes an archive of content with this package.
func write(t *testing.T, content map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := newWriter(&b)
	for _, key := range slices.Sorted(maps.Keys(content)) {
		must.Do(t, z.Set(ctx, key, content[key]))
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

// writeStd makes an archive of content with the standard library, which puts
// sizes behind the members.
func writeStd(t *testing.T, content map[string][]byte, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	// One encoder with a small window: else each member takes megabytes on both sides.
	encoder := must.Get(zstd.NewWriter(nil, zstd.WithWindowSize(64<<10), zstd.WithEncoderConcurrency(1)))(t)
	z.RegisterCompressor(methodZstd, func(w io.Writer) (io.WriteCloser, error) {
		encoder.Reset(w)
		return encoder, nil
	})
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(content))) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: key, Method: method})
		if err == nil {
			_, err = w.Write(content[key])
		}
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

func TestConformance(t *testing.T) {
	invalid := []string{`a\b`, "..", "../a", "a/..", "a/./b", "."}
	for name, make := range map[string]func(*testing.T, map[string][]byte) []byte{
		"stored":       func(t *testing.T, c map[string][]byte) []byte { return write(t, c) },
		"std stored":   func(t *testing.T, c map[string][]byte) []byte { return writeStd(t, c, zip.Store) },
		"std deflated": func(t *testing.T, c map[string][]byte) []byte { return writeStd(t, c, zip.Deflate) },
		"std zstd":     func(t *testing.T, c map[string][]byte) []byte { return writeStd(t, c, methodZstd) },
	} {
		for _, far := range []bool{false, true} {
			if testing.Short() && far != (name == "std deflated") {
				continue
			}
			t.Run(fmt.Sprintf("%s far %v", name, far), func(t *testing.T) {
				kvtest.Run(t, nil, kvtest.Options{
					Fill: func(t *testing.T, c map[string][]byte) kv.Reader {
						if far {
							return openFar(t, &farArchive{Bytes: make(t, c), gap: 300, most: 4000})
						}
						return openBytes(t, make(t, c))
					},
					Invalid: invalid,
					Holds:   func(key string) bool { return refused(key) == "" },
				})
			})
		}
	}
}

// TestContents reads archives of other writers as Python's zipfile does.
func TestContents(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/contents.json"))(t)
	var archives map[string]map[string][2]any
	must.Do(t, json.Unmarshal(text, &archives))
	for name, want := range archives {
		t.Run(name, func(t *testing.T) {
			r := must.Get(openFile(filepath.Join("testdata/valid", name+".zip")))(t)
			keys, err := kv.Keys(ctx, r, "")
			if err != nil || !slices.Equal(keys, slices.Sorted(maps.Keys(want))) || len(keys) != r.Len() {
				t.Errorf("keys %q, %v", keys, err)
			}
			for key, w := range want {
				b, err := r.Get(ctx, key, kv.All())
				sum := sha256.Sum256(b)
				if err != nil || float64(len(b)) != w[0] || hex.EncodeToString(sum[:]) != w[1] {
					t.Errorf("%q: %d bytes, %x, %v, want %v", key, len(b), sum, err, w)
				}
			}
		})
	}
}

func TestNested(t *testing.T) {
	outer := must.Get(openFile("testdata/valid/nested.zip"))(t)
	v := must.Get(outer.Locate(ctx, "path/to/inner.zip"))(t)
	inner := must.Get(Open(ctx, v))(t)
	if b, err := inner.Get(ctx, "hier/a/zarr.json", kv.All()); err != nil || !json.Valid(b) {
		t.Errorf("%q, %v", b, err)
	}
	other := must.Get(outer.Locate(ctx, "other.txt"))(t)
	if _, err := Open(ctx, other); !errors.Is(err, errFormat) || !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a text file as archive: %v", err)
	}
}

// TestCorrupt has a table of damaged archives, and what must come of them.
func TestCorrupt(t *testing.T) {
	for _, c := range []struct {
		file, key string
		open      bool // opening fails
		want      error
		text      string
	}{
		{"bad_crc", "a", false, kv.ErrCorrupt, "checksum"},
		{"encrypted", "a", false, errMethod, "encryption"},
		{"entry_count_lie", "", true, kv.ErrCorrupt, "65535 members"},
		{"not_zip", "", true, errFormat, "not a zip archive"},
		{"offset_outside", "a", false, kv.ErrCorrupt, `"a" does not lie in the archive`},
		{"size_lie", "a", false, kv.ErrCorrupt, "declares 4294967280 bytes"},
		{"truncated", "", true, kv.ErrCorrupt, "no end record"},
	} {
		r, err := openFile(filepath.Join("testdata/corrupt", c.file+".zip"))
		if err == nil {
			if c.open {
				t.Errorf("%s was opened", c.file)
			}
			_, err = r.Get(ctx, c.key, kv.All())
			if _, e := r.Get(ctx, "missing", kv.All()); e != kv.ErrNotFound {
				t.Errorf("%s: a missing key: %v", c.file, e)
			}
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.file, err, c.want, c.text)
		}
	}
}

func TestRefusedNames(t *testing.T) {
	r := must.Get(openFile("testdata/corrupt/path_traversal.zip"))(t)
	keys, err := kv.Keys(ctx, r, "")
	if err != nil || !slices.Equal(keys, []string{"ok.txt"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	if len(r.Refused()) != 3 {
		t.Errorf("refused %q", r.Refused())
	}
	for _, name := range r.Refused() {
		if _, err := r.Get(ctx, name, kv.All()); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Get(%q): %v, want ErrInvalidKey", name, err)
		}
	}
}

// allocated returns how many bytes fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBomb(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/corrupt/bomb.zip"))(t)
	r := openBytes(t, data)
	r.maxMember = 100 << 20
	v, err := r.Locate(ctx, "big")
	if err != nil || v.Size() != 200<<20 {
		t.Fatalf("%v, %v", v, err)
	}
	if n := allocated(func() {
		for _, rng := range []kv.Range{kv.Span(0, 10), kv.Span(50<<20, 1000), kv.Last(10)} {
			if b, err := r.Get(ctx, "big", rng); err != nil || len(b) == 0 || bytes.Trim(b, "\x00") != nil {
				t.Errorf("%v: %d bytes, %v", rng, len(b), err)
			}
		}
	}); n > 2<<20 {
		t.Errorf("reading parts of a bomb allocates %d bytes", n)
	}
	if n := allocated(func() {
		if _, err := r.Get(ctx, "big", kv.All()); err == nil || !strings.Contains(err.Error(), "in memory") {
			t.Errorf("all of a bomb: %v", err)
		}
	}); n > 1<<20 {
		t.Errorf("refusing a bomb allocates %d bytes", n)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Get(canceled, "big", kv.Last(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("under a canceled context: %v", err)
	}
}

// TestDeclaredSizeCostsNothing lets a small member declare a large size.
func TestDeclaredSizeCostsNothing(t *testing.T) {
	small := bytes.Repeat([]byte("0123456789"), 1000)
	for _, method := range []uint16{zip.Deflate, methodZstd} {
		data := writeStd(t, map[string][]byte{"k": small}, method)
		at := bytes.Index(data, []byte("PK\x01\x02"))
		for _, size := range []uint32{uint32(len(small)) - 1, uint32(len(small)) + 1, 40_000, 200 << 20} {
			le.PutUint32(data[at+24:], size)
			if n := allocated(func() {
				r := openBytes(t, data)
				if b, err := r.Get(ctx, "k", kv.All()); !errors.Is(err, kv.ErrCorrupt) {
					t.Errorf("method %d, declared %d: %d bytes, %v", method, size, len(b), err)
				}
			}); n > 20<<20 {
				t.Errorf("method %d, declared %d: %d bytes allocated", method, size, n)
			}
		}
	}
}

// TestUnsupported opens archives whose members cannot all be read.
func TestUnsupported(t *testing.T) {
	data := writeStd(t, map[string][]byte{"a": []byte("aaa"), "b": []byte("bbb")}, zip.Store)
	local := bytes.Index(data, []byte("PK\x03\x04"))
	central := bytes.Index(data, []byte("PK\x01\x02"))
	le.PutUint16(data[local+8:], 9)
	le.PutUint16(data[central+10:], 9)
	r := openBytes(t, data)
	if keys, err := kv.Keys(ctx, r, ""); err != nil || len(keys) != 2 {
		t.Errorf("keys %q, %v", keys, err)
	}
	if b, err := r.Get(ctx, "a", kv.All()); err != nil || string(b) != "aaa" {
		t.Errorf("the other member: %q, %v", b, err)
	}
	if _, err := r.Get(ctx, "b", kv.All()); !errors.Is(err, errMethod) || !strings.Contains(err.Error(), `compression method 9 of member "b"`) {
		t.Errorf("deflate64: %v", err)
	}
}

// TestNames checks how stored names become keys.
func TestNames(t *testing.T) {
	unicode := func(raw, name string) []byte {
		b := le.AppendUint16(nil, extraUnicode)
		b = le.AppendUint16(b, uint16(5+len(name)))
		b = append(b, 1)
		b = le.AppendUint32(b, crcOf(raw))
		return append(b, name...)
	}
	for _, c := range []struct {
		raw   string
		flags uint16
		extra []byte
		want  string
		same  bool
	}{
		{"a/b", 0, nil, "a/b", true},
		{"é", flagUTF8, nil, "é", true},
		{"é", 0, nil, "é", true}, // UTF-8 that does not say so
		{"\x82", 0, nil, "é", false},
		{"\xe1\xfe\xff", 0, nil, "ß■\u00a0", false},
		{"\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0", 0, nil, "ÇÉá░└╨α≡", false},
		{"\xff", flagUTF8, nil, "\xff", true},
		{"_.txt", 0, unicode("_.txt", "漢.txt"), "漢.txt", false},
		{"_.txt", 0, unicode("other", "漢.txt"), "_.txt", true}, // renamed since
		{"_.txt", 0, []byte{0x75, 0x70, 9}, "_.txt", true},
	} {
		got, same := decodeName([]byte(c.raw), c.flags, c.extra)
		if got != c.want || same != c.same {
			t.Errorf("decodeName(%q, %#x) = %q, %v, want %q, %v", c.raw, c.flags, got, same, c.want, c.same)
		}
	}
	if len(codePage437) != 128 {
		t.Errorf("%d characters in the code page", len(codePage437))
	}
	// A member with a converted name can be read.
	data := writeStd(t, map[string][]byte{"x": []byte("value")}, zip.Store)
	data = bytes.ReplaceAll(data, []byte("x"), []byte("\x82"))
	if b, err := openBytes(t, data).Get(ctx, "é", kv.All()); err != nil || string(b) != "value" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestReads counts the reads of the archive, each of which may be a request.
func TestReads(t *testing.T) {
	content := map[string][]byte{"a": bytes.Repeat([]byte{1}, 100_000), "b": bytes.Repeat([]byte{2}, 100_000)}
	for name, data := range map[string][]byte{"stored": write(t, content), "deflated": writeStd(t, content, zip.Deflate)} {
		v := &countedValue{Value: kv.Bytes(data)}
		r := must.Get(Open(ctx, v))(t)
		if v.views > 2 {
			t.Errorf("%s: Open reads %d times", name, v.views)
		}
		for i, want := range []int{2, 1, 1} { // the local header is read once
			v.views = 0
			if _, err := r.Get(ctx, "a", kv.All()); err != nil || v.views != want {
				t.Errorf("%s: Get %d reads %d times, want %d (%v)", name, i, v.views, want, err)
			}
		}
		// Many views of one value decompress at most twice.
		value := must.Get(r.Locate(ctx, "b"))(t)
		v.views, v.bytes = 0, 0
		for i := range int64(100) {
			must.Do(t, value.View(ctx, kv.Span(i*1000, 1000), func(b []byte) error {
				if !bytes.Equal(b, content["b"][:1000]) {
					t.Errorf("%s: view %d is wrong", name, i)
				}
				return nil
			}))
		}
		if name == "deflated" && v.views != 2 || name == "stored" && (v.views != 100 || v.bytes != 100_000) {
			t.Errorf("%s: 100 views read %d times, %d bytes", name, v.views, v.bytes)
		}
	}
}

type countedValue struct {
	kv.Value
	views int
	bytes int64
}

func (v *countedValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	v.views++
	_, n, _ := rng.Resolve(v.Size())
	v.bytes += n
	return v.Value.View(ctx, rng, fn)
}

// TestID derives identities of members from that of the archive.
func TestID(t *testing.T) {
	data := write(t, map[string][]byte{"a": []byte("a"), "b": []byte("b")})
	ids := map[kv.ID]bool{}
	for _, archive := range []kv.ID{{1}, {2}} {
		r := must.Get(Open(ctx, kv.FromReaderAt(bytes.NewReader(data), int64(len(data)), archive)))(t)
		for _, key := range []string{"a", "b", "a"} {
			v := must.Get(r.Locate(ctx, key))(t)
			ids[v.ID()] = true
		}
	}
	if len(ids) != 4 || ids[kv.ID{}] {
		t.Errorf("%d identities: %v", len(ids), ids)
	}
	v, err := openBytes(t, data).Locate(ctx, "a")
	if err != nil || v.ID() != (kv.ID{}) {
		t.Errorf("of an archive without identity: %v, %v", v.ID(), err)
	}
}

func TestArchiveFails(t *testing.T) {
	fault := errors.New("fault")
	data := writeStd(t, map[string][]byte{"a": bytes.Repeat([]byte("x"), 5<<20)}, zip.Deflate)
	for k := 0; ; k++ {
		v := &failingValue{Value: kv.Bytes(data), left: k, err: fault}
		r, err := Open(ctx, v)
		if err == nil {
			_, err = r.Get(ctx, "a", kv.All())
		}
		if err == nil {
			if k == 0 {
				t.Error("nothing was read")
			}
			break
		}
		if !errors.Is(err, fault) || errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("read %d fails: %v", k, err)
		}
	}
}

type failingValue struct {
	kv.Value
	left int
	err  error
}

func (v *failingValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	if v.left--; v.left < 0 {
		return v.err
	}
	return v.Value.View(ctx, rng, fn)
}

// TestManyPieces reads a member whose compressed bytes come in pieces.
func TestManyPieces(t *testing.T) {
	want := make([]byte, 9<<20)
	x := uint32(1)
	for i := range want { // noise in half of the bits
		x = x*1664525 + 1013904223
		want[i] = byte(x>>24) & 0x1f
	}
	data := writeStd(t, map[string][]byte{"a": want}, zip.Deflate)
	if len(data) < packedAtOnce || len(data) > len(want)-1000 {
		t.Fatalf("only %d bytes", len(data))
	}
	fault := errors.New("fault")
	v := &failingValue{Value: kv.Bytes(data), left: 1 << 30, err: fault}
	r := must.Get(Open(ctx, v))(t)
	if b, err := r.Get(ctx, "a", kv.All()); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	v.left = 3
	if _, err := r.Get(ctx, "a", kv.All()); !errors.Is(err, fault) || errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("the archive fails in the middle: %v", err)
	}
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := dirkv.Open("testdata/valid", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	archive, err := dir.Locate(ctx, "zarr2.zip")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := Open(ctx, archive)
	if err != nil {
		fmt.Println(err)
		return
	}
	for key, err := range r.List(ctx, kv.ListOptions{Prefix: "a/b/0"}) {
		fmt.Println(key, err)
	}
	// Output:
	// a/b/0.0 <nil>
	// a/b/0.1 <nil>
	// a/b/0.2 <nil>
}

// TestManyEndRecords has a comment full of end records that lead to reads of
// the archive before they turn out to be none: only so many are tried.
func TestManyEndRecords(t *testing.T) {
	fake := append(le.AppendUint32(nil, sigLocator64), make([]byte, lenLocator64-4)...)
	end := append(le.AppendUint32(nil, sigEnd), make([]byte, lenEnd-4)...)
	le.PutUint16(end[8:], 1) // one member in a directory of no bytes
	le.PutUint16(end[10:], 1)
	fake = append(fake, end...)
	for _, n := range []int{1, maxCandidates - 1, maxCandidates, 1500} {
		data := write(t, map[string][]byte{"a": []byte("a")})
		comment := bytes.Repeat(fake, n)
		le.PutUint16(data[len(data)-2:], uint16(len(comment)))
		v := &countedValue{Value: kv.Bytes(append(data, comment...))}
		r, err := Open(ctx, v)
		if want := n < maxCandidates; (err == nil && r.Len() == 1) != want || !want && !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%d false end records: %v", n, err)
		}
		if v.views > 2+2*maxCandidates {
			t.Errorf("%d false end records: %d reads", n, v.views)
		}
	}
}
