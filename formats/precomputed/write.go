package precomputed

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// shardBytes is about how many bytes of voxels a shard has, before compression, which is
// how much memory it takes to write one.
const shardBytes = 128 << 20

// newPlan prepares to write the array at path in src, or the arrays below the group there
// as the scales of one volume, in the encoding raw. Then src must be a kv.Lister. It is read
// when the plan is written, too.
//
// Dimensions are recognised by the names x, y, z and c or channel, in any order; further
// dimensions must have one element. Where none is called x, y or z, dimensions are taken as x, y,
// z and channel in their order, and a note says so. Scales come in the order of their resolutions,
// and are called as the arrays are; the key of an array by itself is its resolution. Attributes
// become members of "info": "resolution" and "voxel_offset" of a scale, "type" ("image" or
// "segmentation", default "image") and the rest of the volume.
//
// The levels of an OME-Zarr image become scales. Its axes, units, scales and translations give the
// dimensions, resolutions and offsets, and labels are segmentations. Other nodes below it, such as
// labels, and other metadata are left behind, with a note. Without an image and an attribute, the
// resolution is 1 nm. Chunks of zeros alone are left out.
//
// Data that a volume cannot hold is formats.ErrUnsupported with the path and the reason: data
// types other than unsigned integers and float32, dimensions of other names and several elements,
// or arrays of one volume that differ in data type or channels.
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
	rel := func(n *zarr.Node) string {
		return strings.Trim(strings.TrimPrefix(n.Path(), strings.Trim(path, "/")), "/")
	}
	for n, err := range o.Nodes(ctx, src, path, func(n *zarr.Node) { p.leave(rel(n)) }) {
		if err != nil {
			return nil, fmt.Errorf("precomputed: %w", err)
		}
		if err := p.add(ctx, n, rel(n)); err != nil {
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
	group      *ome.Group // of the root, nil if it has no image
	steps      []*step
	info       []byte

	notes, behind []string
	left          string // the last node that was left behind
}

// step is a scale: an array and its members in info.
type step struct {
	scale
	from       *zarr.Array
	axes       [4]int // of from, for x, y, z and channel; -1 for one that it has not
	resolution []float64
	size       int  // of an element
	gzip       bool // chunks in shards
}

// Notes implements [formats.Noter].
func (p *plan) Notes() (notes, behind []string) { return p.notes, p.behind }

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// leave notes a node that is left behind, unless one above it was.
func (p *plan) leave(rel string) {
	if p.left == "" || !strings.HasPrefix(rel, p.left+"/") {
		p.left = rel
		p.behind = append(p.behind, "/"+rel)
	}
}

// begin takes the attributes of the root, except OME-Zarr metadata.
func (p *plan) begin(ctx context.Context, n *zarr.Node) error {
	a, isArray := n.Array()
	attrs := n.Meta().Attributes
	label := false
	if isArray {
		l, err := a.Image(ctx)
		if err != nil {
			return unsupportedImage(err)
		}
		label = l != nil && l.Label
	} else {
		g, err := ome.Parse(attrs)
		if err != nil {
			return unsupportedImage(err)
		}
		if g != nil && len(g.Images) > 0 {
			p.group, label = g, g.Label
			for name, value := range g.Members.All() {
				if !g.Inside && !slices.Contains(omeMembers, name) {
					continue
				}
				if !g.Inside {
					attrs.Delete(name)
				}
				switch {
				case name == "multiscales" && len(g.Images) > 1:
					p.behind = append(p.behind, fmt.Sprintf("OME-Zarr metadata: multiscales but the first of %d", len(g.Images)))
				case name != "multiscales" && name != "version" && string(value) != "{}":
					p.behind = append(p.behind, "OME-Zarr metadata: "+name)
				}
			}
			if g.Inside {
				attrs.Delete(ome.Attribute)
			}
		}
	}
	for name, value := range attrs.All() {
		switch {
		case name == "type":
			if json.Unmarshal(value, &p.kind) != nil || p.kind != "image" && p.kind != "segmentation" {
				return formats.Unsupported(`the attribute "type", which is neither "image" nor "segmentation"`)
			}
		case isArray && (name == "resolution" || name == "voxel_offset"):
		case slices.Contains(volumeMembers, name):
			return formats.Unsupported("the attribute %q, which is a member of info", name)
		default:
			p.members = append(p.members, name, value)
		}
	}
	if p.kind == "" && label {
		p.kind = "segmentation"
	}
	return nil
}

// omeMembers are the attributes of OME-Zarr 0.4 of an image.
var omeMembers = []string{"multiscales", "omero", "image-label", "labels"}

// unsupportedImage is the error of an image whose axes are not known.
func unsupportedImage(err error) error {
	if errors.Is(err, ome.ErrMetadata) {
		err = fmt.Errorf("%w: %w", formats.ErrUnsupported, err)
	}
	return err
}

// add adds a node.
func (p *plan) add(ctx context.Context, n *zarr.Node, rel string) error {
	if rel == "" {
		if err := p.begin(ctx, n); err != nil {
			return err
		}
	}
	a, isArray := n.Array()
	switch {
	case p.group != nil && rel != "" && !slices.ContainsFunc(p.group.Images[0].Levels, func(l ome.Level) bool {
		return l.Path == rel || !isArray && strings.HasPrefix(l.Path, rel+"/")
	}):
		p.leave(rel)
		return nil
	case isArray || rel == "" || p.group != nil || n.Meta().Attributes.Len() == 0:
	default:
		if g, err := ome.Parse(n.Meta().Attributes); err == nil && g != nil && len(g.Images) > 0 {
			return formats.Unsupported("an image of OME-Zarr inside of a group: export it by itself, or leave it out")
		}
		return formats.Unsupported("the attributes of a group inside a volume")
	}
	if !isArray {
		return nil
	}
	s := &step{from: a, size: a.Type().Size()}
	if s.Key = rel; rel != "" && (rel == infoFile || strings.HasPrefix(rel, infoFile+"/")) {
		return formats.Unsupported("an array called as the file info")
	}
	image, err := a.Image(ctx)
	if err != nil {
		return unsupportedImage(err)
	}
	if err := s.measure(p, image); err != nil {
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
	if s.resolution == nil {
		s.place(p, image)
	}
	p.steps = append(p.steps, s)
	return nil
}

// place sets the resolution and the offset that an image says, nil for an array of none.
func (s *step) place(p *plan, image *ome.Level) {
	path := "/" + s.from.Path()
	s.resolution = []float64{1, 1, 1}
	if image == nil || image.Scale == nil {
		p.note("%s: the resolution is not known, 1 nm is written; an attribute resolution with three numbers says it", path)
		return
	}
	for _, t := range image.Unread {
		p.behind = append(p.behind, "OME-Zarr metadata: the transform "+t)
	}
	for d, axis := range s.axes[:3] {
		if axis < 0 { // a plane, whose thickness nothing says
			s.resolution[d] = s.resolution[0]
			continue
		}
		unit, scale := image.Axes[axis].Unit, image.Scale[axis]
		nm, ok := ome.Nanometres(unit)
		if !ok {
			nm = 1
			p.note("%s: the unit %q of the axis %s is not a known length, and counts as nanometer", path, unit, image.Axes[axis].Name)
		}
		s.resolution[d] = scale * nm
		// A translation is the position of the centre of the first voxel, an offset the position of
		// its border: where the voxels of a level are larger than the finest, the two differ by a
		// part of a voxel.
		exact := image.Translation[axis] / scale
		border := exact
		if p.group != nil {
			if first := p.group.Images[0].Levels[0].Scale; axis < len(first) { // an array may have other axes of its own
				border += (first[axis]/scale - 1) / 2
			}
		}
		if !whole(exact) && whole(border) {
			exact = border
		}
		if s.Offset[d] = integer(math.Round(exact)); !whole(exact) {
			p.note("%s: the translation of the axis %s is %v voxels, voxel_offset is %d", path, image.Axes[axis].Name, exact, s.Offset[d])
		}
		s.resolution[d] = rounded(s.resolution[d])
	}
}

func whole(v float64) bool { return math.Abs(v-math.Round(v)) < 1e-6 }

// rounded removes the error of a change of unit: 0.35 micrometres are 350 nm.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	return r
}

// measure sets the sizes of a scale.
func (s *step) measure(p *plan, image *ome.Level) error {
	m := s.from.Meta()
	if t := m.Type; !(t.Kind() == dtype.Uint && t.Bits() >= 8 || t.Kind() == dtype.Float && t.Bits() == 32 && t.Format() == "") {
		return formats.Unsupported("data type %v", t)
	}
	var err error
	if s.axes, err = s.axesOf(p, image); err != nil {
		return err
	}
	s.channels = 1
	if c := s.axes[3]; c >= 0 {
		s.channels = m.Shape[c]
	}
	if s.channels < 1 {
		return formats.Unsupported("an array without channels")
	}
	chunks := formats.ChunkShape(m)
	s.Offset = make([]integer, 3)
	bytes := s.channels
	for d := range 3 {
		n := int64(1)
		if s.chunk[d] = 1; s.axes[d] >= 0 {
			n, s.chunk[d] = m.Shape[s.axes[d]], int64(chunks[s.axes[d]])
		}
		s.Size = append(s.Size, integer(n))
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

// axesOf returns the dimensions of an array that are x, y, z and channel, -1 for a missing
// one. Further dimensions have one element.
func (s *step) axesOf(p *plan, image *ome.Level) ([4]int, error) {
	axes, names, shape := [4]int{-1, -1, -1, -1}, s.from.DimensionNames(), s.from.Shape()
	put := func(to, d int) {
		if axes[to] < 0 {
			axes[to] = d
		}
	}
	for d, name := range names {
		switch strings.ToLower(name) {
		case "x":
			put(0, d)
		case "y":
			put(1, d)
		case "z":
			put(2, d)
		case "c", "channel":
			put(3, d)
		}
	}
	named := axes[0] >= 0 || axes[1] >= 0 || axes[2] >= 0
	if image != nil && image.Axes != nil { // where names say nothing, types do: space is in the order z, y, x
		next := 0
		for d := len(names) - 1; d >= 0; d-- {
			switch kind := image.Axes[d].Type; {
			case kind == "channel":
				put(3, d)
			case kind == "space" && !named && next < 3:
				axes[next] = d
				next++
			}
		}
		named = named || next > 0
	}
	if !named {
		if len(shape) != 3 && len(shape) != 4 {
			return axes, formats.Unsupported("%d dimensions, not 3 or 4", len(shape))
		}
		axes = [4]int{-1, -1, -1, -1}
		for d := range shape {
			axes[d] = d
		}
		p.note("/%s: the dimensions %q are written as x, y, z and channel in this order", s.from.Path(), names)
		return axes, nil
	}
	if axes[0] < 0 || axes[1] < 0 {
		return axes, formats.Unsupported("the dimensions %q, of which none is %s", names, map[bool]string{true: "x", false: "y"}[axes[0] < 0])
	}
	for d, n := range shape {
		if n != 1 && !slices.Contains(axes[:], d) {
			return axes, formats.Unsupported("the dimension %q of length %d: a volume has x, y, z and channels", names[d], n)
		}
	}
	return axes, nil
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

// sorted is the key by which scales are sorted: their resolution, then the size, largest first.
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
