package zarr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// countBytes counts the bytes that are read.
type countBytes struct {
	*kv.Mem
	n atomic.Int64
}

func (c *countBytes) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := c.Mem.Get(ctx, key, rng)
	c.n.Add(int64(len(b)))
	return b, err
}

// A listing reads no more than the beginning of long files that are no documents, and
// all of long documents.
func TestLongFilesInPlaceOfDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for v, name := range map[Version]string{V2: meta.DocArrayV2, V3: meta.DocV3} {
		t.Run("v"+v.String(), func(t *testing.T) {
			ctx := t.Context()
			store := &countBytes{Mem: kv.NewMem()}
			o := &OpenOptions{Version: v}
			must.Have(CreateGroup(ctx, store, "", Attributes{}, o))
			must.Have(Create(ctx, store, "short", Spec{Shape: []int64{4}, DataType: "int8"}, o))
			var many Attributes
			must.Have(0, many.Set("text", strings.Repeat("x", 2*batchDocument)))
			must.Have(Create(ctx, store, "long", Spec{Shape: []int64{4}, DataType: "int8", Attributes: many}, o))
			for i := range 20 {
				must.Have(0, store.Set(ctx, fmt.Sprintf("sparse%02d/%s", i, name), make([]byte, 4*batchDocument)))
			}
			for what, list := range map[string]func(yield func(*Node, error) bool){
				"Walk": Walk(ctx, store, "", o),
				"OpenEach": func(yield func(*Node, error) bool) {
					paths := []string{"short", "long"}
					for i := range 20 {
						paths = append(paths, fmt.Sprintf("sparse%02d", i))
					}
					OpenEach(ctx, store, paths, o)(yield)
				},
			} {
				store.n.Store(0)
				var found []string
				bad := 0
				for n, err := range list {
					switch {
					case err == nil && n.array != nil:
						found = append(found, n.Name())
					case err != nil && !errors.Is(err, ErrMetadata):
						t.Error(err)
					case err != nil:
						bad++
					}
				}
				slices.Sort(found)
				if !slices.Equal(found, []string{"long", "short"}) || bad != 20 {
					t.Errorf("%s: found %q, %d errors", what, found, bad)
				}
				if n := store.n.Load(); n > 8*batchDocument {
					t.Errorf("%s: read %d bytes", what, n)
				}
			}
		})
	}
}
