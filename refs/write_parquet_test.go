package refs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// sequence yields entries, and then an error if there is one.
func sequence(entries []refs.Entry, last error) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if last != nil {
			yield(refs.Entry{}, last)
		}
	}
}

func collect(t testing.TB, seq iter.Seq2[refs.Entry, error]) []refs.Entry {
	t.Helper()
	var out []refs.Entry
	for e, err := range seq {
		must.Do(t, err)
		out = append(out, e)
	}
	return out
}

// contents returns the values of a store.
func contents(t testing.TB, m *kv.Mem) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, err := range m.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		b := must.Get(kv.Get(t.Context(), m, key))(t)
		out[key] = string(b)
	}
	return out
}

// sameReference compares what two sets say of a key. The form of a value is
// a matter of spelling.
func sameReference(a, b refs.Reference) bool {
	return a.URL == b.URL && a.Offset == b.Offset && a.Length == b.Length && bytes.Equal(a.Data, b.Data)
}

// TestRoundTripFixtures writes the sets of others in each format and reads
// them back.
func TestRoundTripFixtures(t *testing.T) {
	n := 0
	for _, c := range fixtures(t, "*") {
		if c.Keys == "" {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			from := must.Get(c.open(t))(t)
			want := collect(t, from.Entries(t.Context()))
			check := func(format string, got *refs.View) {
				t.Helper()
				keys := 0
				for _, e := range want {
					if e.Key == ".zmetadata" && format == "parquet" {
						continue
					}
					keys++
					ref, err := got.Lookup(t.Context(), e.Key)
					if err != nil {
						t.Errorf("%s: %s: %v", format, e.Key, err)
						continue
					}
					if format == "parquet" && strings.Contains("/"+e.Key, "/.z") {
						text := must.Get(kv.Get(t.Context(), from, e.Key))(t)
						var a, b any
						nan := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("NaN"), []byte("null")) }
						if json.Unmarshal(nan(text), &a) != nil || json.Unmarshal(nan(ref.Data), &b) != nil || !reflect.DeepEqual(a, b) {
							t.Errorf("%s: %s is %s, want %s", format, e.Key, ref.Data, text)
						}
						continue
					}
					if !sameReference(ref, e.Reference) {
						t.Errorf("%s: %s is %v, want %v", format, e.Key, ref, e.Reference)
					}
				}
				if all := collect(t, got.Entries(t.Context())); len(all) != keys {
					t.Errorf("%s: %d entries, want %d", format, len(all), keys)
				}
			}
			for version := range 2 {
				var buf, again bytes.Buffer
				must.Do(t, refs.WriteJSON(&buf, from.Entries(t.Context()), &refs.WriteOptions{Version: version}))
				got := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(buf.Bytes()), nil))(t)
				check(fmt.Sprint("version ", version), got)
				if err := refs.WriteJSON(&again, refs.ReadJSON(t.Context(), kv.Bytes(buf.Bytes()), nil), &refs.WriteOptions{Version: version}); err != nil || !bytes.Equal(again.Bytes(), buf.Bytes()) {
					t.Errorf("version %d: written again it is other, %v", version, err)
				}
			}
			for _, record := range []int64{0, 3} {
				var dir, again kv.Mem
				must.Do(t, refs.WriteParquet(t.Context(), &dir, inlineDocuments(t, from), &refs.ParquetOptions{RecordSize: record}))
				got := must.Get(refs.OpenParquet(t.Context(), &dir, nil))(t)
				check("parquet", got)
				if err := refs.WriteParquet(t.Context(), &again, got.Entries(t.Context()), &refs.ParquetOptions{RecordSize: record}); err != nil || !reflect.DeepEqual(contents(t, &again), contents(t, &dir)) {
					t.Errorf("parquet: written again it is other, %v", err)
				}
			}
		})
	}
	if n < 20 {
		t.Errorf("%d cases", n)
	}
}

// inlineDocuments yields the entries of a set with the bytes of documents to which it only
// refers.
func inlineDocuments(t *testing.T, v *refs.View) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for e, err := range v.Entries(t.Context()) {
			if err == nil && strings.HasPrefix(path.Base(e.Key), ".z") {
				e.Reference = refs.Reference{}
				e.Data, err = kv.Get(t.Context(), v, e.Key)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// randomSet makes the documents and chunks of some arrays, sorted by key.
func randomSet(rnd *rand.Rand) []refs.Entry {
	var out []refs.Entry
	doc := func(key, text string) {
		out = append(out, refs.Entry{Key: key, Reference: refs.Reference{Data: []byte(text), Form: refs.FormText}})
	}
	doc(".zgroup", `{"zarr_format": 2}`)
	for i, prefix := range []string{"a", "a.b", "a/0x", "a/b", "a/b/c", "b/c", "t", "t/.hidden"} {
		if rnd.IntN(3) == 0 {
			continue
		}
		rank := rnd.IntN(4)
		shape, chunks, counts := make([]int, rank), make([]int, rank), make([]int, rank)
		for d := range rank {
			shape[d], chunks[d] = rnd.IntN(40/rank), 1+rnd.IntN(3)
			if i == 0 && rank == 1 {
				shape[d] = 900 + rnd.IntN(200)
			}
			counts[d] = (shape[d] + chunks[d] - 1) / chunks[d]
		}
		text, err := json.Marshal(map[string]any{"shape": shape, "chunks": chunks})
		if err != nil {
			panic(err)
		}
		doc(prefix+"/.zarray", strings.NewReplacer(",", ", ", ":", ": ").Replace(string(text)))
		if rnd.IntN(2) == 0 {
			doc(prefix+"/.zattrs", `{"n": [1, 2.5, "x/y"]}`)
		}
		missing, at := rnd.IntN(3), make([]int, rank)
		total := 1
		for _, n := range counts {
			total *= n
		}
		files := 1 + rnd.IntN(20)
		for k := range total {
			for d, rest := rank-1, k; d >= 0; d-- {
				at[d] = rest % counts[d]
				rest /= counts[d]
			}
			key := prefix + "/" + strings.ReplaceAll(strings.Trim(fmt.Sprint(at), "[]"), " ", ".")
			if rank == 0 {
				key = prefix + "/0"
			}
			url := fmt.Sprintf("s3://bucket/%d.nc", k/files)
			var ref refs.Reference
			switch what := rnd.IntN(10); {
			case missing > 0 && what < 3*missing, missing == 2 && k%60 < 30:
				continue
			case what == 9:
				ref = refs.Reference{Data: []byte(fmt.Sprintf("base64:%d", k))[:rnd.IntN(9)]}
			case what == 8:
				ref = refs.Reference{URL: url, Length: refs.WholeFile}
			default:
				ref = refs.Reference{URL: url, Offset: rnd.Int64N(1 << 40), Length: 1 + rnd.Int64N(1<<20)}
			}
			out = append(out, refs.Entry{Key: key, Reference: ref})
		}
	}
	slices.SortFunc(out, func(a, b refs.Entry) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// TestParquetModel writes random sets in several orders, and compares the view
// of each with that of the same set as JSON.
func TestParquetModel(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 15 {
		set := randomSet(rnd)
		o := &refs.ParquetOptions{RecordSize: 1 + rnd.Int64N(50)}
		var dir kv.Mem
		must.Do(t, refs.WriteParquet(t.Context(), &dir, sequence(set, nil), o))
		var text bytes.Buffer
		must.Do(t, refs.WriteJSON(&text, sequence(set, nil), nil))
		want := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(text.Bytes()), nil))(t)
		// A cache that holds nothing but the last partition changes nothing.
		got := must.Get(refs.OpenParquet(t.Context(), &dir, &refs.Options{CacheBytes: 1 + rnd.Int64N(1<<14)}))(t)
		compareViews(t, rnd, set, got, want)
		compareBatches(t, set, &dir)

		// In C order, documents first, and shuffled, it is the same.
		ordered := collect(t, got.Entries(t.Context()))
		docs := 0
		for docs < len(ordered) && strings.Contains("/"+ordered[docs].Key, "/.z") {
			docs++
		}
		var inOrder, shuffled kv.Mem
		o.MaxMemory = 1 << 20
		must.Do(t, refs.WriteParquet(t.Context(), &inOrder, sequence(ordered, nil), o))
		rnd.Shuffle(docs, func(i, j int) { ordered[i], ordered[j] = ordered[j], ordered[i] })
		rnd.Shuffle(len(ordered)-docs, func(i, j int) { ordered[docs+i], ordered[docs+j] = ordered[docs+j], ordered[docs+i] })
		must.Do(t, refs.WriteParquet(t.Context(), &shuffled, sequence(ordered, nil), o))
		if files := contents(t, &dir); !reflect.DeepEqual(files, contents(t, &inOrder)) || !reflect.DeepEqual(files, contents(t, &shuffled)) {
			t.Fatal("the order of the entries changes the files")
		}
	}
}

// compareViews asserts that two views have the same keys and references.
func compareViews(t *testing.T, rnd *rand.Rand, set []refs.Entry, got, want *refs.View) {
	t.Helper()
	keys := []string{"", "a", "a/", "a/0", "a/1", "b/c/", "t/.h", "zz"}
	for _, e := range set {
		keys = append(keys, e.Key, e.Key+"0", e.Key[:len(e.Key)-1])
		a, err := got.Lookup(t.Context(), e.Key)
		if err != nil || !sameReference(a, e.Reference) {
			t.Fatalf("%s: %v, %v, want %v", e.Key, a, err, e.Reference)
		}
	}
	for range 60 {
		o := kv.ListOptions{Prefix: keys[rnd.IntN(len(keys))]}
		if o.Prefix = o.Prefix[:rnd.IntN(len(o.Prefix)+1)]; rnd.IntN(2) == 0 {
			o.After = keys[rnd.IntN(len(keys))]
		}
		a, b := list(t, got, o), list(t, want, o)
		if !slices.Equal(a, b) {
			t.Fatalf("%+v: %q, want %q", o, a, b)
		}
		key := keys[rnd.IntN(len(keys))]
		x, errX := got.Lookup(t.Context(), key)
		y, errY := want.Lookup(t.Context(), key)
		if !sameReference(x, y) || errX != errY {
			t.Fatalf("%q: %v, %v, want %v, %v", key, x, errX, y, errY)
		}
	}
}

// compareBatches asserts that the columns of a set are the set, in C order.
func compareBatches(t *testing.T, set []refs.Entry, dir kv.Reader) {
	t.Helper()
	left := map[string]refs.Reference{}
	for _, e := range set {
		left[e.Key] = e.Reference
	}
	take := func(key string, ref refs.Reference) {
		want, ok := left[key]
		if !ok || !sameReference(ref, want) {
			t.Fatalf("%s: %v, want %v", key, ref, want)
		}
		delete(left, key)
	}
	p := must.Get(refs.OpenParquetSet(t.Context(), dir, nil))(t)
	for e := range p.Documents() {
		take(e.Key, e.Reference)
	}
	for _, a := range p.Arrays() {
		next := int64(0)
		for b, err := range p.Batches(t.Context(), &a) {
			must.Do(t, err)
			if b.First < next {
				t.Fatalf("%s: chunk %d comes after %d", a.Prefix, b.First, next)
			}
			next = b.First + int64(b.Len())
			for i, url := range b.URL {
				key := string(a.AppendKey(nil, b.First+int64(i)))
				switch {
				case url != "":
					take(key, refs.Reference{URL: url, Offset: b.Offset[i], Length: b.Length[i]})
				case b.Data[i] != nil:
					take(key, refs.Reference{Data: b.Data[i]})
				default:
					if _, ok := left[key]; ok {
						t.Fatalf("%s is missing", key)
					}
				}
			}
		}
	}
	if len(left) > 0 {
		t.Fatalf("%d references are not in the batches", len(left))
	}
}

func list(t *testing.T, l kv.Lister, o kv.ListOptions) (keys []string) {
	t.Helper()
	for key, err := range l.List(t.Context(), o) {
		must.Do(t, err)
		keys = append(keys, key)
	}
	return keys
}

func text(key, s string) refs.Entry {
	return refs.Entry{Key: key, Reference: refs.Reference{Data: []byte(s)}}
}

func ranged(key string, off, n int64) refs.Entry {
	return refs.Entry{Key: key, Reference: refs.Reference{URL: "s3://b/" + key, Offset: off, Length: n}}
}

func TestWriteParquetErrors(t *testing.T) {
	array := text("a/.zarray", `{"shape": [9, 9], "chunks": [1, 1]}`)
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		entries []refs.Entry
		last    error
		o       refs.ParquetOptions
		want    error
		key     string
	}{
		"no array":               {entries: []refs.Entry{ranged("a/0.0", 0, 1)}, want: refs.ErrInvalid, key: "a/0.0"},
		"array too late":         {entries: []refs.Entry{ranged("a/0.0", 0, 1), array}, want: refs.ErrInvalid, key: "a/0.0"},
		"outside of the grid":    {entries: []refs.Entry{array, ranged("a/0.9", 0, 1)}, want: refs.ErrInvalid, key: "a/0.9"},
		"beyond all integers":    {entries: []refs.Entry{array, ranged("a/0.9999999999999999999", 0, 1)}, want: refs.ErrInvalid, key: "a/0.9999999999999999999"},
		"other spelling":         {entries: []refs.Entry{array, ranged("a/0.01", 0, 1)}, want: refs.ErrInvalid, key: "a/0.01"},
		"other rank":             {entries: []refs.Entry{array, ranged("a/0", 0, 1)}, want: refs.ErrInvalid, key: "a/0"},
		"array at the root":      {entries: []refs.Entry{text(".zarray", `{"shape": [9], "chunks": [1]}`), ranged("0", 0, 1)}, want: refs.ErrInvalid, key: "0"},
		"document elsewhere":     {entries: []refs.Entry{ranged("a/.zarray", 0, 1)}, want: refs.ErrInvalid, key: "a/.zarray"},
		"document is a list":     {entries: []refs.Entry{text("a/.zattrs", `[1]`)}, want: refs.ErrInvalid, key: "a/.zattrs"},
		"document is cut":        {entries: []refs.Entry{text("a/.zattrs", `{"a": [1`)}, want: refs.ErrInvalid, key: "a/.zattrs"},
		"document is two":        {entries: []refs.Entry{text("a/.zattrs", `{} {}`)}, want: refs.ErrInvalid, key: "a/.zattrs"},
		"array without shape":    {entries: []refs.Entry{text("a/.zarray", `{"chunks": [1]}`)}, want: refs.ErrInvalid, key: "a/.zarray"},
		"array changes":          {entries: []refs.Entry{array, text("a/.zarray", `{"shape": [8, 9], "chunks": [1, 1]}`)}, want: refs.ErrInvalid, key: "a/.zarray"},
		"array changes its keys": {entries: []refs.Entry{array, text("a/.zarray", `{"shape": [9, 9], "chunks": [1, 1], "dimension_separator": "/"}`)}, want: refs.ErrInvalid, key: "a/.zarray"},
		"array among chunks":     {entries: []refs.Entry{text("a/.zarray", `{"shape": [9, 9], "chunks": [1, 1], "dimension_separator": "/"}`), text("a/0/.zarray", `{"shape": [9], "chunks": [1]}`), ranged("a/0/0", 0, 1)}, want: refs.ErrInvalid},
		"negative offset":        {entries: []refs.Entry{array, ranged("a/0.0", -1, 1)}, want: refs.ErrInvalid, key: "a/0.0"},
		"key leads out":          {entries: []refs.Entry{array, ranged("a/../0.0", 0, 1)}, want: kv.ErrInvalidKey, key: "a/../0.0"},
		"URL is not text":        {entries: []refs.Entry{array, {Key: "a/0.0", Reference: refs.Reference{URL: "\xff", Length: 1}}}, want: refs.ErrInvalid, key: "a/0.0"},
		"too late":               {entries: []refs.Entry{array, ranged("a/0.0", 0, 1), ranged("a/0.1", 0, 1), ranged("a/0.0", 0, 1)}, o: refs.ParquetOptions{RecordSize: 2}, want: refs.ErrLimit, key: "a/0.0"},
		"no memory":              {entries: []refs.Entry{array, ranged("a/0.0", 0, 1)}, o: refs.ParquetOptions{MaxMemory: 100}, want: refs.ErrLimit},
		"large partitions":       {o: refs.ParquetOptions{RecordSize: 1 << 40}},
		"error of the entries":   {entries: []refs.Entry{array}, last: boom, want: boom},
	} {
		t.Run(name, func(t *testing.T) {
			var dir kv.Mem
			err := refs.WriteParquet(t.Context(), &dir, sequence(c.entries, c.last), &c.o)
			t.Log(err)
			if err == nil || !errors.Is(err, c.want) && c.want != nil {
				t.Errorf("%v, want %v", err, c.want)
			}
			var ke *refs.KeyError
			if errors.As(err, &ke) != (c.key != "") || ke != nil && ke.Key != c.key {
				t.Errorf("%v is about %v, want %q", err, ke, c.key)
			}
			if _, err := refs.OpenParquet(t.Context(), &dir, nil); err != kv.ErrNotFound {
				t.Errorf("there is a set: %v", err)
			}
		})
	}
	dir := kv.NewMem()
	must.Do(t, dir.Set(t.Context(), "x", nil))
	if err := refs.WriteParquet(t.Context(), dir, sequence(nil, nil), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("beside other things: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	many := slices.Repeat([]refs.Entry{array}, 1000)
	if err := refs.WriteParquet(ctx, kv.NewMem(), sequence(many, nil), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestWriteParquetForms looks at what is written for values that a parquet set
// spells in another way.
func TestWriteParquetForms(t *testing.T) {
	entries := []refs.Entry{
		text(".zmetadata", `{"metadata": {}}`),
		text("a/.zarray", `{"shape": [9, 9], "chunks": [1, 1], "dimension_separator": "/", "fill_value": NaN}`),
		text("a/.zattrs", `{"x": "was"}`),
		text("a/.zattrs", `{ "x" : 1.50, "é": "/", "dimension_separator": "/" }`),
		ranged("a/0/0", 5, 0),
		// The document again, behind another array, changes nothing of what is there.
		text("c/.zarray", `{"shape": [1], "chunks": [1]}`),
		text("c/0", "c"),
		text("a/.zarray", `{"shape": [9, 9], "chunks": [1, 1], "dimension_separator": "/", "fill_value": NaN}`),
		ranged("a/8/8", 0, 0),
		text("a/0/1", "base64:AAAA"),
		text("a/0/2", ""),
		text("a/0/3", "first"),
		ranged("a/0/3", 7, 8),
		ranged("a/0/4", 7, 8),
		text("a/0/4", "second"),
		// Documents of no array, by what they are called.
		text("b.zarray", `{"b": 1}`),
		text(".zx/y", `{"y": 1}`),
		ranged("a/0/5", 7, 8),
		{Key: "a/0/5", Reference: refs.Reference{URL: "s3://b/whole", Length: refs.WholeFile}},
		ranged("a/0/6", 9007199254740993, 9223372036854775807),
	}
	var dir kv.Mem
	must.Do(t, refs.WriteParquet(t.Context(), &dir, sequence(entries, nil), &refs.ParquetOptions{RecordSize: 10}))
	b := must.Get(kv.Get(t.Context(), &dir, ".zmetadata"))(t)
	const index = `{"metadata": {".zx/y": {"y": 1}, "a/.zarray": {"shape": [9, 9], "chunks": [1, 1], "dimension_separator": ".", "fill_value": NaN}, ` +
		`"a/.zattrs": {"x": 1.5, "\u00e9": "/", "dimension_separator": "/"}, "b.zarray": {"b": 1}, ` +
		`"c/.zarray": {"shape": [1], "chunks": [1]}}, "record_size": 10}`
	if string(b) != index {
		t.Errorf("the index is %s", b)
	}
	view := must.Get(refs.OpenParquet(t.Context(), &dir, nil))(t)
	for key, want := range map[string]refs.Reference{
		"a/0.0": {}, "a/8.8": {}, "a/0.1": {Data: []byte("base64:AAAA")}, "a/0.2": {}, "a/0.3": {URL: "s3://b/a/0/3", Offset: 7, Length: 8}, "a/0.4": {Data: []byte("second")},
		"a/0.5": {URL: "s3://b/whole", Length: refs.WholeFile}, "a/0.6": {URL: "s3://b/a/0/6", Offset: 9007199254740993, Length: 9223372036854775807},
	} {
		if got, err := view.Lookup(t.Context(), key); err != nil || !sameReference(got, want) {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	keys := slices.Sorted(func(yield func(string) bool) {
		for key := range contents(t, &dir) {
			if !yield(key) {
				return
			}
		}
	})
	if !slices.Equal(keys, []string{".zmetadata", "a/refs.0.parq", "a/refs.8.parq", "c/refs.0.parq"}) {
		t.Errorf("files %q", keys)
	}
	// All partitions have as many rows, also the last one, of a single chunk:
	// others take the number of rows for the record size.
	var r parquet.Reader
	for _, key := range keys[1:] {
		v := must.Get(dir.Locate(t.Context(), key))(t)
		if err := r.Open(t.Context(), v, nil); err != nil || r.Rows() != 10 {
			t.Errorf("%s has %d rows, %v", key, r.Rows(), err)
		}
		rows := 0
		for b := (parquet.Batch{}); ; rows += b.Len() {
			if err := r.Next(&b); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for i := range b.Len() {
				if b.Raw[i] != nil && (b.Path[i] != "" || b.Offset[i] != 0 || b.Size[i] != 0) {
					t.Errorf("%s: row %d has a value and %q %d %d", key, rows+i, b.Path[i], b.Offset[i], b.Size[i])
				}
				if key == "a/refs.8.parq" && rows+i > 0 && (b.Path[i] != "" || b.Offset[i] != 0 || b.Size[i] != 0 || b.Raw[i] != nil) {
					t.Errorf("%s: row %d is %q %d %d %v", key, rows+i, b.Path[i], b.Offset[i], b.Size[i], b.Raw[i])
				}
			}
		}
		if rows != 10 {
			t.Errorf("%s: %d rows are read", key, rows)
		}
	}
}

func TestWriteParquetRecordSize(t *testing.T) {
	for size, want := range map[int64]string{-1: "100000", 0: "100000", 1: "1", 1 << 24: "16777216"} {
		var dir kv.Mem
		must.Do(t, refs.WriteParquet(t.Context(), &dir, sequence([]refs.Entry{text(".zgroup", "{}")}, nil), &refs.ParquetOptions{RecordSize: size}))
		if got := contents(t, &dir)[".zmetadata"]; got != `{"metadata": {".zgroup": {}}, "record_size": `+want+"}" {
			t.Errorf("%d: the index is %s", size, got)
		}
	}
}

// failing is a store whose n-th write fails, and no other: an error that is
// forgotten would leave a set without a partition.
type failing struct {
	*kv.Mem
	n   int
	err error
}

func (f *failing) Set(ctx context.Context, key string, value []byte) error {
	if f.n--; f.n == -1 {
		return f.err
	}
	return f.Mem.Set(ctx, key, value)
}

func TestWriteParquetFaults(t *testing.T) {
	set := randomSet(rand.New(rand.NewPCG(1, 2)))
	boom := errors.New("boom")
	for n := 0; ; n++ {
		dir := &failing{kv.NewMem(), n, boom}
		err := refs.WriteParquet(t.Context(), dir, sequence(set, nil), &refs.ParquetOptions{RecordSize: 20})
		if err == nil {
			if dir.n < 0 || n < 10 {
				t.Errorf("no error, only %d writes, or one of them failed", n)
			}
			return
		}
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if _, err := refs.OpenParquet(t.Context(), dir, nil); err != kv.ErrNotFound {
			t.Fatalf("after %d writes there is a set: %v", n, err)
		}
	}
}
