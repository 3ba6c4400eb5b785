package codecs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Every MUST of the codec specifications that parsing and binding can break,
// and what the error has to name.
func TestConfigV3(t *testing.T) {
	const inner = `"chunk_shape":[2,5],"codecs":[` + little + `]`
	const index = `"index_codecs":[` + little + `,"crc32c"]`
	sharding := func(members ...string) string {
		return `[{"name":"sharding_indexed","configuration":{` + strings.Join(members, ",") + `}}]`
	}
	for _, c := range []struct {
		name, list string
		want       string // the place and a part of the reason
	}{
		{"not a list", `{}`, "codecs: not a list"},
		{"null", `null`, "codecs: not a list"},
		{"empty", `[]`, "codecs: no array -> bytes codec"},
		{"number", `[7]`, "codecs[0]: neither an object nor a name"},
		{"no name", `[{"configuration":{}}]`, "codecs[0]: no name"},
		{"name is a number", `[{"name":7}]`, "codecs[0]: no name"},
		{"unknown member", `[{"name":"bytes","level":1}]`, `codecs[0]: bytes: unknown member "level"`},
		{"must_understand", `[{"name":"bytes","must_understand":"no"}]`, "codecs[0]: bytes: must_understand"},
		{"configuration is a list", `[{"name":"bytes","configuration":[]}]`, "codecs[0]: bytes: configuration is not an object"},
		{"configuration is null", `[{"name":"bytes","configuration":null}]`, "codecs[0]: bytes: configuration is not an object"},

		// Core, section Codecs: the order of kinds.
		{"no array to bytes", `[` + gzip5 + `]`, "codecs[0]: gzip: a bytes -> bytes codec before an array -> bytes codec"},
		{"only array to array", `[` + transpose(`[1,0]`) + `]`, "codecs: no array -> bytes codec"},
		{"two array to bytes", `[` + little + `,` + little + `]`, `codecs[1]: bytes: a second array -> bytes codec, after "bytes"`},
		{"array codec behind bytes", `[` + little + `,` + transpose(`[1,0]`) + `]`, `codecs[1]: transpose: an array -> array codec after`},

		// bytes
		{"endian missing", `["bytes"]`, `codecs[0].configuration.endian: bytes: missing: want "little" or "big"`},
		{"endian wrong", `[{"name":"bytes","configuration":{"endian":"middle"}}]`, `codecs[0].configuration.endian: bytes: "middle" is not one of little, big`},
		{"endian null", `[{"name":"bytes","configuration":{"endian":null}}]`, "codecs[0].configuration.endian: bytes: null is not a string"},
		{"bytes unknown", `[{"name":"bytes","configuration":{"endian":"little","order":"C"}}]`, "codecs[0].configuration.order: bytes: unknown member"},

		// transpose
		{"no order", `[{"name":"transpose"},` + little + `]`, "codecs[0].configuration.order: transpose: missing"},
		{"order F", `[` + transpose(`"F"`) + `,` + little + `]`, `codecs[0].configuration.order: transpose: "F" is not a list`},
		{"order twice", `[` + transpose(`[0,0]`) + `,` + little + `]`, "codecs[0].configuration.order: transpose: [0 0] is not a permutation"},
		{"order negative", `[` + transpose(`[-1,0]`) + `,` + little + `]`, "codecs[0].configuration.order: transpose: [-1 0] is not a permutation"},
		{"order rank", `[` + transpose(`[0,1,2]`) + `,` + little + `]`, "codecs[0].configuration.order: transpose: [0 1 2] is for 3 dimensions, not for 2"},

		// gzip, zstd, crc32c
		{"gzip no level", `[` + little + `,"gzip"]`, "codecs[1].configuration.level: gzip: missing"},
		{"gzip level", `[` + little + `,{"name":"gzip","configuration":{"level":12}}]`, "codecs[1].configuration.level: gzip: 12 is not in 0 to 9"},
		{"gzip level -1", `[` + little + `,{"name":"gzip","configuration":{"level":-1}}]`, "codecs[1].configuration.level: gzip: -1 is not in 0 to 9"},
		{"gzip level text", `[` + little + `,{"name":"gzip","configuration":{"level":"5"}}]`, `codecs[1].configuration.level: gzip: "5" is not an integer`},
		{"zstd level", `[` + little + `,{"name":"zstd","configuration":{"level":2.5}}]`, "codecs[1].configuration.level: zstd: 2.5"},
		{"zstd checksum", `[` + little + `,{"name":"zstd","configuration":{"level":2,"checksum":1}}]`, "codecs[1].configuration.checksum: zstd: 1 is not true or false"},
		{"crc32c", `[` + little + `,{"name":"crc32c","configuration":{"location":"start"}}]`, "codecs[1].configuration.location: crc32c: unknown member"},

		// blosc
		{"blosc cname", `[` + little + `,{"name":"blosc","configuration":{"cname":"lzma","clevel":5,"shuffle":"noshuffle"}}]`, `codecs[1].configuration.cname: blosc: "lzma" is not one of`},
		{"blosc clevel", `[` + little + `,{"name":"blosc","configuration":{"cname":"lz4","clevel":10,"shuffle":"noshuffle"}}]`, "codecs[1].configuration.clevel: blosc: 10 is not in 0 to 9"},
		{"blosc shuffle", `[` + little + `,{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":1,"typesize":4}}]`, "codecs[1].configuration.shuffle: blosc: 1 is not a string"},
		{"blosc auto", `[` + little + `,{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"auto","typesize":4}}]`, `codecs[1].configuration.shuffle: blosc: "auto" is not one of`},
		{"blosc no typesize", `[` + little + `,{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"shuffle"}}]`, "codecs[1].configuration.typesize: blosc: missing"},
		{"blosc typesize", `[` + little + `,{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":0}}]`, "codecs[1].configuration.typesize: blosc: 0"},

		// sharding_indexed
		{"shard nothing", `["sharding_indexed"]`, "codecs[0].configuration.chunk_shape: sharding_indexed: missing"},
		{"shard no index", sharding(inner), "codecs[0].configuration.index_codecs: sharding_indexed: missing"},
		{"shard no codecs", sharding(`"chunk_shape":[2,5]`, index), "codecs[0].configuration.codecs: sharding_indexed: missing"},
		{"shard location", sharding(inner, index, `"index_location":"middle"`), `codecs[0].configuration.index_location: sharding_indexed: "middle"`},
		{"shard rank", sharding(`"chunk_shape":[2],"codecs":["bytes"]`, index), "codecs[0].configuration.chunk_shape: sharding_indexed: [2] has 1 dimensions, the shard has 2"},
		{"shard divides", sharding(`"chunk_shape":[4,5],"codecs":[`+little+`]`, index), "codecs[0].configuration.chunk_shape: sharding_indexed: [4 5] does not divide"},
		{"shard zero", sharding(`"chunk_shape":[0,5],"codecs":[`+little+`]`, index), "codecs[0].configuration.chunk_shape: sharding_indexed: [0 5] is not positive"},
		{"shard index size", sharding(inner, `"index_codecs":[`+little+`,`+gzip5+`]`), "codecs[0].configuration.index_codecs: sharding_indexed: the encoded size depends on the data"},
		{"shard inner order", sharding(`"chunk_shape":[2,5],"codecs":[`+gzip5+`]`, index), "codecs[0].configuration.codecs[0]: gzip: a bytes -> bytes codec before"},
		{"shard inner none", sharding(`"chunk_shape":[2,5],"codecs":[]`, index), "codecs[0].configuration.codecs: sharding_indexed: no array -> bytes codec"},
		{"shard inner level", sharding(`"chunk_shape":[2,5],"codecs":[`+little+`,{"name":"gzip","configuration":{"level":10}}]`, index), "codecs[0].configuration.codecs[1].configuration.level: gzip: 10"},
		{"shard inner endian", sharding(`"chunk_shape":[2,5],"codecs":["bytes"]`, index), "codecs[0].configuration.codecs[0].configuration.endian: bytes: missing"},
		{"shard index endian", sharding(inner, `"index_codecs":["bytes"]`), "codecs[0].configuration.index_codecs[0].configuration.endian: bytes: missing"},
		{"shard index none", sharding(inner, `"index_codecs":["crc32c"]`), "codecs[0].configuration.index_codecs[0]: crc32c: a bytes -> bytes codec"},

		// Not for this data type.
		{"vlen", `["vlen-utf8"]`, "codecs[0]: vlen-utf8: does not encode the data type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain, err := builtin.Registry().ParseV3(json.RawMessage(c.list))
			if err == nil {
				_, err = chain.Bind(codecs.Rep{Type: dtype.NewInt(16), Shape: []int{6, 10}})
			}
			var e *codecs.ConfigError
			if !errors.Is(err, codecs.ErrConfig) || !errors.As(err, &e) || errors.Is(err, codecs.ErrUnknown) {
				t.Fatalf("not a ConfigError: %v", err)
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	r := builtin.Registry()
	for _, c := range []struct{ list, want string }{
		{`[` + little + `,"middle-out"]`, `codecs[1]: unknown codec "middle-out"`},
		{`[` + shard(`[1]`, little+`,"lz5"`, indexCRC, "end") + `]`, `codecs[0].configuration.codecs[1]: unknown codec "lz5"`},
		// A name of the other version is not found.
		{`[` + little + `,"zlib9"]`, `codecs[1]: unknown codec "zlib9"`},
	} {
		_, err := r.ParseV3(json.RawMessage(c.list))
		if !errors.Is(err, codecs.ErrUnknown) || errors.Is(err, codecs.ErrConfig) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	for _, c := range []struct{ filters, compressor, want string }{
		{`[{"id":"crc32c"},{"id":"reverse"}]`, ``, `filters[1]: unknown codec "reverse"`},
		{`null`, `{"id":"brotli9"}`, `compressor: unknown codec "brotli9"`},
		{`null`, `{"id":"sharding_indexed"}`, `compressor: unknown codec "sharding_indexed"`},
		{`[{"id":"pickle","protocol":5}]`, ``, `filters[0]: codec "pickle" is refused: unpickling runs code`},
	} {
		_, err := r.ParseV2(codecs.V2{Order: "C", Rank: 1, Filters: json.RawMessage(c.filters), Compressor: json.RawMessage(c.compressor)})
		if !errors.Is(err, codecs.ErrUnknown) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestConfigV2(t *testing.T) {
	for _, c := range []struct {
		order, filters, compressor, want string
	}{
		{"A", ``, ``, `order: "A" is neither C nor F`},
		{"", ``, ``, `order: "" is neither C nor F`},
		{"C", `{"id":"delta"}`, ``, `filters: neither a list nor null`},
		{"C", `["crc32c"]`, ``, `filters[0]: not an object`},
		{"C", ``, `"zlib"`, `compressor: not an object`},
		{"C", ``, `{"level":1}`, `compressor: no id`},
		{"C", ``, `{"id":"zlib","level":10}`, `compressor.level: zlib: 10 is not in -1 to 9`},
		{"C", `[{"id":"crc32c","location":"middle"}]`, ``, `filters[0].location: crc32c: "middle" is not one of start, end`},
	} {
		_, err := builtin.Registry().ParseV2(codecs.V2{Order: c.order, Rank: 2, Filters: json.RawMessage(c.filters), Compressor: json.RawMessage(c.compressor)})
		if !errors.Is(err, codecs.ErrConfig) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	// null and unknown members are ignored.
	c := must.Get(builtin.Registry().ParseV2(codecs.V2{Type: dtype.NewInt(8), Order: "C", Rank: 1, Filters: json.RawMessage(`[]`),
		Compressor: json.RawMessage(`{"id":"zlib","level":null,"nthreads":4}`)}))(t)
	if v, err := c.V2(); err != nil || string(v.Compressor) != `{"id":"zlib","level":null,"nthreads":4}` {
		t.Errorf("%s (%v)", v.Compressor, err)
	}
}

func TestBindSizes(t *testing.T) {
	c := must.Get(builtin.Registry().ParseV3([]byte(`[` + little + `]`)))(t)
	rank65 := make([]int, 65)
	for i := range rank65 {
		rank65[i] = 1
	}
	for _, rep := range []codecs.Rep{
		{Type: dtype.NewInt(32), Shape: []int{math.MaxInt, math.MaxInt}},
		{Type: dtype.NewInt(32), Shape: []int{math.MaxInt/4 + 1}},
		{Type: dtype.NewInt(32), Shape: []int{0, -1}},
		{Type: dtype.NewInt(32), Shape: rank65},
		{Type: dtype.NewInt(32), Shape: []int{2}, Fill: []byte{1}},
		{Shape: []int{2}},
		{Type: dtype.NewString(), Shape: []int{1 << 30}},
	} {
		if _, err := c.Bind(rep); !errors.Is(err, codecs.ErrConfig) {
			t.Errorf("shape %v: %v", rep.Shape, err)
		}
	}
	if _, err := (codecs.Chain{}).Bind(codecs.Rep{Type: dtype.NewInt(32), Shape: []int{2}}); !errors.Is(err, codecs.ErrConfig) {
		t.Errorf("the zero chain: %v", err)
	}
}

// Names, aliases and codecs that need not be understood come out as they went
// in.
func TestPrintV3(t *testing.T) {
	for _, list := range []string{
		`["bytes","crc32c"]`,
		`[{"name":"endian","configuration":{"endian":"big"}},{"name":"numcodecs.zstd","configuration":{}}]`,
		`[{"name":"bytes","must_understand":true},{"name":"later","must_understand":false,"configuration":{"a":[1]}}]`,
		`[{"name":"bytes","configuration":{"hint":{"must_understand":false,"x":1}}}]`,
		`[` + shard(`[2]`, little+`,`+gzip5, indexCRC, "start") + `]`,
	} {
		c, err := builtin.Registry().ParseV3(json.RawMessage(" " + strings.ReplaceAll(list, ",", " ,\n ")))
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if got, err := c.PrintV3(); err != nil || string(got) != list {
			t.Errorf("got  %s (%v)\nwant %s", got, err, list)
		}
	}
}

func TestRegistry(t *testing.T) {
	entry := codecs.Entry{V2: "mine", V3: []string{"mine.x"}, Kind: codecs.BytesToBytes,
		Parse: func(codecs.Config) (codecs.Codec, error) { return nil, errors.New("parse was called") }}
	r := codecs.NewRegistry(entry)
	if _, ok := r.Lookup("mine", true); !ok {
		t.Error("v2 id not found")
	}
	if _, ok := r.Lookup("mine", false); ok {
		t.Error("a v2 id was found among the v3 names")
	}
	for name, e := range map[string]codecs.Entry{
		"the same":        entry,
		"another's id":    {V2: "mine", Kind: entry.Kind, Parse: entry.Parse},
		"another's name":  {V3: []string{"other", "mine.x"}, Kind: entry.Kind, Parse: entry.Parse},
		"no name":         {Kind: entry.Kind, Parse: entry.Parse},
		"no kind":         {V2: "b", Parse: entry.Parse},
		"nothing to call": {V2: "c", Kind: entry.Kind},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered", name)
				}
			}()
			r.Register(e)
		}()
	}
	// The ids and names of v2 and v3 do not meet.
	r.Register(codecs.Entry{V3: []string{"mine"}, Kind: entry.Kind, Parse: entry.Parse})
	if a, b := builtin.Registry(), builtin.Registry(); a == b {
		t.Error("two callers of builtin.Registry share a registry")
	}
}

// A list that was parsed before is parsed anew when a codec was registered.
func TestRegisterAfterParse(t *testing.T) {
	r := builtin.Registry()
	list := json.RawMessage(`["bytes",{"name":"later","must_understand":false}]`)
	for range 2 {
		must.Get(r.ParseV3(list))(t)
	}
	asked := errors.New("asked")
	r.Register(codecs.Entry{V3: []string{"later"}, Kind: codecs.BytesToBytes, Parse: func(codecs.Config) (codecs.Codec, error) { return nil, asked }})
	if _, err := r.ParseV3(list); !errors.Is(err, asked) {
		t.Errorf("error %v, want that of the new codec", err)
	}
	// Many lists, and long ones.
	r = builtin.Registry()
	for i := range 400 {
		list := fmt.Appendf(nil, `[%s{"name":"zstd","configuration":{"level":%d}}]`, strings.Repeat(" ", 20*i), i%20)
		list = append([]byte(`["bytes",`), list[1:]...)
		c := must.Get(r.ParseV3(list))(t)
		if got, _ := c.PrintV3(); !strings.Contains(string(got), fmt.Sprintf(`"level":%d}`, i%20)) {
			t.Fatalf("list %d became %s", i, got)
		}
	}
}

// A shard in a shard in a shard … fails before the stack or the time ends.
func TestDeepNesting(t *testing.T) {
	list := little
	for range 300 {
		list = shard(`[4]`, list, indexCRC, "end")
	}
	_, err := builtin.Registry().ParseV3([]byte(`[` + list + `]`))
	if !errors.Is(err, codecs.ErrConfig) || !strings.Contains(fmt.Sprint(err), "deep") {
		t.Error(err)
	}
}

func TestObject(t *testing.T) {
	got := codecs.Object("dtype", "<i4", "n", 5, "raw", json.RawMessage(`{"a":1.50}`), "é\u2028", []int{1})
	if want := "{\"dtype\":\"<i4\",\"n\":5,\"raw\":{\"a\":1.50},\"é\\u2028\":[1]}"; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
