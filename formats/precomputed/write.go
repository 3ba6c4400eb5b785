package precomputed

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// shardBytes is about how many bytes of voxels a shard has, before compression, which is
// how much memory it takes to write one.
const shardBytes = 128 << 20

// newPlan prepares to write the array at path in src, or the arrays below the group there
// as the scales of one volume, in the encoding raw. Then src must be a kv.Lister. It is read
// when the plan is written, too.
//
// Dimensions that are called x, y, z and c or channel are those, in whatever order;
// others are taken as x, y, z and channel in the order that they have. Scales come in
// the order of their resolutions, and are called as the arrays are; the key of an array
// by itself is its resolution. Attributes become members of "info": "resolution" and
// "voxel_offset" of a scale, "type" ("image" or "segmentation", default "image") and
// others of the volume. Where an array has no resolution, it is that of the
// "multiscales" of OME-NGFF in its group, else 1 nm. Chunks of zeros alone are left out.
//
// What a volume cannot say is formats.ErrUnsupported with the path and the reason: data
// types other than unsigned integers and float32, arrays of other than 3 or 4
// dimensions, or arrays of one volume that differ in data type or channels.
//
// The compression of chunks in shards is "gzip" (default) or "raw". Files of chunks are never
// compressed.
func newPlan(ctx context.Context, src kv.Reader, path string, o formats.WriteOptions, shardBytes int64) (formats.Plan, error) {
	switch {
	case o.Compression != "" && !o.Sharded:
		return nil, formats.Unsupported("precomputed: compression %q without shards", o.Compression)
	case o.Compression == "":
		o.Compression = "gzip"
	case o.Compression != "gzip" && o.Compression != "raw":
		return nil, formats.Unsupported("precomputed: compression %q: gzip and raw are possible", o.Compression)
	}
	p := &plan{o: o, shardBytes: shardBytes}
	for n, err := range zarr.Walk(ctx, src, path, o.Open) {
		if err != nil {
			return nil, fmt.Errorf("precomputed: %w", err)
		}
		rel := strings.Trim(strings.TrimPrefix(n.Path(), strings.Trim(path, "/")), "/")
		if err := p.add(n, rel); err != nil {
			return nil, fmt.Errorf("precomputed: /%s: %w", n.Path(), err)
		}
	}
	return p, p.finish()
}

// plan is a volume that will be written.
type plan struct {
	o          formats.WriteOptions
	shardBytes int64
	members    []any // of info, besides its own
	kind       string
	group      *zarr.Meta // of the root, nil if it is an array
	steps      []*step
	info       []byte
}

// step is a scale: an array and what stands in info.
type step struct {
	scale
	from       *zarr.Array
	axes       []int // of from, for x, y, z and channel, if it has one
	resolution []float64
	size       int  // of an element
	gzip       bool // chunks in shards
}

// add adds a node.
func (p *plan) add(n *zarr.Node, rel string) error {
	a, isArray := n.Array()
	if rel == "" {
		for name, value := range n.Meta().Attributes.All() {
			switch {
			case name == "type":
				if json.Unmarshal(value, &p.kind) != nil || p.kind != "image" && p.kind != "segmentation" {
					return formats.Unsupported(`the attribute "type", which is neither "image" nor "segmentation"`)
				}
			case name == "multiscales" && !isArray, isArray && (name == "resolution" || name == "voxel_offset"):
			case slices.Contains(volumeMembers, name):
				return formats.Unsupported("the attribute %q, which is a member of info", name)
			default:
				p.members = append(p.members, name, value)
			}
		}
	}
	if !isArray {
		if rel == "" {
			p.group = n.Meta()
		} else if n.Meta().Attributes.Len() > 0 {
			return formats.Unsupported("the attributes of a group inside a volume")
		}
		return nil
	}
	s := &step{from: a, size: a.Type().Size()}
	if s.Key = rel; rel != "" && (rel == infoFile || strings.HasPrefix(rel, infoFile+"/")) {
		return formats.Unsupported("an array called as the file info")
	}
	if err := s.measure(p); err != nil {
		return err
	}
	for name, value := range a.Meta().Attributes.All() {
		switch {
		case name == "resolution":
			if json.Unmarshal(value, &s.resolution) != nil || len(s.resolution) != 3 {
				return formats.Unsupported("the attribute resolution, which is not three numbers")
			}
		case name == "voxel_offset":
			if json.Unmarshal(value, &s.Offset) != nil || len(s.Offset) != 3 {
				return formats.Unsupported("the attribute voxel_offset, which is not three integers")
			}
		case rel == "":
		case slices.Contains(scaleMembers, name):
			return formats.Unsupported("the attribute %q, which is a member of a scale in info", name)
		default:
			s.members = append(s.members, name, value)
		}
	}
	p.steps = append(p.steps, s)
	return nil
}

// measure sets the sizes of a scale.
func (s *step) measure(p *plan) error {
	m := s.from.Meta()
	if t := m.Type; !(t.Kind() == dtype.Uint && t.Bits() >= 8 || t.Kind() == dtype.Float && t.Bits() == 32 && t.Format() == "") {
		return formats.Unsupported("data type %v", t)
	}
	if len(m.Shape) != 3 && len(m.Shape) != 4 {
		return formats.Unsupported("%d dimensions, not 3 or 4", len(m.Shape))
	}
	s.axes = axesOf(s.from.DimensionNames(), len(m.Shape))
	s.channels = 1
	if len(s.axes) == 4 {
		s.channels = m.Shape[s.axes[3]]
	}
	if s.channels < 1 {
		return formats.Unsupported("an array without channels")
	}
	chunks := formats.ChunkShape(m)
	s.Offset = make([]integer, 3)
	bytes := s.channels
	for d := range 3 {
		n := m.Shape[s.axes[d]]
		s.Size = append(s.Size, integer(n))
		s.chunk[d] = int64(chunks[s.axes[d]])
		if s.counts[d] = 0; n > 0 {
			s.counts[d] = (n-1)/s.chunk[d] + 1
		}
		if s.chunk[d] > math.MaxInt32 || bytes > math.MaxInt32 {
			return formats.Unsupported("chunks of 2 GiB or more")
		}
		bytes *= s.chunk[d]
	}
	if bytes *= int64(s.size); bytes > math.MaxInt32 {
		return formats.Unsupported("chunks of 2 GiB or more")
	}
	s.counts[3] = 1
	if p.o.Sharded {
		n := mortonBits(s.counts)
		if n > 62 {
			return formats.Unsupported("%v chunks, whose numbers have more than 62 bits", s.counts[:3])
		}
		s.Sharding = newSharding(n, bytes, p)
		s.gzip = p.o.Compression == "gzip"
	}
	return nil
}

// newSharding chooses the sharding of a scale whose chunk numbers have so many bits:
// shards of about shardBytes, minishards of 512 chunks.
func newSharding(bits int, chunkBytes int64, p *plan) *sharding {
	inShard := 0
	for inShard < bits && chunkBytes<<(inShard+1) <= p.shardBytes {
		inShard++
	}
	preshift := min(inShard, 9)
	return &sharding{
		Type: shardedType, Hash: "identity", Preshift: integer(preshift), MiniBits: integer(inShard - preshift),
		ShardBits: integer(bits - inShard), Index: "gzip", Data: p.o.Compression,
	}
}

// axesOf returns the axes of an array that are x, y, z and channel.
func axesOf(names []string, rank int) []int {
	axes := make([]int, 0, 4)
	for _, want := range [][]string{{"x"}, {"y"}, {"z"}, {"c", "channel"}} {
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(want, strings.ToLower(name)) })
		if at >= 0 && !slices.Contains(axes, at) {
			axes = append(axes, at)
		}
	}
	if len(axes) == rank {
		return axes
	}
	axes = axes[:0]
	for d := range rank {
		axes = append(axes, d)
	}
	return axes
}

// finish makes info.
func (p *plan) finish() error {
	if len(p.steps) == 0 {
		return formats.Unsupported("precomputed: a group without arrays")
	}
	first := p.steps[0]
	for _, s := range p.steps {
		if !s.from.Type().Equal(first.from.Type()) || s.channels != first.channels {
			return formats.Unsupported("precomputed: /%s: %v with %d channels beside /%s, %v with %d: the arrays of a volume have the same",
				s.from.Path(), s.from.Type(), s.channels, first.from.Path(), first.from.Type(), first.channels)
		}
		if s.resolution == nil {
			s.resolution = p.ngffResolution(s.Key)
		}
		if s.Key == "" {
			var parts []string
			for _, r := range s.resolution {
				parts = append(parts, strconv.FormatFloat(r, 'f', -1, 64))
			}
			s.Key = strings.Join(parts, "_")
		}
	}
	slices.SortStableFunc(p.steps, func(a, b *step) int { return slices.Compare(sorted(a), sorted(b)) })
	scales := make([]any, len(p.steps))
	for i, s := range p.steps {
		m := []any{
			"key", s.Key, "size", s.Size, "resolution", s.resolution, "voxel_offset", s.Offset,
			"chunk_sizes", [][]int64{s.chunk[:]}, "encoding", "raw",
		}
		if s.Sharding != nil {
			m = append(m, "sharding", s.Sharding)
		}
		scales[i] = codecs.Object(append(m, s.members...)...)
	}
	if p.kind == "" {
		p.kind = "image"
	}
	p.info = codecs.Object(append([]any{
		"@type", volumeType, "type", p.kind, "data_type", first.from.Type().String(), "num_channels", first.channels, "scales", scales,
	}, p.members...)...)
	return nil
}

// sorted is what scales are sorted by: their resolution, then the size, largest first.
func sorted(s *step) []float64 {
	key := []float64{s.resolution[0] * s.resolution[1] * s.resolution[2], 0}
	for _, n := range s.Size {
		key[1] -= float64(n)
	}
	return key
}

func (p *plan) Write(ctx context.Context, out formats.Output) error {
	for _, s := range p.steps {
		var err error
		if s.Sharding != nil {
			err = s.writeShards(ctx, &out)
		} else {
			err = s.writeFiles(ctx, &out)
		}
		if err != nil {
			return fmt.Errorf("precomputed: /%s: %w", s.from.Path(), err)
		}
	}
	return out.Set(ctx, infoFile, p.info)
}
