package zarr

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// This file tests arrays in forms that the specification does not have and that
// writers in use have stored.

// stored returns a store with the given documents and chunks.
func wildStore(t *testing.T, values map[string]string) *kv.Mem {
	t.Helper()
	store := kv.NewMem()
	for key, value := range values {
		must(0, store.Set(context.Background(), key, []byte(value)))
	}
	return store
}

// zarr-python 3 stores null as the fill value of times in v2, reads it as NaT and
// leaves out chunks that hold NaT alone.
func TestNullTimesOfZarrPython(t *testing.T) {
	ctx := context.Background()
	for dataType, one := range map[string]string{
		"<M8[ns]": "\x01\x00\x00\x00\x00\x00\x00\x00", "<m8[s]": "\x01\x00\x00\x00\x00\x00\x00\x00",
		">M8[D]": "\x00\x00\x00\x00\x00\x00\x00\x01",
	} {
		store := wildStore(t, map[string]string{
			".zarray": `{"shape": [4], "chunks": [2], "dtype": "` + dataType + `", "fill_value": null, "order": "C",
  "filters": null, "dimension_separator": ".", "compressor": null, "zarr_format": 2}`,
			".zattrs": "{}", "0": one + one,
		})
		a := must(OpenArray(ctx, store, "", nil))
		if got := must(Read[int64](ctx, a, Sel())); !slices.Equal(got, []int64{1, 1, math.MinInt64, math.MinInt64}) {
			t.Errorf("%s: %d, want 1, 1, NaT, NaT", dataType, got)
		}
		if docs := must(a.Meta().Print()); string(docs[docArrayV2]) != string(must(kv.Get(ctx, store, ".zarray"))) {
			t.Errorf("%s: printed as %s", dataType, docs[docArrayV2])
		}
	}
}

// bioformats2raw before 0.7 and n5-zarr, so Fiji, stored numbers as strings.
func TestFillStringsOfJava(t *testing.T) {
	ctx := context.Background()
	for _, fill := range []struct{ dataType, text, want string }{
		{">u2", "65535", "65535"}, {">i4", "-1", "-1"}, {"|u1", "0", "0"}, {">f4", "0.0", "0.0"}, {"<f8", "0", "0.0"},
	} {
		doc := `{"zarr_format":2,"shape":[2,3],"chunks":[1,3],"dtype":"` + fill.dataType + `","fill_value":"` + fill.text + `",` +
			`"order":"C","filters":null,"dimension_separator":"/","compressor":null}`
		a := must(OpenArray(ctx, wildStore(t, map[string]string{".zarray": doc}), "", nil))
		m := a.Meta()
		if got := string(must(m.Type.PrintFillV2(m.Fill))); got != fill.want {
			t.Errorf("%s %q: %s, want %s", fill.dataType, fill.text, got, fill.want)
		}
		if docs := must(must(m.ToV3(codecs.Default())).Print()); !strings.Contains(string(docs[docV3]), `"fill_value": `+fill.want+",") {
			t.Errorf("%s %q is written as %s", fill.dataType, fill.text, docs[docV3])
		}
	}
}
