package tree

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// lie makes a map whose root page names the first leaf in place of its interior pages.
func lie(t *testing.T, pages *MemPages, a Root) Root {
	ctx := context.Background()
	tr := New(pages, &Options{shape: aheadShape})
	root, err := tr.load(ctx, &a)
	if err != nil {
		t.Fatal(err)
	}
	x := root.childAt(0)
	for x.Height > 0 {
		q, err := tr.load(ctx, &x)
		if err != nil {
			t.Fatal(err)
		}
		x = q.childAt(0)
	}
	raw, _ := pages.GetPage(ctx, a.Name)
	raw = bytes.Clone(raw)
	for i := 1; i < root.len(); i++ {
		n := root.child.name(root.raw, i)
		at := bytes.Index(raw, n[:])
		copy(raw[at:], x.Name[:])
	}
	a.Name = digest.Of(raw)
	must.Do(t, pages.PutPage(ctx, a.Name, raw))
	return a
}

// A page that says of a leaf that it is an interior page is an error, also where pages below it
// are read ahead.
func TestLie(t *testing.T) {
	ctx := context.Background()
	pages := NewMemPages()
	build := func(x byte) Root {
		m := model{}
		for i := range 4000 {
			m[string(chunkKey(nil, i))] = Value{Kind: KindInline, Inline: []byte{x}}
		}
		return lie(t, pages, must.Get(New(pages, &Options{shape: aheadShape}).Build(ctx, m.entries()))(t))
	}
	a, b := build(1), build(2)
	tr := New(&batchPages{MemPages: pages}, &Options{shape: aheadShape})
	var err error
	for _, err = range tr.Scan(ctx, a, Span{}) {
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("scan: %v", err)
	}
	for _, err = range tr.Diff(ctx, a, b, Span{}) {
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("diff: %v", err)
	}
}
