package zarr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// named checks that a codec has its name and no other, here and in what is
// printed.
func named(name, config string) func(*testing.T) {
	return func(t *testing.T) {
		object := func(name string) string { return `{"name":"` + name + `","configuration":` + config + `}` }
		list := func(name string) string {
			switch c := object(name); name {
			case "transpose":
				return `[` + c + `,{"name":"bytes","configuration":{"endian":"little"}}]`
			case "bytes", "sharding_indexed":
				return `[` + c + `]`
			default:
				return codecList(c)
			}
		}
		m := must.Have(meta.ParseV3([]byte(metatest.Edit(t, metatest.ArrayDoc, "codecs", list(name))), builtin.Registry()))
		text := must.Have(m.Codecs.PrintV3())
		if !jsontext.Same(text, json.RawMessage(list(name))) {
			t.Errorf("%s is printed as %s", list(name), text)
		}
		for _, other := range []string{strings.ToUpper(name), name + "_", " " + name, "codecs." + name, "https://example.com/" + name} {
			follows(metatest.Row{Base: metatest.ArrayDoc, Set: []string{"codecs", codecList(object(other))}, Field: "codecs[1]"})(t)
		}
	}
}

// configured is follows for the configuration of a codec in metatest.ArrayDoc, from its other
// members and the values of one. Values that are wrong have the member in the
// error, "" stands for a member that is not there.
func configured(name, others, member string, right []string, wrong ...string) func(*testing.T) {
	const little = `{"name":"bytes","configuration":{"endian":"little"}}`
	list := func(value string) (string, int) {
		text := others
		if value != "" {
			if text != "" {
				text += ","
			}
			text += `"` + member + `":` + value
		}
		c := `{"name":"` + name + `","configuration":{` + text + `}}`
		switch name {
		case "bytes", "sharding_indexed":
			return "[" + c + "]", 0
		case "transpose":
			return "[" + c + "," + little + "]", 0
		}
		return codecList(c), 1
	}
	var rows []metatest.Row
	for _, v := range right {
		text, _ := list(v)
		rows = append(rows, metatest.Row{Base: metatest.ArrayDoc, Set: []string{"codecs", text}})
	}
	for _, v := range wrong {
		text, i := list(v)
		rows = append(rows, metatest.Row{Base: metatest.ArrayDoc, Set: []string{"codecs", text}, Field: fmt.Sprintf("codecs[%d].configuration.%s", i, member)})
	}
	return func(t *testing.T) {
		for _, r := range rows {
			_, err := meta.ParseV3([]byte(metatest.Edit(t, r.Base, r.Set...)), builtin.Registry())
			switch {
			case r.Field == "" && err != nil:
				t.Errorf("%s: %v", r.Set[1], err)
			case r.Field != "" && (err == nil || !strings.HasPrefix(err.Error(), meta.DocV3+": "+r.Field)):
				t.Errorf("%s: error %v does not name %s", r.Set[1], err, r.Field)
			}
		}
	}
}

// fromV2 returns the configuration of the last codec of a v2 array as it is
// printed for v3.
func fromV2(t *testing.T, dtype, compressor string) map[string]json.RawMessage {
	t.Helper()
	m := must.Have(metatest.ReadV2([]byte(metatest.Edit(t, metatest.ArrayDocV2, "dtype", dtype, "fill_value", "0", "compressor", compressor))))
	var list []struct{ Configuration map[string]json.RawMessage }
	must.Do(t, json.Unmarshal(must.Have(m.Codecs.PrintV3()), &list))
	return list[len(list)-1].Configuration
}

const (
	littleIndex = `[{"name":"bytes","configuration":{"endian":"little"}}]`
	shardParts  = `"codecs":` + littleIndex + `,"index_codecs":` + littleIndex
)

var codecRules = checks{
	"codecs/blosc: Codec name 1":               named("blosc", `{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":2,"blocksize":0}`),
	"codecs/blosc: Configuration parameters 1": configured("blosc", `"cname":"lz4","clevel":5,"typesize":2,"blocksize":0`, "shuffle", []string{`"noshuffle"`, `"shuffle"`, `"bitshuffle"`}, `"Shuffle"`, `1`, `"auto"`, `null`, ``),
	"codecs/blosc: Configuration parameters 2": func(t *testing.T) {
		// v2 leaves the choice open with -1: by the size of elements.
		for dtype, want := range map[string]string{`"|u1"`: `"bitshuffle"`, `"<i2"`: `"shuffle"`, `"<f8"`: `"shuffle"`} {
			if got := fromV2(t, dtype, `{"id":"blosc","cname":"lz4","clevel":5,"shuffle":-1,"blocksize":0}`)["shuffle"]; string(got) != want {
				t.Errorf("%s: %s, want %s", dtype, got, want)
			}
		}
	},
	"codecs/blosc: Configuration parameters 3": func(t *testing.T) {
		for _, shuffle := range []string{"shuffle", "bitshuffle"} {
			configured("blosc", `"cname":"lz4","clevel":5,"blocksize":0,"shuffle":"`+shuffle+`"`, "typesize", []string{"1", "2", "255"}, "", "0", "-1", `"2"`, "2.5")(t)
		}
		configured("blosc", `"cname":"lz4","clevel":5,"blocksize":0,"shuffle":"noshuffle"`, "typesize", []string{"", "4"})(t)
	},
	"codecs/blosc: Configuration parameters 4": func(t *testing.T) {
		for dtype, want := range map[string]string{`"|u1"`: "1", `"<i2"`: "2", `"<f8"`: "8", `"<c16"`: "16"} {
			if got := fromV2(t, dtype, `{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}`)["typesize"]; string(got) != want {
				t.Errorf("%s: %s, want %s", dtype, got, want)
			}
		}
	},

	"codecs/bytes: Codec name 1": named("bytes", `{"endian":"big"}`),
	"codecs/bytes: Configuration parameters 1": func(t *testing.T) {
		for _, typ := range []string{"int16", "uint32", "float16", "float64", "complex64"} {
			fill := "0"
			if strings.HasPrefix(typ, "complex") {
				fill = "[0,0]"
			}
			follows(metatest.Row{Base: metatest.ArrayDoc, Set: []string{"data_type", `"` + typ + `"`, "fill_value", fill, "codecs", `["bytes"]`}, Field: "codecs[0].configuration.endian"})(t)
		}
		for typ, fill := range map[string]string{"int8": "0", "uint8": "0", "bool": "false", "r16": "[0,0]"} {
			follows(metatest.Row{Base: metatest.ArrayDoc, Set: []string{"data_type", `"` + typ + `"`, "fill_value", fill, "codecs", `["bytes"]`}})(t)
		}
	},
	"codecs/bytes: Configuration parameters 2": configured("bytes", "", "endian", []string{`"little"`, `"big"`}, `"Little"`, `"native"`, `"<"`, "1", "null"),
	"codecs/bytes: Format and algorithm 1": func(t *testing.T) {
		for n := range 64 {
			r := metatest.Row{Base: metatest.ArrayDoc, Set: []string{"data_type", fmt.Sprintf(`"r%d"`, n), "fill_value", "[" + strings.TrimSuffix(strings.Repeat("0,", n/8), ",") + "]", "codecs", `["bytes"]`}}
			if n%8 != 0 || n == 0 {
				r.Field = "data_type"
			}
			follows(r)(t)
		}
	},
	"codecs/crc32c: Codec name 1": named("crc32c", `{}`),
	"codecs/gzip: Codec name 1":   named("gzip", `{"level":5}`),

	"codecs/sharding-indexed: Codec name 1":               named("sharding_indexed", `{"chunk_shape":[1,3],`+shardParts+`,"index_location":"end"}`),
	"codecs/sharding-indexed: Configuration parameters 1": configured("sharding_indexed", shardParts, "chunk_shape", []string{"[2,3]", "[1,1]", "[2,1]"}, "[2]", "[2,3,1]", "[]", "[2,2]", "[3,3]", "[4,3]", "[0,3]", "[-1,3]", ""),
	"codecs/sharding-indexed: Configuration parameters 2": configured("sharding_indexed", `"chunk_shape":[1,3],"index_codecs":`+littleIndex, "codecs", []string{littleIndex}, `{}`, `"bytes"`, `null`, `[1]`),
	"codecs/sharding-indexed: Configuration parameters 3": configured("sharding_indexed", `"chunk_shape":[1,3],"index_codecs":`+littleIndex, "codecs",
		[]string{littleIndex}, "", "[]", `[{"name":"gzip","configuration":{"level":1}}]`, codecList(`{"name":"bytes","configuration":{"endian":"little"}}`)),
	"codecs/sharding-indexed: Configuration parameters 4": configured("sharding_indexed", `"chunk_shape":[1,3],"codecs":`+littleIndex, "index_codecs", []string{littleIndex}, `{}`, `"bytes"`, `null`, `[1]`),
	"codecs/sharding-indexed: Configuration parameters 5": configured("sharding_indexed", `"chunk_shape":[1,3],"codecs":`+littleIndex, "index_codecs",
		[]string{littleIndex}, "", "[]", `["crc32c"]`, codecList(`{"name":"bytes","configuration":{"endian":"little"}}`)),
	"codecs/sharding-indexed: Configuration parameters 6": func(t *testing.T) {
		var wrong []string
		for _, c := range []string{`{"name":"gzip","configuration":{"level":1}}`, `{"name":"zstd","configuration":{"level":1,"checksum":false}}`,
			`{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"noshuffle","blocksize":0}}`, `"numcodecs.lz4"`, `"numcodecs.bz2"`} {
			wrong = append(wrong, codecList(c))
		}
		configured("sharding_indexed", `"chunk_shape":[1,3],"codecs":`+littleIndex, "index_codecs", []string{codecList(`"crc32c"`), codecList(`"numcodecs.fletcher32"`)}, wrong...)(t)
	},
	"codecs/sharding-indexed: Configuration parameters 7": configured("sharding_indexed", `"chunk_shape":[1,3],`+shardParts, "index_location", []string{`"start"`, `"end"`, ``}, `"middle"`, `0`, `null`, `"End"`),
	"codecs/sharding-indexed: Definitions 1": func(t *testing.T) {
		// Nested: the inner chunk of one shard is the shard of the next.
		nested := func(outer, inner string) string {
			return `[{"name":"sharding_indexed","configuration":{"chunk_shape":` + outer + `,"index_codecs":` + littleIndex +
				`,"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":` + inner + `,` + shardParts + `}}]}}]`
		}
		all(metatest.ArrayDoc, "codecs", []string{nested("[1,3]", "[1,1]"), nested("[2,1]", "[1,1]")}, map[string]string{
			nested("[2,1]", "[1,3]"): "codecs[0].configuration.codecs[0].configuration.chunk_shape",
			nested("[1,3]", "[1,2]"): "codecs[0].configuration.codecs[0].configuration.chunk_shape",
			nested("[1,3]", "[1]"):   "codecs[0].configuration.codecs[0].configuration.chunk_shape"})(t)
	},
	"codecs/sharding-indexed: Binary shard format 1": func(t *testing.T) {
		for _, member := range []string{"write_strategy", "order", "subchunk_write_order"} {
			configured("sharding_indexed", `"chunk_shape":[1,3],`+shardParts, member, []string{""}, `"lexicographic"`)(t)
		}
		doc := newDoc(t, Spec{Shape: []int64{4}, Shards: []int64{4}, Chunks: []int64{2}, DataType: "int8"})
		var list []struct {
			Name          string
			Configuration map[string]json.RawMessage
		}
		if err := json.Unmarshal(doc["codecs"], &list); err != nil || list[0].Name != "sharding_indexed" {
			t.Fatalf("%s: %v", doc["codecs"], err)
		}
		if got := slices.Sorted(maps.Keys(list[0].Configuration)); !slices.Equal(got, []string{"chunk_shape", "codecs", "index_codecs", "index_location"}) {
			t.Errorf("%q", got)
		}
	},

	"codecs/transpose: Codec name 1":                        named("transpose", `{"order":[1,0]}`),
	"codecs/transpose: Configuration parameters 1":          configured("transpose", "", "order", []string{"[0,1]"}, ""),
	"codecs/transpose: Configuration parameters 2":          configured("transpose", "", "order", []string{"[0,1]", "[1,0]"}, "[0]", "[0,1,2]", "[0,0]", "[1,2]", "[-1,0]", `["0","1"]`, "[0.0,1]", "1", "null"),
	"codecs/transpose: Changes after acceptance of ZEP 1 1": configured("transpose", "", "order", nil, `"C"`, `"F"`),
}
