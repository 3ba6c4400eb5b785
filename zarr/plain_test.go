package zarr

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// The keys that PlainKeys names hold the elements of whole chunks. Arrays whose chunks
// are stored in another form have none.
func TestPlainKeys(t *testing.T) {
	little, big := json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`), json.RawMessage(`[{"name":"bytes","configuration":{"endian":"big"}}]`)
	for name, c := range map[string]struct {
		spec  Spec
		plain bool
	}{
		"v3":        {Spec{Version: V3, DataType: "int32", Codecs: little}, true},
		"dots":      {Spec{Version: V3, DataType: "int32", Codecs: little, Separator: '.'}, true},
		"v2":        {Spec{Version: V2, DataType: "<i4", Codecs: json.RawMessage(`null`)}, true},
		"v1":        {Spec{Version: V1, DataType: "<i4", Codecs: json.RawMessage(`null`)}, true},
		"big":       {Spec{Version: V3, DataType: "int32", Codecs: big}, false},
		"bytes":     {Spec{Version: V3, DataType: "uint8", Codecs: json.RawMessage(`[{"name":"bytes"}]`)}, true},
		"zstd":      {Spec{Version: V3, DataType: "int32"}, false},
		"sum":       {Spec{Version: V3, DataType: "int32", Codecs: append(append(json.RawMessage{}, little[:len(little)-1]...), `,{"name":"crc32c"}]`...)}, false},
		"transpose": {Spec{Version: V3, DataType: "int32", Codecs: append(json.RawMessage(`[{"name":"transpose","configuration":{"order":[1,0]}},`), little[1:]...)}, false},
		"F":         {Spec{Version: V2, DataType: "<i4", Codecs: json.RawMessage(`{"order":"F"}`)}, false},
		"sharded":   {Spec{Version: V3, DataType: "int32", Codecs: little, Shards: []int64{4, 6}}, false},
		"text":      {Spec{Version: V3, DataType: "string"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Shape, c.spec.Chunks = []int64{5, 7}, []int64{2, 3}
			store := kv.NewMem()
			a := create(t, store, "x/a", c.spec)
			prefix, separator, ok := a.PlainKeys()
			if ok != c.plain {
				t.Fatalf("plain is %v", ok)
			}
			if !ok {
				return
			}
			size := a.Type().Size()
			elem := make([]byte, size)
			elem[0] = 9
			must.Do(t, a.FillBytes(context.Background(), Sel(), elem))
			for _, at := range [][]int64{{0, 0}, {2, 2}} {
				key := fmt.Sprintf("%s%d%s%d", prefix, at[0], separator, at[1])
				if key != a.ChunkKey(at) {
					t.Errorf("key %q, want %q", key, a.ChunkKey(at))
				}
				b, err := store.Get(context.Background(), key, kv.All())
				if err != nil || len(b) != 2*3*size || b[0] != 9 {
					t.Errorf("%s: %v, %v", key, b, err)
				}
			}
		})
	}
	if _, _, ok := create(t, kv.NewMem(), "", Spec{Version: V3, Shape: []int64{}, DataType: "int32", Codecs: little}).PlainKeys(); ok {
		t.Error("an array without dimensions")
	}
}
