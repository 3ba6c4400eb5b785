package txn

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"unsafe"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// space is the versioned namespace: functions from roots to roots. From
// outside a root is a plain map of keys to values; inside it is a tree of
// directories whose chunk keys are folded into chunk maps (dir.go).
//
//	key "temp/c/0/1/2"
//
//	  root ──"temp/"──▶ directory of the array
//	                      "/c…"  ──▶ chunk map of "c/" '/' 3:  (0,1,2) ──▶ value
//	                      "/i"       identity
//	                      "/n…"      what zarr.json says of itself
//	                      "zarr.json"
//
// A key's home is the deepest directory with a form that prints the key back
// byte for byte; without one it is a document of its directory. Which forms a
// directory has follows from its documents and chunks, so every operation here
// keeps each key at its home and nobody else has to know.
//
// A space knows trees, not files or sessions, and is safe for concurrent use.
type space struct {
	t      *tree.Tree
	policy Policy
	// load reads the bytes of an inline or native value.
	load func(ctx context.Context, v tree.Value) ([]byte, error)
	// store makes a value of the bytes of a merged document that is too large
	// to be inline. Without it such a merge is a conflict.
	store func(ctx context.Context, key string, doc []byte) (tree.Value, error)
	// newID makes the identity of a new array.
	newID func() [16]byte

	dirs *dirCache
	lim  limits
}

// limits bound what is held in memory at once. Tests use smaller ones to meet
// the boundaries.
type limits struct {
	smallDir uint64 // entries up to which a directory is kept parsed whole
	edits    int    // given to a tree at once
	refs     int    // chunk edits sorted at once; mapBatch or less
	moved    int    // keys on their way to a new home
	group    int    // chunks that a listing sorts
	read     int    // entries that a cursor reads at once
}

var defaultLimits = limits{smallDir: 64, edits: 1 << 14, refs: mapBatch, moved: 1 << 14, group: 4096, read: 1024}

func newSpace(t *tree.Tree, policy Policy, load func(context.Context, tree.Value) ([]byte, error)) *space {
	return &space{
		t: t, policy: policy, load: load, dirs: newDirCache(dirCacheBytes), lim: defaultLimits,
		newID: func() (id [16]byte) { rand.Read(id[:]); return id },
	}
}

// with returns a space over another page store. Caches are shared: what they
// hold is named by its content.
func (s *space) with(p tree.Pages) *space {
	c := *s
	c.t = s.t.With(p)
	return &c
}

// edit puts or deletes one key. The value is never a child.
type edit struct {
	key   string
	value tree.Value
	del   bool
}

// item is a key with its value.
type item struct {
	key   string
	value tree.Value
}

// maxNodeName bounds names of documents that may be node documents: their
// reserved entries repeat the name.
const maxNodeName = 255

// isNode reports whether a document of this name is read for forms. Chunk keys
// end in a digit, so a node document never becomes a chunk and the question
// which keys are chunks has one answer.
func (s *space) isNode(name string) bool {
	if name == "" || len(name) > maxNodeName || name[len(name)-1]-'0' < 10 {
		return false
	}
	return s.policy.Node(name)
}

// isNodeEdit is isNode of the name that an edit is of.
func (s *space) isNodeEdit(e edit) bool {
	_, name := splitKey(e.key)
	return s.isNode(name)
}

// isMetadata reports whether a document of this name has to do with copies of
// metadata: it may have changed what they are copies of, or hold them.
func (s *space) isMetadata(name string) bool { return s.isNode(name) || s.policy.Metadata(name) }

// get finds a key. Among any number of chunks it costs one search per
// directory on the path and one in the chunk map; cached, it does not allocate.
func (s *space) get(ctx context.Context, root tree.Root, key string) (tree.Value, bool, error) {
	var buf [maxCoordsLen]byte
	home, rel, dir, err := s.home(ctx, root, key, buf[:0])
	switch {
	case err != nil:
		return tree.Value{}, false, err
	case home != nil:
		coords, _ := home.parse(buf[:0], rel)
		return s.t.Get(ctx, home.root, coords)
	case strings.IndexByte(rel, '/') >= 0:
		return tree.Value{}, false, nil // below a directory that is not there
	}
	return s.t.Get(ctx, dir, append(buf[:0], rel...))
}

// home finds where a key belongs: a form, and the key in it, or nil, the deepest
// directory on its path, and the rest of the key there. buf is scratch.
func (s *space) home(ctx context.Context, root tree.Root, key string, buf []byte) (home *dirForm, rel string, dir tree.Root, err error) {
	var homeKey string // the deepest form so far spells it
	rel = key
	for {
		info, err := s.dir(ctx, root)
		if err != nil {
			return nil, "", root, err
		}
		for i := range info.forms {
			if _, ok := info.forms[i].parse(buf, rel); ok {
				home, homeKey = &info.forms[i], rel
			}
		}
		slash := strings.IndexByte(rel, '/')
		if slash < 0 {
			break
		}
		child, ok, err := s.sub(ctx, root, info, rel[:slash+1])
		if err != nil {
			return nil, "", root, err
		}
		if !ok {
			break
		}
		root, rel = child, rel[slash+1:]
	}
	if home != nil {
		rel = homeKey
	}
	return home, rel, root, nil
}

// dirPath turns a node path into the prefix of what is below it.
func dirPath(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// splitKey cuts a key behind its last slash.
func splitKey(key string) (dir, name string) {
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:]
}

// keyBytes is the bytes of a key without copying them. They must not be
// changed: trees only read the keys they are given.
func keyBytes(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

// checkEdits refuses what a caller must not pass in.
func checkEdits(edits []edit) error {
	for i := range edits {
		e := &edits[i]
		if i > 0 && edits[i-1].key >= e.key {
			return fmt.Errorf("txn: bug: edits out of order: %.80q, %.80q", edits[i-1].key, e.key)
		}
		if len(e.key) > maxKey {
			return fmt.Errorf("%w: %.80q… has %d bytes, more than %d", kv.ErrInvalidKey, e.key, len(e.key), maxKey)
		}
		if !e.del && e.value.Kind == tree.KindChild {
			return fmt.Errorf("txn: bug: put %.80q: value is a child", e.key)
		}
	}
	return nil
}

// maxKey is the longest key in bytes.
const maxKey = 4 << 10

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %.80q… is longer than %d bytes", kv.ErrInvalidKey, key, maxKey)
	}
	return kv.ValidKey(key)
}
