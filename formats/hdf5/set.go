package hdf5

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
)

const scheme = "hdf5"

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: scheme,
		Open:   open,
		Head:   frontBytes,
		Detect: func(e formats.Evidence) bool { return detected(e.Head) },
		Codecs: []codecs.Entry{formats.RefusedCodec(scheme)},
	}
}

// set is a file as a reference set.
type set struct {
	*formats.Tree
	f *file
}

// Documents yields documents that hold for all references: the filters and the texts of all
// arrays are looked at before they are made.
func (s *set) Documents(ctx context.Context) iter.Seq2[refs.Entry, error] {
	s.f.whole.Store(true)
	return s.Tree.Documents(ctx)
}

// Entries implements [refs.Set].
func (s *set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	s.f.whole.Store(true)
	return s.Tree.Entries(ctx)
}

// open reads the headers of all objects.
func open(ctx context.Context, base formats.Base, o formats.Options) (refs.Set, error) {
	f, err := newFile(ctx, base.File, base.Name, o)
	if err != nil {
		return nil, err
	}
	s, err := f.scan(ctx)
	if err != nil {
		return nil, err
	}
	t, err := s.tree(ctx)
	if err != nil {
		return nil, err
	}
	return &set{t, f}, nil
}

// tree makes the tree of documents and arrays.
func (s *scan) tree(ctx context.Context) (*formats.Tree, error) {
	f := s.f
	v := &values{f: f, ctx: ctx, paths: map[int64]string{}}
	var sets []*dataset
	byObject := map[*object]*dataset{}
	if err := f.attributesAhead(ctx, s.nodes); err != nil {
		return nil, err
	}
	for _, n := range s.nodes {
		if n.odd != nil {
			continue
		}
		if path, ok := v.paths[n.o.addr]; !n.soft && (!ok || before(n.path, path)) {
			v.paths[n.o.addr] = n.path
		}
		if n.group || !n.o.isDataset() {
			continue
		}
		ds := byObject[n.o]
		if ds == nil {
			var err error
			if ds, err = f.dataset(ctx, n); err != nil {
				return nil, withPath(n.path, err)
			}
			ds.scaleOf(v, n.name)
			byObject[n.o] = ds
			sets = append(sets, ds)
		}
		n.set = ds
	}
	if err := s.dimensions(ctx, sets); err != nil {
		return nil, err
	}
	t := formats.NewTree()
	for _, n := range s.nodes {
		s.put1(t, v, n)
	}
	return t, nil
}

// attributesAhead reads where the attributes of objects begin that are not in their
// headers.
func (f *file) attributesAhead(ctx context.Context, nodes []*node) error {
	var parts []part
	for _, n := range nodes {
		if n.odd == nil && n.o.find(msgAttrInfo) != nil {
			parts = append(parts, f.linksAhead(n.o)...)
		}
	}
	return f.ahead(ctx, parts)
}

// put1 puts a node into the tree.
func (s *scan) put1(t *formats.Tree, v *values, n *node) {
	path := n.path
	if rest, ok := strings.CutPrefix(n.name, nonCoordinate); ok && rest != "" && n.set != nil {
		path = path[:len(path)-len(n.name)] + rest
		if x := n.parent.children[rest]; x != nil && (x.set == nil || !x.set.hidden) {
			path = n.path // the name is taken
		}
	}
	key := formats.Join(path, "zarr.json")
	if !refs.Storable(key) {
		if s.f.o.Skipped != nil {
			s.f.o.Skipped(key)
		}
		return
	}
	build := func(make func(v *values) ([]byte, error)) {
		t.PutLazy(key, func(ctx context.Context) ([]byte, error) {
			b, err := make(&values{f: v.f, ctx: ctx, paths: v.paths})
			return b, withPath(path, err)
		})
	}
	switch {
	case n.odd != nil:
		t.Put(key, formats.Refusal{Scheme: scheme, Err: withPath(path, n.odd)}.Document())
	case n.group:
		build(func(v *values) ([]byte, error) {
			list, err := s.f.attributes(v.ctx, n.o)
			if errors.Is(err, formats.ErrUnsupported) {
				s.f.o.Warned("%s: its attributes are left out: %v", orRoot(path), err)
				list, err = nil, nil
			}
			if err != nil {
				return nil, err
			}
			attrs, err := v.members(path, list, nil)
			return codecs.Object("zarr_format", 3, "node_type", "group", "attributes", codecs.Object(attrs...)), err
		})
	case n.set != nil && !n.set.space.null && !n.set.hidden:
		ds := n.set
		ds.layOut()
		build(func(v *values) ([]byte, error) { return ds.document(v.ctx, v) })
		a := formats.Array{Prefix: formats.Join(path, ""), Separator: '/', Counts: ds.counts(), Chunk: ds.reference}
		if ds.grid != nil {
			a.Coords = ds.coords
		} else if ds.layout.addr == undefined || ds.typ == nil {
			return // no chunk is stored
		}
		t.Add(a)
	}
}

// before reports whether a walk over all names, in order, comes to path a before b.
func before(a, b string) bool {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) < 0
}
