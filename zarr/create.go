package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// ErrExists means that there already is a node, or are keys, where one is to be
// created.
var ErrExists = fault.New("zarr: already exists", fault.ErrExists)

// Spec describes an array to be created. Shape and a data type are needed,
// everything else has a default.
type Spec struct {
	// Version is the format. Default: the format of the group above, else V3.
	// V1 has no groups: such an array lies in plain directories, below no group
	// of another format. Draft3 is [ErrDraft3].
	Version Version
	// Shape is the length of each dimension in elements.
	Shape []int64
	// Chunks is the chunk length of each dimension; in a sharded array the length of the inner
	// chunks. Default: about 1 MiB per chunk, shaped like the array.
	Chunks []int64
	// Shards is the shard length of each dimension, multiples of Chunks; v3
	// only. Default: no shards.
	Shards []int64
	// Type is the data type. If it is the zero Type, DataType spells it.
	Type dtype.Type
	// DataType is a v3 name ("float32"), a numpy type string ("<f4"), or JSON
	// as it stands in the metadata of the version.
	DataType string
	// FillValue is JSON as it stands in the metadata of the version; all but v3
	// allow null. If it is nil, Fill is one element in memory layout (for
	// variable-length types its bytes). Default: zeros, or the empty string.
	FillValue json.RawMessage
	Fill      []byte
	// Codecs is JSON: for v3 the list "codecs", in a sharded array the list for
	// the inner chunks; for v1 and v2 a compressor, or an object with any of
	// "compressor", "filters" and "order", spelled as in v2. v1 has no filters.
	// Default: zstd, for v1 blosc.
	Codecs json.RawMessage
	// Separator stands between the numbers of a chunk key: '/' or '.'.
	// Default: '/' for v3, else '.'. In v1 there is no other.
	Separator byte
	// DimensionNames has a name per dimension, "" for none, or is nil.
	DimensionNames []string
	Attributes     Attributes
}

// Create makes an array and the groups above it that are missing, and opens it;
// in v1 groups need no documents, and none are made for them. The view must be a
// [kv.Writer] and no store in the early v3 draft, which is [ErrDraft3]. Where a
// node or any key lies at or below path the error is [ErrExists], unless options
// say Overwrite: then all of that is deleted first. A path that no node of the
// format may have is [ErrPath], see [CleanPath] and [CheckNewPath].
func Create(ctx context.Context, view kv.Reader, path string, spec Spec, o *OpenOptions) (*Array, error) {
	c, err := newCreator(ctx, view, path, spec.Version, o)
	if err != nil {
		return nil, failAt("create", path, err)
	}
	m, err := spec.meta(c.version, c.opts.Registry)
	if err != nil {
		return nil, failAt("create", path, err)
	}
	n, err := c.create(ctx, m)
	if err != nil {
		return nil, failAt("create", path, err)
	}
	return n.array, nil
}

// CreateGroup is [Create] for a group, of the format that options name. v1 has
// none: the error is [ErrNoForm].
func CreateGroup(ctx context.Context, view kv.Reader, path string, attrs Attributes, o *OpenOptions) (*Group, error) {
	c, err := newCreator(ctx, view, path, 0, o)
	if err != nil {
		return nil, failAt("create", path, err)
	}
	n, err := c.create(ctx, &Meta{Version: c.version, Attributes: attrs})
	if err != nil {
		return nil, failAt("create", path, err)
	}
	return &Group{n}, nil
}

// creator makes one node.
type creator struct {
	finder
	writer  kv.Writer
	path    string
	version Version
	missing []string // groups above the node that are to be made, the root first
}

func newCreator(ctx context.Context, view kv.Reader, path string, v Version, o *OpenOptions) (*creator, error) {
	c := &creator{finder: newFinder(view, o.withDefaults())}
	if v == 0 {
		v = c.opts.Version
	}
	var err error
	if c.writer, err = writerOf(view, v); err != nil {
		return nil, err
	}
	c.opts.Version, c.opts.Consolidated = 0, false // anything there counts
	path = strings.TrimSuffix(path, "/")
	clean, err := meta.CleanPathV2(path)
	if err != nil {
		return nil, err
	}
	if c.version, err = c.formatAbove(ctx, path, clean, v); err != nil {
		return nil, err
	}
	switch layout, err := draftLayout(ctx, view); {
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return nil, err
	case clean == "" && c.opts.Overwrite: // the store is replaced
	case c.version == Draft3, err == nil && layout == meta.DraftRoot:
		return nil, ErrDraft3
	}
	switch {
	case c.version == 0 && v == 0:
		c.version = V3
	case c.version == 0:
		c.version = v
	case v != 0 && v != c.version:
		return nil, fmt.Errorf("%w: the group above has format %v, not %v", ErrKind, c.version, v)
	}
	switch c.version {
	case V3:
		if clean, err = meta.CleanPath(path); err == nil {
			err = meta.CheckNewPath(V3, clean)
		}
	case V1, V2:
		err = meta.CheckNewPath(c.version, clean)
	default:
		err = fmt.Errorf("node of format %v: %w", c.version, ErrNoForm)
	}
	c.path = clean
	return c, err
}

// formatAbove looks for the groups above a path, which clean spells as in v2, and
// returns the format of the nearest. In v3 a backslash is a character of a name.
func (c *creator) formatAbove(ctx context.Context, path, clean string, v Version) (Version, error) {
	if spelled, err := meta.CleanPath(path); err == nil && spelled != clean {
		switch found, err := c.above(ctx, spelled); {
		case err != nil:
			return 0, err
		case found == V3 || found == 0 && (v == 0 || v == V3):
			return found, nil
		}
		c.missing = nil
	}
	return c.above(ctx, clean)
}

// above looks for the groups above path and returns the format of the nearest.
func (c *creator) above(ctx context.Context, path string) (Version, error) {
	for path != "" {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		n, err := c.find(ctx, path)
		switch {
		case errors.Is(err, ErrNotFound):
			c.missing = append(c.missing, path)
		case err != nil:
			return 0, failAt("open", path, err)
		case n.array != nil:
			return 0, failAt("open", path, fmt.Errorf("%w: an array, not a group", ErrKind))
		default:
			slices.Reverse(c.missing)
			return n.loc.version, nil
		}
	}
	slices.Reverse(c.missing)
	return 0, nil
}

// create stores the metadata of the node and of missing groups above it.
func (c *creator) create(ctx context.Context, m *Meta) (*Node, error) {
	if c.version == V1 && !m.Array {
		return nil, fmt.Errorf("a group of Zarr v1: %w", ErrNoForm)
	}
	docs, err := m.Print()
	if err != nil {
		return nil, err
	}
	// Parse the printed documents: they are what readers get.
	n, err := c.parse(ctx, docs)
	if err != nil {
		return nil, err
	}
	if err := c.clear(ctx, m.Array); err != nil {
		return nil, err
	}
	if c.version == V1 {
		c.missing = nil // directories
	}
	for _, path := range c.missing {
		if err := saveMeta(ctx, c.view, locate(c.version, path), nil, &Meta{Version: c.version}); err != nil {
			return nil, failAt("create", path, err)
		}
	}
	if err := saveMeta(ctx, c.view, n.loc, nil, m); err != nil {
		return nil, err
	}
	if c.opts.Overwrite && c.opts.Locks != nil {
		c.opts.Locks.replaced(n)
	}
	return n, nil
}

// parse opens the node from printed documents.
func (c *creator) parse(ctx context.Context, docs map[string][]byte) (*Node, error) {
	switch c.version {
	case V3:
		return c.parseV3(c.path, docs[meta.DocV3])
	case V2:
		return c.parseV2(ctx, c.path, [][]byte{docs[meta.DocArrayV2], docs[meta.DocGroupV2], docs[meta.DocAttrsV2]})
	}
	return c.parseV1(c.path, docs[meta.DocArrayV1], docs[meta.DocAttrsV1])
}

// clear makes sure that nothing is in the way. A group may be put above nodes
// that have none yet.
func (c *creator) clear(ctx context.Context, array bool) error {
	if c.opts.Overwrite {
		return kv.DeletePrefix(ctx, c.writer, below(c.path))
	}
	switch _, err := c.find(ctx, c.path); {
	case err == nil:
		return ErrExists
	case !errors.Is(err, ErrNotFound):
		return err
	}
	list, ok := c.view.(kv.Lister)
	if !ok || !array {
		return nil
	}
	some, err := kv.Any(ctx, list, below(c.path))
	if err == nil && some {
		err = fmt.Errorf("%w: keys that would become part of the array", ErrExists)
	}
	return err
}

// meta makes metadata of the spec.
func (s *Spec) meta(v Version, reg *codecs.Registry) (*Meta, error) {
	if err := meta.CheckShape(s.Shape); err != nil {
		return nil, err
	}
	m := &Meta{Version: v, Array: true, Shape: slices.Clone(s.Shape), Type: s.Type, Attributes: s.Attributes}
	var err error
	if m.Type.Kind() == dtype.Invalid {
		if m.Type, err = s.parseType(v); err != nil {
			return nil, err
		}
	}
	if err := s.setFill(m); err != nil {
		return nil, err
	}
	chunks := s.Chunks
	if chunks == nil {
		chunks = defaultChunks(s.Shape, s.Shards, m.Type)
	}
	if err := s.setCodecs(m, chunks, reg); err != nil {
		return nil, err
	}
	outer := chunks
	if s.Shards != nil {
		outer = s.Shards
	}
	if m.Grid, err = gridOf(outer, len(s.Shape)); err != nil {
		return nil, err
	}
	if m.Keys, err = s.keys(v); err != nil {
		return nil, err
	}
	if s.DimensionNames != nil {
		for i := range s.DimensionNames {
			var name *string
			if s.DimensionNames[i] != "" {
				name = &s.DimensionNames[i]
			}
			m.DimensionNames = append(m.DimensionNames, name)
		}
	}
	return m, m.Validate()
}

// keys returns the chunk keys of the spec.
func (s *Spec) keys(v Version) (ChunkKeys, error) {
	sep, rank := s.Separator, len(s.Shape)
	switch {
	case sep == 0 && v == V3:
		sep = '/'
	case sep == 0:
		sep = '.'
	case sep != '/' && sep != '.' || sep == '/' && v == V1:
		return ChunkKeys{}, fmt.Errorf("%w: separator %q", ErrNoForm, sep)
	}
	if v == V3 {
		return meta.DefaultKeys(sep, rank), nil
	}
	return meta.V2Keys(sep, rank), nil
}

// parseType reads the data type. The filters define the type of objects.
func (s *Spec) parseType(v Version) (dtype.Type, error) {
	name := s.DataType
	if name == "" {
		return dtype.Type{}, fmt.Errorf("%w: no data type", ErrMetadata)
	}
	text := []byte(name)
	if !strings.ContainsRune(`{["`, rune(name[0])) {
		if t, ok := dtype.Named(name); ok {
			return t, nil
		}
		if !strings.ContainsRune("<>|", rune(name[0])) {
			return dtype.Type{}, fmt.Errorf("%w: %q is neither a name, such as float32, nor a numpy type string, such as <f4", dtype.ErrType, jsontext.Clip(name))
		}
		var err error
		if text, err = json.Marshal(name); err != nil {
			return dtype.Type{}, err
		}
	} else if !json.Valid(text) {
		return dtype.Type{}, fmt.Errorf("%w: data type %s is not JSON", ErrMetadata, jsontext.Clip(name))
	} else if v == V3 && name[0] != '[' {
		return dtype.ParseV3(text)
	}
	var object dtype.Type
	if v != V3 {
		given, err := s.codecsV2()
		if err != nil {
			return dtype.Type{}, err
		}
		list, _ := jsontext.Items(jsontext.OrNull(given.Filters))
		for _, filter := range slices.Backward(list) {
			if t, ok := dtype.ObjectV2(filter); ok {
				object = t
			}
		}
	}
	return dtype.ParseV2(text, object)
}

func (s *Spec) setFill(m *Meta) error {
	var err error
	switch {
	case s.FillValue != nil && m.Version == V3:
		m.Fill, err = m.Type.ParseFillV3(s.FillValue)
	case s.FillValue != nil && m.Version == V1:
		m.Fill, m.NullFill, err = m.Type.ParseFillV1(s.FillValue)
	case s.FillValue != nil:
		m.Fill, m.NullFill, err = m.Type.ParseFillV2(s.FillValue)
	case s.Fill != nil:
		m.Fill = slices.Clone(s.Fill)
	default:
		m.Fill = m.Type.Zero()
	}
	if err != nil {
		return fmt.Errorf("fill value: %w", err)
	}
	return nil
}

func gridOf(chunks []int64, rank int) (Grid, error) {
	if len(chunks) != rank {
		return nil, fmt.Errorf("%w: chunk shape %v for %d dimensions", ErrMetadata, chunks, rank)
	}
	shape := make([]int, rank)
	for d, n := range chunks {
		if err := meta.CheckLength(n); err != nil {
			return nil, fmt.Errorf("%w: dimension %d: %w", ErrMetadata, d, err)
		}
		shape[d] = int(n)
	}
	return meta.RegularGrid(shape), nil
}

// defaultChunkBytes is about how large chunks are by default.
const defaultChunkBytes = 1 << 20

// defaultChunks halves the longest dimension until a chunk is small enough. In
// shards the chunks divide the shard.
func defaultChunks(shape, shards []int64, t dtype.Type) []int64 {
	chunks := make([]int64, len(shape))
	for d, n := range shape {
		chunks[d] = max(n, 1)
		if d < len(shards) {
			chunks[d] = max(shards[d], 1)
		}
	}
	size := int64(t.Size())
	if size == 0 {
		size = 64 // an average string, as far as anyone knows
	}
	for {
		n, ok := elements(chunks)
		if ok && n <= defaultChunkBytes/min(size, defaultChunkBytes) {
			return chunks
		}
		long := 0
		for d := range chunks {
			if chunks[d] > chunks[long] {
				long = d
			}
		}
		if len(chunks) == 0 || chunks[long] == 1 {
			return chunks
		}
		if shards == nil {
			chunks[long] = (chunks[long] + 1) / 2
			continue
		}
		chunks[long] = smaller(chunks[long])
	}
}

// smaller returns the largest proper divisor of n > 1; it gives up, with 1, on
// numbers that are products of large primes.
func smaller(n int64) int64 {
	for p := int64(2); p <= n/p && p < 1<<16; p++ {
		if n%p == 0 {
			return n / p
		}
	}
	return 1
}
