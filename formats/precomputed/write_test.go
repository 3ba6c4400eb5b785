package precomputed

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// source makes an array whose element i is f(i) in C order.
func source(t testing.TB, m *kv.Mem, path string, spec zarr.Spec, f func(i int) uint64) *zarr.Array {
	t.Helper()
	a := must.Get(zarr.Create(t.Context(), m, path, spec, nil))(t)
	n, size := 1, a.Type().Size()
	for _, s := range a.Shape() {
		n *= int(s)
	}
	b := make([]byte, 0, n*size+8)
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, f(i))[:(i+1)*size]
	}
	must.Do(t, a.WriteBytes(t.Context(), zarr.Sel(), b))
	return a
}

func compact(t testing.TB, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, json.Compact(&b, text))
	return b.String()
}

func attributes(t testing.TB, text string) zarr.Attributes {
	t.Helper()
	a := must.Get(zarr.ParseAttributes([]byte(text)))(t)
	return a
}

// layout is how a volume is written.
type layout struct {
	formats.WriteOptions
	shard  int64   // bytes, default shardBytes
	chunks []int64 // of the array
}

func write(t *testing.T, dst kv.Writer, src kv.Reader, path string, o layout) error {
	p, err := newPlan(t.Context(), src, path, o.WriteOptions, cmp.Or(o.shard, shardBytes))
	if err != nil {
		return err
	}
	return p.Write(t.Context(), formats.Output{Dst: dst})
}

var (
	sharded = formats.WriteOptions{Sharded: true}
	layouts = map[string]layout{
		"files": {}, "shards": {WriteOptions: sharded}, "raw shards": {WriteOptions: formats.WriteOptions{Sharded: true, Compression: "raw"}},
		"many shards": {WriteOptions: sharded, shard: 3000}, "a chunk each": {WriteOptions: sharded, shard: 1},
		"minishards": {WriteOptions: sharded, chunks: []int64{1, 1, 1, 1}}, "other chunks": {chunks: []int64{7, 3, 16, 1}},
	}
)

// What is written is read again as it was, in every layout.
func TestWrite(t *testing.T) {
	types := []string{"uint8", "uint16", "uint32", "uint64", "float32"}
	for layout, o := range layouts {
		chunks := o.chunks
		if chunks == nil {
			chunks = []int64{4, 4, 4, 1}
		}
		for _, dataType := range []string{types[len(layout)%5], types[len(layout)%3]} {
			m := kv.NewMem()
			a := source(t, m, "", zarr.Spec{
				Shape: []int64{13, 9, 11, 2}, Chunks: chunks, DataType: dataType, DimensionNames: dimensions,
				Attributes: attributes(t, `{"type":"segmentation","mesh":"m","resolution":[4,4,40.5],"voxel_offset":[-5,0,7],"more":{"a":1}}`),
			}, func(i int) uint64 {
				if i < 13*9*11 { // half of the chunks are missing
					return 0
				}
				return uint64(i) * 2654435761
			})
			dst := kv.NewMem()
			if err := write(t, dst, m, "", o); err != nil {
				t.Fatal(layout, err)
			}
			want := make([]byte, 13*9*11*2*a.Type().Size())
			must.Do(t, a.ReadBytes(t.Context(), zarr.Sel(), want))
			for _, files := range []kv.Reader{dst, readerOnly{dst}} {
				b, got, err := read(t, view(t, files), "4_4_40.5")
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s %s: other values, %v", layout, dataType, err)
				}
				for name, value := range a.Meta().Attributes.All() {
					if v, _ := b.Meta().Attributes.Get(name); compact(t, v) != compact(t, value) {
						t.Errorf("%s: attribute %s is %s, want %s", layout, name, v, value)
					}
				}
			}
			keys := must.Get(kv.Keys(t.Context(), dst, "4_4_40.5/"))(t)
			if sharded := strings.HasSuffix(keys[0], ".shard"); sharded != o.Sharded {
				t.Errorf("%s: files %q", layout, keys)
			}
			if layout == "files" && len(keys) >= 4*3*3 {
				t.Errorf("%d files, those of zeros too", len(keys))
			}
		}
	}
}

// Dimensions are put in the order x, y, z, channel by their names.
func TestWriteOrder(t *testing.T) {
	for names, want := range map[string]string{
		"z,y,x":   "3,5,4,1:0,12,24", // C order of the source: x fastest
		"x,y,z":   "4,5,3,1:0,1,2",
		"c,Z,Y,X": "3,5,4,2:0,12,24",
		"t,Y,X":   "dimension \"t\" of length 4",
		"z,y,a":   "none is x",
		"c,y,x":   "3,5,1,4:0,3,6",
		"a,b,c":   "4,5,3,1:0,1,2",
	} {
		m := kv.NewMem()
		spec := zarr.Spec{Shape: []int64{4, 5, 3}, DataType: "uint8", DimensionNames: strings.Split(names, ",")}
		if len(spec.DimensionNames) == 4 {
			spec.Shape = []int64{2, 4, 5, 3}
		}
		source(t, m, "", spec, func(i int) uint64 { return uint64(i) })
		dst := kv.NewMem()
		if err := write(t, dst, m, "", layout{}); err != nil {
			if !errors.Is(err, formats.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", names, err, want)
			}
			continue
		}
		a, got, err := read(t, view(t, dst), "")
		must.Do(t, err)
		// The last spatial dimension is the fastest one but for the channels.
		step := a.Shape()[3]
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Shape()), " ", ","), "[]") + ":" + fmt.Sprint(got[0])
		for _, i := range []int64{1, 2} {
			text += fmt.Sprintf(",%d", got[i*step])
		}
		if len(spec.DimensionNames) == 4 || names == "z,y,x" {
			want = strings.Replace(want, "12,24", "15,30", 1)
		}
		if text != want {
			t.Errorf("%s: %s, want %s", names, text, want)
		}
	}
}

// A group becomes a volume with its arrays as scales, by resolution, which OME-NGFF may
// say.
func TestWriteScales(t *testing.T) {
	m := kv.NewMem()
	ngff := `{"name":"brain","ome":{"version":"0.5","multiscales":[{
		"axes":[{"name":"z","type":"space","unit":"micrometer"},{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space","unit":"nanometer"}],
		"datasets":[{"path":"s1","coordinateTransformations":[{"type":"scale","scale":[0.04,0.008,8]}]},{"path":"s0","coordinateTransformations":[{"type":"scale","scale":[0.04,0.004,4]}]}]}]}}`
	must.Get(zarr.CreateGroup(t.Context(), m, "v", attributes(t, ngff), nil))(t)
	names := []string{"z", "y", "x"}
	source(t, m, "v/s1", zarr.Spec{Shape: []int64{2, 4, 4}, DataType: "uint8", DimensionNames: names, Attributes: attributes(t, `{"note":"half"}`)}, func(i int) uint64 { return 1 })
	source(t, m, "v/s0", zarr.Spec{Shape: []int64{2, 8, 8}, DataType: "uint8", DimensionNames: names}, func(i int) uint64 { return 2 })
	dst := kv.NewMem()
	must.Do(t, write(t, dst, m, "v", layout{WriteOptions: sharded}))
	text := must.Get(kv.Get(t.Context(), dst, "info"))(t)
	v, err := parseInfo(text)
	if err != nil || len(v.Scales) != 2 || v.Scales[0].name != "s0" || string(v.Scales[0].Resolution) != "[4,4,40]" || string(v.Scales[1].Resolution) != "[8,8,40]" {
		t.Fatalf("%s, %v", text, err)
	}
	for path, want := range map[string]byte{"s0": 2, "s1": 1} {
		a, got, err := read(t, view(t, dst), path)
		if err != nil || got[0] != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		if note, ok := a.Meta().Attributes.Get("note"); ok != (path == "s1") {
			t.Errorf("%s: note %s", path, note)
		}
	}
}

// Images of OME-Zarr of every version and of two to five dimensions become volumes with their axes,
// units and translations, alone of what lies below their group; a single level does too.
func TestWriteOME(t *testing.T) {
	set := func(m *kv.Mem, key, doc string) { must.Do(t, m.Set(t.Context(), key, []byte(doc))) }
	v2 := func(m *kv.Mem, path, attrs string) {
		set(m, path+".zgroup", `{"zarr_format":2}`)
		set(m, path+".zattrs", attrs)
	}
	array := func(m *kv.Mem, path string, version zarr.Version, shape ...int64) {
		must.Get(zarr.Create(t.Context(), m, path, zarr.Spec{Shape: shape, DataType: "uint16"}, &zarr.OpenOptions{Version: version}))(t)
	}
	axes := func(list ...string) string {
		for i, name := range list {
			kind := "space"
			if name == "t" {
				kind = "time"
			}
			list[i] = fmt.Sprintf(`{"name":%q,"type":%q,"unit":"micrometer"}`, name, kind)
		}
		return `"axes":[` + strings.Join(list, ",") + `]`
	}
	set5 := func(path, scale, translation string) string {
		return fmt.Sprintf(`{"path":%q,"coordinateTransformations":[{"type":"scale","scale":[%s]},{"type":"translation","translation":[%s]}]}`, path, scale, translation)
	}
	for name, c := range map[string]struct {
		make func(m *kv.Mem)
		path string
		want string // type and of each scale size, resolution and offset, notes, what is left behind
	}{
		"0.1": {func(m *kv.Mem) {
			v2(m, "", `{"multiscales":[{"version":"0.1","datasets":[{"path":"0"}]}],"mine":1}`)
			array(m, "0", zarr.V2, 1, 2, 3, 4, 6)
		}, "", "image [6 4 3] [1,1,1] [0 0 0] notes 1 behind []"},
		"0.3": {func(m *kv.Mem) {
			v2(m, "", `{"multiscales":[{"version":"0.3","axes":["z","y","x"],"datasets":[{"path":"0"}]}],"image-label":{"version":"0.3"}}`)
			array(m, "0", zarr.V2, 3, 4, 6)
		}, "", "segmentation [6 4 3] [1,1,1] [0 0 0] notes 1 behind [OME-Zarr metadata: image-label]"},
		"0.4, a level": {func(m *kv.Mem) {
			v2(m, "g/", `{"multiscales":[{"version":"0.4",`+axes("z", "y", "x")+`,"datasets":[`+set5("0", "2,0.35,0.25", "0,0,0")+`]}]}`)
			array(m, "g/0", zarr.V2, 3, 4, 6)
		}, "g/0", "image [6 4 3] [250,350,2000] [0 0 0] notes 0 behind []"},
		"0.4, two dimensions, two levels": {func(m *kv.Mem) {
			v2(m, "", `{"multiscales":[{"version":"0.4",`+axes("y", "x")+`,"datasets":[`+set5("0", "0.5,0.5", "5,10")+","+set5("1", "1,1", "5.25,10.25")+`]}]}`)
			array(m, "0", zarr.V2, 4, 6)
			array(m, "1", zarr.V2, 2, 3)
		}, "", "image [6 4 1] [500,500,500] [20 10 0] [3 2 1] [1000,1000,1000] [10 5 0] notes 0 behind []"},
		"0.5, labels and scale0": {func(m *kv.Mem) {
			ome := `{"ome":{"version":"0.5","image-label":{},"multiscales":[{` + axes("t", "z", "y", "x") + `,"datasets":[` + set5("scale0/image", "1,2,0.5,0.5", "0,-4,5,10.1") + `]}]}}`
			must.Get(zarr.CreateGroup(t.Context(), m, "", attributes(t, ome), nil))(t)
			must.Get(zarr.CreateGroup(t.Context(), m, "scale0", attributes(t, `{"_ARRAY_DIMENSIONS":["t"]}`), nil))(t)
			array(m, "scale0/image", zarr.V3, 1, 3, 4, 6)
			must.Get(zarr.CreateGroup(t.Context(), m, "labels", attributes(t, `{"ome":{"version":"0.5","labels":["a"]}}`), nil))(t)
			array(m, "labels/a", zarr.V3, 1, 3, 4, 6)
		}, "", "segmentation [6 4 3] [500,500,2000] [20 10 -2] notes 1 behind [/labels]"},
		"a level with axes of its own": {func(m *kv.Mem) {
			must.Get(zarr.CreateGroup(t.Context(), m, "", attributes(t, `{"ome":{"version":"0.5","multiscales":[{`+axes("y", "x")+`,"datasets":[`+set5("0", "1,1", "0,0")+`]}]}}`), nil))(t)
			own := attributes(t, `{`+axes("z", "y", "x")+`,"scale":[1,1,1]}`)
			must.Get(zarr.Create(t.Context(), m, "0", zarr.Spec{Shape: []int64{3, 4, 6}, DataType: "uint16", Attributes: own}, nil))(t)
		}, "", "image [6 4 3] [1000,1000,1000] [0 0 0] notes 0 behind []"},
		"another version": {func(m *kv.Mem) {
			must.Get(zarr.CreateGroup(t.Context(), m, "", attributes(t, `{"ome":{"version":"0.6","multiscales":[]}}`), nil))(t)
		}, "", `version "0.6" is not known`},
		"another version of a level": {func(m *kv.Mem) {
			v2(m, "g/", `{"multiscales":[{"version":"0.9","datasets":[{"path":"0"}]}]}`)
			array(m, "g/0", zarr.V2, 3, 4, 6)
		}, "g/0", `version "0.9" is not known`},
		"four time points": {func(m *kv.Mem) {
			v2(m, "", `{"multiscales":[{"version":"0.4",`+axes("t", "y", "x")+`,"datasets":[`+set5("0", "1,1,1", "0,0,0")+`]}]}`)
			array(m, "0", zarr.V2, 4, 4, 6)
		}, "", `dimension "t" of length 4`},
	} {
		m, dst := kv.NewMem(), kv.NewMem()
		c.make(m)
		p, err := newPlan(t.Context(), m, c.path, formats.WriteOptions{}, shardBytes)
		if err != nil {
			if !errors.Is(err, formats.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			continue
		}
		must.Do(t, p.Write(t.Context(), formats.Output{Dst: dst}))
		v := must.Get(parseInfo(must.Get(kv.Get(t.Context(), dst, "info"))(t)))(t)
		got := p.(*plan).kind
		for _, s := range v.Scales {
			got += fmt.Sprintf(" %v %s %v", s.Size, s.Resolution, s.Offset)
		}
		notes, behind := p.(formats.Noter).Notes()
		if got += fmt.Sprintf(" notes %d behind %v", len(notes), behind); got != c.want {
			t.Errorf("%s: %s, want %s; %q", name, got, c.want, notes)
		}
	}
}

// What has no form is refused before anything is written, with its path and name.
func TestWriteRefuses(t *testing.T) {
	spec := func(change func(*zarr.Spec)) zarr.Spec {
		s := zarr.Spec{Shape: []int64{2, 2, 2}, DataType: "uint8"}
		change(&s)
		return s
	}
	for says, s := range map[string]zarr.Spec{
		"data type int16":        spec(func(s *zarr.Spec) { s.DataType = "int16" }),
		"data type float64":      spec(func(s *zarr.Spec) { s.DataType = "float64" }),
		"2 dimensions":           spec(func(s *zarr.Spec) { s.Shape = []int64{2, 2} }),
		"5 dimensions":           spec(func(s *zarr.Spec) { s.Shape = []int64{1, 2, 2, 2, 2} }),
		"uint16 with 1 channels": spec(func(s *zarr.Spec) { s.DataType = "uint16" }),
		"uint8 with 3 channels":  spec(func(s *zarr.Spec) { s.Shape = []int64{2, 2, 2, 3} }),
		`"encoding"`:             spec(func(s *zarr.Spec) { s.Attributes = attributes(t, `{"encoding":1}`) }),
		"attribute resolution":   spec(func(s *zarr.Spec) { s.Attributes = attributes(t, `{"resolution":[1,2]}`) }),
		"attribute voxel_offset": spec(func(s *zarr.Spec) { s.Attributes = attributes(t, `{"voxel_offset":"0"}`) }),
		"2 GiB":                  spec(func(s *zarr.Spec) { s.Shape, s.Chunks = []int64{1 << 20, 1 << 20, 1}, []int64{1 << 16, 1 << 15, 1} }),
	} {
		m, dst := kv.NewMem(), kv.NewMem()
		source(t, m, "a", zarr.Spec{Shape: []int64{2, 2, 2}, DataType: "uint8"}, func(int) uint64 { return 1 })
		must.Get(zarr.Create(t.Context(), m, "odd", s, nil))(t)
		err := write(t, dst, m, "", layout{})
		if !errors.Is(err, formats.ErrUnsupported) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "/odd") {
			t.Errorf("%v, want ErrUnsupported of /odd with %q", err, says)
		}
		if dst.Len() > 0 {
			t.Errorf("%s: %d keys were written", says, dst.Len())
		}
	}
	m := kv.NewMem()
	source(t, m, "", zarr.Spec{Shape: []int64{2, 2, 2}, DataType: "uint8", Attributes: attributes(t, `{"type":"mesh"}`)}, func(int) uint64 { return 1 })
	for _, o := range []layout{{}, {WriteOptions: formats.WriteOptions{Compression: "gzip"}}, {WriteOptions: formats.WriteOptions{Sharded: true, Compression: "zstd"}}} {
		if err := write(t, kv.NewMem(), m, "", o); !errors.Is(err, formats.ErrUnsupported) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := zarr.CreateGroup(t.Context(), m, "g", zarr.Attributes{}, &zarr.OpenOptions{Overwrite: true}); err == nil {
		if err := write(t, kv.NewMem(), m, "g", layout{}); !errors.Is(err, formats.ErrUnsupported) {
			t.Errorf("a group without arrays: %v", err)
		}
	}
}
