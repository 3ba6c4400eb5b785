package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// Appending joins hierarchies of the same arrays along a dimension:
//
//	what is there        a.json           b.json
//	time  [0 1 2 3]      [4 5]            [6 7]        grows
//	temp  chunks 0…3     0…1 become 4…5   0…1 → 6…7    grows, chunks are renumbered
//	x     [0 1 2]        equal            equal        stays
//
// Everything is compared before anything is copied.

// Piece is one of the hierarchies that an append joins.
type Piece struct {
	// Name is its name in errors; for a URL without user information and query.
	Name string
	// Open opens it. It is called up to three times, by several goroutines for
	// several pieces, and the caller closes the result: a few pieces are open at
	// a time, and the first of them until the end.
	Open func(context.Context) (*Source, error)
}

// AppendPlan is pieces that were found to fit each other, and where in the
// joined arrays each of them goes. It may be used once, with [DB.Append].
type AppendPlan struct {
	dim         string
	link        bool
	rectilinear bool
	pieces      []*appendPiece
	base        map[string]*appendBase // by path
	paths       []string               // of base, sorted
	groups      []*appendArray         // of the first piece, without elements
	bad         misfits
}

// AppendOptions say how pieces are joined.
type AppendOptions struct {
	// Dim is the name of the dimension to append along.
	Dim string
	// Link keeps the values of reference sets where they are.
	Link bool
	// Rectilinear joins arrays of Zarr v3 whose pieces have other chunk lengths along the
	// dimension, or end inside a chunk, with a rectilinear chunk grid: chunks keep their
	// bytes. Without it their elements are encoded again, in the chunks of the joined array.
	Rectilinear bool
	// Labels, if set, has one for each piece, and Dim is a new dimension that the pieces are
	// stacked along. Its coordinate holds the labels: whole numbers, numbers, dates such as
	// 2001-02 or 2001-02-01T12:00 as times, or texts. Arrays that are coordinates, or that an
	// attribute of another array refers to (bounds, coordinates, grid_mapping), do not get it.
	Labels []string
}

// appendPiece is a piece and its contents.
type appendPiece struct {
	Piece
	label  string                  // Name for messages
	found  []*appendArray          // all nodes, also groups
	arrays map[string]*appendArray // by path
	kept   *keptRefs               // nil if it has to be read again
}

// appendArray is an array of a piece.
type appendArray struct {
	path  string
	meta  *zarr.Meta
	own   *zarr.Meta // as it is stored, if meta has a new dimension
	label []byte     // of a new dimension, of which it is the coordinate
	base  *appendBase
	as    *cf.Recoder // to elements of the joined array; nil if they are equal
	start int64       // in the joined array, elements along the dimension
	first int64       // its first chunk there, if that keeps its bytes
	// rewrite means that elements are encoded again, from the element kept on, because
	// they mean something else in the joined array or their chunks do not fit its chunks.
	rewrite bool
	kept    int64
	// sameGrid means that it has the chunk grid of the joined array, and recoded that all
	// elements are encoded again, whatever their chunks are. [AppendPlan.place] sets both.
	sameGrid, recoded bool
}

// appendBase is a joined array.
type appendBase struct {
	path  string
	meta  *zarr.Meta // of the existing array, else of the first piece
	from  string     // the source of meta
	axis  int        // the dimension, -1 if it has not
	chunk int64      // its chunk length there
	small bool       // a coordinate of the dimension, which may be rewritten
	had   int64      // length before
	total int64      // and after
	// parent is the coordinate whose bounds these are, and whose units they have.
	parent *appendBase
	// stored is the metadata of the existing array, nil without one; meta may have a wider
	// type. If the grid changes, its elements from kept on are encoded again.
	stored *zarr.Meta
	kept   int64
	grid   zarr.Grid // of the joined array, if it is not that of meta
	// rewrite means that all its pieces are encoded again.
	rewrite bool
}

// piecesAtOnce is the number of pieces opened at a time: they may be on servers.
// Tests make it small.
var piecesAtOnce = 8

// PlanAppend opens the nodes of all pieces, some at a time, and compares their
// metadata. The error is a [*MisfitError] if they do not fit. A piece is a
// reference set, whose values are linked, or any Zarr hierarchy, whose values
// are copied.
func PlanAppend(ctx context.Context, pieces []Piece, o AppendOptions) (*AppendPlan, error) {
	p := &AppendPlan{dim: o.Dim, link: o.Link, rectilinear: o.Rectilinear, base: map[string]*appendBase{}}
	if len(pieces) == 0 || o.Dim == "" {
		return nil, errors.New("append: no source, or no dimension")
	}
	var l *labels
	if o.Labels != nil {
		if len(o.Labels) != len(pieces) {
			return nil, fmt.Errorf("append along %s: %d labels for %d sources", o.Dim, len(o.Labels), len(pieces))
		}
		var err error
		if l, err = newLabels(o.Labels); err != nil {
			return nil, fmt.Errorf("append along %s: %w", o.Dim, err)
		}
	}
	all, err := surveyPieces(ctx, pieces, o, l)
	if err != nil {
		return nil, err
	}
	if err := p.begin(all[0]); err != nil {
		return nil, err
	}
	for _, a := range all {
		p.add(a)
	}
	return p, p.bad.err(p.dim)
}

// Fits makes sure that the pieces can be joined where nothing is yet. It may open pieces
// to read times.
func (p *AppendPlan) Fits(ctx context.Context) error {
	if err := p.widenTimes(ctx); err != nil {
		return err
	}
	p.align()
	return p.bad.err(p.dim)
}

// begin takes the arrays of the first piece as those to join.
func (p *AppendPlan) begin(a *appendPiece) error {
	seen := map[string]bool{}
	grows := false
	for _, n := range a.found {
		if !n.meta.Array {
			p.groups = append(p.groups, n)
			continue
		}
		b := &appendBase{path: n.path, meta: n.meta, from: a.label}
		if err := b.describe(p.dim); err != nil {
			return fmt.Errorf("append %s: /%s: %w", a.label, n.path, err)
		}
		for _, d := range n.meta.DimensionNames {
			if d != nil {
				seen[*d] = true
			}
		}
		grows = grows || b.axis >= 0
		p.base[n.path] = b
		p.paths = append(p.paths, n.path)
	}
	if !grows {
		var names []string
		for d := range seen {
			names = append(names, d)
		}
		slices.Sort(names)
		return fmt.Errorf("append %s: %w: no array has the dimension %q; there are %q", a.label, ErrMisfit, p.dim, names)
	}
	slices.Sort(p.paths)
	p.coordinates()
	return nil
}

var errJoin = fmt.Errorf("%w: only arrays of Zarr v2 and v3 can be joined", zarr.ErrNoForm)

// describe finds the dimension in the array.
func (b *appendBase) describe(dim string) error {
	b.axis, b.chunk, b.had = -1, 1, 0
	if b.meta.Version != zarr.V2 && b.meta.Version != zarr.V3 {
		return errJoin
	}
	for d, name := range b.meta.DimensionNames {
		if name == nil || *name != dim {
			continue
		}
		if b.axis >= 0 {
			return fmt.Errorf("%w: it has the dimension %q twice", ErrMisfit, dim)
		}
		b.axis = d
	}
	if b.axis < 0 {
		return nil
	}
	if shape := b.meta.Grid.Regular(); shape != nil {
		b.chunk = int64(shape[b.axis])
	}
	return nil
}

// coordinates finds the arrays that may be rewritten where their chunks do not fit: arrays of a
// single dimension, and the bounds of these arrays.
func (p *AppendPlan) coordinates() {
	for path, b := range p.base {
		if b.axis < 0 || len(b.meta.Shape) != 1 {
			continue
		}
		b.small = true
		for _, attr := range []string{"bounds", "climatology"} {
			name, ok := textAttribute(b.meta, attr)
			if o := p.base[names.Join(names.Parent(path), name)]; ok && o != nil && o.axis >= 0 && o != b {
				o.small, o.parent = true, b
			}
		}
	}
}

// add compares a piece with the joined arrays.
func (p *AppendPlan) add(a *appendPiece) {
	p.pieces = append(p.pieces, a)
	for _, n := range a.found {
		if !n.meta.Array {
			continue
		}
		if n.base = p.base[n.path]; n.base == nil {
			p.bad.add(n.path, "array", misfitValue{p.pieces[0].label, "missing"}, misfitValue{a.label, "there"})
			continue
		}
		a.arrays[n.path] = n
	}
	a.found = nil
	for _, path := range p.paths {
		if x := a.arrays[path]; x != nil {
			p.compare(x.base, x.meta, a.meaning(x), a.label)
		}
	}
	lengths := map[string]*appendArray{} // by group
	for _, path := range p.paths {
		b, x := p.base[path], a.arrays[path]
		if b.axis < 0 {
			continue
		}
		if x == nil {
			p.bad.add(path, "array", misfitValue{b.from, "there"}, misfitValue{a.label, "missing"})
			continue
		}
		if len(x.meta.Shape) <= b.axis {
			continue // found already
		}
		group := names.Parent(path)
		if y := lengths[group]; y == nil {
			lengths[group] = x
		} else if n, m := x.length(), y.length(); n != m {
			p.bad.add(path, "length along "+p.dim, misfitValue{a.label + ", /" + y.path, fmt.Sprint(m)}, misfitValue{a.label, fmt.Sprint(n)})
		}
	}
}

// length is the number of elements along the dimension.
func (a *appendArray) length() int64 { return a.meta.Shape[a.base.axis] }

// Append joins the pieces of a plan along its dimension, as one commit: to the
// arrays at o.To, or to each other if o.To is empty or o.Overwrite is set.
// Chunks keep their bytes and get other numbers. If the dimension's coordinates
// have other chunks, their elements are encoded again; a copying append does so
// for all pieces that begin inside a chunk. Arrays without the dimension must
// have the same elements in all pieces, and the coordinates of the dimension
// must continue in one direction: see [OrderError]. If pieces do not fit, the
// error is ErrMisfit and nothing is committed. If ctx ends, or a piece cannot be
// read, nothing is committed either, complete pieces may be saved, and the error
// is ErrResumable. o.Resume continues an equal plan after the complete pieces,
// whose chunks are not read again. o.Link must be that of the plan. Memory is
// bounded, except for the metadata of the pieces.
func (db *DB) Append(ctx context.Context, p *AppendPlan, o ImportOptions) (_ *ImportResult, err error) {
	o.To, o.Link = names.Clean(o.To), p.link
	j := &joiner{db: db, plan: p, o: o, meter: &transfer.Meter{}, contents: map[*appendBase][sha256.Size]byte{}}
	first, err := p.pieces[0].Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	j.first = first
	s, err := j.session(ctx)
	if err != nil {
		return nil, err
	}
	res, err := j.run(ctx, s)
	if err != nil {
		return nil, j.stop(s, err)
	}
	if p.link {
		res.Forbidden, res.NotGranted = db.grantLinked(j.follow, j.forbidden)
		res.NotGranted = errors.Join(j.notGranted, res.NotGranted)
	}
	return res, nil
}

// prepare compares the existing arrays with the plan, and resizes them.
func (j *joiner) prepare(ctx context.Context, s *Session) error {
	err := j.compare(ctx, s.nodes)
	switch {
	case err != nil:
	case !j.fresh:
		err = j.occupy(ctx, s)
	default:
		switch err = vacant(ctx, s, j.o.To); {
		case err == nil || !j.o.Overwrite || !errors.Is(err, zarr.ErrExists):
		case j.o.Link:
			err = nil // existing arrays are replaced when the rest is complete
		default:
			err = s.Remove(ctx, j.o.To)
		}
	}
	if err != nil {
		return err
	}
	return j.fit(ctx, s.nodes)
}

// compare compares the metadata of the existing arrays with the plan.
func (j *joiner) compare(ctx context.Context, before nodes) error {
	_, err := before.Node(ctx, j.o.To)
	switch {
	case err == nil && !j.o.Overwrite:
		return j.existing(ctx, before)
	case err == nil || errors.Is(err, zarr.ErrNotFound):
		j.fresh = true
		return nil
	}
	return err
}

// fit finds where the pieces go, and begins to look at the order of coordinates.
func (j *joiner) fit(ctx context.Context, before nodes) error {
	if err := j.plan.Fits(ctx); err != nil || j.o.AnyOrder {
		return err
	}
	return j.watch(ctx, before)
}

// existing takes the arrays that are there as those to join.
func (j *joiner) existing(ctx context.Context, before nodes) error {
	p := j.plan
	stored := map[string]*appendBase{}
	lengths := map[string]*appendBase{}
	for n, err := range before.Walk(ctx, j.o.To) {
		if err != nil {
			return err
		}
		m := n.Meta()
		if !m.Array {
			continue
		}
		path := names.Relative(n.Path(), j.o.To)
		is := &appendBase{path: path, meta: m, stored: m, from: fmt.Sprintf("/%s of the database", n.Path())}
		stored[path] = is
		if err := is.describe(p.dim); err != nil {
			return fmt.Errorf("append to /%s: %w", n.Path(), err)
		}
		b := p.base[path]
		if b == nil {
			if is.axis >= 0 {
				p.bad.add(path, "array", misfitValue{is.from, "there"}, misfitValue{p.pieces[0].label, "missing"})
			}
			continue
		}
		is.small = b.small
		if is.axis >= 0 {
			is.had = m.Shape[is.axis]
			if o := lengths[names.Parent(path)]; o == nil {
				lengths[names.Parent(path)] = is
			} else if o.had != is.had {
				p.bad.add(path, "length along "+p.dim, misfitValue{o.from, fmt.Sprint(o.had)}, misfitValue{is.from, fmt.Sprint(is.had)})
			}
		}
	}
	// The bounds of a coordinate have its units, so that all are compared before any is
	// replaced.
	for _, path := range p.paths {
		is, b := stored[path], p.base[path]
		if is == nil {
			p.bad.add(path, "array", misfitValue{"/" + names.Join(j.o.To, path) + " of the database", "missing"}, misfitValue{p.pieces[0].label, "there"})
			continue
		}
		if b.parent != nil {
			is.parent = stored[b.parent.path]
		}
		p.compare(is, b.meta, b.meaning(), p.pieces[0].label)
	}
	for path, is := range stored {
		if b := p.base[path]; b != nil {
			b.meta, b.stored, b.from, b.axis, b.chunk, b.had = is.meta, is.stored, is.from, is.axis, is.chunk, is.had
		}
	}
	return p.bad.err(p.dim)
}

// occupy makes room behind the arrays that are there.
func (j *joiner) occupy(ctx context.Context, s *Session) error {
	for _, path := range j.plan.paths {
		if b := j.plan.base[path]; b.axis >= 0 {
			if err := j.clearBeyond(ctx, s, b); err != nil {
				return err
			}
		}
		// The compared metadata must not change before the commit.
		if err := s.Guard(ctx, names.Join(j.o.To, path)); err != nil {
			return err
		}
	}
	return nil
}

// clearBeyond deletes chunks outside of the array. Stores may have kept them from a time when
// the array was longer, and they would become visible when the array grows.
func (j *joiner) clearBeyond(ctx context.Context, s *Session, b *appendBase) error {
	return j.deleteChunks(ctx, s, b, b.stored.Grid.Count(b.axis, b.had))
}

// deleteChunks deletes the chunks of the existing array from one on, along the dimension.
func (j *joiner) deleteChunks(ctx context.Context, s *Session, b *appendBase, from int64) error {
	k := b.stored.Keys
	f := txn.Form{Prefix: k.Prefix(), Sep: k.Separator(), Rank: k.Rank()}
	return s.DeleteChunks(ctx, names.Join(j.o.To, b.path), f, b.axis, from)
}

func (j *joiner) commit(ctx context.Context, s *Session, nodes int64) (*ImportResult, error) {
	c, err := j.o.finish(ctx, s)
	return &ImportResult{Commit: c, Nodes: nodes, Keys: j.meter.Keys.Load(), Bytes: j.meter.Bytes.Load(), Encoded: j.encoded, Healed: s.Healed()}, err
}
