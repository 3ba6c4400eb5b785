package namespace

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"unsafe"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Space is the versioned namespace: functions from roots to roots. From
// outside a root is a plain map of keys to values; inside it is a tree of
// directories whose chunk keys are folded into chunk maps (dir.go).
//
//	key "temp/c/0/1/2"
//
//	  root ──"temp/"──▶ directory of the array
//	                      "/c…"  ──▶ chunk map of "c/" '/' 3:  (0,1,2) ──▶ value
//	                      "/i"       identity
//	                      "/n…"      kind and forms of zarr.json
//	                      "zarr.json"
//
// A key's home is the deepest directory with a form that matches the key; without
// one the key is a document of its directory. The forms of a directory follow from
// its documents and chunks. Every operation here keeps each key at its home, so that
// callers see plain keys.
//
// A Space knows trees, not files or sessions. It is safe for concurrent use.
type Space struct {
	Tree *tree.Tree // pages of directories and chunk maps

	policy Policy
	// load reads the bytes of an inline or native value.
	load func(ctx context.Context, v tree.Value) ([]byte, error)
	// Store makes a value of the bytes of a merged document that is too large
	// to be inline. Without it such a merge is a conflict.
	Store func(ctx context.Context, key string, doc []byte) (tree.Value, error)
	// NewID makes the identity of a new array.
	NewID func() [16]byte

	Limits Limits
	dirs   *dirCache
}

// Limits bound what is held in memory at once. Tests use smaller ones to meet
// the boundaries.
type Limits struct {
	SmallDir uint64 // entries up to which a directory is kept parsed whole
	Edits    int    // given to a tree at once
	Refs     int    // chunk edits sorted at once; mapBatch or less
	Moved    int    // keys on their way to a new home
	Group    int    // chunks that a listing sorts
	Read     int    // entries that a cursor reads at once
}

var defaultLimits = Limits{SmallDir: 64, Edits: 1 << 14, Refs: mapBatch, Moved: 1 << 14, Group: 4096, Read: 1024}

// New returns the namespace of a page store. load reads the bytes of an inline or
// native value; the caller owns them.
func New(t *tree.Tree, policy Policy, load func(context.Context, tree.Value) ([]byte, error)) *Space {
	return &Space{
		Tree: t, policy: policy, load: load, dirs: newDirCache(budget.Records.Allowance(1, 64<<10, dirCacheBytes)), Limits: defaultLimits,
		NewID: func() (id [16]byte) { rand.Read(id[:]); return id },
	}
}

// With returns a space over another page store. Caches are shared: their
// entries are named by content.
func (s *Space) With(p tree.Pages) *Space {
	c := *s
	c.Tree = s.Tree.With(p)
	return &c
}

// Edit puts or deletes one key. The value is never a child.
type Edit struct {
	Key    string
	Value  tree.Value
	Delete bool
}

// Item is a key with its value.
type Item struct {
	Key   string
	Value tree.Value
}

// maxNodeName bounds names of documents that may be node documents: their
// reserved entries repeat the name.
const maxNodeName = 255

// IsNode reports whether a document of this name is read for forms. Chunk keys
// end in a digit, so a node document never becomes a chunk and the question
// which keys are chunks has one answer.
func (s *Space) IsNode(name string) bool {
	if name == "" || len(name) > maxNodeName || name[len(name)-1]-'0' < 10 {
		return false
	}
	return s.policy.Node(name)
}

// IsNodeEdit reports whether an edit is of a node document.
func (s *Space) IsNodeEdit(e Edit) bool {
	_, name := SplitKey(e.Key)
	return s.IsNode(name)
}

// isMetadata reports whether a document of this name is metadata: others may hold
// copies of it, or it holds copies.
func (s *Space) isMetadata(name string) bool { return s.IsNode(name) || s.policy.Metadata(name) }

// Get finds a key. Among any number of chunks it costs one search per
// directory on the path and one in the chunk map; cached, it does not allocate.
func (s *Space) Get(ctx context.Context, root tree.Root, key string) (tree.Value, bool, error) {
	var buf [maxCoordsLen]byte
	home, rel, dir, err := s.home(ctx, root, key, buf[:0])
	switch {
	case err != nil:
		return tree.Value{}, false, err
	case home != nil:
		coords, _ := home.parse(buf[:0], rel)
		return s.Tree.Get(ctx, home.root, coords)
	case strings.IndexByte(rel, '/') >= 0:
		return tree.Value{}, false, nil // below a directory that is not there
	}
	return s.Tree.Get(ctx, dir, append(buf[:0], rel...))
}

// home finds where a key belongs: a form, and the key in it, or nil, the deepest
// directory on its path, and the rest of the key there. buf is scratch.
func (s *Space) home(ctx context.Context, root tree.Root, key string, buf []byte) (home *dirForm, rel string, dir tree.Root, err error) {
	var homeKey string // matched by the deepest form so far
	rel = key
	for {
		info, err := s.readDir(ctx, root)
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
		child, ok, err := s.subDir(ctx, root, info, rel[:slash+1])
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

// DirPath returns the prefix of the keys below a node path.
func DirPath(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// SplitKey cuts a key behind its last slash.
func SplitKey(key string) (dir, name string) {
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:]
}

// keyBytes returns the bytes of a key without copying them. They must not be
// changed: trees only read the keys they are given.
func keyBytes(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

// checkEdits returns an error if edits are not in order or cannot be stored.
func checkEdits(edits []Edit) error {
	for i := range edits {
		e := &edits[i]
		if i > 0 && edits[i-1].Key >= e.Key {
			return fmt.Errorf("txn: bug: edits out of order: %.80q, %.80q", edits[i-1].Key, e.Key)
		}
		if len(e.Key) > MaxKey {
			return fmt.Errorf("%w: %.80q… has %d bytes, more than %d", kv.ErrInvalidKey, e.Key, len(e.Key), MaxKey)
		}
		if !e.Delete && e.Value.Kind == tree.KindChild {
			return fmt.Errorf("txn: bug: put %.80q: value is a child", e.Key)
		}
	}
	return nil
}

// MaxKey is the longest key in bytes.
const MaxKey = 4 << 10

// CheckKey returns an error for a string that cannot be a key.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: %.80q… is longer than %d bytes", kv.ErrInvalidKey, key, MaxKey)
	}
	return kv.ValidKey(key)
}
