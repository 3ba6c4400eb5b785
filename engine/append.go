package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// Appending joins hierarchies of the same arrays along a dimension:
//
//	stored               a.json           b.json
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
	sorted      []*appendBase          // by path
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
	piece *appendPiece
	path  string
	meta  *zarr.Meta
	sum   [sha256.Size]byte // of meta
	dims  []string          // names of the dimensions, "" for one without
	own   *zarr.Meta        // as it is stored, if meta has a new dimension
	label []byte            // of a new dimension, of which it is the coordinate
	base  *appendBase
	as    *cf.Recoder // to elements of the joined array; nil if they are equal
	start int64       // in the joined array, elements along the dimension
	first int64       // its first chunk there, if that keeps its bytes
	reads bool        // elements are read, and not only linked
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
	dims  []string   // names of its dimensions
	from  string     // the source of meta
	axis  int        // the dimension, -1 if it has not
	chunk int64      // the chunk length there, or of the first dimension
	small bool       // a coordinate of the dimension, which may be rewritten
	had   int64      // length before
	total int64      // and after
	// parent is the coordinate whose bounds these are, and whose units they have.
	parent *appendBase
	// stored is the metadata of the existing array, nil without one; meta may have a wider
	// type. If the grid changes, its elements from kept on are encoded again.
	stored *zarr.Meta
	kept   int64
	grid   zarr.Grid // of the joined array, if it is not the grid of meta

	order *coordinateOrder // nil if any order will do
	sum   []byte           // of the contents of an array without the dimension, nil if they were not read
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
	if err := all[0].failed(p.begin(all[0])); err != nil {
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

// begin takes the arrays of the first piece as the arrays to join.
func (p *AppendPlan) begin(a *appendPiece) error {
	dims := map[string]bool{}
	for _, n := range a.found {
		if !n.meta.Array {
			p.groups = append(p.groups, n)
			continue
		}
		b := &appendBase{path: n.path, meta: n.meta, dims: n.dims, from: a.label}
		if err := b.describe(p.dim); err != nil {
			return fmt.Errorf("/%s: %w", n.path, err)
		}
		for _, d := range n.dims {
			if d != "" {
				dims[d] = true
			}
		}
		p.base[n.path] = b
		p.sorted = append(p.sorted, b)
	}
	if !dims[p.dim] {
		return fmt.Errorf("%w: %w", ErrMisfit, &NoDimensionError{p.dim, slices.Sorted(maps.Keys(dims))})
	}
	slices.SortFunc(p.sorted, func(x, y *appendBase) int { return strings.Compare(x.path, y.path) })
	p.coordinates()
	return nil
}

// NoDimensionError means that no array of the sources of an append has the dimension. It is [ErrMisfit].
type NoDimensionError struct {
	Dim string
	// There are the dimensions that arrays have.
	There []string
}

// Error names the dimension and those that arrays have.
func (e *NoDimensionError) Error() string {
	there := "no dimension has a name"
	if len(e.There) > 0 {
		there = fmt.Sprintf("there are %q", e.There)
	}
	return fmt.Sprintf("no array has the dimension %q; %s", e.Dim, there)
}

var errJoin = fmt.Errorf("%w: only arrays of Zarr v2 and v3 can be joined", zarr.ErrNoForm)

// describe finds the dimension in the array.
func (b *appendBase) describe(dim string) error {
	b.axis, b.chunk = -1, 1
	if b.meta.Version != zarr.V2 && b.meta.Version != zarr.V3 {
		return errJoin
	}
	for d, name := range b.dims {
		if name != dim {
			continue
		}
		if b.axis >= 0 {
			return fmt.Errorf("%w: it has the dimension %q twice", ErrMisfit, dim)
		}
		b.axis = d
	}
	if shape := b.meta.Grid.Regular(); len(shape) > 0 {
		b.chunk = int64(shape[max(b.axis, 0)])
	}
	return nil
}

// coordinates finds the arrays that may be rewritten where their chunks do not fit: arrays of a
// single dimension, and the bounds of these arrays.
func (p *AppendPlan) coordinates() {
	for _, b := range p.sorted {
		if b.axis < 0 || len(b.meta.Shape) != 1 {
			continue
		}
		b.small = true
		for _, attr := range []string{"bounds", "climatology"} {
			name, ok := textAttribute(b.meta, attr)
			if o := p.base[names.Join(names.Parent(b.path), name)]; ok && o != nil && o.axis >= 0 && o != b {
				o.small, o.parent = true, b
			}
		}
	}
}

// add compares a piece with the joined arrays.
func (p *AppendPlan) add(a *appendPiece) {
	p.pieces = append(p.pieces, a)
	for _, n := range a.found {
		switch n.base = p.base[n.path]; {
		case !n.meta.Array:
		case n.base == nil:
			p.bad.add(n.path, "array", false, misfitValue{p.pieces[0].label, "missing"}, misfitValue{a.label, "there"})
		default:
			a.arrays[n.path] = n
		}
	}
	a.found = nil
	lengths := map[string]misfitValue{}
	for _, b := range p.sorted {
		x := a.arrays[b.path]
		if x == nil {
			if b.axis >= 0 {
				p.bad.add(b.path, "array", false, misfitValue{b.from, "there"}, misfitValue{a.label, "missing"})
			}
			continue
		}
		p.compare(b, x.meta, x.meaning(), a.label)
		if b.axis >= 0 && len(x.meta.Shape) > b.axis { // another rank is a difference already
			p.sameLength(lengths, b.path, x.length(), a.label+", /"+b.path, a.label)
		}
	}
}

// sameLength compares the length of an array along the dimension with the first array of its
// group, whose length is in lengths. The source of the array is first if it is that array,
// else other.
func (p *AppendPlan) sameLength(lengths map[string]misfitValue, path string, n int64, first, other string) {
	group, length := names.Parent(path), fmt.Sprint(n)
	if want, ok := lengths[group]; !ok {
		lengths[group] = misfitValue{first, length}
	} else if want.value != length {
		p.bad.add(path, "length along "+p.dim, false, want, misfitValue{other, length})
	}
}

// length is the number of elements along the dimension.
func (a *appendArray) length() int64 { return a.meta.Shape[a.base.axis] }

// existing takes the arrays at the destination as the arrays to join.
func (p *AppendPlan) existing(ctx context.Context, there nodes, to string) error {
	stored := map[string]*appendBase{}
	for n, err := range there.Walk(ctx, to) {
		if err != nil {
			return err
		}
		m := n.Meta()
		a, ok := n.Array()
		if !ok {
			continue
		}
		is := &appendBase{path: names.Relative(n.Path(), to), meta: m, dims: a.DimensionNames(), stored: m, from: fmt.Sprintf("/%s of the database", n.Path())}
		if err := is.describe(p.dim); err != nil {
			return fmt.Errorf("append to /%s: %w", n.Path(), err)
		}
		if is.axis >= 0 {
			is.had = m.Shape[is.axis]
		}
		if b := p.base[is.path]; b != nil {
			stored[is.path], is.small = is, b.small
		} else if is.axis >= 0 {
			p.bad.add(is.path, "array", false, misfitValue{is.from, "there"}, misfitValue{p.pieces[0].label, "missing"})
		}
	}
	lengths := map[string]misfitValue{}
	for _, b := range p.sorted {
		is := stored[b.path]
		if is == nil {
			p.bad.add(b.path, "array", false, misfitValue{"/" + names.Join(to, b.path) + " of the database", "missing"}, misfitValue{p.pieces[0].label, "there"})
			continue
		}
		if b.parent != nil {
			is.parent = stored[b.parent.path]
		}
		p.compare(is, b.meta, b.meaning(), p.pieces[0].label)
		if is.axis >= 0 {
			p.sameLength(lengths, b.path, is.had, is.from, is.from)
		}
	}
	if err := p.bad.err(p.dim); err != nil {
		return err
	}
	for _, b := range p.sorted {
		parent := b.parent
		*b = *stored[b.path]
		b.parent = parent
	}
	return nil
}
