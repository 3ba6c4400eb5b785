package refs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// TestWriteParquetMemory has partitions of which two fit the memory: which ones
// are written for a third is seen by what may still come. One written too soon
// would be an error, one that is forgotten more memory than was given.
func TestWriteParquetMemory(t *testing.T) {
	const record, partition = 1000, 400 + 21*1000 // rows, and their approximate size in memory
	long := strings.Repeat("x", partition)
	inline := func(chunk int) refs.Entry { return text(fmt.Sprint("a/", chunk), long) }
	chunk := func(chunk int) refs.Entry {
		return refs.Entry{Key: fmt.Sprint("a/", chunk), Reference: refs.Reference{URL: "u", Offset: int64(chunk), Length: 1}}
	}
	var inOrder, alternating []refs.Entry
	for i := range 10 * record {
		inOrder = append(inOrder, chunk(i))
		alternating = append(alternating, chunk(i/(2*record)*2*record+i%2*record+i/2%record))
	}
	const places = 24 * record // of values
	for name, c := range map[string]struct {
		more    int64 // memory
		entries []refs.Entry
		want    error
	}{
		"in order":                     {0, inOrder, nil},
		"two at a time":                {0, alternating, nil},
		"three, and the last again":    {0, []refs.Entry{chunk(0), chunk(record), chunk(2 * record), chunk(record + 1), chunk(2*record + 1)}, nil},
		"three, and the first again":   {0, []refs.Entry{chunk(0), chunk(record), chunk(2 * record), chunk(1)}, refs.ErrLimit},
		"the first used in between":    {0, []refs.Entry{chunk(0), chunk(record), chunk(1), chunk(2 * record), chunk(2)}, nil},
		"and so not the second":        {0, []refs.Entry{chunk(0), chunk(record), chunk(1), chunk(2 * record), chunk(record + 1)}, refs.ErrLimit},
		"one chunk as often as all":    {0, append(slices.Repeat([]refs.Entry{chunk(0)}, record), chunk(1)), nil},
		"a value as large":             {places, []refs.Entry{chunk(0), inline(record), chunk(1)}, refs.ErrLimit},
		"a value that comes again":     {places, append(slices.Repeat([]refs.Entry{inline(record)}, 50), chunk(record+1)), nil},
		"a value that is replaced":     {places, []refs.Entry{chunk(0), inline(1), chunk(1), chunk(record), chunk(2)}, nil},
		"a value that alone is larger": {places, []refs.Entry{text("a/0", strings.Repeat(long, 3))}, refs.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			dir := kv.NewMem()
			entries := append([]refs.Entry{text("a/.zarray", `{"shape": [10000], "chunks": [1]}`)}, c.entries...)
			o := &refs.ParquetOptions{RecordSize: record, MaxMemory: 5*partition/2 + c.more}
			if err := refs.WriteParquet(t.Context(), dir, sequence(entries, nil), o); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.want != nil {
				return
			}
			view := must.Get(refs.OpenParquet(t.Context(), dir, nil))(t)
			last := map[string]refs.Reference{}
			for _, e := range c.entries {
				last[e.Key] = e.Reference
			}
			for key, want := range last {
				if got, err := view.Lookup(t.Context(), key); err != nil || !sameReference(got, want) {
					t.Fatalf("%s: %v, %v, want %v", key, got, err, want)
				}
			}
		})
	}
}
