package icechunk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// copyHistory writes all versions of a repository anew and returns the new ids.
func copyHistory(t *testing.T, files kv.ReadLister, to *kv.Mem) map[string]string {
	t.Helper()
	ctx := t.Context()
	w := must.Get(Create(ctx, to))(t)
	s := open(t, files, "")
	names := must.Get(s.Names(ctx))(t)
	ids := map[string]string{initialID.String(): initialID.String()}
	for i, n := range names {
		at := open(t, files, n.ID)
		var list []formats.Version
		for v, err := range at.History(ctx) {
			must.Do(t, err)
			list = append(list, v)
		}
		slices.Reverse(list)
		for _, v := range list {
			if ids[v.ID] != "" {
				continue
			}
			set := must.Get(s.At(ctx, v.ID))(t)
			since := v.Parents[0]
			v.Parents, v.Properties = []string{ids[since]}, map[string]string{"long": strings.Repeat("x", 300)}
			ids[v.ID] = must.Get(w.Commit(ctx, v, stored(t, ctx, w, files, set.Changes(ctx, since))))(t)
		}
		names[i].ID = ids[n.ID]
	}
	must.Do(t, w.Finish(ctx, names))
	return ids
}

// stored stores native chunks of another repository.
func stored(t *testing.T, ctx context.Context, w *Writer, files kv.Reader, in iter.Seq2[formats.Change, error]) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		for c, err := range in {
			if err == nil && strings.HasPrefix(c.URL, "chunks/") {
				var b []byte
				if b, err = kv.Get(ctx, files, c.URL); err == nil {
					b = append(b, make([]byte, inlineMost)...)[:len(b)]
					c.Reference, err = w.Put(ctx, c.Key, b)
				}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func TestWriteHistory(t *testing.T) {
	for _, name := range repositories {
		files, want := golden(t, name)
		to := kv.NewMem()
		ids := copyHistory(t, files, to)
		for old, v := range want.Versions {
			s := open(t, to, ids[old])
			if got := s.Version(); got.Message != v.Message || got.Author != v.Author || old != initialID.String() && got.Time.UnixMicro() != v.Micros || v.Parent != "" && got.Parents[0] != ids[v.Parent] {
				t.Errorf("%s: %+v, want %+v", name, got, v)
			}
			got := map[string]string{}
			for e, err := range s.Entries(t.Context()) {
				must.Do(t, err)
				got[e.Key] = digest(t, to, e.Reference)
			}
			if !maps.Equal(got, v.Keys) {
				t.Errorf("%s %s: %v, want %v", name, v.Message, got, v.Keys)
			}
			for other := range want.Versions {
				state := maps.Clone(want.Versions[other].Keys)
				for c, err := range s.Changes(t.Context(), ids[other]) {
					must.Do(t, err)
					if delete(state, c.Key); !c.Deleted {
						state[c.Key] = digest(t, to, c.Reference)
					}
				}
				if !maps.Equal(state, v.Keys) {
					t.Errorf("%s: changes from %s to %s: %v", name, other, old, state)
				}
			}
		}
		names, err := open(t, to, "").Names(t.Context())
		if err != nil || len(names) != len(want.Names) {
			t.Errorf("%s: names %v, %v", name, names, err)
		}
		again := kv.NewMem()
		if other := copyHistory(t, files, again); !maps.Equal(ids, other) {
			t.Errorf("%s: other ids the second time", name)
		}
	}
}

// arrayText is the document of an array of bytes.
func arrayText(shape, chunks, keys string) []byte {
	return fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array","shape":%s,"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":%s}},
		"chunk_key_encoding":%s,"fill_value":0,"codecs":[{"name":"bytes"}],"dimension_names":["x",null]}`, shape, chunks, keys)
}

func inlineChange(key string, value []byte) formats.Change {
	return formats.Change{Entry: refs.Entry{Key: key, Reference: refs.Reference{Data: value}}}
}

func sequence(list ...formats.Change) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		for _, c := range list {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// TestWriteManyManifests writes an array in many manifests, of which a commit touches
// one.
func TestWriteManyManifests(t *testing.T) {
	ctx := t.Context()
	to := kv.NewMem()
	w := must.Get(Create(ctx, to))(t)
	list := []formats.Change{inlineChange("zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`)), inlineChange("a/zarr.json", arrayText("[20000,2]", "[1,1]", `{"name":"v2"}`))}
	for i := range 20000 {
		list = append(list, inlineChange(fmt.Sprintf("a/%d.%d", i, i%2), []byte{byte(i)}))
	}
	first := must.Get(w.Commit(ctx, formats.Version{ID: "1"}, sequence(list...)))(t)
	second := must.Get(w.Commit(ctx, formats.Version{ID: "2", Parents: []string{first}}, sequence(inlineChange("a/7.0", []byte("new")), formats.Change{Entry: refs.Entry{Key: "a/8.0"}, Deleted: true})))(t)
	must.Do(t, w.Finish(ctx, []formats.Name{{Name: "main", ID: second}, {Name: "a/b", ID: first}}))
	manifests := 0
	for _, err := range to.List(ctx, kv.ListOptions{Prefix: "manifests/"}) {
		if manifests++; err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, to, "")
	if n := len(s.snap.node("a").covers); manifests != n+1 || n != 10 {
		t.Errorf("%d manifests, of which a snapshot has %d", manifests, n)
	}
	for key, want := range map[string]string{"a/c/7/0": "new\x00", "a/c/6/0": "\x06"} {
		if r, err := s.Lookup(ctx, key); err != nil || string(r.Data) != strings.TrimRight(want, "\x00") {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
	if _, err := s.Lookup(ctx, "a/c/8/0"); err != kv.ErrNotFound {
		t.Errorf("a chunk that was deleted: %v", err)
	}
	if n := len(keys(t, ctx, s, kv.ListOptions{})); n != 20002 { // one more, one less
		t.Errorf("%d keys", n)
	}
	changes := 0
	for range s.Changes(ctx, first) {
		changes++
	}
	if changes != 2 {
		t.Errorf("%d changes", changes)
	}
	open(t, to, "branch.a_b")
}

func TestWrittenNames(t *testing.T) {
	names := []formats.Name{{Name: "a/b"}, {Name: "main"}, {Name: "a_b"}, {Name: "a%b"}, {Name: "größe"}, {Name: "a/b", Tag: true}, {Name: "main", Tag: true}, {Name: "v1.0-rc+2", Tag: true}}
	want := []string{"a_b_", "main", "a_b", "a_b__", "gr__e", "a_b___", "main_", "v1.0-rc+2"}
	got := writtenNames(names)
	for i, n := range names {
		if got[n] != want[i] {
			t.Errorf("%+v is written %q, want %q", n, got[n], want[i])
		}
	}
}

// The locations of virtual chunks are URLs, and those of references are not escaped. The
// keys are those that icechunk-python 1.1.21 asks a bucket for.
func TestLocations(t *testing.T) {
	for location, want := range map[string]string{
		"my%20file": "my file", "my file": "my file", "50%25.bin": "50%.bin", "50%.bin": "50%.bin", "a%2525": "a%25", "q?versionId=7": "q",
		"q%3Fx": "q?x", "h%23x": "h#x", "%C3%BC": "ü", "ü": "ü", "a+b": "a+b", "%61b": "ab", "d%2Fe/f": "d/e/f", "100%": "100%",
	} {
		for _, root := range []string{"file:///d/", "s3://bucket/", "gs://bucket/a/"} {
			got, err := plainLocation(root + location)
			if err != nil || got != root+want {
				t.Errorf("%s is %s, %v", root+location, got, err)
			}
			if again, err := plainLocation(escapedLocation(got)); err != nil || again != got {
				t.Errorf("%s is written %s, which is read as %s, %v", got, escapedLocation(got), again, err)
			}
		}
		server := "https://host/" + location
		if got, err := plainLocation(server); err != nil || got != server || escapedLocation(server) != server {
			t.Errorf("%s is %s, %v", server, got, err)
		}
	}
	if _, err := plainLocation("s3://bucket/%ff"); !errors.Is(err, formats.ErrFormat) {
		t.Error(err)
	}
	// A written repository has URLs.
	for plain, want := range map[string]string{"s3://b/50%25 off?.nc": "s3://b/50%2525%20off%3F.nc", "file:///ü/a#b": "file:///%C3%BC/a%23b"} {
		file := manifestFile(objectID{1}, nodeID{2}, []edit{{coords: []uint32{0}, ref: refs.Reference{URL: plain, Length: 4}}})
		d := must.Get(zstd.NewReader(nil))(t)
		if body, err := d.DecodeAll(file[len(magic)+nameLen+3:], nil); err != nil || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s is not written as %s (%v)", plain, want, err)
		}
		d.Close()
	}
}

func TestWriteRefuses(t *testing.T) {
	ctx := t.Context()
	array := inlineChange("a/zarr.json", arrayText("[4,4]", "[2,2]", `{"name":"default"}`))
	for name, list := range map[string][]formats.Change{
		"v2":            {inlineChange("a/.zarray", []byte("{}"))},
		"other keys":    {inlineChange("notes.txt", []byte("text"))},
		"no array":      {inlineChange("a/c/0/0", []byte("x"))},
		"outside":       {array, inlineChange("a/c/0", []byte("x"))},
		"below":         {array, inlineChange("a/b/zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`))},
		"no JSON":       {inlineChange("zarr.json", []byte("{"))},
		"no v3":         {inlineChange("zarr.json", []byte(`{"zarr_format":2,"node_type":"group"}`))},
		"no grid":       {inlineChange("a/zarr.json", []byte(strings.Replace(string(array.Data), "regular", "rectilinear", 1)))},
		"whole file":    {array, {Entry: refs.Entry{Key: "a/c/0/0", Reference: refs.Reference{URL: "s3://b/k", Length: refs.WholeFile}}}},
		"far document":  {{Entry: refs.Entry{Key: "zarr.json", Reference: refs.Reference{URL: "s3://b/k", Length: 4}}}},
		"no path":       {inlineChange("a/../zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`))},
		"no chunk size": {inlineChange("a/zarr.json", arrayText("[4,4]", "[0,2]", `{"name":"default"}`))},
	} {
		w := must.Get(Create(ctx, kv.NewMem()))(t)
		if _, err := w.Commit(ctx, formats.Version{ID: "x"}, sequence(list...)); !errors.Is(err, formats.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := must.Get(Create(ctx, kv.NewMem()))(t)
	if err := w.Finish(ctx, []formats.Name{{Name: "other", ID: initialID.String()}}); err == nil {
		t.Error("a repository without main")
	}
	if _, err := w.Commit(ctx, formats.Version{ID: "x", Parents: []string{"00000000000000000000"}}, sequence()); !errors.Is(err, formats.ErrNoVersion) {
		t.Errorf("a parent that is not there: %v", err)
	}
}

func TestWriteContainers(t *testing.T) {
	var p prefixes
	if p.config() != nil {
		t.Error("settings without containers")
	}
	p.add("s3://bucket/a/b")
	p.add("https://host/x")
	for i := range 40 {
		p.add(fmt.Sprintf("file:///data/d%d/deep/x.nc", i))
	}
	want := []string{"file:///data/", "https://host/", "s3://bucket/"}
	if got := slices.Sorted(maps.Keys(p.seen)); !slices.Equal(got, want) {
		t.Errorf("containers %q, want %q", got, want)
	}
	if _, err := parseConfig(p.config()); err != nil {
		t.Error(err)
	}
}

func TestWriteConditions(t *testing.T) {
	ctx := t.Context()
	at := time.Unix(1_700_000_000, 0)
	conditions := []string{"", kv.IfMatch(`"a-b"`), kv.IfUnmodifiedSince(at), kv.IfUnmodifiedSince(time.Unix(0, 0)), kv.IfUnmodifiedSince(time.Unix(1<<33, 0))}
	want := []string{"", "if-match:a-b", "if-unmodified-since:1700000000", "if-unmodified-since:1", ""}
	list := []formats.Change{inlineChange("a/zarr.json", arrayText("[8,1]", "[1,1]", `{"name":"default"}`))}
	for i, c := range conditions {
		list = append(list, formats.Change{Entry: refs.Entry{Key: fmt.Sprintf("a/c/%d/0", i), Reference: refs.Reference{URL: "s3://b/k", Offset: 7, Length: 1, Condition: c}}})
	}
	to := kv.NewMem()
	w := must.Get(Create(ctx, to))(t)
	first := must.Get(w.Commit(ctx, formats.Version{ID: "x"}, sequence(list...)))(t)
	// The manifest is written again with what it had.
	second := must.Get(w.Commit(ctx, formats.Version{ID: "y", Parents: []string{first}}, sequence(inlineChange("a/c/7/0", []byte("x")))))(t)
	// A chunk that differs in its condition is another one.
	third, err := w.Commit(ctx, formats.Version{ID: "z", Parents: []string{second}}, sequence(formats.Change{
		Entry: refs.Entry{Key: "a/c/0/0", Reference: refs.Reference{URL: "s3://b/k", Offset: 7, Length: 1, Condition: "if-match:z"}},
	}))
	if err == nil {
		err = w.Finish(ctx, []formats.Name{{Name: "main", ID: third}})
	}
	must.Do(t, err)
	for _, id := range []string{first, second} {
		for i, want := range want {
			r, err := open(t, to, id).Lookup(ctx, fmt.Sprintf("a/c/%d/0", i))
			if err != nil || r.Condition != want || r.URL != "s3://b/k" || r.Offset != 7 {
				t.Errorf("%s, chunk %d: %+v, %v", id, i, r, err)
			}
		}
	}
	var changed []string
	for c, err := range open(t, to, third).Changes(ctx, first) {
		must.Do(t, err)
		changed = append(changed, c.Key+" "+c.Condition)
	}
	slices.Sort(changed)
	if got := strings.Join(changed, ", "); got != "a/c/0/0 if-match:z, a/c/7/0 " {
		t.Errorf("changes: %s", got)
	}
}
