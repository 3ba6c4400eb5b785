package icechunk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/formats"
)

// snapshot is a file that says which nodes there are. Safe for concurrent use.
type snapshot struct {
	id     objectID
	parent *objectID // from the file, which has it in version 1 only
	time   time.Time
	msg    string
	meta   map[string]string
	body   []byte
	nodes  []node // by path
}

// node is an array or a group.
type node struct {
	path     string // without a slash at its beginning, "" is the root
	id       nodeID
	array    bool
	document []byte     // its zarr.json
	covers   []coverage // the manifests of an array
	keys     chunkKeys
}

// chunkKeys is how an array spells the keys of its chunks.
type chunkKeys struct {
	v2        bool // without "c"
	separator byte
}

// prefix returns the prefix of the keys of chunks, below the array.
func (k chunkKeys) prefix() string {
	if k.v2 {
		return ""
	}
	return "c"
}

// parseSnapshot checks a snapshot and all nodes in it.
func parseSnapshot(spec byte, body []byte, want objectID) (*snapshot, error) {
	f := &buffer{b: body}
	root := f.root()
	s := &snapshot{id: root.id12(0, "the id of the snapshot"), body: body}
	if f.err == nil && s.id != want {
		f.fail("it says that it is snapshot %v", s.id)
	}
	if b := root.fixed(1, 12); b != nil {
		p := objectID(b)
		s.parent = &p
	}
	s.time, s.msg = micros(root.u64(3)), string(root.needBytes(4, "the message"))
	s.meta = parseMetadata(root.vector(5, 4), spec)
	list := root.need(2, 4, "nodes of the snapshot")
	if f.err != nil {
		return nil, f.err
	}
	s.nodes = make([]node, 0, list.n)
	seen := make(map[nodeID]struct{}, list.n)
	total := 0
	for i := range list.n {
		n, err := parseNode(list.table(i))
		if err != nil {
			return nil, err
		}
		if total += len(n.covers); total > len(body)/8 {
			f.fail("manifests are shared by arrays")
			return nil, f.err
		}
		if i > 0 && s.nodes[i-1].path >= n.path {
			f.fail("nodes are not in the order of their paths")
			return nil, f.err
		}
		if _, ok := seen[n.id]; ok {
			f.fail("two nodes have the same id")
			return nil, f.err
		}
		seen[n.id] = struct{}{}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		for path := n.path; path != ""; {
			path = above(path)
			if m := s.node(path); m != nil {
				if m.array {
					return nil, formats.Invalid("node %q lies below the array %q", n.path, path)
				}
				break
			}
		}
	}
	return s, nil
}

// micros is a time as files have it: microseconds since 1970.
func micros(n uint64) time.Time { return time.UnixMicro(int64(n & (1<<63 - 1))).UTC() }

// Kinds of nodes: the number of a member of the union NodeData.
const (
	dataArray = 1
	dataGroup = 2
)

// maxDepth is how many groups a node may lie in.
const maxDepth = 256

func parseNode(t table) (n node, err error) {
	f := t.f
	n.id = t.id8(0, "the id of a node")
	path := t.needBytes(1, "the path of a node")
	n.document = t.needBytes(2, "the document of a node")
	switch is := t.u8(3, 0); is {
	case dataArray:
		n.array = true
		n.covers = parseCoverages(t.sub(4, "the data of a node").need(2, 4, "manifests of an array"))
		n.keys = keysOf(n.document)
	case dataGroup:
	default:
		f.fail("a node is neither an array nor a group")
	}
	if f.err == nil {
		n.path, err = nodePath(path)
	}
	if f.err != nil {
		err = f.err
	}
	return n, err
}

// nodePath checks the path of a node: canonical, as the specification says.
func nodePath(b []byte) (string, error) {
	path, ok := bytes.CutPrefix(b, []byte{'/'})
	if !ok || !utf8.Valid(path) || bytes.IndexByte(path, 0) >= 0 || len(path) > 1<<15 {
		return "", formats.Invalid("%.200q is not a path of a node", b)
	}
	if bytes.Count(path, []byte{'/'}) >= maxDepth {
		return "", formats.Invalid("a node lies %d groups deep", maxDepth)
	}
	if len(path) > 0 {
		for name := range bytes.SplitSeq(path, []byte{'/'}) {
			if s := string(name); s == "" || s == "." || s == ".." {
				return "", formats.Invalid("%.200q is not a path of a node", b)
			}
		}
	}
	return string(path), nil
}

// keysOf reads how an array spells the keys of its chunks. Icechunk itself stores only
// coordinates.
func keysOf(document []byte) chunkKeys {
	k := chunkKeys{separator: '/'}
	var doc struct {
		Encoding json.RawMessage `json:"chunk_key_encoding"`
	}
	var encoding struct {
		Name          string `json:"name"`
		Configuration struct {
			Separator string `json:"separator"`
		} `json:"configuration"`
	}
	if json.Unmarshal(document, &doc) != nil || len(doc.Encoding) == 0 {
		return k
	}
	if json.Unmarshal(doc.Encoding, &encoding) != nil {
		_ = json.Unmarshal(doc.Encoding, &encoding.Name) // the name alone; readers of the document refuse another kind
	}
	if encoding.Name == "v2" {
		k.v2, k.separator = true, '.'
	}
	if s := encoding.Configuration.Separator; s == "." || s == "/" {
		k.separator = s[0]
	}
	return k
}

// node finds a node, nil if it does not exist.
func (s *snapshot) node(path string) *node {
	i, ok := slices.BinarySearchFunc(s.nodes, path, func(n node, path string) int { return strings.Compare(n.path, path) })
	if !ok {
		return nil
	}
	return &s.nodes[i]
}

// coverage says which chunks of an array a manifest has.
type coverage struct {
	manifest objectID
	extents  vector // of pairs of numbers: from, and the first beyond
}

func parseCoverages(list vector) []coverage {
	if list.n == 0 {
		return nil
	}
	out := make([]coverage, 0, list.n)
	for i := range list.n {
		t := list.table(i)
		c := coverage{t.id12(0, "the id of a manifest"), t.need(1, 8, "extents of a manifest")}
		if t.f.err != nil {
			return nil
		}
		out = append(out, c)
	}
	return out
}

// contains reports whether a manifest may have a chunk.
func (c coverage) contains(coords []uint32) bool {
	if c.extents.n != len(coords) {
		return false
	}
	for d, x := range coords {
		if x < c.extents.u32(2*d) || x >= c.extents.u32(2*d+1) {
			return false
		}
	}
	return true
}

// overlaps reports whether two manifests may have the same chunk.
func (c coverage) overlaps(other coverage) bool {
	for d := range min(c.extents.n, other.extents.n) {
		if c.extents.u32(2*d+1) <= other.extents.u32(2*d) || other.extents.u32(2*d+1) <= c.extents.u32(2*d) {
			return false
		}
	}
	return true
}

// same reports whether two manifests are one, for the same chunks.
func (c coverage) same(other coverage) bool {
	return c.manifest == other.manifest && bytes.Equal(c.extents.all(), other.extents.all())
}

// size is about how many bytes it takes in memory.
func (s *snapshot) size() int64 {
	n := int64(len(s.body) + 1<<10)
	for i := range s.nodes {
		n += int64(len(s.nodes[i].path) + 112 + 56*len(s.nodes[i].covers))
	}
	return n
}

func snapshotKey(id objectID) string { return "snapshots/" + id.String() }
