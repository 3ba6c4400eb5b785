package n5

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// container has groups with and without attributes, datasets of several ranks, and
// files that are no part of it.
func container() (files map[string]string, keys []string) {
	files = map[string]string{
		"attributes.json": `{"n5":"4.0.0"}`, "README": "", "g/attributes.json": `{}`, "g-x/h/attributes.json": `{}`,
		"g/zarr/attributes.json": `{}`, "d2/attributes.json": `{"x":1}`, "g/notes/text": "a group without attributes",
	}
	keys = []string{"zarr.json", "g/zarr.json", "g-x/zarr.json", "g-x/h/zarr.json", "g/zarr/zarr.json", "d2/zarr.json", "g/notes/zarr.json", "7/zarr.json", "g/a-b/zarr.json"}
	dataset := func(path string, counts ...int) {
		shape := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(counts)), ","), "[]")
		ones := strings.Trim(strings.Repeat("1,", len(counts)), ",")
		files[path+"/attributes.json"] = `{"dimensions":[` + shape + `],"blockSize":[` + ones + `],"dataType":"uint8","compression":{"type":"raw"}}`
		keys = append(keys, path+"/zarr.json")
		coords := make([]int, len(counts))
		for n := 0; ; n++ {
			if key := path + strings.Join(strings.Fields(strings.Replace(fmt.Sprint(coords), "[", "/", 1)), "/"); n%3 != 1 {
				key = strings.TrimSuffix(key, "]")
				files[key] = ""
				keys = append(keys, key)
			}
			d := len(coords) - 1
			for ; d >= 0; d-- {
				if coords[d]++; coords[d] < counts[d] {
					break
				}
				coords[d] = 0
			}
			if d < 0 {
				break
			}
		}
	}
	dataset("g/a", 12, 3)
	dataset("g/a-b/c", 40)
	dataset("7/8", 2, 2, 11)
	dataset("g/one", 1)
	// Outside the datasets, or spelled otherwise.
	for _, key := range []string{"g/a/12/0", "g/a/0/3", "g/a/00/0", "g/a/0/0x", "g/one/0x", "7/8/0/5", "g/one/-1"} {
		files[key] = ""
	}
	slices.Sort(keys)
	return files, keys
}

// Keys come in byte order, from anywhere, by name too, and each can be looked up.
func TestList(t *testing.T) {
	files, keys := container()
	s := must.Get(open(t.Context(), base(formattest.Store(t, files)), noOptions))(t)
	list := func(o kv.ListOptions) (got []string) {
		for key, err := range s.List(t.Context(), o) {
			must.Do(t, err)
			got = append(got, key)
		}
		return got
	}
	if got := list(kv.ListOptions{}); !slices.Equal(got, keys) {
		t.Fatalf("keys\n%q, want\n%q", got, keys)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func() string {
		if rnd.IntN(4) == 0 {
			return ""
		}
		key := keys[rnd.IntN(len(keys))]
		return key[:rnd.IntN(len(key)+1)]
	}
	for range 500 {
		o := kv.ListOptions{Prefix: pick(), After: pick()}
		var want []string
		for _, key := range keys {
			if o.Has(key) {
				want = append(want, key)
			}
		}
		if got := list(o); !slices.Equal(got, want) {
			t.Fatalf("%+v: %q, want %q", o, got, want)
		}
	}
	for _, prefix := range []string{"", "g/", "g-x/", "g/a/", "g/a/1/", "7/", "7/8/", "g/a-b/c/", "none/"} {
		var got, want []kv.DirEntry
		for e, err := range kv.ListDir(t.Context(), s.(kv.Lister), prefix) {
			must.Do(t, err)
			got = append(got, e)
		}
		for e, err := range kv.ListDir(t.Context(), flat{s}, prefix) {
			must.Do(t, err)
			want = append(want, e)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ListDir %q: %v, want %v", prefix, got, want)
		}
	}
	n := 0
	for e, err := range s.Entries(t.Context()) {
		must.Do(t, err)
		if e.Key != keys[n] || e.Inline() != strings.HasSuffix(e.Key, "zarr.json") || e.Optional {
			t.Errorf("entry %+v, want the key %s", e, keys[n])
		}
		n++
	}
	for _, key := range keys {
		if _, err := s.Lookup(t.Context(), key); err != nil {
			t.Errorf("Lookup %s: %v", key, err)
		}
	}
	for _, key := range []string{
		"attributes.json", "README", "g/a/12/0", "g/a/0/3", "g/a/00/0", "g/a/0", "g/a/0/0/0", "g/a/0/zarr.json", "g/0",
		"none/zarr.json", "none/0/0", "7/8/0/5", "g/one/-1", "zarr.json/zarr.json", "0", "g/a/99999999999999999999/0",
	} {
		if _, err := s.Lookup(t.Context(), key); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Lookup %s: %v, want ErrNotFound", key, err)
		}
	}
}

// To open one array of a large container and read it, nothing else is read.
func TestOpenOneOfMany(t *testing.T) {
	files := map[string]string{"attributes.json": `{"n5":"4.0.0"}`}
	for i := range 100_000 {
		files[fmt.Sprintf("g%d/attributes.json", i)] = `{}`
	}
	files["g77777/a/attributes.json"] = dataset3x2
	files["g77777/a/0/0"] = block(0, []uint32{2, 2}, 0, "abcd")
	counted, count := kvtest.Count(formattest.Store(t, files))
	v := view(t, counted)
	count.Reset()
	a := must.Get(zarr.OpenArray(t.Context(), v, "g77777/a", options()))(t)
	if ops := count.Reset(); ops[kvtest.OpGet] != 1 || len(ops) != 1 {
		t.Fatalf("opening: %v, want one get", ops)
	}
	if _, _, err := zarr.Read[uint8](t.Context(), a, zarr.Sel(zarr.At(0))); err != nil {
		t.Fatal(err)
	}
	if ops := count.Reset(); ops[kvtest.OpLocate] != 1 || ops[kvtest.OpGet]+ops[kvtest.OpList]+ops[kvtest.OpListDir] != 0 {
		t.Fatalf("reading a block: %v, want one locate", ops)
	}
}

// The documents that are kept are bounded.
func TestNodesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("%d/attributes.json", i)] = `{"long":"` + long + `"}`
	}
	s := newSet(formattest.Store(t, files))
	for i := range 40 {
		must.Get(s.Lookup(t.Context(), fmt.Sprintf("%d/zarr.json", i)))(t)
	}
	held := 0
	for i := range 40 {
		if n, ok := s.nodes.Peek(fmt.Sprint(i)); ok {
			held += len(n.doc)
		}
	}
	if held > maxNodes || held < maxNodes/2 {
		t.Fatalf("%d bytes are kept, want about %d", held, maxNodes)
	}
}

// readerOnly is a server that is not listed.
type readerOnly struct{ kv.Reader }

// Where nothing can be listed, a dataset is read and linked by its path, and groups
// without attributes are not found.
func TestNotListed(t *testing.T) {
	files, _ := container()
	v := view(t, readerOnly{formattest.Store(t, files)})
	must.Get(zarr.OpenArray(t.Context(), v, "g/a-b/c", options()))(t)
	if _, err := zarr.Open(t.Context(), v, "g-x", options()); !errors.Is(err, zarr.ErrNotFound) {
		t.Fatalf("a group without attributes: %v, want ErrNotFound", err)
	}
	for _, err := range v.List(t.Context(), kv.ListOptions{}) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Fatalf("listing the container: %v, want ErrUnsupported", err)
		}
	}
	part := map[string]string{"attributes.json": files["g/a/attributes.json"]}
	for key := range files {
		if rest, ok := strings.CutPrefix(key, "g/a/"); ok {
			part[rest] = files[key]
		}
	}
	whole := formattest.Store(t, part)
	want := must.Get(keysOf(newSet(whole)))(t)
	got, err := keysOf(newSet(readerOnly{whole}))
	if err != nil || !slices.Equal(got, want) || len(got) < 20 {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
}

func keysOf(s refs.Set) (keys []string, err error) {
	for e, err := range s.Entries(context.Background()) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, e.Key)
	}
	return keys, nil
}
