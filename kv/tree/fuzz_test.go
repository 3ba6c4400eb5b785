package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// FuzzPage decodes bytes as a page: no panic, and either ErrCorrupt or a page
// that encodes to the same bytes and can be used.
func FuzzPage(f *testing.F) {
	for _, raw := range samplePages(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		damagedPage(t, "fuzz", raw)
		var l Links
		if _, err := l.Read(digest.Of(raw), raw); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// FuzzRoot decodes bytes as a root: what is accepted prints as it was.
func FuzzRoot(f *testing.F) {
	f.Add([]byte{0})
	f.Add(append([]byte{1}, make([]byte, 1+digest.Size+3)...)) // the empty map, not in its one form
	f.Add(Root{Name: digest.Of(nil), Height: 3, Flags: 7, Size: 300, Entries: 1 << 40, Bytes: 1 << 63}.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := DecodeRoot(b)
		if err != nil {
			return
		}
		if got := r.AppendBinary(nil); !bytes.Equal(got, b[:len(b)-len(rest)]) {
			t.Errorf("%x is %+v, which prints as %x", b, r, got)
		}
	})
}

// FuzzApply reads histories of edits from bytes and checks that each map is what
// Build makes of its content.
func FuzzApply(f *testing.F) {
	f.Add([]byte("\x01a\x00\x02bc\x05\x01a\x80"))
	f.Add(bytes.Repeat([]byte{2, 1, 2, 3, 2, 9, 8, 7}, 40))
	r := newRand(1)
	long := make([]byte, 1500)
	for i := range long {
		long[i] = byte(r.IntN(256)) >> r.IntN(8)
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := context.Background()
		tr := New(NewMemPages(), &Options{shape: tinyShape, CacheBytes: 1 << 18})
		m := model{}
		var root Root
		for b = b[:min(len(b), 1500)]; len(b) > 0; {
			var edits []Edit
			edits, b = readEdits(m, b)
			root = must.Get(tr.Apply(ctx, root, edits))(t)
			built, err := tr.Build(ctx, m.entries())
			if err != nil || built != root {
				t.Fatalf("root %+v, but built at once %+v, %v", root, built, err)
			}
		}
	})
}

// readEdits takes up to 64 edits from b and applies them to m. An edit is the
// length of its key, the key, and what happens.
func readEdits(m model, b []byte) ([]Edit, []byte) {
	byKey := map[string]Edit{}
	n := int(b[0]&63) + 1
	for ; n > 0 && len(b) > 1; n-- {
		size := min(int(b[0]&15), len(b)-1)
		key, what := b[1:size+1], byte(0)
		if b = b[size+1:]; len(b) > 0 {
			what, b = b[0], b[1:]
		}
		e := Edit{Key: key}
		switch {
		case what&0x80 != 0:
			e.Delete = true
		case what&3 == 0:
			e.Value = Value{Kind: KindInline, Inline: bytes.Repeat([]byte{what}, int(what>>2))}
		case what&3 == 1:
			e.Value = Value{Kind: KindNative, Offset: uint64(what) << 12, Length: uint64(what)}
			e.Value.Pack[3] = what & 4
		case what&3 == 2:
			e.Value = Value{Kind: KindVirtual, Source: Source{URL: "s3://b/" + string('a'+rune(what>>5))}, Offset: uint64(what)}
		default:
			e.Value = Value{Kind: KindChild, Child: Root{Size: 100, Entries: uint64(what)}}
		}
		byKey[string(key)] = e
	}
	if n > 0 {
		b = nil
	}
	var edits []Edit
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		edits = append(edits, byKey[k])
		if byKey[k].Delete {
			delete(m, k)
		} else {
			m[k] = byKey[k].Value
		}
	}
	return edits, b
}

// FuzzFind searches keys that are coded as a page and compares with a plain
// search.
func FuzzFind(f *testing.F) {
	f.Add([]byte("abcdefgh"), []byte("c"), uint8(1))
	f.Add([]byte("\x00\x00\x01\x00\x00\x02\x00\x00\x03\x00\x01\x03"), []byte("\x00\x00\x02"), uint8(3))
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 255, 254, 7}, 90), []byte{1, 2}, uint8(4))
	f.Fuzz(func(t *testing.T, keys, key []byte, size uint8) {
		// Cut keys into pieces of size bytes, and add runs to some of them.
		set := map[string]bool{}
		for piece := range slices.Chunk(keys[:min(len(keys), 2000)], int(size%9)+1) {
			set[string(piece)] = true
			if n := len(piece); piece[0]&1 == 0 && n < 8 {
				at := int(piece[n-1]) % n
				for range piece[0] / 4 {
					if piece = bytes.Clone(piece); piece[at] == 255 {
						break
					}
					piece[at]++
					set[string(piece)] = true
				}
			}
		}
		if len(set) == 0 {
			return
		}
		sorted := slices.Sorted(maps.Keys(set))
		sorted = sorted[:min(len(sorted), 2000)]
		var enc pageEncoder
		enc.reset(0)
		for _, k := range sorted {
			if !enc.add(&Entry{Key: []byte(k)}) {
				t.Fatalf("key %q is refused", k)
			}
		}
		raw, root := enc.finish()
		p := must.Get(decodePage(root.Name, raw))(t)
		use(p)
		want, exact := slices.BinarySearch(sorted, string(key))
		if got, ok := p.find(key, nil); got != want || ok != exact {
			t.Errorf("%q is found at %d, %v; want %d, %v", key, got, ok, want, exact)
		}
	})
}

// FuzzPacked packs integers and reads them back.
func FuzzPacked(f *testing.F) {
	f.Add([]byte("12345678abcdefgh"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var vals []uint64
		for ; len(b) >= 9; b = b[9:] {
			vals = append(vals, binary.LittleEndian.Uint64(b)>>(b[8]&63))
		}
		if len(vals) == 0 {
			return
		}
		raw := appendPacked(nil, vals)
		d := decoder{b: raw}
		p := d.packed(len(vals), 1<<64-1)
		if d.err != "" || d.pos != len(raw) {
			t.Fatalf("%d of %d bytes read: %s", d.pos, len(raw), d.err)
		}
		for i, v := range vals {
			if got := p.get(raw, i); got != v {
				t.Fatalf("value %d is %d, want %d", i, got, v)
			}
		}
	})
}
