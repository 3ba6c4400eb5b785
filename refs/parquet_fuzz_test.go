package refs_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// honest reports whether an error says what kind it is.
func honest(err error) bool {
	for _, is := range []error{refs.ErrInvalid, refs.ErrLimit, kv.ErrCorrupt, kv.ErrInvalidKey, errors.ErrUnsupported} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// readEveryWay reads a parquet set as a view, as entries and as columns, some
// thousand keys of it, and asserts that all of them see the same.
func readEveryWay(t *testing.T, dir kv.Reader) {
	const most = 2000
	o := refs.ReadOptions{MaxValue: 1 << 16, Partition: 1 << 20}
	view, err := refs.OpenParquet(t.Context(), dir, &refs.Options{Read: o})
	if err != nil {
		if !honest(err) {
			t.Fatal(err)
		}
		return
	}
	var keys []string
	complete := true
	for key, err := range view.List(t.Context(), kv.ListOptions{}) {
		if err != nil {
			if !honest(err) {
				t.Fatal(err)
			}
			complete = false
		} else if _, err := view.Lookup(t.Context(), key); err != nil && !honest(err) {
			t.Fatalf("%q is listed: %v", key, err)
		} else if err != nil {
			complete = false
		}
		if keys = append(keys, key); len(keys) == most {
			complete = false
			break
		}
	}
	if !slices.IsSorted(keys) && complete {
		t.Fatalf("the list is not sorted: %q", keys)
	}
	var all []string
	var last error
	for e, err := range refs.ReadParquet(t.Context(), dir, &o) {
		if last = err; err != nil || len(all) == most {
			break
		}
		if all = append(all, e.Key); complete {
			if ref, err := view.Lookup(t.Context(), e.Key); err != nil || !sameReference(ref, e.Reference) {
				t.Fatalf("%q is %v, %v, and %v among all", e.Key, ref, err, e.Reference)
			}
		}
	}
	if last != nil && !honest(last) {
		t.Fatal(last)
	}
	if slices.Sort(all); complete && (last != nil || !slices.Equal(all, keys)) {
		t.Fatalf("listed are %q, and all are %q, %v", keys, all, last)
	}
	set := must.Get(refs.OpenParquetSet(t.Context(), dir, &o))(t)
	for _, a := range set.Arrays() {
		rows := 0
		for b, err := range set.Batches(t.Context(), &a) {
			if err != nil {
				if !honest(err) || complete {
					t.Fatal(err)
				}
				break
			}
			if rows += b.Len(); rows > most {
				break
			}
		}
	}
}

// setIn makes a set of an index and the first partition of array "a".
func setIn(t testing.TB, index, partition []byte) *kv.Mem {
	dir := kv.NewMem()
	for name, b := range map[string][]byte{".zmetadata": index, "a/refs.0.parq": partition} {
		must.Do(t, dir.Set(context.Background(), name, b))
	}
	return dir
}

const fuzzedIndex = `{"metadata": {".zgroup": {}, "a/.zarray": {"shape": [2, 3], "chunks": [1, 1]}}, "record_size": 10}`

func FuzzZmetadata(f *testing.F) {
	for _, s := range []string{
		fuzzedIndex, `{}`, `{"record_size": 1}`, `{"metadata": {}, "record_size": 1}`, `{"metadata": {"a/.zarray": "{\"shape\": [], \"chunks\": []}"}, "record_size": 2}`,
		`{"metadata": {"a/.zarray": {"shape": [9223372036854775807, 0], "chunks": [1, 1], "dimension_separator": "/"}, "a/0/.zarray": {"shape": [3], "chunks": [2]}}, "record_size": 10}`,
		`{"metadata": {"a/.zarray": {"shape": [9223372036854775807], "chunks": [1]}}, "record_size": 9223372036854775807}`,
		`{"metadata": {"a/.zarray": {"shape": [99, 99, 99], "chunks": [2, 3, 99]}, "a/.zattrs": null, "b": []}, "record_size": 7}`,
	} {
		f.Add([]byte(s))
	}
	partition := must.Get(os.ReadFile("parquet/testdata/fastparquet.parq"))(f)
	f.Fuzz(func(t *testing.T, index []byte) { readEveryWay(t, setIn(t, index, partition)) })
}

func FuzzPartition(f *testing.F) {
	dir := kv.NewMem()
	entries := []refs.Entry{
		text("a/.zarray", `{"shape": [2, 3], "chunks": [1, 1]}`), ranged("a/0.0", 1, 2), text("a/0.1", "base64:x"), ranged("a/0.2", 0, refs.WholeFile), text("a/1.1", ""), ranged("a/1.2", 3, 4),
	}
	must.Do(f, refs.WriteParquet(context.Background(), dir, sequence(entries, nil), &refs.ParquetOptions{RecordSize: 10}))
	own := must.Get(kv.Get(context.Background(), dir, "a/refs.0.parq"))(f)
	f.Add(own)
	for _, name := range []string{"fastparquet.parq", "fastparquet_categories.parq", "pyarrow_null_raw.parq"} {
		b := must.Get(os.ReadFile("parquet/testdata/" + name))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, partition []byte) { readEveryWay(t, setIn(t, []byte(fuzzedIndex), partition)) })
}
