package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// An export to another format writes new metadata and, where the bytes of
// chunks mean the same in both formats, copies those under new keys:
//
//	g/zarr.json      { … }                 g/.zarray .zattrs
//	g/c/0/1          the same bytes        g/0.1
//
// All new metadata is made first, in memory. So what has no form in the other
// format is refused before anything is written.

// ErrConvert means that an array or group cannot be stored in another format as
// it is. The error names the node and what has no form there.
var ErrConvert = errors.New("engine: cannot be converted")

// ErrRecode is added to an ErrConvert that ExportOptions.Recode would avoid.
var ErrRecode = errors.New("engine: its chunks would have to be encoded anew")

// conversion is the plan of an export to another format.
type conversion struct {
	src    *Source
	view   kv.ReadLister
	format zarr.Version
	recode bool
	docs   *kv.Mem // all new metadata
	arrays []conversionStep
	// groups that carry a copy of the metadata below them
	consolidated []string
}

// conversionStep is one array: what it was and how its chunks get over.
type conversionStep struct {
	from *zarr.Array
	path string         // in the destination
	keys zarr.ChunkKeys // in the destination
	// chunks are decoded and encoded anew, not copied
	recode bool
}

// planConversion makes the metadata of every node below a place.
func (s *Source) planConversion(ctx context.Context, view kv.ReadLister, at Place, o ExportOptions) (*conversion, error) {
	c := &conversion{src: s, view: view, format: o.Format, recode: o.Recode, docs: kv.NewMem()}
	if o.Format != zarr.V2 && o.Format != zarr.V3 {
		return nil, fmt.Errorf("to format %v: %w", o.Format, errors.ErrUnsupported)
	}
	opts := *s.open
	opts.Version = at.Version
	var failed []error
	for n, err := range zarr.Walk(ctx, view, at.Path, &opts) {
		if err != nil {
			return nil, err
		}
		path := names.Clean(strings.TrimPrefix(n.Path(), at.Path))
		if err := c.node(ctx, n, path); err != nil {
			failed = append(failed, fmt.Errorf("/%s: %w to Zarr v%v: %w", path, ErrConvert, o.Format, err))
		}
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
func (c *conversion) node(ctx context.Context, n *zarr.Node, path string) error {
	if err := checkNames(c.format, path); err != nil {
		return err
	}
	if has, err := c.carriesCopy(ctx, n); err != nil {
		return err
	} else if has {
		c.consolidated = append(c.consolidated, path)
	}
	m, err := convertMeta(n.Meta(), c.format, c.src.open.Registry)
	if err == nil {
		if err = c.put(ctx, path, m); err != nil {
			return err
		}
		if a, ok := n.Array(); ok {
			c.arrays = append(c.arrays, conversionStep{from: a, path: path, keys: m.Keys})
		}
		return nil
	}
	a, ok := n.Array()
	if !ok || !c.recode {
		if ok && canRecode(n.Meta(), c.format, c.src.open.Registry) {
			err = fmt.Errorf("%w; %w", err, ErrRecode)
		}
		return err
	}
	spec, err := recoded(n.Meta(), c.format, c.src.open.Registry)
	if err != nil {
		return err
	}
	made, err := zarr.Create(ctx, c.docs, path, spec, &zarr.OpenOptions{Registry: c.src.open.Registry})
	if err != nil {
		return bare(err)
	}
	c.arrays = append(c.arrays, conversionStep{from: a, path: path, keys: made.Meta().Keys, recode: true})
	return nil
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
func (c *conversion) put(ctx context.Context, path string, m *zarr.Meta) error {
	docs, err := m.Print()
	if err != nil {
		return err
	}
	for name, doc := range docs {
		if err := c.docs.Set(ctx, names.Dir(path)+name, doc); err != nil {
			return err
		}
	}
	return nil
}

// carriesCopy reports whether a group has consolidated metadata.
func (c *conversion) carriesCopy(ctx context.Context, n *zarr.Node) (bool, error) {
	if n.Meta().Array {
		return false, nil
	}
	if n.Version() == zarr.V2 {
		return kv.Exists(ctx, c.view, names.Dir(n.Path())+names.V2Metadata)
	}
	return n.Meta().Consolidated != nil, nil
}

// consolidate makes the copies again, those of inner groups first.
func (c *conversion) consolidate(ctx context.Context) error {
	slices.Sort(c.consolidated)
	for _, path := range slices.Backward(c.consolidated) {
		if err := zarr.Consolidate(ctx, c.docs, path, &zarr.OpenOptions{Version: c.format, Registry: c.src.open.Registry}); err != nil {
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
	if err := checkPath(v, path); err != nil {
		return err
	}
	for name := range strings.SplitSeq(path, "/") {
		for _, doc := range names.Documents(v) {
			if name == doc {
				return fmt.Errorf("%w: name %q: it is that of a metadata document", zarr.ErrPath, name)
			}
		}
	}
	return nil
}

// arrayDimensions is the attribute in which xarray keeps the names of dimensions
// in Zarr v2.
const arrayDimensions = "_ARRAY_DIMENSIONS"

// convertMeta returns metadata of another format under which the same chunks,
// under keys as that format usually spells them, hold the same elements.
func convertMeta(m *zarr.Meta, to zarr.Version, reg *codecs.Registry) (*zarr.Meta, error) {
	if m.Version == to {
		return m, nil
	}
	from := m.Clone()
	if m.Array && (m.Version == zarr.Draft3 || m.Version == zarr.V3 && m.Keys.Prefix() != "" || len(m.Shape) == 0) {
		from.Keys = meta.V2Keys('.', len(m.Shape))
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
	} else if _, named := c.Attributes.Get(arrayDimensions); !named && len(c.Shape) == 0 {
		// xarray writes it for an array without dimensions too, and needs it to
		// read one. Zarr v3 has no names to make it of.
		if err := c.Attributes.Set(arrayDimensions, []string{}); err != nil {
			return nil, err
		}
	}
	return c, convertFillAttribute(c, m)
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

// copyChunks brings the chunks of all arrays to a store.
func (c *conversion) copyChunks(ctx context.Context, out kv.Writer, workers *transfer.Pool, report func(bytes int64)) error {
	for i := range c.arrays {
		a := &c.arrays[i]
		move := a.copyChunks
		if a.recode {
			move = a.encodeChunks
		}
		if err := move(ctx, c, out, workers, report); err != nil {
			return fmt.Errorf("/%s: %w", a.path, err)
		}
	}
	return nil
}

// copyDocuments brings the metadata to a store.
func (c *conversion) copyDocuments(ctx context.Context, out kv.Writer, report func(bytes int64)) error {
	for key, err := range c.docs.List(ctx, kv.ListOptions{}) {
		if err != nil {
			return err
		}
		doc, err := kv.Get(ctx, c.docs, key)
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

// chunkKeys returns what the keys of an array's chunks begin with, and a function
// that reads the coordinates from a key. It returns false for a key that Zarr
// programs would not look for.
func chunkKeys(a *zarr.Array) (prefix string, parse func(key string) ([]int64, bool)) {
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

// storedChunks yields the coordinates and keys of the chunks of an array that
// are stored, those of keys that Zarr programs would not look for left out.
func (c *conversion) storedChunks(ctx context.Context, a *zarr.Array, fn func(coords []int64, key string) error) error {
	prefix, parse := chunkKeys(a)
	for key, err := range c.view.List(ctx, kv.ListOptions{Prefix: prefix}) {
		if err != nil {
			return err
		}
		if coords, ok := parse(key); ok {
			if err := fn(coords, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunkKey is the key of a chunk in the destination.
func (s *conversionStep) chunkKey(coords []int64) string {
	return string(s.keys.Append([]byte(names.Dir(s.path)), coords))
}

// copyChunks copies the stored bytes under new keys.
func (s *conversionStep) copyChunks(ctx context.Context, c *conversion, out kv.Writer, workers *transfer.Pool, report func(int64)) error {
	type pair struct{ from, to string }
	var batch []pair
	flush := func() error {
		err := workers.Run(ctx, len(batch), func(ctx context.Context, i int) error {
			v, err := locateListed(ctx, c.view, batch[i].from)
			if v == nil {
				return err
			}
			if err := transfer.SetValue(ctx, out, batch[i].to, v); err != nil {
				return fmt.Errorf("%s: %w", batch[i].from, err)
			}
			report(v.Size())
			return nil
		})
		batch = batch[:0]
		return err
	}
	err := c.storedChunks(ctx, s.from, func(coords []int64, key string) error {
		batch = append(batch, pair{key, s.chunkKey(coords)})
		if len(batch) < transfer.BatchKeys {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
