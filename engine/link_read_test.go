package engine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// toParquet writes a JSON set as a parquet set of small partitions beside it,
// URLs as they are.
func toParquet(t testing.TB, json string) (dest string) {
	t.Helper()
	b := must.Get(os.ReadFile(json))(t)
	dest = strings.TrimSuffix(json, ".json") + ".parq"
	store := must.Get(dirkv.Create(dest, nil))(t)
	defer store.Close()
	must.Do(t, refs.WriteParquet(bg, store, refs.ReadJSON(bg, kv.Bytes(b), nil), &refs.ParquetOptions{RecordSize: 100}))
	return dest
}

// linkedValues is what a set became: the values of chunks, and how many the import
// counted.
func linkedValues(t testing.TB, set string, o ImportOptions) (values []txn.KeyValue, keys int64) {
	t.Helper()
	db := openDB(t, linkOptions(t, t.TempDir()))
	res := linkSet(t, db, set, Follow{}, o)
	for v, err := range at(t, db, "").Values(bg, "") {
		must.Do(t, err)
		if !isMetadata(v.Key) { // those of a parquet set are printed anew
			v.Key = strings.Clone(v.Key)
			values = append(values, v)
		}
	}
	return values, res.Keys
}

// A parquet set is linked as the JSON set that it was made of, where chunks go
// as columns and where some of them stand in the set.
func TestLinkParquet(t *testing.T) {
	const n = 1000
	var chunks strings.Builder
	for i := range n {
		switch {
		case i%7 == 3: // missing
		case i/100 == 4 && i%10 == 0:
			fmt.Fprintf(&chunks, `,"t/%d":"inline %d"`, i, i)
		case i == 950: // nothing is another value than none
			chunks.WriteString(`,"t/950":""`)
		case i/100 == 6:
			fmt.Fprintf(&chunks, `,"t/%d":["x"]`, i)
		case i/100 == 8:
			fmt.Fprintf(&chunks, `,"t/%d":["/nowhere/%d",%d,1]`, i, i/4, i)
		case i%2 == 0:
			fmt.Fprintf(&chunks, `,"t/%d":["s3://b/%d",%d,3]`, i, i/8, 1000-i)
		default:
			fmt.Fprintf(&chunks, `,"t/%d":["%s",%d,1]`, i, []string{"x", "y"}[i/16%2], 1+i%9)
		}
	}
	base := folder(t, map[string]string{"x": "0123456789", "y": "0123456789a", "refs.json": setOf(n, chunks.String())})
	json, parquet := base+"/refs.json", toParquet(t, base+"/refs.json")
	for _, o := range []ImportOptions{{}, {To: "a/b"}, {Validate: ValidateNone}} {
		want, keys := linkedValues(t, json, o)
		got, n := linkedValues(t, parquet, o)
		if !slices.Equal(got, want) || n != keys {
			t.Errorf("%+v: %d values, %d keys; want %d, %d", o, len(got), n, len(want), keys)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("%+v, want %+v", got[i], want[i])
				}
			}
		}
	}
	want, _ := linkedValues(t, json+"|kerchunk:t/", ImportOptions{To: "u"})
	if got, _ := linkedValues(t, parquet+"|kerchunk:t/", ImportOptions{To: "u"}); !slices.Equal(got, want) || len(want) < n/2 {
		t.Errorf("one array: %d values, want %d", len(got), len(want))
	}

	must.Do(t, os.Truncate(base+"/y", 5))
	db := openDB(t, linkOptions(t, t.TempDir()))
	was := head(t, db, "")
	_, err := db.Import(bg, openFollow(t, parquet, Follow{}), ImportOptions{Link: true})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), `"t/23"`) || head(t, db, "") != was {
		t.Errorf("a reference behind the end: %v", err)
	}
}
