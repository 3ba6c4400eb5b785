package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must.Get(w.Write(b))(t)
	must.Do(t, w.Close())
	return out.Bytes()
}

func zstdOf(t testing.TB, b []byte) []byte {
	t.Helper()
	w := must.Get(zstd.NewWriter(nil))(t)
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// small bounds spools for one test.
func smallSpools(t *testing.T, memory, most int64) {
	t.Helper()
	m, n := spoolMemory, maxSpool
	spoolMemory, maxSpool = memory, most
	t.Cleanup(func() { spoolMemory, maxSpool = m, n })
}

// A compressed file of any size can be read in any part, from memory or from a
// temporary file.
func TestDecompressedFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	smallSpools(t, 10_000, 8<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 9_999, 10_000, 10_001, 3 << 20} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.IntN(7))
		}
		for scheme, packed := range map[string][]byte{"gzip": gzipped(t, data), "zstd": zstdOf(t, data)} {
			if len(packed) == 0 { // what zstd makes of nothing
				continue
			}
			twice := append(packed[:len(packed):len(packed)], packed...)
			url := memoryURL(t, map[string]string{"one": string(packed), "two": string(twice)})
			for name, want := range map[string][]byte{"one": data, "two": append(data[:size:size], data...)} {
				src := openURL(t, url+name+"|"+scheme+":")
				v := must.Get(src.File(bg))(t)
				if v.Size() != int64(len(want)) || !bytes.Equal(fileOf(t, src), want) {
					t.Fatalf("%s of %d bytes, %s: other bytes", scheme, size, name)
				}
				for range 5 {
					lo := r.Int64N(v.Size() + 1)
					n := r.Int64N(v.Size() - lo + 1)
					got, err := kv.ReadValue(bg, v, kv.Span(lo, n))
					if err != nil || !bytes.Equal(got, want[lo:lo+n]) {
						t.Fatalf("%s of %d bytes, %s: [%d:+%d] differs: %v", scheme, size, name, lo, n, err)
					}
				}
				must.Do(t, src.Close())
			}
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestDecompressionFails(t *testing.T) {
	smallSpools(t, 1000, 100_000)
	zeros := make([]byte, 1<<20)
	for scheme, packed := range map[string][]byte{"gzip": gzipped(t, zeros[:50_000]), "zstd": zstdOf(t, zeros[:50_000])} {
		bomb := map[string][]byte{"gzip": gzipped(t, zeros), "zstd": zstdOf(t, zeros)}[scheme]
		flipped := bytes.Clone(packed)
		flipped[len(flipped)-2] ^= 1 // in the checksum
		for what, c := range map[string]struct {
			b    []byte
			want error
		}{
			"empty":     {nil, kv.ErrCorrupt},
			"text":      {[]byte("not compressed at all"), kv.ErrCorrupt},
			"truncated": {packed[:len(packed)-3], kv.ErrCorrupt},
			"flipped":   {flipped, kv.ErrCorrupt},
			"garbage":   {append(bytes.Clone(packed), "garbage behind it"...), kv.ErrCorrupt},
			"bomb":      {bomb, errSpool},
		} {
			url := memoryURL(t, map[string]string{"f": string(c.b)}) + "f|" + scheme + ":"
			if _, err := openPlace(bg, url); !errors.Is(err, c.want) || !strings.Contains(err.Error(), scheme) {
				t.Errorf("%s %s: error %v, want %v", scheme, what, err, c.want)
			}
		}
		// A window that no memory holds.
		if scheme == "zstd" {
			huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00}
			url := memoryURL(t, map[string]string{"f": string(huge)}) + "f|zstd:"
			if _, err := openPlace(bg, url); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("a huge window: %v", err)
			}
		}
		// Trouble with the file below is not damage.
		boom := errors.New("boom")
		m := kvtest.Hook(Memory("boom-"+scheme), func(op kvtest.Op, _ string) error {
			if op == kvtest.OpView {
				return boom
			}
			return nil
		})
		must.Do(t, Memory("boom-"+scheme).Set(bg, "f", packed))
		e := &Env{Adapters: DefaultAdapters()}
		_, err := e.step(bg, Place{View: m, Path: "f", Kind: File}, mustPart(t, scheme))
		if !errors.Is(err, boom) || errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s of a file that cannot be read: %v", scheme, err)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	url := memoryURL(t, map[string]string{"f": string(gzipped(t, zeros[:5000]))})
	if _, err := openPlace(ctx, url+"f|gzip:"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestOneFileIsAView(t *testing.T) {
	at := aFile(kv.Bytes("text"), Place{})
	if b, err := kv.Get(bg, at.View, at.Path); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := kv.Get(bg, at.View, "other"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("another key: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := kv.Locate(ctx, at.View, at.Path); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestByteRanges(t *testing.T) {
	url := memoryURL(t, map[string]string{"f": "0123456789"})
	for spec, want := range map[string]string{"0-10": "0123456789", "0-0": "", "10-10": "", "3-5": "34"} {
		if got := string(fileOf(t, openURL(t, url+"f|byte-range:"+spec))); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	nested := openURL(t, url+"f|byte-range:2-8|byte-range:1-3")
	if got := string(fileOf(t, nested)); got != "34" {
		t.Errorf("a range of a range: %q", got)
	}
	v := must.Get(nested.File(bg))(t)
	for _, rng := range []kv.Range{kv.Span(0, 3), kv.Span(3, 0), kv.Last(3)} {
		if _, err := kv.ReadValue(bg, v, rng); !errors.Is(err, kv.ErrRange) {
			t.Errorf("%v of 2 bytes: %v", rng, err)
		}
	}
	if got, err := kv.ReadValue(bg, v, kv.Last(1)); err != nil || string(got) != "4" {
		t.Errorf("the last byte: %q, %v", got, err)
	}
	for _, spec := range []string{"", "5", "5-", "-5", "5-3", "+1-2", "a-b", "1-2-3", "0-11", "11-12", "0-99999999999999999999"} {
		if src, err := openPlace(bg, url+"f|byte-range:"+spec); err == nil {
			t.Errorf("%s: opened", spec)
			src.Close()
		}
	}
}

func TestJSONPointers(t *testing.T) {
	doc := ` { "a": {"b": [10, {"c/d": "slash", "m~n": 1.5}, []]}, "": "empty", "dup": 1, "dup": 2,` +
		` "é": null, "big": 12345678901234567890, "~1": "x", "s": "text" } `
	url := memoryURL(t, map[string]string{"f": doc, "list": `[1,[2,3]]`, "scalar": `"s"`})
	for pointer, want := range map[string]string{
		"f|json:/a/b/0": "10", "f|json:/a/b/1/c~1d": `"slash"`, "f|json:/a/b/1/m~0n": "1.5", "f|json:/": `"empty"`,
		"f|json:/%C3%A9": "null", "f|json:/é": "null", "f|json:/big": "12345678901234567890", "f|json:/~01": `"x"`,
		"f|json:/dup": "2", "list|json:/1/1": "3", "scalar|json:": `"s"`, "f|json:/a/b/2": "[]",
	} {
		src := openURL(t, url+pointer)
		if got := string(fileOf(t, src)); got != want {
			t.Errorf("%s: %s, want %s", pointer, got, want)
		}
		if at, err := src.env.Dataset(bg, src.Place); err == nil && !strings.Contains(at.URL.String(), "|json:") {
			t.Errorf("%s: detected %s", pointer, at.URL)
		}
	}
	for _, pointer := range []string{
		"f|json:/x", "f|json:/a/b/3", "f|json:/a/b/-", "f|json:/a/b/01", "f|json:/a/b/+1", "f|json:/a/b/-1", "f|json:/s/0", "f|json:/big/x",
		"f|json:/a/b/99999999999999999999", "scalar|json:/", "list|json:/x",
	} {
		if _, err := openPlace(bg, url+pointer); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	for what, text := range map[string]string{
		"cut": `{"a":`, "two": `{} {}`, "empty": "", "NaN": `{"a":NaN}`, "binary": "\x00\x01",
		"deep": strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20),
	} {
		if _, err := openPlace(bg, memoryURL(t, map[string]string{"f": text})+"f|json:"); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: %.200v", what, err)
		}
	}
	huge := &Env{Adapters: DefaultAdapters()}
	_, err := huge.step(bg, aFile(section{n: maxJSON + 1}, Place{}), mustPart(t, "json"))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxJSON)) {
		t.Errorf("a huge document: %v", err)
	}
}

func FuzzJSONPointer(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}]}`, "/a/1/b")
	f.Add(`{"":{"~":[[]]}}`, "//~0/0")
	f.Add(`[1,2]`, "/01")
	f.Fuzz(func(t *testing.T, doc, pointer string) {
		if !validJSON(doc) {
			return
		}
		got, err := pointed([]byte(doc), pointer)
		if err == nil && !validJSON(string(got)) {
			t.Errorf("%s of %s is %q", pointer, doc, got)
		}
	})
}

// A few KiB can decompress to zeros without end.
func TestInflation(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	must.Set(t, &freeSpool, 1<<20)
	smallSpools(t, 10_000, 1<<40)
	zeros := make([]byte, 16<<20)
	for scheme, packed := range map[string][]byte{"gzip": gzipped(t, zeros), "zstd": zstdOf(t, zeros)} {
		src, err := openPlace(bg, memoryURL(t, map[string]string{"z": string(packed)})+"z|"+scheme+":")
		if err == nil {
			_, err = src.File(bg)
			src.Close()
		}
		if !errors.Is(err, errSpool) {
			t.Errorf("%s: %d bytes that decompress to %d: %v", scheme, len(packed), len(zeros), err)
		}
	}
}
