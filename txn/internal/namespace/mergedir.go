package namespace

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// dirMerge is the merge of one directory that both sides changed.
type dirMerge struct {
	m            *merger
	path         string
	r            sides
	infos        [3]*dirInfo
	changedNodes []string // node documents whose /n entries are to be made again
}

// dir merges a directory.
func (m *merger) dir(path string, r sides) (tree.Root, error) {
	if root, ok := m.trivial(r); ok {
		return root, nil
	}
	if err := CheckPath(m.ctx, path); err != nil {
		return tree.Root{}, err
	}
	if _, refused := m.reported[conflictID{ConflictRename, NodePath(path), ""}]; refused {
		return tree.Root{}, nil // the two do not belong together
	}
	d := &dirMerge{m: m, path: path, r: r}
	for side := range r {
		if err := d.set(side, r[side]); err != nil {
			return tree.Root{}, err
		}
	}
	before := len(m.conflicts)
	if err := d.guard(); err != nil {
		return tree.Root{}, err
	}
	if root, ok := m.trivial(d.r); ok {
		return root, nil
	}
	root, err := m.s.Tree.Merge(m.ctx, d.r[sideBase], d.r[sideOurs], d.r[sideTheirs], d.entry)
	if err != nil || len(m.conflicts) > before {
		return tree.Root{}, err // the root is not used
	}
	return d.writeReserved(root)
}

// set replaces the directory of a side.
func (d *dirMerge) set(side int, root tree.Root) (err error) {
	d.r[side] = root
	d.infos[side], err = d.m.s.readDir(d.m.ctx, root)
	return err
}

// undo makes the node of a side what it is in the base.
func (d *dirMerge) undo(side int) error {
	if _, moved := slices.BinarySearch(d.m.came[side], d.path); moved {
		// The array came from elsewhere and would be lost: the choices contradict.
		return d.m.add(Conflict{Kind: ConflictRename, Path: NodePath(d.path)})
	}
	root, err := d.m.s.takeOwn(d.m.ctx, d.r[side], d.r[sideBase], d.m.s.isMetadata)
	if err != nil {
		return err
	}
	return d.set(side, root)
}

// entry resolves an entry that both sides changed.
func (d *dirMerge) entry(key []byte, base, ours, theirs *tree.Value) (*tree.Value, error) {
	switch {
	case ours == nil && theirs == nil && (isSub(key) || isReserved(key)):
		return nil, nil
	case isSub(key):
		root, err := d.sub(string(key), sides{childOf(base), childOf(ours), childOf(theirs)})
		if err != nil || root.Entries == 0 {
			return nil, err
		}
		return &tree.Value{Kind: tree.KindChild, Child: root}, nil
	case !isReserved(key):
		return d.document(string(key), base, ours, theirs)
	case key[1] == reservedMap:
		f := Form{Rank: int(key[2]), Sep: key[3], Prefix: string(key[4:])}
		root, err := d.chunks(f, sides{childOf(base), childOf(ours), childOf(theirs)})
		return &tree.Value{Kind: tree.KindChild, Child: root}, err
	}
	// An identity that both gave, or the /n entry of a document that both changed:
	// writeReserved makes it.
	if ours == nil {
		return theirs, nil
	}
	return ours, nil
}

// chunks merges a chunk map.
func (d *dirMerge) chunks(f Form, r sides) (tree.Root, error) {
	fills := d.removalsConflict(f)
	empty := r[sideOurs].Entries == 0 && r[sideTheirs].Entries == 0
	if root, ok := d.m.trivial(r); ok && !(empty && fills) {
		return root, nil
	}
	return d.m.s.Tree.Merge(d.m.ctx, r[sideBase], r[sideOurs], r[sideTheirs], func(coords []byte, base, ours, theirs *tree.Value) (*tree.Value, error) {
		if v, ok := d.m.mergeValue(base, ours, theirs); ok && !(fills && bothRemoved(base, ours, theirs)) {
			return v, nil
		}
		return d.m.resolve(d.chunkConflict(ConflictChunk, f, coords, base, ours, theirs), ours, theirs)
	})
}

// removalsConflict reports whether removals of chunks of a form by both sides conflict: in
// an array that both keep, a missing chunk has the fill value, so that to remove
// it is to write that value.
func (d *dirMerge) removalsConflict(f Form) bool {
	return d.m.o.Strict && d.infos[sideOurs].names(f) && d.infos[sideTheirs].names(f)
}

func bothRemoved(base, ours, theirs *tree.Value) bool {
	return base != nil && ours == nil && theirs == nil
}

func (d *dirMerge) chunkConflict(kind ConflictKind, f Form, coords []byte, base, ours, theirs *tree.Value) Conflict {
	key, _ := f.print([]byte(d.path), coords)
	return Conflict{
		Kind: kind, Path: string(key), Coords: f.numbers(coords),
		Base: brief(base), Ours: brief(ours), Theirs: brief(theirs),
		Same: kind == ConflictChunk && SameBytes(ours, theirs),
	}
}

// document merges a document.
func (d *dirMerge) document(name string, base, ours, theirs *tree.Value) (*tree.Value, error) {
	// A document beside the metadata of an array may be its only chunk.
	fill := d.m.o.Strict && bothRemoved(base, ours, theirs) && !d.m.s.IsNode(name) &&
		d.infos[sideOurs].isArray() && d.infos[sideTheirs].isArray()
	if v, ok := d.m.mergeValue(base, ours, theirs); ok && !fill {
		return v, nil
	}
	same := SameBytes(ours, theirs)
	if d.m.s.policy.Derived(name) {
		if same {
			return ours, nil
		}
		return d.derived(name, base, ours, theirs)
	}
	c := Conflict{
		Kind: ConflictDocument, Path: d.path + name,
		Base: brief(base), Ours: brief(ours), Theirs: brief(theirs), Same: same,
	}
	node := d.m.s.IsNode(name)
	alike := same
	if base == nil && node && !same && ours != nil && theirs != nil {
		var err error
		if alike, err = d.sameButCopies(name, ours, theirs); err != nil {
			return nil, err
		}
	}
	switch {
	case d.isScalarChunk(name):
		c.Kind, c.Coords = ConflictChunk, []int64{}
	case fill:
		c.Kind = ConflictDocument
	case ours == nil || theirs == nil:
		c.Kind = ConflictGone
	case base == nil && node && !alike:
		c.Kind = ConflictCreate
	default:
		if base == nil {
			c.Kind = ConflictCreate
		}
		return d.fields(name, c, base, ours, theirs)
	}
	if node {
		d.changedNodes = append(d.changedNodes, name)
	}
	return d.m.resolve(c, ours, theirs)
}

// sameButCopies reports whether two node documents differ only in their copies of
// the documents below them, or in how they are laid out since those were taken out.
func (d *dirMerge) sameButCopies(name string, ours, theirs *tree.Value) (bool, error) {
	docs, whole, err := d.read(nil, ours, theirs)
	if err != nil || whole {
		return false, err
	}
	_, ourRest := d.m.s.policy.Copies(name, docs[sideOurs])
	_, theirRest := d.m.s.policy.Copies(name, docs[sideTheirs])
	return bytes.Equal(ourRest, theirRest), nil
}

// derived merges a document that is a copy of others, by fields as they are
// merged. Where that is not possible it is left out: readers then look at the
// others, which a wrong copy would keep them from.
func (d *dirMerge) derived(name string, base, ours, theirs *tree.Value) (*tree.Value, error) {
	if ours == nil || theirs == nil {
		return nil, nil
	}
	docs, whole, err := d.read(base, ours, theirs)
	if err != nil || whole {
		return nil, err
	}
	merged, conflicts, err := d.m.s.policy.MergeDocument(name, docs[sideBase], docs[sideOurs], docs[sideTheirs], false)
	if err != nil || len(conflicts) > 0 {
		return nil, err
	}
	v, ok, err := d.m.s.makeDoc(d.m.ctx, d.path+name, merged)
	if err != nil || !ok {
		return nil, err
	}
	return &v, nil
}

// read returns the documents of three values. whole reports that one of them cannot
// be merged by fields.
func (d *dirMerge) read(base, ours, theirs *tree.Value) (docs [3][]byte, whole bool, err error) {
	for i, v := range [3]*tree.Value{base, ours, theirs} {
		if v == nil {
			continue
		}
		doc, ok, err := d.m.s.readDoc(d.m.ctx, *v)
		if err != nil {
			return docs, false, err
		}
		docs[i], whole = doc, whole || !ok
	}
	return docs, whole, nil
}

// isScalarChunk reports whether a document is the one chunk of an array
// without dimensions.
func (d *dirMerge) isScalarChunk(name string) bool {
	return slices.ContainsFunc(d.infos[:], func(i *dirInfo) bool { return i.names(Form{Prefix: name, Sep: '/'}) })
}

// fields merges a document field by field.
func (d *dirMerge) fields(name string, c Conflict, base, ours, theirs *tree.Value) (*tree.Value, error) {
	docs, whole, err := d.read(base, ours, theirs)
	if err != nil {
		return nil, err
	}
	if d.m.s.IsNode(name) {
		d.changedNodes = append(d.changedNodes, name)
	}
	if whole {
		return d.m.resolve(c, ours, theirs)
	}
	policy, strict := d.m.s.policy, d.m.o.Strict
	merged, fields, err := policy.MergeDocument(name, docs[sideBase], docs[sideOurs], docs[sideTheirs], strict)
	if err != nil {
		return nil, err
	}
	if len(fields) > 0 {
		if fields[0].Field == "" {
			return d.m.resolve(c, ours, theirs)
		}
		switch d.m.ask(c) {
		case Ours: // merged has ours for them
		case Theirs:
			merged, _, err = policy.MergeDocument(name, docs[sideBase], docs[sideTheirs], docs[sideOurs], strict)
			if err != nil {
				return nil, err
			}
		default:
			return ours, d.fieldConflicts(c, fields)
		}
	}
	switch {
	case c.Same, bytes.Equal(merged, docs[sideOurs]):
		return ours, nil
	case bytes.Equal(merged, docs[sideTheirs]):
		return theirs, nil
	}
	v, ok, err := d.m.s.makeDoc(d.m.ctx, d.path+name, merged)
	if err != nil {
		return nil, err
	}
	if !ok {
		return d.m.resolve(c, ours, theirs)
	}
	return &v, nil
}

func (d *dirMerge) fieldConflicts(c Conflict, fields []FieldConflict) error {
	for _, f := range fields {
		c.Field, c.Base, c.Ours, c.Theirs, c.Same = f.Field, f.Base, f.Ours, f.Theirs, f.Same
		if err := d.m.add(c); err != nil {
			return err
		}
	}
	return nil
}

// writeReserved makes the reserved entries of a merged directory follow from its
// documents and chunks.
func (d *dirMerge) writeReserved(root tree.Root) (tree.Root, error) {
	s, ctx := d.m.s, d.m.ctx
	info, err := s.readDir(ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	state := info.dirState
	state.forms = slices.Clone(state.forms)
	for _, name := range d.changedNodes {
		v, ok, err := s.Tree.Get(ctx, root, keyBytes(name))
		if err != nil {
			return tree.Root{}, err
		}
		var doc *nodeDoc
		if ok {
			if doc, err = s.describe(ctx, name, v); err != nil {
				return tree.Root{}, err
			}
			if known := d.knownForms(doc.forms); len(known) < len(doc.forms) {
				// A form that no side had may match keys. The document is
				// put again when all else is merged, and adds it.
				doc.forms = known
				d.m.docs = append(d.m.docs, Edit{Key: d.path + name, Value: v})
			}
		}
		state.nodes = setNode(state.nodes, name, doc)
	}
	if d.infos[sideOurs].isArray() && d.infos[sideTheirs].isArray() && !state.isArray() {
		if err := d.m.add(Conflict{Kind: ConflictStructure, Path: NodePath(d.path), Base: "array", Ours: "array", Theirs: "array"}); err != nil {
			return tree.Root{}, err
		}
	}
	s.normalize(&state)
	out := dirWriter{s: s, root: root}
	return out.finish(ctx, stateEdits(&info.dirState, &state))
}

// knownForms returns those of some forms that a side has a chunk map for, or
// that need none.
func (d *dirMerge) knownForms(forms []Form) (known []Form) {
	for _, f := range forms {
		if f.Rank == 0 || slices.ContainsFunc(d.infos[:], func(i *dirInfo) bool { return i.form(f) != nil }) {
			known = append(known, f)
		}
	}
	return known
}

// sub merges a sub-directory.
func (d *dirMerge) sub(name string, r sides) (tree.Root, error) {
	path := d.path + name
	if r[sideBase].Entries > 0 {
		switch {
		case r[sideOurs].Entries == 0:
			return d.m.gone(path, r, sideTheirs)
		case r[sideTheirs].Entries == 0:
			return d.m.gone(path, r, sideOurs)
		}
	}
	return d.m.dir(path, r)
}

// NodePath is the path of the node that a directory is.
func NodePath(dir string) string { return strings.TrimSuffix(dir, "/") }
