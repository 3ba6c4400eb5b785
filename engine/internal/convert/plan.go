package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// ErrConvert means that an array or group cannot be stored in another format as
// it is. The error names the node and the part that has no form there.
var ErrConvert = errors.New("engine: cannot be converted")

// ErrRecode is added to an ErrConvert that ExportOptions.Recode would avoid.
var ErrRecode = errors.New("engine: its chunks would have to be encoded anew")

// Plan is the plan of an export to another format.
type Plan struct {
	// Documents is all new metadata, by key.
	Documents *kv.Mem
	// Arrays are the arrays whose chunks are brought over.
	Arrays []Array
	// Notes describe the first few attributes that changed in meaning, or that kept the form
	// of the source's format; AllNotes counts all.
	Notes    []string
	AllNotes int64
	// Behind name the first few nodes, members of metadata and keys that the conversion
	// leaves behind; AllBehind counts all.
	Behind    []string
	AllBehind int64

	view     kv.ReadLister
	from     string // prefix of the keys of the source
	registry *codecs.Registry
	format   zarr.Version
	o        Options
	skipped  []bool              // which of o.Skip were met
	nodes    map[string]nodeKeys // by path in the source
	draft    bool                // the source is in the early v3 draft
	// groups that carry a copy of the metadata below them
	consolidated []string
}

// Array is one array: the source, and how its chunks are copied.
type Array struct {
	From *zarr.Array
	path string         // in the destination
	keys zarr.ChunkKeys // in the destination
	// chunks are decoded and encoded anew, not copied
	recode  bool
	missing *missing // chunks to write that are not stored, or nil
	all     bool     // all chunks are written, of an array that is encoded anew
}

// Options say how a conversion is made.
type Options struct {
	// Recode encodes chunks anew that do not mean the same in the other format.
	Recode bool
	// Written bounds the bytes of the chunks of an array that are written because they are
	// missing, where metadata of v2 cannot express their contents.
	Written int64
	// Skip are paths of arrays and groups to leave out, relative to the converted node.
	// A path without a node is zarr.ErrNotFound.
	Skip []string
	// OnlyNodes says that the destination holds metadata and chunks alone, and not the
	// OME-XML of a group.
	OnlyNodes bool
	// KeepNames writes names of dimensions for xarray, also where an image of OME-Zarr has them.
	// A fill value of v2 then is a missing value.
	KeepNames bool
}

// New makes the metadata of every node at and below a path of a view in another format,
// zarr.V2 or zarr.V3. open are the options that open nodes. A node that has no form is
// [ErrConvert].
func New(ctx context.Context, view kv.ReadLister, from string, open *zarr.OpenOptions, to zarr.Version, o Options) (*Plan, error) {
	c := &Plan{view: view, from: names.Dir(from), registry: open.Registry, format: to, o: o, Documents: kv.NewMem(), nodes: map[string]nodeKeys{}}
	if to != zarr.V2 && to != zarr.V3 {
		return nil, fmt.Errorf("to format %v: %w", to, errors.ErrUnsupported)
	}
	var err error
	if c.o.Skip, err = checkSkip(o.Skip); err != nil {
		return nil, err
	}
	c.skipped = make([]bool, len(o.Skip))
	var failed []error
	for n, err := range zarr.Walk(ctx, view, from, open) {
		at, m, unread := zarr.Unreadable(err)
		switch {
		case err == nil:
			at, m = n.Path(), n.Meta()
		case !unread:
			return nil, err
		}
		path := names.Clean(strings.TrimPrefix(at, from))
		own := nodeKeys{path: at, version: m.Version, known: true, skipped: c.skip(path, m.Array)}
		if err == nil && m.Array {
			a, _ := n.Array()
			_, own.chunk = ChunkKeys(a)
		}
		c.nodes[at], c.draft = own, c.draft || m.Version == zarr.Draft3
		if own.skipped {
			continue
		}
		if err == nil {
			err = c.node(ctx, n, path)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("/%s: %w to Zarr v%v: %w", path, ErrConvert, to, bare(err)))
		}
	}
	if i := slices.Index(c.skipped, false); i >= 0 {
		return nil, fmt.Errorf("skip: /%s: %w", c.o.Skip[i], zarr.ErrNotFound)
	}
	switch len(failed) {
	case 0:
		return c, c.consolidate(ctx)
	case 1:
		return nil, failed[0]
	}
	return nil, fmt.Errorf("%w; and %d more", failed[0], len(failed)-1)
}

// node plans one array or group.
func (c *Plan) node(ctx context.Context, n *zarr.Node, path string) error {
	if err := checkNames(c.format, path); err != nil {
		return err
	}
	if has, err := c.carriesCopy(ctx, n); err != nil {
		return err
	} else if has {
		c.consolidated = append(c.consolidated, path)
	}
	axes, err := c.axes(ctx, n, path)
	if err != nil {
		return err
	}
	c.leaveMembers(path, n.Meta())
	m, err := convertMeta(n.Meta(), c.format, c.registry, axes, c.o.KeepNames)
	if err == nil && c.o.Recode && Private(m) != "" {
		return c.recode(ctx, n, path, axes, m)
	}
	return c.convert(ctx, n, path, axes, m, err)
}

// convert plans a node with converted metadata, or whose conversion failed.
func (c *Plan) convert(ctx context.Context, n *zarr.Node, path string, axes []*string, m *zarr.Meta, err error) error {
	if err == nil {
		c.noteTexts(path, n.Meta(), m)
		c.note(path, convertOME(m, n.Version(), n.Path(), shapesBelow(ctx, c.view, n.Path(), &zarr.OpenOptions{Registry: c.registry})))
		c.notePrivate(path, m)
		c.note(path, checkAxes(m, axes))
		if err = c.put(ctx, path, m); err != nil {
			return err
		}
		if a, ok := n.Array(); ok {
			missing, err := c.findMissing(ctx, a, m)
			if err != nil {
				return err
			}
			c.Arrays = append(c.Arrays, Array{From: a, path: path, keys: m.Keys, missing: missing})
		}
		return nil
	}
	_, ok := n.Array()
	if !ok || !c.o.Recode {
		if ok && canRecode(n.Meta(), c.format, c.registry) {
			err = fmt.Errorf("%w; %w", err, ErrRecode)
		}
		return err
	}
	return c.recode(ctx, n, path, axes, nil)
}

// recode plans an array that is encoded anew. If that is not possible, or helps no program, the array
// keeps its chunks under the metadata as, unless as is nil.
func (c *Plan) recode(ctx context.Context, n *zarr.Node, path string, axes []*string, as *zarr.Meta) error {
	spec, err := recoded(n.Meta(), c.format, c.registry, axes, c.o.KeepNames)
	var made *zarr.Array
	if err == nil {
		made, err = zarr.Create(ctx, c.Documents, path, spec, &zarr.OpenOptions{Registry: c.registry})
	}
	if as != nil && (err != nil || Private(made.Meta()) == Private(as)) {
		return c.convert(ctx, n, path, axes, as, nil)
	}
	if err != nil {
		return bare(err)
	}
	c.noteTexts(path, n.Meta(), made.Meta())
	c.note(path, checkAxes(made.Meta(), axes))
	c.notePrivate(path, made.Meta())
	a, _ := n.Array()
	missing, err := c.findMissing(ctx, a, made.Meta())
	if err != nil {
		return err
	}
	c.Arrays = append(c.Arrays, Array{From: a, path: path, keys: made.Meta().Keys, recode: true, missing: missing, all: needsChunks(made.Meta(), a.Meta())})
	return nil
}

// axes returns the names of the axes of an array of an image, and nil for other nodes. It
// copies the OME-XML of a group.
func (c *Plan) axes(ctx context.Context, n *zarr.Node, path string) ([]*string, error) {
	if a, ok := n.Array(); ok {
		axes, problem, err := axesOf(ctx, a)
		c.note(path, problem)
		return axes, err
	}
	if c.o.OnlyNodes {
		return nil, nil
	}
	doc, err := omeDocument(ctx, c.view, n.Path())
	if doc == nil || err != nil {
		return nil, err
	}
	return nil, c.Documents.Set(ctx, names.Dir(path)+omeXML, doc)
}

// maxNotes bounds the notes that are kept.
const maxNotes = 8

// note adds a note about the node at a path, unless err is nil.
func (c *Plan) note(path string, err error) {
	if err == nil {
		return
	}
	if c.AllNotes++; len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, fmt.Sprintf("/%s: %v", path, err))
	}
}

// noteTexts notes attributes in which a bare NaN or infinity became a text.
func (c *Plan) noteTexts(path string, from, to *zarr.Meta) {
	var made map[string]json.RawMessage
	for name, was := range from.Attributes.All() {
		strict, err := zarr.StrictJSON(was)
		if err != nil || string(strict) == string(was) {
			continue
		}
		if made == nil { // Get compares one name after the other
			made = maps.Collect(to.Attributes.All())
		}
		if string(strict) != string(made[name]) {
			continue
		}
		c.note(path, fmt.Errorf("attribute %q: NaN or infinity became text", name))
	}
}

// bare leaves out where in the plan an error happened.
func bare(err error) error {
	var at *zarr.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// put adds the documents of a node.
func (c *Plan) put(ctx context.Context, path string, m *zarr.Meta) error {
	docs, err := m.Print()
	if err != nil {
		return err
	}
	for name, doc := range docs {
		if err := c.Documents.Set(ctx, names.Dir(path)+name, doc); err != nil {
			return err
		}
	}
	return nil
}

// carriesCopy reports whether a group has consolidated metadata.
func (c *Plan) carriesCopy(ctx context.Context, n *zarr.Node) (bool, error) {
	if n.Meta().Array {
		return false, nil
	}
	if n.Version() == zarr.V2 {
		return kv.Exists(ctx, c.view, names.Dir(n.Path())+names.V2Metadata)
	}
	return n.Meta().CarriesNodes(), nil
}

// consolidate makes the copies again, inner groups first.
func (c *Plan) consolidate(ctx context.Context) error {
	slices.Sort(c.consolidated)
	for _, path := range slices.Backward(c.consolidated) {
		if err := zarr.Consolidate(ctx, c.Documents, path, &zarr.OpenOptions{Version: c.format, Registry: c.registry}); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses paths that are not allowed in a format, or that would be
// taken for metadata there.
func checkNames(v zarr.Version, path string) error {
	if path == "" {
		return nil
	}
	if err := names.CheckPath(v, path); err != nil {
		return err
	}
	for name := range strings.SplitSeq(path, "/") {
		if slices.Contains(names.Documents(v), name) {
			return fmt.Errorf("%w: name %q: it is the name of a metadata document", zarr.ErrPath, name)
		}
	}
	return nil
}

// ArrayDimensions is the attribute in which xarray keeps the names of dimensions
// in Zarr v2.
const ArrayDimensions = "_ARRAY_DIMENSIONS"

// convertMeta returns metadata of another format under which the same chunks,
// under keys as that format usually spells them, hold the same elements. axes are the names
// of the axes of an array of an image, else nil. named keeps names of dimensions that the image has.
func convertMeta(m *zarr.Meta, to zarr.Version, reg *codecs.Registry, axes []*string, named bool) (*zarr.Meta, error) {
	if m.Version == to {
		return m, nil
	}
	from := m.Clone()
	if m.Array && (m.Version == zarr.Draft3 || m.Version == zarr.V3 && (m.Keys.Prefix() != "" || axes != nil) || len(m.Shape) == 0) {
		from.Keys = meta.V2Keys(separatorV2(axes), len(m.Shape))
	}
	convert := from.ToV2
	if to == zarr.V3 {
		convert = from.ToV3
	}
	c, err := convert(reg)
	if err != nil {
		return nil, inWords(err, m, to)
	}
	if !c.Array {
		return c, nil
	}
	if to == zarr.V3 {
		c.Keys = meta.DefaultKeys('/', len(c.Shape))
		if len(c.Shape) == 0 {
			c.Attributes.Delete(ArrayDimensions)
		}
		if c.DimensionNames == nil && len(axes) == len(c.Shape) {
			c.DimensionNames = axes
		}
	} else if !named && haveNames(m, axes) {
		c.DimensionNames = nil
		c.Attributes.Delete(ArrayDimensions)
	} else if _, has := c.Attributes.Get(ArrayDimensions); !has && len(c.Shape) == 0 {
		// xarray writes it for an array without dimensions too, and needs it to
		// read one. Zarr v3 has no names to make it of.
		if err := c.Attributes.Set(ArrayDimensions, []string{}); err != nil {
			return nil, err
		}
	}
	return c, convertFill(c, m)
}

// inWords names the member of the metadata that has no form.
func inWords(err error, m *zarr.Meta, to zarr.Version) error {
	field := ""
	_, badType := typeIn(m.Type, to)
	switch {
	case badType != nil:
		field, err = "data_type", badType
	case to == zarr.V2 && m.Grid.Regular() == nil:
		field = "chunk_grid"
	case errors.Is(err, codecs.ErrNoForm):
		field = "codecs"
	case errors.Is(err, dtype.ErrNoForm):
		field = "fill_value"
	case errors.Is(err, zarr.ErrNoForm) && slices.Contains(m.DimensionNames, nil):
		field = "dimension_names"
	default:
		return err
	}
	if strings.Contains(err.Error(), field) {
		return err
	}
	return fmt.Errorf("%s: %w", field, err)
}

// typeIn prints a data type in a format.
func typeIn(t dtype.Type, v zarr.Version) ([]byte, error) {
	if v == zarr.V2 {
		return t.PrintV2()
	}
	return t.PrintV3()
}

// CopyChunks brings the chunks of all arrays to a store.
func (c *Plan) CopyChunks(ctx context.Context, out kv.Writer, workers *transfer.Pool, report func(bytes int64)) error {
	for i := range c.Arrays {
		a := &c.Arrays[i]
		move := a.copyChunks
		if a.recode {
			move = a.encodeChunks
		}
		err := move(ctx, c, out, workers, report)
		if err == nil && !a.recode {
			err = a.writeMissing(ctx, out, workers, report)
		}
		if err != nil {
			return fmt.Errorf("/%s: %w", a.path, err)
		}
	}
	return nil
}

// CopyDocuments writes the metadata to a store, groups before the nodes below them.
func (c *Plan) CopyDocuments(ctx context.Context, out kv.Writer, report func(bytes int64)) error {
	keys, err := kv.Keys(ctx, c.Documents, "")
	if err != nil {
		return err
	}
	slices.SortFunc(keys, names.Above)
	for _, key := range keys {
		doc, err := kv.Get(ctx, c.Documents, key)
		if err == nil {
			err = out.Set(ctx, key, doc)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		report(int64(len(doc)))
	}
	return nil
}

// ChunkKeys returns the prefix of the keys of an array's chunks, and a function
// that reads the coordinates from a key. It returns false for a key that Zarr
// programs would not look for.
func ChunkKeys(a *zarr.Array) (prefix string, parse func(key string) ([]int64, bool)) {
	keys := a.Meta().Keys
	origin := make([]int64, keys.Rank())
	first := a.ChunkKey(origin)
	if keys.Rank() == 0 {
		return first, func(key string) ([]int64, bool) { return origin, key == first }
	}
	base := strings.TrimSuffix(first, string(keys.Append(nil, origin)))
	counts := a.Meta().ChunkCounts()
	return base + keys.Prefix(), func(key string) ([]int64, bool) {
		coords, ok := keys.Parse(key[len(base):])
		for d := range coords {
			ok = ok && coords[d] < counts[d]
		}
		return coords, ok
	}
}

// storedChunk is a chunk of an array.
type storedChunk struct {
	coords []int64
	key    string
}

// storedChunks yields the stored chunks of an array, except under keys that Zarr
// programs would not look for.
func storedChunks(ctx context.Context, view kv.Lister, a *zarr.Array) iter.Seq2[storedChunk, error] {
	return func(yield func(storedChunk, error) bool) {
		prefix, parse := ChunkKeys(a)
		for key, err := range view.List(ctx, kv.ListOptions{Prefix: prefix}) {
			if err != nil {
				yield(storedChunk{}, err)
				return
			}
			if coords, ok := parse(key); ok && !yield(storedChunk{coords, key}, nil) {
				return
			}
		}
	}
}

// Key is the key of a chunk in the destination.
func (s *Array) Key(coords []int64) string {
	return string(s.keys.Append([]byte(names.Dir(s.path)), coords))
}

// copyChunks copies the stored bytes under new keys.
func (s *Array) copyChunks(ctx context.Context, c *Plan, out kv.Writer, workers *transfer.Pool, report func(int64)) error {
	return transfer.Batches(storedChunks(ctx, c.view, s.From), func(batch []storedChunk) error {
		return workers.Run(ctx, len(batch), func(ctx context.Context, i int) error {
			from := batch[i].key
			v, err := listing.Locate(ctx, c.view, from)
			if v == nil && err == nil {
				v, err = s.missing.absent()
			}
			if v == nil || err != nil {
				return err
			}
			if err := transfer.SetValue(ctx, out, s.Key(batch[i].coords), v); err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			report(v.Size())
			return nil
		})
	})
}
