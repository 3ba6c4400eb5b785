package icechunk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/msgpack"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// seed adds the files of a folder of the golden repositories, decompressed.
func seed(f *testing.F, folder string, want kind) {
	for _, name := range repositories {
		files, err := filepath.Glob("testdata/" + name + "/" + folder)
		if err != nil || len(files) == 0 && name == "v2" {
			f.Fatal(files, err)
		}
		for _, file := range files {
			b := must.Get(os.ReadFile(file))(f)
			spec, body, err := parseFile(b, want)
			if err != nil {
				f.Fatal(file, err)
			}
			f.Add(spec, body)
		}
	}
}

// wellMade fails if an error is not one of damaged or foreign data.
func wellMade(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, formats.ErrFormat) && !errors.Is(err, formats.ErrUnsupported) {
		t.Errorf("error of another kind: %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	seed(f, "snapshots/*", kindSnapshot)
	f.Fuzz(func(t *testing.T, spec byte, body []byte) {
		var id objectID
		if at := (&buffer{b: body}).root().fixed(0, 12); at != nil {
			id = objectID(at)
		}
		s, err := parseSnapshot(spec, body, id)
		if wellMade(t, err); err != nil {
			return
		}
		set := &Set{repo: newRepository(kv.NewMem()), snap: s}
		for key, err := range set.List(t.Context(), kv.ListOptions{}) {
			if err != nil {
				wellMade(t, err)
				break
			}
			if kv.ValidKey(key) != nil {
				t.Errorf("key %q", key)
			}
			if _, err := set.Lookup(t.Context(), key); err != nil && strings.HasSuffix(key, document) {
				t.Errorf("%q is listed: %v", key, err)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	seed(f, "manifests/*", kindManifest)
	f.Fuzz(func(t *testing.T, _ byte, body []byte) {
		var id objectID
		if at := (&buffer{b: body}).root().fixed(0, 12); at != nil {
			id = objectID(at)
		}
		m, err := parseManifest(body, id)
		if wellMade(t, err); err != nil {
			return
		}
		for _, a := range m.arrays {
			err := m.each(a.node, func(coords []uint32, ref table) error {
				r, err := m.reference(ref, nil)
				if err != nil {
					return err
				}
				if found, ok, err := m.find(a.node, coords, nil); !ok || err != nil || !same(found, r) {
					t.Errorf("%v is %+v, and found %+v, %v, %v", coords, r, found, ok, err)
				}
				return nil
			})
			wellMade(t, err)
		}
	})
}

func FuzzLog(f *testing.F) {
	seed(f, "transactions/*", kindLog)
	f.Fuzz(func(t *testing.T, _ byte, body []byte) {
		log := changeLog{}
		wellMade(t, parseLog(body, log))
	})
}

func FuzzInfo(f *testing.F) {
	seed(f, "repo", kindRepo)
	f.Fuzz(func(t *testing.T, spec byte, body []byte) {
		in, err := parseInfo(spec, body)
		if wellMade(t, err); err != nil {
			return
		}
		r := newRepository(kv.NewMem())
		r.info = in
		if _, err := r.names(t.Context()); err != nil {
			t.Error(err)
		}
		for _, s := range in.snapshots {
			if in.find(s.id) == nil {
				t.Errorf("%s is not found", s.ID)
			}
		}
		if in.config != nil {
			_, err := parseFlexConfig(in.config)
			wellMade(t, err)
		}
	})
}

func FuzzFile(f *testing.F) {
	for _, name := range []string{"testdata/v1/snapshots/1CECHNKREP0F1RSTCMT0", "testdata/v2/repo"} {
		b := must.Get(os.ReadFile(name))(f)
		f.Add(b)
	}
	bomb := append([]byte(magic), make([]byte, nameLen)...)
	bomb = append(bomb, 2, byte(kindSnapshot), compressed, 0x28, 0xb5, 0x2f, 0xfd, 0xe0)
	f.Add(binary.LittleEndian.AppendUint64(bomb, 1<<29))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, body, err := parseFile(b, kindSnapshot)
		wellMade(t, err)
		if len(body) > max(minBody, expand*len(b)) {
			t.Errorf("%d bytes of %d", len(body), len(b))
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add(msgpack.AppendText(nil, "text"))
	f.Add(msgpack.AppendText(nil, strings.Repeat("long", 20)))
	f.Add([]byte{0xcb, 0x40, 4, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xd1, 0xff, 0})
	f.Add([]byte{4, 'A', 'd', 'a', '!', 0, 5, 0x14, 1})
	f.Add([]byte{42, 4, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, ok := parseMessage(b); ok {
			if s, is := x.(string); is && len(s) > len(b) {
				t.Errorf("%q of %d bytes", s, len(b))
			}
		}
		root, buf := parseFlex(b)
		_, _ = root.scalar()
		root.members(func(_ string, v flex) bool {
			_, _ = v.text()
			return buf.err == nil
		})
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("virtual_chunk_containers:\n  s3://a/:\n    name: b\n    url_prefix: s3://a/\n"))
	f.Add([]byte(`{"virtual_chunk_containers":{"a":{"name":"b","url_prefix":"s3://a/"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := parseConfig(b)
		wellMade(t, err)
		_, err = parseRef(b)
		wellMade(t, err)
	})
}

// FuzzChunkKey reads chunk keys, which have one spelling.
func FuzzChunkKey(f *testing.F) {
	for _, key := range []string{"c/0/1", "c", "c/", "c/00", "c/4294967296", "0.1", "c.3"} {
		f.Add(key, byte('/'), false)
		f.Add(key, byte('.'), true)
	}
	f.Fuzz(func(t *testing.T, key string, separator byte, v2 bool) {
		if separator != '.' {
			separator = '/'
		}
		k := chunkKeys{separator: separator, v2: v2}
		coords, ok := k.parse(key)
		if ok && string(k.append(nil, coords)) != key {
			t.Errorf("%q is %v, and %q", key, coords, k.append(nil, coords))
		}
	})
}

// FuzzDocument takes documents that are written.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"zarr_format":3,"node_type":"group"}`))
	f.Add([]byte(`{"zarr_format":3,"node_type":"array","shape":[5,7],"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"v2"},"dimension_names":["y",null]}`))
	f.Add([]byte(`{"zarr_format":3,"node_type":"array","shape":[18446744073709551615],"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, out, err := parseDocument("zarr.json", b)
		if err != nil {
			if !errors.Is(err, formats.ErrUnsupported) {
				t.Error(err)
			}
			return
		}
		if !json.Valid(out) {
			t.Errorf("%q", out)
		}
		if d.NodeType == "array" && len(d.counts()) != len(d.Shape) {
			t.Errorf("%v chunks of %v", d.counts(), d.Shape)
		}
	})
}

// TestDamage flips bits of files, and cuts them: reading ends, with an error or values.
func TestDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, name := range repositories {
		files, _ := golden(t, name)
		sound := memory(t, files)
		for key, err := range sound.List(t.Context(), kv.ListOptions{}) {
			must.Do(t, err)
			if strings.HasPrefix(key, "chunks/") || strings.HasSuffix(key, refGone) {
				continue
			}
			b := must.Get(kv.Get(t.Context(), sound, key))(t)
			for _, bad := range [][]byte{b[:len(b)/2], b[:min(len(b), 30)], {}, flip(b, len(b)/2), flip(b, len(b)-2), flip(b, 36), flip(b, 37), flip(b, 38)} {
				m := memory(t, files)
				must.Do(t, m.Set(t.Context(), key, bad))
				readAll(t, m)
			}
		}
	}
}

func flip(b []byte, at int) []byte {
	out := append([]byte{}, b...)
	out[min(at, len(out)-1)] ^= 0x55
	return out
}

// readAll reads every version of a repository that may be damaged.
func readAll(t *testing.T, files kv.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Open(ctx, files, "")
	if err != nil {
		if !errors.Is(err, formats.ErrNoVersion) {
			wellMade(t, err)
		}
		return
	}
	for v, err := range s.History(ctx) {
		if err != nil {
			wellMade(t, err)
			return
		}
		at, err := s.At(ctx, v.ID)
		if err != nil {
			if !errors.Is(err, formats.ErrNoVersion) {
				wellMade(t, err)
			}
			return
		}
		since := ""
		if len(v.Parents) > 0 {
			since = v.Parents[0]
		}
		for _, err := range at.Changes(ctx, since) {
			if err != nil && !errors.Is(err, formats.ErrNoVersion) {
				wellMade(t, err)
			}
		}
		for key, err := range at.List(ctx, kv.ListOptions{}) {
			if err == nil {
				_, err = at.Lookup(ctx, key)
			}
			wellMade(t, err)
		}
	}
}
