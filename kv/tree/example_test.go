package tree_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zarrdb/zarrdb/kv/tree"
)

func inline(s string) tree.Value { return tree.Value{Kind: tree.KindInline, Inline: []byte(s)} }

// Two people change a map, and their changes are merged.
func Example() {
	ctx := context.Background()
	t := tree.New(tree.NewMemPages(), nil)
	apply := func(root tree.Root, edits ...tree.Edit) tree.Root {
		root, err := t.Apply(ctx, root, edits)
		if err != nil {
			log.Fatal(err)
		}
		return root
	}
	base := apply(tree.Root{},
		tree.Edit{Key: []byte("a"), Value: inline("1")},
		tree.Edit{Key: []byte("b"), Value: inline("2")})
	ours := apply(base, tree.Edit{Key: []byte("a"), Delete: true})
	theirs := apply(base,
		tree.Edit{Key: []byte("b"), Value: inline("two")},
		tree.Edit{Key: []byte("c"), Value: inline("3")})

	merged, err := t.Merge(ctx, base, ours, theirs, func(key []byte, base, ours, theirs *tree.Value) (*tree.Value, error) {
		return nil, fmt.Errorf("both sides changed %q", key)
	})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range t.Scan(ctx, merged, tree.Span{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s = %s\n", e.Key, e.Value.Inline)
	}

	// However it is made, the same content is the same map.
	direct := apply(tree.Root{},
		tree.Edit{Key: []byte("b"), Value: inline("two")},
		tree.Edit{Key: []byte("c"), Value: inline("3")})
	fmt.Println(direct == merged)
	// Output:
	// b = two
	// c = 3
	// true
}
