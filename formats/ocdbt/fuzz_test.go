package ocdbt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// encodeFrame makes a frame of a body. enc is nil for no compression.
func encodeFrame(magic uint32, body []byte, enc *zstd.Encoder) []byte {
	dst := binary.BigEndian.AppendUint32(nil, magic)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	if enc != nil {
		dst = enc.EncodeAll(body, append(dst, 1))
	} else {
		dst = append(append(dst, 0), body...)
	}
	binary.LittleEndian.PutUint64(dst[4:], uint64(len(dst)+4))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

// bodies calls fn with the bodies of all frames in the test data that begin with magic.
func bodies(f *testing.F, magic uint32, fn func(body []byte)) {
	dirs, err := filepath.Glob("testdata/*/db")
	if err != nil || len(dirs) == 0 {
		f.Fatal(dirs, err)
	}
	n := 0
	for _, dir := range dirs {
		files := load(f, dir)
		for path := range files.List(f.Context(), kv.ListOptions{}) {
			b := must.Get(files.Get(f.Context(), path, kv.All()))(f)
			want := binary.BigEndian.AppendUint32(nil, magic)
			for at := bytes.Index(b, want); at >= 0; at = bytes.Index(b, want) {
				b = b[at:]
				if size := binary.LittleEndian.Uint64(b[4:]); size <= uint64(len(b)) {
					if body, err := decodeFrame(magic, b[:size], 1<<20); err == nil {
						fn(body)
						n++
					}
				}
				b = b[1:]
			}
		}
	}
	if n < 3 {
		f.Fatalf("only %d frames of %08x", n, magic)
	}
}

func badFormat(err error) bool {
	return errors.Is(err, formats.ErrFormat) || errors.Is(err, formats.ErrUnsupported)
}

func FuzzDecodeNode(f *testing.F) {
	bodies(f, magicNode, func(body []byte) { f.Add(body, "d/") })
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, body []byte, base string) {
		n, err := decodeNode(encodeFrame(magicNode, body, nil), base[:min(len(base), 100)], limit)
		if err != nil {
			if !badFormat(err) {
				t.Error(err)
			}
			return
		}
		if n.size() > 100*limit {
			t.Errorf("%d bytes", n.size())
		}
		for i := range n.len() {
			key := n.key(i)
			if at, equal := n.find(key); at != i || !equal {
				t.Errorf("key %d is found at %d", i, at)
			}
			if at, equal := n.find(key + "\x00"); at < i || equal && at == i {
				t.Errorf("after key %d: %d", i, at)
			}
			if n.height > 0 && !strings.HasPrefix(key, n.below(i)) {
				t.Errorf("child %d has %q below key %q", i, n.below(i), key)
			}
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	bodies(f, magicManifest, func(body []byte) { f.Add(body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decodeManifest(encodeFrame(magicManifest, body, nil))
		if err != nil {
			if !badFormat(err) {
				t.Error(err)
			}
			return
		}
		if m.arityLog2 == 0 || !m.numbered && len(m.versions) == 0 {
			t.Errorf("%+v", m)
		}
	})
}

func FuzzDecodeVersionNode(f *testing.F) {
	bodies(f, magicVersions, func(body []byte) { f.Add(body, uint8(1), uint8(0), uint64(2)) })
	f.Fuzz(func(t *testing.T, body []byte, arity, height uint8, last uint64) {
		if arity = arity%maxArityLog2 + 1; (int(height)+1)*int(arity) >= 64 {
			return
		}
		ref := versionRef{height: height, last: last}
		if len(body) > 1 {
			ref.height = body[1]
		}
		v, err := decodeVersionNode(encodeFrame(magicVersions, body, nil), arity, ref)
		switch {
		case err != nil && !badFormat(err):
			t.Error(err)
		case err == nil && len(v.versions)+len(v.nodes) == 0:
			t.Error("an empty node")
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00abc"), byte(1))
	f.Add([]byte("abc"), byte(0))
	f.Fuzz(func(t *testing.T, body []byte, compression byte) {
		b := encodeFrame(magicNode, body, nil)
		b[frameHeader+1] = compression
		seal(b)
		if got, err := decodeFrame(magicNode, b, 1<<16); err != nil && !badFormat(err) || len(got) > 1<<16 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// seal makes the checksum right.
func seal(b []byte) {
	if len(b) >= frameMin {
		end := len(b) - 4
		binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
	}
}

// sealed makes the checksums of frames right when they are read, so that fuzzing gets
// past them.
type sealed struct{ kv.Reader }

func (s sealed) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := s.Reader.Get(ctx, key, rng)
	seal(b)
	return b, err
}

// A whole store, of which one file is anything.
func FuzzStore(f *testing.F) {
	stores := []string{"ocdbt_inline", "ocdbt_many_nodes", "any_keys"}
	for i, name := range stores {
		files := load(f, "testdata/"+name+"/db")
		n := 0
		for path := range files.List(f.Context(), kv.ListOptions{}) {
			b := must.Get(files.Get(f.Context(), path, kv.All()))(f)
			f.Add(uint8(i), uint8(n), b, "v3")
			n++
		}
	}
	f.Add(uint8(0), uint8(200), []byte{}, "2026-11-22T00:00:00.5Z")
	loaded := map[string]*kv.Mem{}
	for _, name := range stores {
		loaded[name] = load(f, "testdata/"+name+"/db")
	}
	f.Fuzz(func(t *testing.T, store, file uint8, content []byte, version string) {
		good := loaded[stores[int(store)%len(stores)]]
		files, n := kv.NewMem(), 0
		for path := range good.List(t.Context(), kv.ListOptions{}) {
			b, err := good.Get(t.Context(), path, kv.All())
			if n == int(file) {
				b = content
			}
			must.Do(t, errors.Join(err, files.Set(t.Context(), path, b)))
			n++
		}
		_, err := use(t.Context(), sealed{files}, version, 1000)
		if err != nil && !badFormat(err) && !errors.Is(err, formats.ErrNoVersion) {
			t.Error(err)
		}
	})
}
