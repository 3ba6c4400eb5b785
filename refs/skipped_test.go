package refs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// A key with a NUL, which no store can have, is left out with its value and named; it
// does not close the rest of the set.
func TestKeysWithNULAreSkipped(t *testing.T) {
	ctx := context.Background()
	rest := `"x\u0000y":["gone",0],".zgroup":{"zarr_format":2},"a/.zattrs":"{}","b\u0000/.zattrs":{"units":"K"},"a/0":["file",0,4],"a/\u00001":["file",4,4]}`
	for _, text := range []string{`{` + strings.Replace(rest, `,0]`, `,0,1]`, 1), `{"version":1,"refs":{` + strings.Replace(rest, `,0]`, `]`, 1) + `}`} {
		var keys, skipped []string
		o := &ReadOptions{Skipped: func(key string) { skipped = append(skipped, key) }, window: 16}
		for e, err := range ReadJSON(ctx, kv.Bytes(text), o) {
			must.Do(t, err)
			keys = append(keys, e.Key)
		}
		if want := []string{".zgroup", "a/.zattrs", "a/0"}; !slices.Equal(keys, want) {
			t.Errorf("keys %q, want %q", keys, want)
		}
		if want := []string{"x\x00y", "b\x00/.zattrs", "a/\x001"}; !slices.Equal(skipped, want) {
			t.Errorf("skipped %q, want %q", skipped, want)
		}
		if v, err := OpenJSON(ctx, kv.Bytes(text), nil); err != nil {
			t.Error(err)
		} else if b, err := v.Get(ctx, "a/.zattrs", kv.All()); err != nil || string(b) != "{}" {
			t.Errorf("%s, %v", b, err)
		}
	}
	// What is wrong with its value still is.
	for _, err := range ReadJSON(ctx, kv.Bytes(`{"x\u0000":["gone",0]}`), nil) {
		if err == nil {
			t.Error("a reference with two elements is accepted")
		}
	}
	dir := kv.NewMem()
	must.Do(t, dir.Set(ctx, zmetadataName, []byte(`{"metadata":{".zgroup":{"zarr_format":2},"b\u0000/.zattrs":{"a":1}},"record_size":10}`)))
	var skipped []string
	p, err := readZmetadata(ctx, dir, (&ReadOptions{Skipped: func(key string) { skipped = append(skipped, key) }}).withDefaults())
	if err != nil || len(p.docs) != 1 || !slices.Equal(skipped, []string{"b\x00/.zattrs"}) {
		t.Errorf("%v, %q, %v", p, skipped, err)
	}
}
