package precomputed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

var volumes = []string{
	"raw", "raw_channels", "jpeg", "png", "compressed_segmentation_uint32", "compressed_segmentation_uint64",
	"sharded_identity_raw", "sharded_murmur_gzip",
}

// Volumes of tensorstore have the values that it reads.
func TestOtherWriters(t *testing.T) {
	for _, name := range volumes {
		t.Run(name, func(t *testing.T) {
			want := must.Get(os.ReadFile("testdata/" + name + "/data.bin"))(t)
			files := formattest.Folder(t, "testdata/"+name+"/vol")
			key := "k"
			if name == "raw" {
				key = "4_4_40"
			}
			for path, files := range map[string]kv.Reader{"": files, key: readerOnly{files}} {
				a, got, err := read(t, view(t, files), path)
				must.Do(t, err)
				tolerance := 0
				if name == "jpeg" {
					tolerance = 2 // of the decoder
				}
				if len(got) != len(want) {
					t.Fatalf("%d bytes, want %d", len(got), len(want))
				}
				for i := range got {
					if d := int(got[i]) - int(want[i]); d > tolerance || -d > tolerance {
						t.Fatalf("byte %d: %d, want %d", i, got[i], want[i])
					}
				}
				if !slices.Equal(a.DimensionNames(), dimensions) {
					t.Errorf("dimensions %v", a.DimensionNames())
				}
				if r, _ := a.Meta().Attributes.Get("resolution"); string(r) != "[4.0,4.0,40.0]" {
					t.Errorf("resolution %s", r)
				}
			}
		})
	}
}

// readerOnly is a server that is not listed.
type readerOnly struct{ kv.Reader }

// The chunks that a volume has are listed, alike on servers that are listed or not.
func TestList(t *testing.T) {
	for _, name := range volumes {
		files := formattest.Folder(t, "testdata/"+name+"/vol")
		want := 18
		var keys [2][]string
		for i, files := range []kv.Reader{files, readerOnly{files}} {
			s := must.Get(open(t.Context(), formats.Base{Files: files}, formats.Options{}))(t)
			for e, err := range s.Entries(t.Context()) {
				must.Do(t, err)
				keys[i] = append(keys[i], e.Key)
				ref, err := s.Lookup(t.Context(), e.Key)
				ref.Optional = false
				if err != nil || ref.URL != e.URL || ref.Offset != e.Offset || ref.Length != e.Length || !bytes.Equal(ref.Data, e.Data) || e.Optional {
					t.Errorf("%s: entry %+v, Lookup %+v, %v", name, e.Reference, ref, err)
				}
			}
			slices.Sort(keys[i])
		}
		if !slices.Equal(keys[0], keys[1]) || len(keys[0]) != want+1 {
			t.Errorf("%s: %q, not listed %q, want %d chunks", name, keys[0], keys[1], want)
		}
	}
}

const info = `{"@type":"neuroglancer_multiscale_volume","type":"segmentation","data_type":"uint16","num_channels":2,"mesh":"m","scales":[%s]}`

// oneScale is a scale of 3×2×1 voxels in chunks of 2×2×1.
func oneScale(key, more string) string {
	return `{"key":"` + key + `","size":[3,2,1],"chunk_sizes":[[2,2,1]],"encoding":"raw","resolution":[8,8,40.5],"voxel_offset":[-1,10.0,5]` + more + `}`
}

// Several scales are a group of arrays by key, with what OME-NGFF would say of them.
func TestScales(t *testing.T) {
	two := strings.Replace(oneScale("b", `,"hidden":true`), "[8,8,40.5]", "[16,16,40.5]", 1)
	v := view(t, formattest.Store(t, map[string]string{
		"info":                  fmt.Sprintf(info, oneScale("8_8_40", "")+","+two),
		"8_8_40/-1-1_10-12_5-6": "\x01\x00\x02\x00\x03\x00\x04\x00\x11\x00\x12\x00\x13\x00\x14\x00",
		"b/1-2_10-12_5-6":       "\x05\x00\x06\x00\x15\x00\x16\x00",
	}))
	g := must.Get(zarr.OpenGroup(t.Context(), v, "", options()))(t)
	for name, want := range map[string]string{
		"type": `"segmentation"`, "mesh": `"m"`,
		"multiscales": `[{"axes":[{"name":"x","type":"space","unit":"nanometer"},{"name":"y","type":"space","unit":"nanometer"},{"name":"z","type":"space","unit":"nanometer"},{"name":"channel","type":"channel"}],` +
			`"datasets":[{"path":"8_8_40","coordinateTransformations":[{"type":"scale","scale":[8,8,40.5,1]},{"type":"translation","translation":[-8,80,202.5,0]}]},` +
			`{"path":"b","coordinateTransformations":[{"type":"scale","scale":[16,16,40.5,1]},{"type":"translation","translation":[-16,160,202.5,0]}]}]}]`,
	} {
		if got, _ := g.Meta().Attributes.Get(name); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	a, got, err := read(t, v, "8_8_40")
	if want := "\x01\x00\x11\x00\x03\x00\x13\x00\x02\x00\x12\x00\x04\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00"; err != nil || string(got) != want {
		t.Errorf("% x, %v", got, err)
	}
	if off, _ := a.Meta().Attributes.Get("voxel_offset"); string(off) != "[-1,10,5]" {
		t.Errorf("voxel_offset %s", off)
	}
	if _, got, err = read(t, v, "b"); err != nil || string(got[16:]) != "\x05\x00\x15\x00\x06\x00\x16\x00" {
		t.Errorf("% x, %v", got, err)
	}
	var paths []string
	for n, err := range zarr.Walk(t.Context(), v, "", options()) {
		must.Do(t, err)
		paths = append(paths, n.Path())
	}
	if !slices.Equal(paths, []string{"", "8_8_40", "b"}) {
		t.Errorf("nodes %q", paths)
	}
}

// Keys that are no names of nodes leave numbers; a key may lead through directories.
func TestKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"a/b,c": "0,1", "a,a": "0,1", "__a,b": "0,1", "zarr.json,b": "0,1", "a,b": "a,b", "c,./d": "c,d",
	} {
		one, two, _ := strings.Cut(keys, ",")
		v := must.Get(parseInfo(fmt.Appendf(nil, info, oneScale(one, "")+","+oneScale(two, ""))))(t)
		if got := v.Scales[0].name + "," + v.Scales[1].name; got != want {
			t.Errorf("%s: %s, want %s", keys, got, want)
		}
	}
	for _, key := range []string{"c", "x/../a/b", "."} {
		dir := map[string]string{"c": "c/", "x/../a/b": "a/b/", ".": ""}[key]
		v := view(t, formattest.Store(t, map[string]string{
			"info":                 fmt.Sprintf(info, oneScale(key, "")),
			dir + "-1-1_10-12_5-6": strings.Repeat("\x01\x00", 8),
		}))
		_, got, err := read(t, v, "")
		if err != nil || got[0] != 1 {
			t.Errorf("key %q: % x, %v", key, got, err)
		}
		if dir != "" {
			if _, again, err := read(t, v, dir); err != nil || !bytes.Equal(again, got) {
				t.Errorf("key %q by its name: % x, %v", key, again, err)
			}
		}
	}
}

// Files that cloud-volume compressed on a file system are read.
func TestCompressedFiles(t *testing.T) {
	reg := registry()
	for suffix, codec := range suffixes {
		m := formattest.Store(t, map[string]string{"info": fmt.Sprintf(info, oneScale("k", ""))})
		raw := []byte(strings.Repeat("\x01\x00", 8))
		if codec != nil {
			chain, err := reg.ParseV3(json.RawMessage(`["bytes",` + string(codec) + `]`))
			must.Do(t, err)
			b := must.Get(chain.Bind(codecs.Rep{Type: typeOf("uint8"), Shape: []int{len(raw)}}))(t)
			raw = must.Get(b.Encode(nil, raw))(t)
		}
		must.Do(t, m.Set(t.Context(), "k/-1-1_10-12_5-6"+suffix, raw))
		_, got, err := read(t, view(t, m), "")
		if codec == nil {
			if !errors.Is(err, codecs.ErrUnknown) || !strings.Contains(err.Error(), suffix) {
				t.Errorf("%s: %v, want ErrUnknown", suffix, err)
			}
			continue
		}
		if err != nil || got[0] != 1 {
			t.Errorf("%s: % x, %v", suffix, got, err)
		}
		keys, err := kv.Keys(t.Context(), view(t, m), "c/")
		if err != nil || !slices.Equal(keys, []string{"c/0/0/0/0"}) {
			t.Errorf("%s: keys %q, %v", suffix, keys, err)
		}
	}
}

// What cannot be read is listed with its reason, beside what can.
func TestRefused(t *testing.T) {
	for scale, says := range map[string]string{
		strings.Replace(oneScale("bad", ""), "raw", "compresso", 1):               `encoding "compresso"`,
		strings.Replace(oneScale("bad", ""), "raw", "jxl", 1):                     `encoding "jxl"`,
		strings.Replace(oneScale("bad", ""), "raw", "jpeg", 1):                    `encoding "jpeg" of uint16`,
		strings.Replace(oneScale("bad", ""), "raw", "compressed_segmentation", 1): `of uint16`,
		oneScale("../bad", ""):                        `outside of the volume`,
		oneScale("bad", `,"sharding":{"@type":"v2"}`): `@type "v2"`,
		oneScale("bad", `,"sharding":{"@type":"neuroglancer_uint64_sharded_v1","hash":"md5"}`):                             `hash "md5"`,
		oneScale("bad", `,"sharding":{"@type":"neuroglancer_uint64_sharded_v1","hash":"identity","data_encoding":"zstd"}`): `data_encoding "zstd"`,
	} {
		v := view(t, formattest.Store(t, map[string]string{
			"info":               fmt.Sprintf(info, oneScale("good", "")+","+scale),
			"bad/-1-1_10-12_5-6": "bytes",
		}))
		name := "bad"
		if strings.Contains(scale, "../") {
			name = "1"
		}
		_, _, err := read(t, v, name)
		if !errors.Is(err, codecs.ErrUnknown) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want ErrUnknown with %q", scale, err, says)
		}
		if path, m, ok := zarr.Unreadable(err); !ok || path != name {
			t.Errorf("%s: %v is not the error of an unknown codec", scale, err)
		} else if _, err := kv.Get(t.Context(), v, name+"/0/0/0/0"); err != nil && !strings.Contains(scale, "sharding") && name == "bad" {
			t.Errorf("%s: chunk of %v: %v", scale, m.Shape, err)
		}
		if name == "bad" {
			name = "good"
		} else {
			name = "0"
		}
		if _, _, err := read(t, v, name); err != nil {
			t.Errorf("%s: its neighbour: %v", scale, err)
		}
	}
}

func TestBadInfo(t *testing.T) {
	one := fmt.Sprintf(info, oneScale("k", ""))
	for text, want := range map[string]error{
		``:                                     formats.ErrFormat,
		`[]`:                                   formats.ErrFormat,
		`{"`:                                   formats.ErrFormat,
		`{"@type":"neuroglancer_legacy_mesh"}`: formats.ErrUnsupported,
		strings.Replace(one, "uint16", "float64", 1):                                                      formats.ErrUnsupported,
		strings.Replace(one, `:2,`, `:0,`, 1):                                                             formats.ErrFormat,
		strings.Replace(one, `[3,2,1]`, `[3,2]`, 1):                                                       formats.ErrFormat,
		strings.Replace(one, `[3,2,1]`, `[3,2,-1]`, 1):                                                    formats.ErrFormat,
		strings.Replace(one, `[3,2,1]`, `[3,2,1.5]`, 1):                                                   formats.ErrFormat,
		strings.Replace(one, `[[2,2,1]]`, `[]`, 1):                                                        formats.ErrFormat,
		strings.Replace(one, `[[2,2,1]]`, `[[2,2,0]]`, 1):                                                 formats.ErrFormat,
		strings.Replace(one, `-1,10.0,5`, `-1,10`, 1):                                                     formats.ErrFormat,
		strings.Replace(one, `-1,10.0,5`, `-1,10,9223372036854775807`, 1):                                 formats.ErrFormat,
		strings.Replace(one, `"k"`, `""`, 1):                                                              formats.ErrFormat,
		fmt.Sprintf(info, "null"):                                                                         formats.ErrFormat,
		fmt.Sprintf(info, ""):                                                                             formats.ErrFormat,
		fmt.Sprintf(info, oneScale("k", `,"sharding":{"@type":"x","preshift_bits":65}`)):                  formats.ErrFormat,
		fmt.Sprintf(info, oneScale("k", `,"sharding":{"@type":"x","minishard_bits":40,"shard_bits":40}`)): formats.ErrFormat,
	} {
		if _, err := open(t.Context(), formats.Base{Files: formattest.Store(t, map[string]string{"info": text})}, formats.Options{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if _, err := open(t.Context(), formats.Base{Files: kv.NewMem()}, formats.Options{}); !errors.Is(err, formats.ErrFormat) {
		t.Errorf("no info: %v, want ErrFormat", err)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		fmt.Sprintf(info, oneScale("k", "")):                   true,
		`{"data_type":"uint8","scales":[{"key":"cut`:           true,
		`{"@type":"neuroglancer_legacy_mesh"}`:                 false,
		`{"@type":"neuroglancer_annotations_v1","spatial":[]}`: false,
		`information: "scales" and "data_type"`:                false,
		``:                                                     false,
	} {
		e := formats.Evidence{File: func(name string) []byte {
			if name != infoFile {
				return nil
			}
			return []byte(text)
		}}
		if got := Format().Detect(e); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// To read a chunk of a sharded scale takes a read of the shard index and one of the
// minishard index, once.
func TestIndexesAreReadOnce(t *testing.T) {
	counted, count := kvtest.Count(readerOnly{formattest.Folder(t, "testdata/sharded_murmur_gzip/vol")})
	s := must.Get(open(t.Context(), formats.Base{Files: counted}, formats.Options{}))(t)
	count.Reset()
	var first refs.Reference
	for i := range 3 {
		ref := must.Get(s.Lookup(t.Context(), "c/1/2/0/0"))(t)
		if i == 0 {
			first = ref
		} else if ref.Offset != first.Offset || ref.Length != first.Length {
			t.Fatalf("%+v, before it was %+v", ref, first)
		}
	}
	if ops := count.Reset(); ops[kvtest.OpGet] != 2 || len(ops) != 1 {
		t.Fatalf("%v, want two gets", ops)
	}
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(e.Key, err)
		}
	}
	// Two shards of four minishards each.
	if ops := count.Reset(); ops[kvtest.OpGet] > 2*(1+4)-2 {
		t.Fatalf("%v to find all chunks", ops)
	}
}
