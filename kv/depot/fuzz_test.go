package depot

import (
	"bytes"
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// samples are a manifest, a bundle and a segment.
func samples(f *testing.F) (manifest, bundle, segment []byte) {
	store := kv.NewMem()
	d := must.Get(Create(bg, store, nil))(f)
	p := d.Begin()
	record := []byte("commit")
	s := must.Get(p.Segment([]Range{{[16]byte{1}, 64, 69, bytes.NewReader([]byte("12345"))}, {[16]byte{2}, 8, 16, bytes.NewReader([]byte("12345678"))}}))(f)
	must.Do(f, p.Publish(bg, Change{
		Pages: seq(Page{[]byte("page"), true}, Page{[]byte("other"), false}), Commits: seq(Commit{record, false}, Commit{nil, true}), Segments: []*Segment{s},
		Moves: [][]byte{[]byte("move")}, Refs: []RefChange{{"heads/main", ID{}, NameOf(record)}},
	}))
	get := func(key string) []byte { return must.Get(kv.Get(bg, store, key))(f) }
	return get(manifestKey), get(d.Manifest().Bundles[0].Name.Bundle()), get(s.Name.Segment())
}

// FuzzManifest parses the JSON of a manifest: an error, or a manifest that parses to the same.
func FuzzManifest(f *testing.F) {
	b, _, _ := samples(f)
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	f.Add(rest)
	f.Add([]byte(`{"id":"","generation":1,"refs":{"a":"00"},"bundles":[{"name":"b/../x"}]}`))
	f.Fuzz(func(t *testing.T, rest []byte) {
		for _, b := range [][]byte{rest, append([]byte(manifestMagic+"1 "+NameOf(rest).String()+"\n"), rest...)} {
			m, err := ParseManifest(b)
			if err != nil {
				if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, ErrFormat) {
					t.Fatal(err)
				}
				continue
			}
			for _, info := range m.Bundles {
				if n, ok := ParseName(info.Name.String()); !ok || n != info.Name || info.Index < headerSize || info.Size < info.Index+footerSize {
					t.Fatalf("%+v", info)
				}
			}
			again, err := m.next(1, 0).encode()
			if err == nil {
				_, err = ParseManifest(again)
			}
			if err != nil && m.Generation < 1<<32-1 && len(b) < maxManifest/2 {
				t.Fatal(err)
			}
		}
	})
}

// FuzzBundle parses a bundle, and its index alone: an error, or contents inside of the bundle that
// can be listed and copied.
func FuzzBundle(f *testing.F) {
	_, b, _ := samples(f)
	w := must.Get(ParseBundle(b))(f)
	f.Add(w.x.raw, uint16(len(b)-footerSize-len(w.x.raw)))
	f.Add(make([]byte, countsSize), uint16(0))
	f.Fuzz(func(t *testing.T, raw []byte, end uint16) {
		x, err := parseIndex(raw, uint64(end))
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatal(err)
		}
		if _, err := ParseBundle(raw); err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		contents := append([]byte(bundleMagic), make([]byte, max(int(end), headerSize)-headerSize)...)
		b := &Bundle{x, append(append(contents, raw...), make([]byte, footerSize)...)}
		to := newBuilder()
		if err := to.addBundles([]*Bundle{b}, true); err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatal(err)
		}
		for _, e := range b.Extents() {
			if got, ok := x.cover(e.Pack, e.From, e.To); !ok || got != e {
				t.Fatalf("%v is found as %v", e, got)
			}
		}
		if _, _, err := to.finish(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSegment parses a segment: ranges inside of it, and an error where something else is.
func FuzzSegment(f *testing.F) {
	_, _, b := samples(f)
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		extents, err := ParseSegment(bytes.NewReader(b), int64(len(b)), Name{})
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatal(err)
		}
		for _, e := range extents {
			if e.From >= e.To || e.Offset > uint64(len(b)) || e.To-e.From > uint64(len(b))-e.Offset {
				t.Fatalf("%v of %d bytes", e, len(b))
			}
		}
	})
}
