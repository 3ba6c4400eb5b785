package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Arrays whose chunks do not mean the same in another format are encoded anew:
// the inner chunks of shards become chunks, filters go, and the compressor stays
// if the format has it.

// canRecode reports whether encoding anew would help an array.
func canRecode(m *zarr.Meta, to zarr.Version, reg *codecs.Registry) bool {
	spec, err := recoded(m, to, reg, nil, false)
	if err == nil {
		_, err = zarr.Create(context.Background(), kv.NewMem(), "", spec, &zarr.OpenOptions{Registry: reg})
	}
	return err == nil
}

// recoded describes an array in another format. axes and named are as for convertMeta.
func recoded(m *zarr.Meta, to zarr.Version, reg *codecs.Registry, axes []*string, named bool) (zarr.Spec, error) {
	if len(m.Codecs.Codecs()) == 0 {
		return zarr.Spec{}, fmt.Errorf("codecs: %w", codecs.ErrNoForm)
	}
	t := meta.TypeV3(m.Type)
	if to == zarr.V2 {
		t = m.Type.WithOrder(dtype.Little)
	}
	if _, err := typeIn(t, to); err != nil {
		return zarr.Spec{}, fmt.Errorf("data type: %w", err)
	}
	chunks, inner, err := innermost(m)
	if err != nil {
		return zarr.Spec{}, err
	}
	if chunks == nil {
		chunks = firstChunk(m)
	}
	dims := m.DimensionNames
	if to == zarr.V3 && dims == nil && len(axes) == len(m.Shape) {
		dims = axes
	} else if to == zarr.V2 && !named && haveNames(m, axes) {
		dims = nil
	}
	carrier := &zarr.Meta{Version: to, Array: true, Shape: m.Shape, Type: t, Fill: m.Fill, NullFill: m.NullFill,
		Attributes: m.Attributes, DimensionNames: dims}
	if err := convertFill(carrier, m); err != nil {
		return zarr.Spec{}, err
	}
	spec := zarr.Spec{Version: to, Shape: m.Shape, Chunks: chunks, Type: t, Fill: carrier.Fill, Attributes: carrier.Attributes,
		Codecs: compressorFor(inner, t, m, to, reg)}
	if carrier.NullFill && to == zarr.V2 {
		spec.FillValue = json.RawMessage("null")
	}
	if to == zarr.V2 {
		spec.Separator = separatorV2(axes)
	}
	for _, name := range dims {
		if name == nil && to == zarr.V2 {
			return spec, fmt.Errorf("dimension_names: a dimension without a name beside others: %w", zarr.ErrNoForm)
		}
		n := ""
		if name != nil {
			n = *name
		}
		spec.DimensionNames = append(spec.DimensionNames, n)
	}
	return spec, nil
}

// firstChunk is the shape of the first chunk of an array whose chunks differ.
func firstChunk(m *zarr.Meta) []int64 {
	shape := make([]int64, len(m.Shape))
	for d, n := range m.Shape {
		if shape[d] = 1; m.Grid.Count(d, n) > 0 {
			shape[d] = m.Grid.Start(d, 1)
		}
	}
	return shape
}

// The types and codecs of Zarr v3 that zarr-python, tensorstore and zarrita read.
var (
	publicCodecs = []string{"bytes", "transpose", "sharding_indexed", "crc32c", "gzip", "blosc", "zstd"}
	publicTypes  = []string{"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"}
)

// NotRead says of something that it is [Private].
const NotRead = "not all of zarr-python, tensorstore and zarrita read it"

// Private returns the part of an array's metadata in Zarr v3 that zarr-python, tensorstore or
// zarrita do not read, "" if they read all.
func Private(m *zarr.Meta) string {
	if !m.Array || m.Version != zarr.V3 {
		return ""
	}
	var found []string
	if m.Grid.Regular() == nil {
		found = append(found, "the chunk grid, whose chunks differ in shape")
	}
	if t, err := m.Type.PrintV3(); err != nil || !slices.Contains(publicTypes, strings.Trim(string(t), `"`)) {
		found = append(found, fmt.Sprintf("the data type %v", m.Type))
	}
	text, err := m.Codecs.PrintV3()
	if err != nil {
		return strings.Join(found, ", ")
	}
	var walk func(text json.RawMessage)
	walk = func(text json.RawMessage) {
		var list []json.RawMessage
		_ = json.Unmarshal(text, &list)
		for _, raw := range list {
			var c codecJSON
			if json.Unmarshal(raw, &c) != nil {
				_ = json.Unmarshal(raw, &c.Name) // a codec without a configuration
			}
			if !slices.Contains(publicCodecs, c.Name) {
				found = append(found, "the codec "+c.Name)
			}
			walk(c.Configuration.Codecs)
		}
	}
	walk(text)
	return strings.Join(found, ", ")
}

// notePrivate notes an array that other programs do not read.
func (c *Plan) notePrivate(path string, m *zarr.Meta) {
	if what := Private(m); what != "" && !c.o.OnlyNodes {
		c.note(path, fmt.Errorf("%s: %s", what, NotRead))
	}
}

// codecJSON is a codec as v3 metadata has it.
type codecJSON struct {
	Name          string `json:"name"`
	Configuration struct {
		ChunkShape []int64         `json:"chunk_shape"`
		Codecs     json.RawMessage `json:"codecs"`
	} `json:"configuration"`
}

// innermost returns the shape and the codecs of the smallest chunks: the inner
// chunks if there are shards. chunks is nil where they are not all alike.
func innermost(m *zarr.Meta) (chunks []int64, list []json.RawMessage, err error) {
	if c := m.Grid.Regular(); c != nil {
		chunks = make([]int64, len(c))
		for d := range c {
			chunks[d] = int64(c[d])
		}
	}
	if m.Version != zarr.V3 {
		v, err := m.Codecs.V2()
		return chunks, []json.RawMessage{v.Compressor}, err
	}
	text, err := m.Codecs.PrintV3()
	for err == nil {
		if err = json.Unmarshal(text, &list); err != nil {
			break
		}
		text = nil
		for i, raw := range list {
			var c codecJSON
			if json.Unmarshal(raw, &c) != nil || c.Name != "sharding_indexed" {
				continue // a codec without a configuration is no shard
			}
			if text = c.Configuration.Codecs; i == 0 && chunks != nil {
				chunks = c.Configuration.ChunkShape
			}
			break
		}
		if text == nil {
			return chunks, list, nil
		}
	}
	return nil, nil, err
}

// compressorFor returns the codecs of [zarr.Spec] for the compressor in a list,
// nil for the default if the format has no such codec.
func compressorFor(list []json.RawMessage, t dtype.Type, m *zarr.Meta, to zarr.Version, reg *codecs.Registry) json.RawMessage {
	rank := len(m.Shape)
	if to == zarr.V3 && m.Version == zarr.V3 {
		chain := []json.RawMessage{json.RawMessage(`{"name":"bytes","configuration":{"endian":"little"}}`)}
		for _, raw := range list {
			var c codecJSON
			if json.Unmarshal(raw, &c) == nil && slices.Contains([]string{"gzip", "blosc", "zstd"}, c.Name) {
				chain = append(chain, raw)
			}
		}
		text, err := json.Marshal(chain)
		if err != nil || len(chain) == 1 || t.Variable() {
			return nil
		}
		return text
	}
	if to == zarr.V3 {
		if len(list) != 1 || len(list[0]) == 0 || string(list[0]) == "null" {
			return nil
		}
		plain := codecs.V2{Compressor: list[0], Order: "C", Rank: rank, Type: t.WithOrder(dtype.Little)}
		switch t.Kind() {
		case dtype.String:
			plain.Filters = json.RawMessage(`[{"id":"vlen-utf8"}]`)
		case dtype.Bytes:
			plain.Filters = json.RawMessage(`[{"id":"vlen-bytes"}]`)
		}
		chain, err := reg.ParseV2(plain)
		if err != nil {
			return nil
		}
		text, err := chain.PrintV3()
		if err != nil || Private(&zarr.Meta{Version: to, Array: true, Shape: m.Shape, Type: t, Codecs: chain, Grid: meta.RegularGrid(slices.Repeat([]int{1}, rank))}) != "" {
			return nil
		}
		return text
	}
	for _, raw := range list {
		chain, err := reg.ParseV3(append(append(json.RawMessage(`[{"name":"bytes"},`), raw...), ']'))
		if err != nil {
			continue // no bytes-to-bytes codec
		}
		v, err := chain.V2()
		if err == nil && v.Compressor != nil {
			return v.Compressor
		}
	}
	return nil
}

// fresh is a destination as an array sees it that is written from beginning to
// end: its metadata is in memory, no chunk is there yet.
type fresh struct {
	docs *kv.Mem
	out  kv.Writer
	note func(int64)
}

func (f fresh) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	return f.docs.Get(ctx, key, rng)
}

func (f fresh) Set(ctx context.Context, key string, value []byte) error {
	f.note(int64(len(value)))
	return f.out.Set(ctx, key, value)
}

// Delete implements [kv.Writer]. A chunk that holds nothing but the fill value
// is not there to begin with.
func (f fresh) Delete(context.Context, string) error { return nil }

// encodeChunks reads the array chunk by chunk of the destination and writes it.
func (s *Array) encodeChunks(ctx context.Context, c *Plan, out kv.Writer, workers *transfer.Pool, report func(int64)) error {
	to, err := zarr.OpenArray(ctx, fresh{c.Documents, out, report}, s.path, &zarr.OpenOptions{Registry: c.registry, WriteEmptyChunks: s.all})
	if err != nil {
		return err
	}
	grid, shape := s.From.Meta().Grid.Regular(), s.From.Shape()
	if grid == nil || s.all {
		return zarr.CopyChunks(ctx, s.From, to, zarr.Sel(), workers.Run)
	}
	// Chunks lie inside of the source's, so only stored chunks count.
	for chunk, err := range storedChunks(ctx, c.view, s.From) {
		if err != nil {
			return err
		}
		var box []zarr.Index
		for d, i := range chunk.coords {
			lo := i * int64(grid[d])
			box = append(box, zarr.Slice(lo, min(lo+int64(grid[d]), shape[d]), 1))
		}
		if err := zarr.CopyChunks(ctx, s.From, to, zarr.Sel(box...), workers.Run); err != nil {
			return err
		}
	}
	return nil
}
