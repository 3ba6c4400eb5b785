package tree

import (
	"bytes"
	"context"
	"testing"
)

// TestSources reads values of pages with many sources one by one, in order, and
// from some key on, and compares them with what was put.
func TestSources(t *testing.T) {
	ctx := context.Background()
	for name, set := range sourcePatterns {
		const n = 3000
		var want []Entry
		for e := range chunks(n, set) {
			e.Key = bytes.Clone(e.Key)
			want = append(want, e)
		}
		for step, cached := range map[int]int64{1: 1 << 20, 13: -1} {
			tr := New(NewMemPages(), &Options{CacheBytes: cached})
			root, err := tr.Build(ctx, chunks(n, set))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < n; i += step {
				v, ok, err := tr.Get(ctx, root, want[i].Key)
				if err != nil || !ok || !v.Equal(&want[i].Value) {
					t.Fatalf("%s: value %d is %+v, %v, %v; want %+v", name, i, v, ok, err, want[i].Value)
				}
			}
			for from := 0; from < n; from = 3*from + 1 {
				i := from
				for e, err := range tr.Scan(ctx, root, Span{From: want[from].Key}) {
					if err != nil || !bytes.Equal(e.Key, want[i].Key) || !e.Value.Equal(&want[i].Value) {
						t.Fatalf("%s: entry %d from %d on is %+v, %v; want %+v", name, i, from, e, err, want[i])
					}
					i++
				}
				if i != n {
					t.Fatalf("%s: the scan from %d ends at %d", name, from, i)
				}
			}
		}
	}
}
