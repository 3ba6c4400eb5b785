package n5

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Version is that of the N5 specification which containers are written in.
const Version = "4.0.0"

// NewPlan prepares to write the hierarchy at path in src, which must be a kv.Lister
// unless path is an array, as a container. Blocks are encoded anew, one for each chunk,
// in shards for each inner chunk; those of zeros alone are left out, those at the border
// are cut. Attribute files come after the blocks and that of the root last. src is read
// when the plan is written, too. o.Compression is the type of the specification that all
// blocks get: "raw", "gzip" (default), "bzip2", "xz", "lz4", "blosc" or "zstd".
//
// What N5 cannot say is formats.ErrUnsupported with the path and the reason: data types
// other than integers and floats of 8 to 64 bits (no float16) and strings, arrays without
// dimensions, blocks of 2 GiB or more, attributes with the names of N5's own members.
func NewPlan(ctx context.Context, src kv.Reader, path string, o formats.WriteOptions) (formats.Plan, error) {
	if o.Sharded {
		return nil, formats.Unsupported("n5: shards")
	}
	p := &plan{compression: cmp.Or(o.Compression, "gzip")}
	for n, err := range o.Nodes(ctx, src, path, func(*zarr.Node) {}) {
		if err != nil {
			return nil, fmt.Errorf("n5: %w", err)
		}
		rel := strings.Trim(strings.TrimPrefix(n.Path(), strings.Trim(path, "/")), "/")
		if err := p.add(n, rel); err != nil {
			return nil, fmt.Errorf("n5: /%s: %w", n.Path(), err)
		}
	}
	return p, nil
}

// plan is what is written, a group before its children.
type plan struct {
	compression string
	steps       []step
}

func (p *plan) Write(ctx context.Context, out formats.Output) error {
	for _, s := range p.steps {
		if s.from == nil {
			continue
		}
		if err := s.blocks(ctx, &out); err != nil {
			return fmt.Errorf("n5: /%s: %w", s.from.Path(), err)
		}
	}
	for _, s := range slices.Backward(p.steps) {
		if err := out.Set(ctx, below(s.path)+attributesFile, s.attributes); err != nil {
			return err
		}
	}
	return nil
}

// step is a node: its attributes file, and for an array where its elements are and the
// Zarr document that says how its blocks are encoded.
type step struct {
	path       string
	attributes json.RawMessage
	from       *zarr.Array
	doc        []byte
}

// add plans a node.
func (p *plan) add(n *zarr.Node, path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == attributesFile {
			return formats.Unsupported("the name of N5's own files")
		}
	}
	s := step{path: path}
	var members []any
	reserved := []string{}
	if path == "" {
		members = append(members, memberVersion, Version)
		reserved = append(reserved, memberVersion)
	}
	a, isArray := n.Array()
	if isArray {
		reserved = append(reserved, memberDimensions, memberBlockSize, memberDataType, memberCompression, memberOldType, memberShards, memberCodecs)
	}
	var user attributes
	for name, value := range n.Meta().Attributes.All() {
		if slices.Contains(reserved, name) {
			return formats.Unsupported("the attribute %q, which is a member of N5's own", name)
		}
		user = append(user, member{name, value})
		members = append(members, name, value)
	}
	if !isArray {
		if user.isDataset() {
			return formats.Unsupported("a group with the attributes of a dataset: %s, %s and %s", memberDimensions, memberBlockSize, memberDataType)
		}
		s.attributes = codecs.Object(members...)
		p.steps = append(p.steps, s)
		return nil
	}
	d, err := datasetOf(a)
	if err != nil {
		return err
	}
	compression, err := compressionMember(p.compression)
	if err != nil {
		return err
	}
	if d.compression, err = parseAttributes(compression); err != nil {
		return err
	}
	if user.get(memberAxes) == nil && d.names != nil {
		members = append(members, memberAxes, d.names)
	}
	members = append(members, memberDimensions, d.shape, memberBlockSize, d.blocks, memberDataType, d.dataType, memberCompression, compression)
	s.attributes, s.from = codecs.Object(members...), a
	if s.doc, err = d.cutDocument(); err != nil {
		return err
	}
	p.steps = append(p.steps, s)
	return nil
}

// compressionMember returns the member "compression" with the defaults of the
// specification.
func compressionMember(kind string) (json.RawMessage, error) {
	switch kind {
	case "raw":
		return codecs.Object("type", kind), nil
	case "gzip":
		return codecs.Object("type", kind, "level", 6, "useZlib", false), nil
	case "bzip2":
		return codecs.Object("type", kind, "blockSize", 9), nil
	case "xz":
		return codecs.Object("type", kind, "preset", 6), nil
	case "lz4":
		return codecs.Object("type", kind, "blockSize", 1<<16), nil
	case "zstd":
		return codecs.Object("type", kind, "level", 3), nil
	case "blosc":
		return codecs.Object("type", kind, "cname", "zstd", "clevel", 6, "shuffle", 1, "blocksize", 0), nil
	}
	return nil, formats.Unsupported("compression %q: raw, gzip, bzip2, xz, lz4, blosc and zstd are possible", kind)
}

// maxBlock bounds a block in bytes (file-system specification, item 7).
const maxBlock = math.MaxInt32

// datasetOf describes an array. Errors are ErrUnsupported.
func datasetOf(a *zarr.Array) (d dataset, err error) {
	m := a.Meta()
	if d.dataType, err = dataTypeOf(m.Type); err != nil {
		return d, err
	}
	d.shape = m.Shape
	if len(d.shape) == 0 {
		return d, formats.Unsupported("an array without dimensions")
	}
	size := uint64(elementSize(d.dataType))
	for _, n := range formats.ChunkShape(m) {
		if size *= uint64(n); size > maxBlock {
			return d, formats.Unsupported("chunks of 2 GiB or more")
		}
		d.blocks = append(d.blocks, int64(n))
	}
	d.names = axesOf(a.DimensionNames())
	return d, nil
}

// dataTypeOf returns the data type of N5.
func dataTypeOf(t dtype.Type) (string, error) {
	name := ""
	switch t.Kind() {
	case dtype.String:
		name = "string"
	case dtype.Int, dtype.Uint, dtype.Float:
		if t.Format() == "" && (t.Kind() != dtype.Float || t.Bits() >= 32) {
			name = map[dtype.Kind]string{dtype.Int: "int", dtype.Uint: "uint", dtype.Float: "float"}[t.Kind()] + fmt.Sprint(t.Bits())
		}
	}
	if name != "string" && !slices.Contains(numbers, name) {
		return "", formats.Unsupported("data type %v", t)
	}
	return name, nil
}

// axesOf returns the attribute "axes" for dimension names, nil where the names say
// nothing.
func axesOf(names []string) []string {
	said := false
	for d, name := range names {
		said = said || name != "" && name != fmt.Sprintf("dim_%d", d)
	}
	if !said {
		return nil
	}
	return names
}

// cutDocument returns the document of the Zarr array whose chunks are the blocks, cut at
// the border.
func (d *dataset) cutDocument() ([]byte, error) {
	dataType, fill, chain, err := d.encoding()
	if err != nil {
		return nil, err
	}
	edges := make([]any, len(d.shape))
	for i, n := range d.shape {
		edges[i] = formats.Edges(n, d.blocks[i])
	}
	return codecs.Object(
		"zarr_format", 3, "node_type", "array", "shape", d.shape, "data_type", dataType,
		"chunk_grid", formats.Named("rectilinear", codecs.Object("kind", "inline", "chunk_shapes", edges)),
		"chunk_key_encoding", formats.Named("v2", codecs.Object("separator", "/")),
		"fill_value", fill, "codecs", chain, "attributes", json.RawMessage("{}")), nil
}

// blocks writes the blocks of an array.
func (s *step) blocks(ctx context.Context, out *formats.Output) error {
	reg := builtin.Registry()
	for _, c := range Format().Codecs {
		reg.Register(c)
	}
	to, err := zarr.OpenArray(ctx, sink{s, out}, s.path, &zarr.OpenOptions{Registry: reg})
	if err != nil {
		return err
	}
	return zarr.CopyChunks(ctx, s.from, to, zarr.Sel(), out.Each)
}

// sink is what an array is written to from beginning to end: its document is in memory,
// and no block is there yet.
type sink struct {
	step *step
	out  *formats.Output
}

var _ kv.Writer = sink{}

func (s sink) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if key != below(s.step.path)+document {
		return nil, kv.ErrNotFound
	}
	return kv.ReadValue(ctx, kv.Bytes(s.step.doc), rng)
}

func (s sink) Set(ctx context.Context, key string, value []byte) error {
	return s.out.Set(ctx, key, value)
}

// Delete implements [kv.Writer]. A block of zeros is not there to begin with.
func (s sink) Delete(context.Context, string) error { return nil }
