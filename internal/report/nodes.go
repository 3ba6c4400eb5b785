package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// Node is the answer of info, and a line of ls and tree: an array or a group.
type Node struct {
	NodeType       string          `json:"node_type"`
	ZarrFormat     int             `json:"zarr_format"`
	Path           string          `json:"path"`
	Shape          []int64         `json:"shape,omitempty"`
	DataType       json.RawMessage `json:"data_type,omitempty"`
	ChunkShape     json.RawMessage `json:"chunk_shape,omitempty"`
	Codecs         json.RawMessage `json:"codecs,omitempty"`
	FillValue      json.RawMessage `json:"fill_value,omitempty"`
	DimensionNames []*string       `json:"dimension_names,omitempty"`
	// Levels are the paths of the levels of a group that is one picture at several resolutions.
	Levels     []string        `json:"levels,omitempty"`
	Attributes zarr.Attributes `json:"attributes"`
	Error      string          `json:"error,omitempty"`  // why values or levels cannot be read
	Stored     *Stored         `json:"stored,omitempty"` // of an array in a database

	// Unread is the error behind Error.
	Unread error `json:"-"`
}

// MarshalJSON prints an empty shape too, which omitempty would drop.
func (i Node) MarshalJSON() ([]byte, error) {
	type plain Node
	if i.NodeType != "array" || len(i.Shape) > 0 {
		return json.Marshal(plain(i))
	}
	return json.Marshal(struct {
		plain
		Shape []int64 `json:"shape"`
	}{plain(i), []int64{}})
}

// UnreadableNode is a line of ls and tree: an array that cannot be opened.
type UnreadableNode struct {
	NodeType   string  `json:"node_type"`
	ZarrFormat int     `json:"zarr_format"`
	Path       string  `json:"path"`
	Shape      []int64 `json:"shape"`
	Error      string  `json:"error"`
}

// Stored counts the chunks of an array that are stored.
type Stored struct {
	Chunks       int64  `json:"chunks"`
	More         bool   `json:"more,omitempty"`  // more than Chunks are stored
	AllChunks    int64  `json:"all_chunks"`      // of the grid
	Bytes        *int64 `json:"bytes,omitempty"` // nil if there are more chunks
	DecodedBytes int64  `json:"decoded_bytes"`   // of the whole array; 0 if lengths vary
}

// mostCounted is the number of chunks that [StoredIn] counts.
const mostCounted = 100_000

// StoredIn counts the chunks of the array that a source names in a database, up to 100,000. It is nil for another
// store or another node, and where the chunks cannot be listed.
func StoredIn(ctx context.Context, s *engine.Source) *Stored {
	n, err := s.Node(ctx)
	if err != nil {
		return nil // Describe says why
	}
	a, ok := n.Array()
	if !ok {
		return nil
	}
	values, ok := s.Values(ctx, a.ChunkPrefix())
	if !ok {
		return nil
	}
	return storedIn(a, values, mostCounted)
}

// storedIn counts the chunks of an array, of which values have the keys, until there are more than most.
func storedIn(a *zarr.Array, values iter.Seq2[txn.KeyValue, error], most int64) *Stored {
	all, err := a.ChunkSet(zarr.Selection{})
	if err != nil {
		return nil
	}
	out, size := &Stored{AllChunks: all.Len()}, int64(0)
	for v, err := range values {
		if err != nil {
			return nil
		}
		if _, chunk := a.Meta().Keys.Parse(strings.TrimPrefix(v.Key, a.ChunkPrefix())); !chunk {
			continue
		}
		if out.More = out.Chunks == most; out.More {
			break
		}
		out.Chunks++
		size += max(v.Length, 0)
	}
	if !out.More {
		out.Bytes = &size
	}
	out.DecodedBytes = int64(max(a.Type().Size(), 0))
	for _, n := range a.Shape() {
		if n > 0 && out.DecodedBytes > math.MaxInt64/n {
			out.DecodedBytes = math.MaxInt64
			break
		}
		out.DecodedBytes *= n
	}
	return out
}

// Describe describes the node that a source names. If nothing here decodes the values of an
// array, its metadata is described, and Unread says why.
func Describe(ctx context.Context, s *engine.Source) (Node, error) {
	n, err := s.Node(ctx)
	if path, m, ok := zarr.Unreadable(err); ok && errors.Is(err, engine.ErrUnknownCodec) {
		out, merr := newNode(path, m)
		if merr != nil {
			return out, err
		}
		out.Unread, out.Error = err, Reason(err)+Undecoded(err)
		return out, nil
	}
	if err != nil {
		return Node{}, err
	}
	return nodeOf(n)
}

// nodeOf describes a node that was opened: dimensions without names get the names of its image.
func nodeOf(n *zarr.Node) (Node, error) {
	out, err := newNode(n.Path(), n.Meta())
	if a, ok := n.Array(); ok && out.DimensionNames == nil {
		if names := a.DimensionNames(); slices.ContainsFunc(names, func(s string) bool { return s != "" }) {
			for i := range names {
				out.DimensionNames = append(out.DimensionNames, &names[i])
			}
		}
	}
	return out, err
}

// newNode describes a node by its metadata. Data type, codecs and fill value have the form of
// the metadata; the three members of v2 with codecs are one object.
func newNode(path string, m *zarr.Meta) (Node, error) {
	out := Node{NodeType: "group", ZarrFormat: formatNumber(m.Version), Path: path, Attributes: m.Attributes}
	if !m.Array {
		levels, err := ome.Pyramid(m.Attributes)
		if err != nil {
			out.Error = err.Error()
		}
		for _, l := range levels {
			out.Levels = append(out.Levels, strings.TrimPrefix(path+"/"+l, "/"))
		}
		return out, nil
	}
	out.NodeType, out.Shape, out.DimensionNames = "array", m.Shape, m.DimensionNames
	docs, err := m.Print()
	if err != nil {
		return out, err
	}
	for _, doc := range docs {
		var members map[string]json.RawMessage
		if doc, err = zarr.StrictJSON(doc); err == nil {
			err = json.Unmarshal(doc, &members)
		}
		if err != nil {
			return out, err
		}
		if members["shape"] == nil || members["zarr_format"] == nil {
			continue // attributes
		}
		out.FillValue = members["fill_value"]
		if out.DataType = members["data_type"]; out.DataType == nil {
			out.DataType = members["dtype"]
		}
		if out.Codecs = members["codecs"]; out.Codecs == nil {
			out.Codecs, err = json.Marshal(map[string]json.RawMessage{
				"order": members["order"], "filters": members["filters"], "compressor": members["compressor"],
			})
		}
		out.ChunkShape = members["chunk_grid"]
		if m.Grid != nil && m.Grid.Regular() != nil {
			out.ChunkShape, err = json.Marshal(m.Grid.Regular())
		} else if out.ChunkShape == nil {
			out.ChunkShape = members["chunks"]
		}
	}
	return out, err
}

// formatNumber is the "zarr_format" of a version.
func formatNumber(v zarr.Version) int {
	if v == zarr.Draft3 {
		return 3
	}
	n, _ := strconv.Atoi(v.String())
	return n
}

// Member is an entry of ls and tree: an array or a group, a plain directory, or an array that
// cannot be opened.
type Member struct {
	Name  string // in its group
	Depth int    // of a tree: how many levels below its root
	// Node is nil for a plain directory, and for an array that cannot be opened.
	Node *zarr.Node
	// Unread is why an array cannot be opened; see [zarr.Unreadable].
	Unread error
}

// IsArray reports whether the member is an array that can be opened.
func (m Member) IsArray() bool { return m.Node != nil && m.Node.Meta().Array }

// Members yields the members of the group or directory that a source names, or the array that it
// names. For a tree it yields everything at and below the node, each group before its members. A
// member that cannot be opened for another reason than its metadata is left out, and the first
// such error is yielded at the end.
func Members(ctx context.Context, s *engine.Source, tree bool) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		n, err := s.Node(ctx)
		if err != nil && !errors.Is(err, zarr.ErrNotFound) { // which is a directory, or missing
			yield(Member{}, err)
			return
		}
		m, depth := Member{Node: n}, 0
		if n != nil {
			m.Name = n.Name()
		}
		if tree {
			depth = 1
		}
		if (tree || m.IsArray()) && !yield(m, nil) || m.IsArray() {
			return
		}
		below(ctx, s, "", depth)(yield)
	}
}

// below yields the nodes right below a path or, if depth is not 0, all nodes below it.
func below(ctx context.Context, s *engine.Source, path string, depth int) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		var failed error
		for m, err := range s.Members(ctx, path) {
			out := Member{Name: m.Name, Depth: depth, Node: m.Node}
			if _, _, ok := zarr.Unreadable(err); ok {
				out.Unread, err = err, nil
			}
			if err == nil && !yield(out, nil) {
				return
			}
			if err == nil && depth > 0 && out.Unread == nil && !out.IsArray() {
				for in, inErr := range below(ctx, s, path+"/"+m.Name, depth+1) {
					if err = inErr; err == nil && !yield(in, nil) {
						return
					}
				}
				if m.Node == nil && errors.Is(err, zarr.ErrNotFound) {
					err = nil // a directory on disk may be empty
				}
			}
			failed = cmp.Or(failed, err)
		}
		if failed != nil {
			yield(Member{}, failed)
		}
	}
}

// Nodes yields a [Node] or an [UnreadableNode] for each member; plain directories are left out.
func Nodes(members iter.Seq2[Member, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for m, err := range members {
			var out any
			switch {
			case err != nil:
			case m.Unread != nil:
				path, meta, _ := zarr.Unreadable(m.Unread)
				out = UnreadableNode{"array", formatNumber(meta.Version), path, meta.Shape, Reason(m.Unread)}
			case m.Node == nil:
				continue
			default:
				out, err = nodeOf(m.Node)
			}
			if !yield(out, err) {
				return
			}
		}
	}
}

// Reason returns the text after operation and path in an error about a node.
func Reason(err error) string {
	var at *zarr.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return fault.OneLine(err)
}

// Undecoded returns a way on from an error about values that nothing here decodes, in
// brackets, and "" of another one.
func Undecoded(err error) string {
	if errors.Is(err, engine.ErrUnknownCodec) && strings.Contains(err.Error(), `unknown codec "grib"`) {
		return " (values are GRIB messages, which nothing here decodes; xarray decodes the GRIB files with cfgrib, and to_zarr writes a store that can be imported)"
	}
	return ""
}
