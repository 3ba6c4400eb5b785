package namespace

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A directory is a tree with these keys:
//
//	name          document: a key of this directory that is not in a chunk map
//	name/         sub-directory (child); the name may be empty
//	/c<form>      chunk map of a form (child): rank byte, separator byte, prefix
//	/i            identity of the array, 16 bytes
//	/n<name>      kind and forms of the node document of that name: see nodeDoc
//
// A document's name has no slash, a sub-directory's key ends in its only one,
// and reserved keys begin with a slash and are longer than "/", which is the
// sub-directory with the empty name. So nothing needs escaping, and byte order
// of the entries is byte order of the keys below them.
//
// What is stored is a function of the documents, the chunks and the identity:
//
//   - every node document has its /n entry, no other document has;
//   - a chunk map is there if a node document names its form or it is not empty;
//   - an identity is there if a node document is the metadata of an array;
//   - a directory without entries is not.
const (
	reservedMap      = 'c'
	reservedIdentity = 'i'
	reservedNode     = 'n'
)

var (
	reservedFrom = []byte{'/', 0}
	reservedTo   = []byte{'/' + 1}
	identityKey  = []byte{'/', reservedIdentity}
)

// isReserved reports whether a directory's key is a reserved entry, neither a
// document nor a sub-directory.
func isReserved(key []byte) bool { return len(key) > 1 && key[0] == '/' }

// isSub reports whether a directory's key is that of a sub-directory.
func isSub(key []byte) bool { return len(key) > 0 && key[len(key)-1] == '/' && !isReserved(key) }

// dirForm is a form that a directory has, with its chunk map.
type dirForm struct {
	Form
	root tree.Root
}

// nodeDoc is what the namespace keeps of a node document. The bytes of a /n entry are
// a flag byte (1: metadata of an array), then for each form its rank, separator and
// prefix length, a byte each, and the prefix.
type nodeDoc struct {
	name  string
	array bool
	forms []Form // ascending, of rank 0 too
}

// maxNodeForms bounds a /n entry.
const maxNodeForms = 8

func (n *nodeDoc) encode() []byte {
	b := []byte{0}
	if n.array {
		b[0] = 1
	}
	for _, f := range n.forms {
		b = append(b, byte(f.Rank), f.Sep, byte(len(f.Prefix)))
		b = append(b, f.Prefix...)
	}
	return b
}

func decodeNode(name string, b []byte) (n nodeDoc, ok bool) {
	if len(b) == 0 || b[0] > 1 {
		return n, false
	}
	n = nodeDoc{name: name, array: b[0] == 1}
	for b = b[1:]; len(b) > 0; {
		if len(b) < 3 || len(b) < 3+int(b[2]) {
			return n, false
		}
		end := 3 + int(b[2])
		f, ok := Form{Rank: int(b[0]), Sep: b[1], Prefix: string(b[3:end])}.normal()
		if !ok {
			return n, false
		}
		n.forms, b = append(n.forms, f), b[end:]
	}
	return n, true
}

func (n *nodeDoc) equal(m *nodeDoc) bool {
	return n.name == m.name && n.array == m.array && slices.Equal(n.forms, m.forms)
}

// mapKey is the key of a form's chunk map.
func mapKey(f Form) []byte {
	return append([]byte{'/', reservedMap, byte(f.Rank), f.Sep}, f.Prefix...)
}

func nodeKey(name string) []byte { return append([]byte{'/', reservedNode}, name...) }

// dirState holds the reserved entries of a directory.
type dirState struct {
	forms []dirForm // ascending
	nodes []nodeDoc // by name
	id    [16]byte
	hasID bool
}

func (d *dirState) isArray() bool {
	return slices.ContainsFunc(d.nodes, func(n nodeDoc) bool { return n.array })
}

// names reports whether a node document names the form.
func (d *dirState) names(f Form) bool {
	return slices.ContainsFunc(d.nodes, func(n nodeDoc) bool { return slices.Contains(n.forms, f) })
}

func (d *dirState) form(f Form) *dirForm {
	if i, ok := slices.BinarySearchFunc(d.forms, f, func(a dirForm, b Form) int { return compareForms(a.Form, b) }); ok {
		return &d.forms[i]
	}
	return nil
}

// addForm gives the directory an empty map for a form unless it has one.
func (d *dirState) addForm(f Form) {
	if d.form(f) == nil {
		d.forms = append(d.forms, dirForm{Form: f})
		slices.SortFunc(d.forms, func(a, b dirForm) int { return compareForms(a.Form, b.Form) })
	}
}

// normalize makes a state follow the rules above: empty maps without a node document
// go, forms of node documents get a map, arrays get an identity and others none.
func (s *Space) normalize(d *dirState) {
	d.forms = slices.DeleteFunc(d.forms, func(f dirForm) bool { return f.root.Entries == 0 && !d.names(f.Form) })
	for _, n := range d.nodes {
		for _, f := range n.forms {
			if f.Rank > 0 {
				d.addForm(f)
			}
		}
	}
	switch array := d.isArray(); {
	case array && !d.hasID:
		d.id, d.hasID = s.NewID(), true
	case !array:
		d.id, d.hasID = [16]byte{}, false
	}
}

// stateEdits returns the edits that turn the reserved entries of one state into
// those of another, ascending.
func stateEdits(from, to *dirState) []tree.Edit {
	var out []tree.Edit
	put := func(key []byte, v tree.Value) { out = append(out, tree.Edit{Key: key, Value: v}) }
	del := func(key []byte) { out = append(out, tree.Edit{Key: key, Delete: true}) }
	for _, f := range to.forms {
		if old := from.form(f.Form); old == nil || old.root != f.root {
			put(mapKey(f.Form), tree.Value{Kind: tree.KindChild, Child: f.root})
		}
	}
	for _, f := range from.forms {
		if to.form(f.Form) == nil {
			del(mapKey(f.Form))
		}
	}
	if to.hasID && (!from.hasID || from.id != to.id) {
		put(identityKey, tree.Value{Kind: tree.KindInline, Inline: slices.Clone(to.id[:])})
	} else if from.hasID && !to.hasID {
		del(identityKey)
	}
	for i := range to.nodes {
		n := &to.nodes[i]
		if old := findNode(from.nodes, n.name); old == nil || !old.equal(n) {
			put(nodeKey(n.name), tree.Value{Kind: tree.KindInline, Inline: n.encode()})
		}
	}
	for _, n := range from.nodes {
		if findNode(to.nodes, n.name) == nil {
			del(nodeKey(n.name))
		}
	}
	sortEdits(out)
	return out
}

func sortEdits(edits []tree.Edit) {
	slices.SortFunc(edits, func(a, b tree.Edit) int { return bytes.Compare(a.Key, b.Key) })
}

func findNode(nodes []nodeDoc, name string) *nodeDoc {
	if i, ok := slices.BinarySearchFunc(nodes, name, func(n nodeDoc, name string) int { return strings.Compare(n.name, name) }); ok {
		return &nodes[i]
	}
	return nil
}

// setNode returns nodes with n, or without the name if n is nil. nodes is not
// changed.
func setNode(nodes []nodeDoc, name string, n *nodeDoc) []nodeDoc {
	i, found := slices.BinarySearchFunc(nodes, name, func(n nodeDoc, name string) int { return strings.Compare(n.name, name) })
	out := slices.Clone(nodes)
	switch {
	case n == nil && found:
		return slices.Delete(out, i, i+1)
	case n == nil:
		return out
	case found:
		out[i] = *n
		return out
	}
	return slices.Insert(out, i, *n)
}

// dirInfo is a parsed directory: its state and, if it is small, its
// sub-directories. Immutable.
type dirInfo struct {
	dirState
	subs    []dirSub // by name
	allSubs bool     // subs is complete
}

type dirSub struct {
	name string // with its slash
	root tree.Root
}

var emptyDir = &dirInfo{allSubs: true}

// readDir returns the parsed directory of a root.
func (s *Space) readDir(ctx context.Context, root tree.Root) (*dirInfo, error) {
	if root.Entries == 0 {
		return emptyDir, nil
	}
	if info := s.dirs.get(root.Name); info != nil {
		return info, nil
	}
	span := tree.Span{From: reservedFrom, To: reservedTo}
	info := &dirInfo{}
	if root.Entries <= s.Limits.SmallDir {
		span, info.allSubs = tree.Span{}, true
	}
	for e, err := range s.Tree.Scan(ctx, root, span) {
		if err != nil {
			return nil, err
		}
		if err := info.add(e); err != nil {
			return nil, err
		}
	}
	s.dirs.put(root.Name, info)
	return info, nil
}

func (d *dirInfo) add(e tree.Entry) error {
	switch {
	case isReserved(e.Key):
		return d.addReserved(e)
	case isSub(e.Key):
		if e.Value.Kind != tree.KindChild {
			return corrupt("directory entry %q is not a directory", e.Key)
		}
		d.subs = append(d.subs, dirSub{string(e.Key), e.Value.Child})
	}
	return nil
}

func (d *dirState) addReserved(e tree.Entry) error {
	rest := e.Key[2:]
	switch e.Key[1] {
	case reservedMap:
		if e.Value.Kind != tree.KindChild || len(rest) < 2 {
			return corrupt("chunk map %q of a directory", e.Key)
		}
		raw := Form{Rank: int(rest[0]), Sep: rest[1], Prefix: string(rest[2:])}
		f, ok := raw.normal()
		if !ok || f != raw || f.Rank == 0 {
			return corrupt("chunk map %q of a directory: impossible form", e.Key)
		}
		d.forms = append(d.forms, dirForm{f, e.Value.Child})
		// Entries come in the order of their keys, which is that of the forms.
		return nil
	case reservedIdentity:
		if e.Value.Kind != tree.KindInline || len(e.Value.Inline) != len(d.id) || len(rest) > 0 {
			return corrupt("identity of a directory: %d bytes", len(e.Value.Inline))
		}
		d.id, d.hasID = [16]byte(e.Value.Inline), true
		return nil
	case reservedNode:
		n, ok := decodeNode(string(rest), e.Value.Inline)
		if !ok || e.Value.Kind != tree.KindInline {
			return corrupt("directory entry %q", e.Key)
		}
		d.nodes = append(d.nodes, n)
		return nil
	}
	return corrupt("reserved directory entry %q", e.Key)
}

// subDir finds a sub-directory by its name with slash.
func (s *Space) subDir(ctx context.Context, root tree.Root, info *dirInfo, name string) (tree.Root, bool, error) {
	if info.allSubs {
		i, ok := slices.BinarySearchFunc(info.subs, name, func(d dirSub, name string) int { return strings.Compare(d.name, name) })
		if !ok {
			return tree.Root{}, false, nil
		}
		return info.subs[i].root, true, nil
	}
	v, ok, err := s.Tree.Get(ctx, root, keyBytes(name))
	if err != nil || !ok {
		return tree.Root{}, false, err
	}
	if v.Kind != tree.KindChild {
		return tree.Root{}, false, corrupt("directory entry %q is not a directory", name)
	}
	return v.Child, true, nil
}

// subDirs yields the sub-directories of a directory, ascending.
func (s *Space) subDirs(ctx context.Context, root tree.Root, info *dirInfo) iter.Seq2[dirSub, error] {
	return func(yield func(dirSub, error) bool) {
		if info.allSubs {
			for _, sub := range info.subs {
				if !yield(sub, nil) {
					return
				}
			}
			return
		}
		for e, err := range s.Tree.Scan(ctx, root, tree.Span{}) {
			if err != nil {
				yield(dirSub{}, err)
				return
			}
			if isSub(e.Key) && !yield(dirSub{string(e.Key), e.Value.Child}, nil) {
				return
			}
		}
	}
}

// CheckPath returns an error if the path of a directory is longer than keys can be,
// as in damaged pages, or if ctx is done. Every recursion over directories calls it.
func CheckPath(ctx context.Context, path string) error {
	if len(path) > MaxKey {
		return corrupt("directory %.80q…: its path has %d bytes", path, len(path))
	}
	return ctx.Err()
}

// dirFrame is a directory on a path.
type dirFrame struct {
	path string // from the root; "" or ends in a slash
	root tree.Root
	info *dirInfo
}

// walk returns the directories from the root to path, which is empty or ends in
// a slash, as far as they exist.
func (s *Space) walk(ctx context.Context, root tree.Root, path string) ([]dirFrame, error) {
	var frames []dirFrame
	for at := 0; ; {
		info, err := s.readDir(ctx, root)
		if err != nil {
			return nil, err
		}
		frames = append(frames, dirFrame{path[:at], root, info})
		slash := strings.IndexByte(path[at:], '/')
		if slash < 0 {
			return frames, nil
		}
		child, ok, err := s.subDir(ctx, root, info, path[at:at+slash+1])
		if err != nil || !ok {
			return frames, err
		}
		root, at = child, at+slash+1
	}
}

// Dir returns the root of the directory at path, which is empty or ends in a
// slash; ok is false if there is none.
func (s *Space) Dir(ctx context.Context, root tree.Root, path string) (dir tree.Root, ok bool, err error) {
	info, dir, err := s.dirAt(ctx, root, path)
	return dir, info != nil, err
}

// dirAt returns the directory at path, nil if there is none.
func (s *Space) dirAt(ctx context.Context, root tree.Root, path string) (*dirInfo, tree.Root, error) {
	frames, err := s.walk(ctx, root, path)
	if err != nil {
		return nil, tree.Root{}, err
	}
	last := &frames[len(frames)-1]
	if last.path != path {
		return nil, tree.Root{}, nil
	}
	return last.info, last.root, nil
}

// setDir replaces the directory at path, which is empty or ends in a slash, and
// makes or removes the directories above it as needed. The caller keeps keys at
// their homes.
func (s *Space) setDir(ctx context.Context, root tree.Root, path string, dir tree.Root) (tree.Root, error) {
	if path == "" {
		return dir, nil
	}
	name := path[:strings.IndexByte(path, '/')+1]
	info, err := s.readDir(ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	child, _, err := s.subDir(ctx, root, info, name)
	if err != nil {
		return tree.Root{}, err
	}
	sub, err := s.setDir(ctx, child, path[len(name):], dir)
	if err != nil || sub == child {
		return root, err
	}
	return s.Tree.Apply(ctx, root, []tree.Edit{subEdit(keyBytes(name), sub)})
}

// subEdit puts a sub-directory or, if it is empty, deletes it.
func subEdit(name []byte, root tree.Root) tree.Edit {
	if root.Entries == 0 {
		return tree.Edit{Key: name, Delete: true}
	}
	return tree.Edit{Key: name, Value: tree.Value{Kind: tree.KindChild, Child: root}}
}
