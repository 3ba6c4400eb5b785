package namespace

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Apply makes edits, ascending by key and each key once, and keeps every key at
// its home. Each directory and each chunk map on the way is rewritten once,
// whatever the number of edits.
//
// Node documents are applied first: a form that goes with its last node document
// does not match keys that are put with the same call.
func (s *Space) Apply(ctx context.Context, root tree.Root, edits []Edit) (tree.Root, error) {
	if err := checkEdits(edits); err != nil || len(edits) == 0 {
		return root, err
	}
	nodes, err := s.nodeEdits(ctx, edits)
	if err != nil {
		return tree.Root{}, err
	}
	if len(nodes) > 0 {
		moved, err := s.movedBy(ctx, root, edits, nodes)
		if err != nil {
			return tree.Root{}, err
		}
		if len(moved) > 0 {
			root, err = s.rehome(ctx, root, moved, func(root tree.Root) (tree.Root, error) {
				only, docs := make([]Edit, len(nodes)), make([]nodeEdit, len(nodes))
				for i, n := range nodes {
					only[i], docs[i] = edits[n.edit], nodeEdit{i, n.doc}
				}
				return s.place(ctx, root, only, docs, nil)
			})
			if err != nil {
				return tree.Root{}, err
			}
			nodes = nil // they are in root
		}
	}
	return s.place(ctx, root, edits, nodes, nil)
}

// nodeEdit is an edit of a node document.
type nodeEdit struct {
	edit int      // index
	doc  *nodeDoc // nil: deleted
}

// nodeEdits finds the edits of node documents and reads the new documents.
func (s *Space) nodeEdits(ctx context.Context, edits []Edit) ([]nodeEdit, error) {
	var nodes []nodeEdit
	for i := range edits {
		e := &edits[i]
		_, name := SplitKey(e.Key)
		if !s.IsNode(name) {
			continue
		}
		n := nodeEdit{edit: i}
		if !e.Delete {
			doc, err := s.describe(ctx, name, e.Value)
			if err != nil {
				return nil, fmt.Errorf("txn: read %s: %w", e.Key, err)
			}
			n.doc = doc
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// maxNodeDoc is the size up to which node documents are read. A larger one, or
// one that lies outside the database, declares no form: its keys stay documents.
const maxNodeDoc = 64 << 20

// describe reads a node document.
func (s *Space) describe(ctx context.Context, name string, v tree.Value) (*nodeDoc, error) {
	n := &nodeDoc{name: name}
	doc, ok, err := s.readDoc(ctx, v)
	if err != nil || !ok {
		return n, err
	}
	n.array = s.policy.Array(name, doc)
	for _, f := range s.policy.Forms(name, doc) {
		if f, ok := f.normal(); ok && len(n.forms) < maxNodeForms {
			n.forms = append(n.forms, f)
		}
	}
	slices.SortFunc(n.forms, compareForms)
	n.forms = slices.Compact(n.forms)
	return n, nil
}

// readDoc returns the bytes of a document; ok is false for one that is not read.
func (s *Space) readDoc(ctx context.Context, v tree.Value) (doc []byte, ok bool, err error) {
	switch {
	case v.Kind == tree.KindInline:
		return v.Inline, true, nil
	case v.Kind != tree.KindNative || v.Length > maxNodeDoc:
		return nil, false, nil
	}
	doc, err = s.load(ctx, v)
	return doc, err == nil, err
}

// place makes edits without moving keys whose home they change. nodes are the
// node documents among them; with are forms that exist without a node document,
// as long as they get chunks.
func (s *Space) place(ctx context.Context, root tree.Root, edits []Edit, nodes []nodeEdit, with []formAt) (tree.Root, error) {
	p := placer{s: s, ctx: ctx, edits: edits, nodes: nodes, with: with}
	return p.dir(root, 0, 0, len(edits))
}

// placer walks down the directories that edits touch. The frames on the way
// collect the edits of chunks; a key that no frame matches is a document.
type placer struct {
	s      *Space
	ctx    context.Context
	edits  []Edit
	nodes  []nodeEdit
	with   []formAt
	frames []*placeFrame
	added  []uint64 // bit set of edits that frames got before their turn; nil: none
}

// placeFrame is a directory on the way.
type placeFrame struct {
	at    int // length of the directory's path
	state dirState
	maps  []mapWriter // as state.forms
}

// dir applies edits[lo:hi], all below the directory whose path has length at.
func (p *placer) dir(root tree.Root, at, lo, hi int) (tree.Root, error) {
	if err := p.ctx.Err(); err != nil {
		return tree.Root{}, err
	}
	info, err := p.s.readDir(p.ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	fr := p.enter(info, at, lo, hi)
	out := dirWriter{s: p.s, root: root}
	for i := lo; i < hi; {
		if p.isAdded(i) {
			i++
			continue
		}
		e := &p.edits[i]
		slash := strings.IndexByte(e.Key[at:], '/')
		if slash < 0 {
			if ok, err := p.addChunk(i); err != nil {
				return tree.Root{}, err
			} else if !ok {
				err = out.add(p.ctx, tree.Edit{Key: keyBytes(e.Key[at:]), Value: e.Value, Delete: e.Delete})
				if err != nil {
					return tree.Root{}, err
				}
			}
			i++
			continue
		}
		end := p.groupEnd(i, hi, at+slash+1)
		edit, ok, err := p.subDir(root, info, at, at+slash+1, i, end)
		if err == nil && ok {
			err = out.add(p.ctx, edit)
		}
		if err != nil {
			return tree.Root{}, err
		}
		i = end
	}
	p.frames = p.frames[:len(p.frames)-1]
	return p.leave(fr, info, &out)
}

// subDir applies edits[lo:hi], all below one sub-directory, whose name is
// between at and end in their keys. ok is false if it stays as it is.
func (p *placer) subDir(root tree.Root, info *dirInfo, at, end, lo, hi int) (_ tree.Edit, ok bool, err error) {
	name := p.edits[lo].Key[at:end]
	child, exists, err := p.s.subDir(p.ctx, root, info, name)
	if err != nil {
		return tree.Edit{}, false, err
	}
	if !exists && !p.bringsForms(p.edits[lo].Key[:end], lo, hi) {
		// No form can appear below: a key that a frame matches is its own, and
		// most often that is everything.
		if all, err := p.addChunks(lo, hi); err != nil || all {
			return tree.Edit{}, false, err
		}
	}
	sub, err := p.dir(child, end, lo, hi)
	return subEdit(keyBytes(name), sub), sub != child, err
}

// enter begins a directory. Its forms follow from its node documents after the
// edits.
func (p *placer) enter(info *dirInfo, at, lo, hi int) *placeFrame {
	fr := &placeFrame{at: at, state: info.dirState}
	for _, n := range p.nodesIn(lo, hi) {
		if name := p.edits[n.edit].Key[at:]; strings.IndexByte(name, '/') < 0 {
			fr.state.nodes = setNode(fr.state.nodes, name, n.doc)
		}
	}
	fr.state.forms = slices.Clone(fr.state.forms)
	p.s.normalize(&fr.state)
	for _, f := range p.with {
		if f.dir == p.edits[lo].Key[:at] {
			fr.state.addForm(f.Form)
		}
	}
	fr.maps = make([]mapWriter, len(fr.state.forms))
	for i, f := range fr.state.forms {
		fr.maps[i] = mapWriter{s: p.s, form: f.Form, root: f.root, edits: p.edits}
	}
	p.frames = append(p.frames, fr)
	return fr
}

// leave writes the chunk maps of a directory and what changed of its state.
func (p *placer) leave(fr *placeFrame, info *dirInfo, out *dirWriter) (tree.Root, error) {
	for i := range fr.maps {
		if err := fr.maps[i].flush(p.ctx); err != nil {
			return tree.Root{}, err
		}
		fr.state.forms[i].root = fr.maps[i].root
	}
	p.s.normalize(&fr.state)
	return out.finish(p.ctx, stateEdits(&info.dirState, &fr.state))
}

// addChunk adds edit i to the deepest frame that matches its key, if there is one.
func (p *placer) addChunk(i int) (bool, error) {
	key := p.edits[i].Key
	for f := len(p.frames) - 1; f >= 0; f-- {
		fr := p.frames[f]
		for m := range fr.maps {
			if ok, err := fr.maps[m].add(p.ctx, key[fr.at:], i); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// addChunks adds those of edits[lo:hi] that frames match to them, and reports
// whether that was all.
func (p *placer) addChunks(lo, hi int) (all bool, err error) {
	if !slices.ContainsFunc(p.frames, func(f *placeFrame) bool { return len(f.maps) > 0 }) {
		return false, nil
	}
	all = true
	for i := lo; i < hi; i++ {
		if p.isAdded(i) {
			continue
		}
		ok, err := p.addChunk(i)
		switch {
		case err != nil:
			return false, err
		case !ok && all:
			p.markTaken(lo, i)
			all = false
		case ok && !all:
			p.markTaken(i, i+1)
		}
	}
	return all, nil
}

func (p *placer) markTaken(lo, hi int) {
	if p.added == nil {
		p.added = make([]uint64, (len(p.edits)+63)/64)
	}
	for i := lo; i < hi; i++ {
		p.added[i/64] |= 1 << (i % 64)
	}
}

func (p *placer) isAdded(i int) bool { return p.added != nil && p.added[i/64]&(1<<(i%64)) != 0 }

// groupEnd is the end of the edits from i on that begin with the first n bytes
// of its key.
func (p *placer) groupEnd(i, hi, n int) int {
	prefix := p.edits[i].Key[:n]
	in := func(j int) bool { return strings.HasPrefix(p.edits[j].Key, prefix) }
	step := 1
	for i+step < hi && in(i+step) {
		step *= 2
	}
	lo := i + step/2
	return lo + sort.Search(min(i+step, hi)-lo, func(j int) bool { return !in(lo + j) })
}

func (p *placer) nodesIn(lo, hi int) []nodeEdit {
	from := sort.Search(len(p.nodes), func(i int) bool { return p.nodes[i].edit >= lo })
	to := from + sort.Search(len(p.nodes)-from, func(i int) bool { return p.nodes[from+i].edit >= hi })
	return p.nodes[from:to]
}

// bringsForms reports whether edits[lo:hi], all below dir, which does not exist,
// may bring forms in there.
func (p *placer) bringsForms(dir string, lo, hi int) bool {
	return len(p.nodesIn(lo, hi)) > 0 ||
		slices.ContainsFunc(p.with, func(f formAt) bool { return strings.HasPrefix(f.dir, dir) })
}

// dirWriter collects the edits of one directory, ascending, and applies them in
// batches of bounded size.
type dirWriter struct {
	s     *Space
	root  tree.Root
	edits []tree.Edit
}

func (w *dirWriter) add(ctx context.Context, e tree.Edit) (err error) {
	w.edits = append(w.edits, e)
	if len(w.edits) >= w.s.Limits.Edits {
		w.root, err = w.s.Tree.Apply(ctx, w.root, w.edits)
		w.edits = w.edits[:0]
	}
	return err
}

// finish applies what is left together with edits of reserved entries.
func (w *dirWriter) finish(ctx context.Context, reserved []tree.Edit) (tree.Root, error) {
	edits := w.edits
	if len(reserved) > 0 {
		edits = append(edits, reserved...)
		sortEdits(edits)
	}
	if len(edits) == 0 {
		return w.root, nil
	}
	return w.s.Tree.Apply(ctx, w.root, edits)
}
