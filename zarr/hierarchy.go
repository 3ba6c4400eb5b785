package zarr

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// knownNodes are the nodes below a group as its consolidated metadata tells
// them, by path in the view, sorted.
type knownNodes struct {
	paths  []string
	nodes  map[string]*Meta
	broken map[string]error
}

func knowNodes(base string, nodes map[string]*Meta, broken map[string]error) *knownNodes {
	k := &knownNodes{nodes: make(map[string]*Meta, len(nodes)), broken: make(map[string]error)}
	for path, m := range nodes {
		if path != "" {
			k.nodes[joinPath(base, path)] = m
		}
	}
	for path, err := range broken {
		if path != "" {
			k.broken[joinPath(base, path)] = err
		}
	}
	k.paths = slices.Sorted(maps.Keys(k.nodes))
	for path := range k.broken {
		if k.nodes[path] == nil {
			k.paths = append(k.paths, path)
		}
	}
	slices.Sort(k.paths)
	return k
}

// names returns the children of path, sorted.
func (k *knownNodes) names(path string) []string {
	prefix := below(path)
	found := make(map[string]bool)
	i, _ := slices.BinarySearch(k.paths, prefix)
	for ; i < len(k.paths) && strings.HasPrefix(k.paths[i], prefix); i++ {
		name, _, _ := strings.Cut(k.paths[i][len(prefix):], "/")
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Children yields the nodes right below a group, ordered by name; an array has
// none. A child that cannot be opened is yielded as its [Error], and the
// sequence goes on; any other error, such as the error of a view that is no
// [kv.Lister], ends it.
//
// A child has the format of the group; nodes of other formats are passed over.
func (n *Node) Children(ctx context.Context) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		for c, err := range n.entries(ctx, &images{}) {
			if c.node == nil && err == nil {
				continue
			}
			if !yield(c.node, err) {
				return
			}
		}
	}
}

// entry is a name below a group: a node, or a name with keys but without a node of the wanted
// format. walk.inside then walks on below the name.
type entry struct {
	path   string
	node   *Node
	format Version
	inside func() iter.Seq2[entry, error]
}

func (n *Node) entries(ctx context.Context, im *images) iter.Seq2[entry, error] {
	f := finder{view: n.view, opts: n.opts, images: im}
	if n.array == nil {
		im.keep(n.loc.path, n.Meta())
	}
	switch {
	case n.array != nil:
		return func(func(entry, error) bool) {}
	case n.known != nil:
		return f.knownEntries(ctx, n.loc.path, n.loc.version, n.known)
	case n.loc.version == Draft3:
		return f.draftEntries(ctx, n.loc)
	}
	f.opts.Version = n.loc.version
	return f.listEntries(ctx, n.loc.path)
}

// knownEntries yields the entries that consolidated metadata tells.
func (f *finder) knownEntries(ctx context.Context, path string, v Version, known *knownNodes) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for _, name := range known.names(path) {
			e := entry{path: joinPath(path, name), format: v}
			err := known.broken[e.path]
			if m := known.nodes[e.path]; m != nil {
				if e.node, err = f.node(locate(v, e.path), m); err == nil && !m.Array {
					e.node.known = known
				} else if err == nil {
					e.node.findImage(ctx)
				}
			} else if err == nil {
				e.inside = func() iter.Seq2[entry, error] { return f.knownEntries(ctx, e.path, v, known) }
			}
			if !yield(e, failAt("open", e.path, err)) {
				return
			}
		}
	}
}

const (
	// openBatch is how many children are opened with one request for documents.
	openBatch = 64
	// batchDocument is the longest document that is read together with other documents.
	batchDocument = 1 << 20
)

// listEntries yields the entries below path by listing it.
func (f *finder) listEntries(ctx context.Context, path string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		list, ok := f.view.(kv.Lister)
		if !ok {
			yield(entry{}, failAt("list", path, errors.ErrUnsupported))
			return
		}
		if err := meta.CheckDepth(joinPath(path, "")); err != nil {
			yield(entry{path: path}, failAt("list", path, err))
			return
		}
		var batch []string
		flush := func() bool {
			if len(batch) == 0 {
				return true
			}
			more := f.openMany(ctx, batch, yield)
			batch = batch[:0]
			return more
		}
		for d, err := range kv.ListDir(ctx, list, below(path)) {
			if err != nil {
				yield(entry{}, failAt("list", path, err))
				return
			}
			if !d.Prefix || !f.named(d.Name) {
				continue
			}
			if batch = append(batch, joinPath(path, d.Name)); len(batch) == openBatch && !flush() {
				return
			}
		}
		flush()
	}
}

// named reports whether a node may have the name.
func (f *finder) named(name string) bool {
	if f.opts.Version == V3 {
		return meta.CheckName(name) == nil
	}
	clean, err := meta.CleanPathV2(name)
	return err == nil && clean == name && name != ""
}

// openMany yields an entry for each path; it returns false to stop.
func (f *finder) openMany(ctx context.Context, paths []string, yield func(entry, error) bool) bool {
	names := []string{meta.DocV3}
	switch f.opts.Version {
	case V3:
	case V2:
		names = docsV2
	default: // the format is not known
		return f.openEach(ctx, paths, yield)
	}
	var reqs []kv.Request
	for _, path := range paths {
		for _, name := range names {
			reqs = append(reqs, kv.Request{Key: below(path) + name, Range: kv.AtMost(batchDocument)})
		}
	}
	docs, err := kv.GetMany(ctx, f.view, reqs)
	if errors.Is(err, kv.ErrTooLarge) {
		long := *f
		long.long = true
		return long.openEach(ctx, paths, yield)
	}
	if err != nil {
		yield(entry{}, failAt("open", paths[0], err))
		return false
	}
	for i, path := range paths {
		own := docs[i*len(names) : (i+1)*len(names)]
		var n *Node
		err := kv.ErrNotFound
		if f.opts.Version == V2 {
			n, err = f.parseV2(ctx, path, own)
		} else if own[0] != nil {
			n, err = f.parseV3(path, own[0])
		}
		if err == nil {
			n.findImage(ctx)
		}
		if !f.yieldFound(ctx, yield, path, n, err) {
			return false
		}
	}
	return true
}

// openEach is openMany with only the documents of one node in memory at a time.
func (f *finder) openEach(ctx context.Context, paths []string, yield func(entry, error) bool) bool {
	for _, path := range paths {
		n, err := f.find(ctx, path)
		if !f.yieldFound(ctx, yield, path, n, err) {
			return false
		}
	}
	return true
}

// yieldFound yields the result of opening path.
func (f *finder) yieldFound(ctx context.Context, yield func(entry, error) bool, path string, n *Node, err error) bool {
	e := entry{path: path, format: f.opts.Version}
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, ErrNotFound) {
		e.inside = func() iter.Seq2[entry, error] { return f.listEntries(ctx, path) }
		return yield(e, nil)
	}
	if err == nil {
		e.node = n
	}
	return yield(e, failAt("open", path, err))
}

// draftEntries yields the nodes below a group of the early v3 draft.
func (f *finder) draftEntries(ctx context.Context, loc location) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		list, ok := f.view.(kv.Lister)
		if !ok {
			yield(entry{}, failAt("list", loc.path, errors.ErrUnsupported))
			return
		}
		names := make(map[string]bool)
		for d, err := range kv.ListDir(ctx, list, loc.draft.GroupPrefix(loc.path)) {
			if err != nil {
				yield(entry{}, failAt("list", loc.path, err))
				return
			}
			if name, ok := draftName(loc.draft, d); ok {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			path := joinPath(loc.path, name)
			n, err := f.findIn(ctx, loc.draft, path)
			if errors.Is(err, kv.ErrNotFound) {
				continue
			}
			if !f.yieldFound(ctx, yield, path, n, err) {
				return
			}
		}
	}
}

// draftName returns the name of the node that an entry of a directory of
// documents belongs to.
func draftName(l meta.DraftLayout, d kv.DirEntry) (name string, ok bool) {
	switch {
	case l == meta.DraftSuffix && d.Prefix:
		if name, ok = strings.CutSuffix(d.Name, ".g"); !ok {
			name, ok = strings.CutSuffix(d.Name, ".a")
		}
	case l == meta.DraftRoot && d.Prefix:
		return d.Name, d.Name != ""
	case l == meta.DraftRoot:
		if name, ok = strings.CutSuffix(d.Name, ".array.json"); !ok {
			name, ok = strings.CutSuffix(d.Name, ".group.json")
		}
	}
	return name, ok && name != ""
}

// Walk yields the node at path and all nodes below it, of whatever format: a
// group before its children, children ordered by name. Where there is no node, at path or
// below a group, directories are searched all the same, so that a directory of
// stores is found whole. A node that cannot be opened is yielded as its
// [Error], and the walk goes on beside it; an error of the view ends it. If
// there is no node at all the error is [ErrNotFound].
//
// The view must be a [kv.Lister] unless options ask for consolidated metadata
// and the group at path carries it.
func Walk(ctx context.Context, view kv.Reader, path string, o *OpenOptions) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		w := walk{ctx: ctx, finder: newFinder(view, o.withDefaults()), yield: yield}
		n, err := w.find(ctx, path)
		switch {
		case err == nil:
			w.node(n)
		case !errors.Is(err, ErrNotFound):
			yield(nil, failAt("open", path, err))
		default:
			clean, err := meta.CleanPathV2(path)
			if err == nil {
				w.entries(w.listEntries(ctx, clean))
			}
			if !w.found {
				yield(nil, failAt("open", path, ErrNotFound))
			}
		}
	}
}

type walk struct {
	ctx context.Context
	finder
	yield func(*Node, error) bool
	found bool // something was yielded
}

// node yields n and the nodes below it; it returns false to stop.
func (w *walk) node(n *Node) bool {
	w.found = true
	return w.yield(n, nil) && w.entries(n.entries(w.ctx, w.images))
}

func (w *walk) entries(list iter.Seq2[entry, error]) bool {
	for e, err := range list {
		switch {
		case err != nil:
			w.found = true
			// What has a path can be passed over.
			if !w.yield(nil, err) || e.path == "" {
				return false
			}
		case e.node != nil:
			if !w.node(e.node) {
				return false
			}
		default:
			if !w.inside(e) {
				return false
			}
		}
	}
	return true
}

// inside walks on below a name that is no node of its group's format, but may be a node of
// another format.
func (w *walk) inside(e entry) bool {
	if e.format != w.opts.Version && !w.opts.Consolidated {
		n, err := w.find(w.ctx, e.path)
		switch {
		case err == nil:
			return w.node(n)
		case !errors.Is(err, ErrNotFound):
			return w.yield(nil, failAt("open", e.path, err))
		}
		return w.entries(w.listEntries(w.ctx, e.path))
	}
	return w.entries(e.inside())
}

// Consolidate stores copies of the metadata of all nodes below the group at
// path with the group, as .zmetadata (v2) or inside zarr.json (v3), for readers
// of stores that are slow to list. The copies do not follow changes: after a change of a node
// below, consolidate again. A node that cannot be opened is an error, unless only its codec is
// unknown: readers open no node if the copies hold any other broken node.
func Consolidate(ctx context.Context, view kv.Reader, path string, o *OpenOptions) error {
	return UpdateConsolidated(ctx, view, path, nil, map[string]bool{"": true}, o)
}

// UpdateConsolidated is [Consolidate] where the copies were complete before the nodes at some paths
// below the group changed: earlier has these copies, as a .zmetadata or as the member of a
// zarr.json, or is nil without copies. A path is relative to the group; the value says whether
// everything below it may have changed too. Other nodes are not read, and stay as they stand in
// earlier. An error of the metadata in earlier is [ErrMetadata].
func UpdateConsolidated(ctx context.Context, view kv.Reader, path string, earlier []byte, changed map[string]bool, o *OpenOptions) error {
	opts := o.withDefaults()
	opts.Consolidated = false
	group, err := OpenGroup(ctx, view, path, &opts)
	if err != nil {
		return err
	}
	nodes := make(map[string]*Meta)
	for at, below := range changed {
		for n, err := range Walk(ctx, view, strings.TrimSuffix(joinPath(group.loc.path, at), "/"), &opts) {
			found, m, ok := Unreadable(err)
			switch {
			case errors.Is(err, ErrNotFound):
			case err == nil:
				found, m, ok = n.loc.path, n.Meta(), true
			case !ok || !errors.Is(err, codecs.ErrUnknown):
				return err
			}
			if ok && m.Version == group.loc.version && (found != group.loc.path || m.Version == V2) {
				nodes[strings.TrimPrefix(strings.TrimPrefix(found, group.loc.path), "/")] = m
			}
			if !below {
				break
			}
		}
	}
	isChanged := func(at string) bool {
		if _, ok := changed[at]; ok {
			return true
		}
		for p := at; p != ""; {
			p = p[:max(strings.LastIndexByte(p, '/'), 0)]
			if changed[p] {
				return true
			}
		}
		return false
	}
	return failAt("consolidate", path, group.update(ctx, earlier, isChanged, nodes))
}

// update replaces the copies of the nodes that changed.
func (n *Node) update(ctx context.Context, earlier []byte, changed func(string) bool, nodes map[string]*Meta) error {
	switch n.loc.version {
	case V3:
		old := n.meta.Load()
		m := old.Clone()
		if err := m.UpdateConsolidatedV3(earlier, changed, nodes); err != nil {
			return err
		}
		return saveMeta(ctx, n.view, n.loc, old, m)
	case V2:
		doc, err := meta.UpdateConsolidatedV2(earlier, changed, nodes)
		if err != nil {
			return err
		}
		w, err := writerOf(n.view, V2)
		if err != nil {
			return err
		}
		return w.Set(ctx, n.loc.docs+meta.DocConsolidatedV2, doc)
	}
	return ErrNoForm
}
