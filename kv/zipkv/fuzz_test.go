package zipkv

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// readAll returns the members that can be read.
func readAll(data []byte) (map[string][]byte, error) {
	r, err := Open(ctx, kv.Bytes(data))
	if err != nil {
		return nil, err
	}
	r.maxMember = 1 << 20
	keys, err := kv.Keys(ctx, r, "")
	if err != nil {
		return nil, err
	}
	got := map[string][]byte{}
	for _, key := range keys {
		if b, err := r.Get(ctx, key, kv.All()); err == nil {
			got[key] = b
		}
	}
	return got, nil
}

// single returns an archive of the first member of another: decoders of bzip2
// and lzma are slow to set up.
func single(tb testing.TB, path string) []byte {
	tb.Helper()
	in := must.Get(zip.OpenReader(path))(tb)
	defer in.Close()
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	must.Do(tb, out.Copy(in.File[0]))
	must.Do(tb, out.Close())
	return b.Bytes()
}

// FuzzOpen reads anything as an archive. What the standard library reads whole
// must be the same here, or an error; and all that is read in pieces must be
// part of the whole.
func FuzzOpen(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.zip", "testdata/corrupt/*.zip"} {
		files := must.Get(filepath.Glob(pattern))(f)
		for _, file := range files {
			data := must.Get(os.ReadFile(file))(f)
			if len(data) < 1000 {
				f.Add(data)
			}
		}
	}
	for _, name := range []string{"bzip2", "lzma", "deflated"} {
		f.Add(single(f, filepath.Join("testdata/valid", name+".zip")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		r, err := Open(ctx, kv.Bytes(data))
		if err != nil {
			return
		}
		r.maxMember = 1 << 20
		keys, err := kv.Keys(ctx, r, "")
		if err != nil || !slices.IsSorted(keys) {
			t.Fatalf("%q, %v", keys, err)
		}
		whole := map[string][]byte{}
		for _, key := range keys {
			if reason := refused(key); reason != "" {
				t.Errorf("key %q: %s", key, reason)
			}
			b, err := r.Get(ctx, key, kv.All())
			if err != nil {
				continue
			}
			whole[key] = b
			for _, rng := range []kv.Range{kv.Last(int64(min(len(b), 3))), kv.Span(int64(len(b)/2), int64(len(b)/4))} {
				off, n, _ := rng.Resolve(int64(len(b)))
				if part, err := r.Get(ctx, key, rng); err != nil || !bytes.Equal(part, b[off:off+n]) {
					t.Errorf("%q: %v is %d bytes, %v", key, rng, len(part), err)
				}
			}
		}
		compareStd(t, data, whole)
	})
}

// compareStd checks members that the standard library reads too.
func compareStd(t *testing.T, data []byte, whole map[string][]byte) {
	std, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	last := map[string]*zip.File{}
	for _, file := range std.File {
		last[file.Name] = file
	}
	for name, file := range last {
		got, ok := whole[name]
		if !ok || file.NonUTF8 || strings.HasSuffix(name, "/") || file.Flags&flagEncrypted != 0 {
			continue
		}
		in, err := file.Open()
		if err != nil {
			continue
		}
		want, err := io.ReadAll(io.LimitReader(in, 1<<20))
		if err == nil && !bytes.Equal(got, want) {
			t.Errorf("%q: %d bytes, the standard library has %d", name, len(got), len(want))
		}
	}
}

// TestFlippedBytes damages every byte of archives, and cuts them anywhere: what
// is read under its name is what was there, or there is an error.
func TestFlippedBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	archives := map[string][]byte{}
	for _, name := range []string{"features", "stream"} {
		data := must.Get(os.ReadFile(filepath.Join("testdata/valid", name+".zip")))(t)
		archives[name] = data
	}
	for _, name := range []string{"lzma", "bzip2"} {
		archives[name] = single(t, filepath.Join("testdata/valid", name+".zip"))
	}
	for name, data := range archives {
		want := must.Get(readAll(data))(t)
		// When the name of the second "dup" is damaged, the first one shows.
		delete(want, "dup")
		for i := range data {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				bad := bytes.Clone(data)
				bad[i] ^= flip
				got, err := readAll(bad)
				if err != nil {
					continue
				}
				for key, b := range got {
					if w, ok := want[key]; ok && !bytes.Equal(b, w) {
						t.Errorf("%s, byte %d ^ %#x: %q has %d other bytes", name, i, flip, key, len(b))
					}
				}
			}
		}
		for n := range data {
			if _, err := readAll(data[:n]); err == nil {
				t.Errorf("%s, cut to %d of %d bytes, was opened", name, n, len(data))
			}
		}
	}
}

// archiveOf returns an archive of one member with these compressed bytes.
func archiveOf(method uint16, size, crc uint32, packed []byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "k", Method: method, CRC32: crc, UncompressedSize64: uint64(size), CompressedSize64: uint64(len(packed))})
	if err == nil {
		_, err = w.Write(packed)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// FuzzMember gives anything to the decoders: they must not panic, nor make
// more than a member declares.
func FuzzMember(f *testing.F) {
	for _, name := range []string{"bzip2", "lzma", "deflated"} {
		path := filepath.Join("testdata/valid", name+".zip")
		in := must.Get(zip.OpenReader(path))(f)
		raw := must.Get(in.File[0].OpenRaw())(f)
		packed := must.Get(io.ReadAll(raw))(f)
		f.Add(in.File[0].Method, uint32(in.File[0].UncompressedSize64), in.File[0].CRC32, packed)
		in.Close()
	}
	enc := must.Get(zstd.NewWriter(nil))(f)
	f.Add(uint16(methodZstd), uint32(6), crcOf("abcabc"), enc.EncodeAll([]byte("abcabc"), nil))
	// A dictionary of 4 GiB for a few bytes.
	f.Add(uint16(methodLZMA), uint32(100), uint32(0), append([]byte{9, 20, 5, 0, 0x5d, 0xff, 0xff, 0xff, 0xff}, make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, method uint16, size, crc uint32, packed []byte) {
		if len(packed) > 1<<12 {
			return
		}
		r := must.Get(Open(ctx, kv.Bytes(archiveOf(method, size, crc, packed))))(t)
		r.maxMember = 1 << 20
		b, err := r.Get(ctx, "k", kv.All())
		if err == nil && (len(b) != int(size) || crcOf(string(b)) != crc) {
			t.Errorf("%d bytes of %d", len(b), size)
		}
		if part, err := r.Get(ctx, "k", kv.Span(int64(size/2), int64(min(size/3, 10)))); err == nil && b != nil && !bytes.Equal(part, b[size/2:][:len(part)]) {
			t.Errorf("part %x is not in %x", part, b)
		}
	})
}
