package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/compare"
	"github.com/zarrdb/zarrdb/zarr"
)

// Gap is a place where a regular coordinate of an append leaves out values, or where its step changes.
type Gap struct {
	// Path is the array of the coordinate, in which Value of File follows After. Both are JSON.
	Path, After, Value, File string
	// Steps is how many usual steps lie between them.
	Steps float64
}

// String describes the gap for people.
func (g Gap) String() string {
	return fmt.Sprintf("/%s: %s in %s follows %s: that is %.4g steps", g.Path, g.Value, g.File, g.After, g.Steps)
}

// GapError refuses an append with gaps: see [ImportOptions].Strict. It is ErrMisfit.
type GapError struct {
	Gaps []Gap // the first few
	All  int
}

// Error names the first gap.
func (e *GapError) Error() string {
	text := "append: " + e.Gaps[0].String()
	if e.All > 1 {
		text += fmt.Sprintf("; and %d more gaps", e.All-1)
	}
	return text + "; nothing is appended: append what lies between first, or do without strict, which then warns"
}

// Is makes it an ErrMisfit.
func (e *GapError) Is(target error) bool { return target == ErrMisfit }

// pace finds gaps in the values of a coordinate. A step of months or years may vary by less than a half.
type pace struct {
	step        float64 // the last usual one, 0 before the first
	usual, odd  int     // how many
	jump        float64 // the last odd one, in usual steps
	again       int     // odd ones as long as the one before
	gaps        []Gap   // the first few of those that are new
	all         int
	existing    bool // the values are those of the existing array
	path        string
	describe    func(value []byte) string
	last        []byte
	differences compare.Difference
}

// maxGaps bounds the gaps that are told.
const maxGaps = 5

// tail is how many existing values tell whether a coordinate is regular.
const tail = 64

// value takes the next value.
func (p *pace) value(v []byte, file string) {
	defer func() { p.last = append(p.last[:0], v...) }()
	if p.last == nil {
		return
	}
	by, how := p.differences(p.last, v)
	if how != compare.NumberDifference || by == 0 {
		return
	}
	steps := by / p.step
	switch {
	case p.step == 0 || steps > 0.5 && steps < 1.5:
		p.step = by
		p.usual++
	default:
		if p.odd++; steps > p.jump-0.5 && steps < p.jump+0.5 {
			p.again++
		}
		p.jump = steps
		if p.existing {
			return
		}
		if p.all++; len(p.gaps) < maxGaps {
			p.gaps = append(p.gaps, Gap{Path: p.path, After: p.describe(p.last), Value: p.describe(v), File: file, Steps: steps})
		}
	}
}

// found returns the gaps, none if the coordinate is not regular: most steps must be usual ones. Equal jumps that are many,
// such as the weekends between working days, are part of the rule.
func (p *pace) found() ([]Gap, int) {
	if p.usual < 3*p.odd || p.again > 0 && p.usual < 8*p.odd || p.all == 0 {
		return nil, 0
	}
	return p.gaps, p.all
}

// gaps returns the gaps of all coordinates, and an error if there are some and the options are strict.
func (j *joiner) gaps() (gaps []Gap, all int, err error) {
	for _, b := range j.plan.sorted {
		if b.order != nil && b.order.pace != nil {
			list, n := b.order.pace.found()
			gaps, all = append(gaps, list...), all+n
		}
	}
	gaps = gaps[:min(len(gaps), maxGaps)]
	if all > 0 && j.o.Strict {
		err = &GapError{gaps, all}
	}
	return gaps, all, err
}

// stepRun is where steps of a piece go: lo up to hi, from at on in the joined arrays.
type stepRun struct {
	lo, hi, at int64
	replaces   bool
}

// replaceSteps finds where the steps of all pieces go if those go on top of steps with the same label: the others
// follow the existing ones.
func (p *AppendPlan) replaceSteps(ctx context.Context) error {
	var c *appendBase
	for _, b := range p.sorted {
		switch {
		case b.axis < 0:
		case b.meta.Grid.Regular() == nil || p.rectilinear:
			return fmt.Errorf("/%s: %w: steps are replaced in regular chunk grids only", b.path, ErrMisfit)
		case newCoordinateOrder(p.dim, b) == nil:
		case c != nil:
			return fmt.Errorf("/%s and /%s: %w: steps are replaced by one coordinate of %s", c.path, b.path, ErrMisfit, p.dim)
		default:
			c = b
		}
	}
	if c == nil {
		return fmt.Errorf("append along %s: %w: steps are replaced by their labels, and no array %s has any", p.dim, ErrMisfit, p.dim)
	}
	type step struct {
		at    int64
		of    int // the piece that has it, -1 for the existing array
		twice bool
	}
	at, size := map[string]step{}, int64(0)
	each := func(a *pieceArray, n int64, fn func(i int64, label string)) error {
		return a.parts(ctx, 0, n, func(_ []zarr.Index, first, _ int64, e elems) error {
			take := func(v []byte) error {
				if size += int64(len(v)) + 64; size > maxHeld {
					return fmt.Errorf("%w: labels of more than %d MiB are not compared", zarr.ErrTooLarge, maxHeld>>20)
				}
				fn(first, string(v))
				first++
				return nil
			}
			for i := range e.vars.Len() {
				if err := take(e.vars.At(i)); err != nil {
					return err
				}
			}
			for width := max(c.meta.Type.Size(), 1); len(e.data) > 0; e.data = e.data[width:] {
				if err := take(e.data[:width]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if p.there != nil {
		a, err := p.there(c.path)
		if err != nil {
			return err
		}
		from, err := c.existing(a)
		if err == nil {
			err = each(from, c.had, func(i int64, label string) {
				_, had := at[label]
				at[label] = step{i, -1, had}
			})
		}
		if err != nil {
			return err
		}
	}
	order, total := newCoordinateOrder(p.dim, c), c.had
	p.repeats, p.replaced = nil, 0
	for k, piece := range p.pieces {
		piece.runs = nil
		a := piece.arrays[c.path]
		var err error
		if a.as, err = recoder(c.meaning(), a.meaning()); err != nil {
			return nil // align names it
		}
		open := &openPiece{plan: p, piece: piece}
		if err := open.open(ctx); err != nil {
			return piece.failed(err)
		}
		from, err := open.array(ctx, a)
		if err == nil {
			err = each(from, a.length(), func(i int64, label string) {
				to, had := at[label]
				switch {
				case !had:
					to.at = total
					total++
				case to.of < 0:
					p.replaced++
				}
				switch v := []byte(label); {
				case p.repeats != nil:
				case to.twice:
					p.repeats = order.misfit(v, c.from, v, c.from, true)
				case had && to.of == k:
					p.repeats = order.misfit(v, piece.label, v, piece.label, true)
				}
				at[label] = step{at: to.at, of: k}
				if n := len(piece.runs); n > 0 && piece.runs[n-1].at+i-piece.runs[n-1].lo == to.at && piece.runs[n-1].replaces == had {
					piece.runs[n-1].hi++
				} else {
					piece.runs = append(piece.runs, stepRun{i, i + 1, to.at, had})
				}
			})
		}
		if err = errors.Join(err, open.src.Close()); err != nil {
			return piece.failed(err)
		}
	}
	p.total, p.coordinate = total, c
	return nil
}

// placeSteps is place where steps are replaced.
func (p *AppendPlan) placeSteps(b *appendBase, arrays []*appendArray) {
	b.grid, b.kept, b.total = nil, b.had, p.total
	if b.had != p.coordinate.had {
		p.bad.add(b.path, "length along "+p.dim, false, misfitValue{p.coordinate.from, fmt.Sprint(p.coordinate.had)}, misfitValue{b.from, fmt.Sprint(b.had)})
	}
	for _, a := range arrays {
		if n := a.piece.arrays[p.coordinate.path].length(); n != a.length() {
			p.bad.add(b.path, "length along "+p.dim, false, misfitValue{p.coordinate.from, fmt.Sprint(n)}, misfitValue{a.piece.label, fmt.Sprint(a.length())})
		}
		a.start, a.first, a.kept, a.rewrite = 0, 0, 0, true
	}
}

// steps counts the steps that the joined arrays got, and those of the existing arrays that were replaced.
func (j *joiner) steps() (appended, replaced int64) {
	for _, b := range j.plan.sorted {
		if b.axis >= 0 {
			appended = max(appended, b.total-b.had)
		}
	}
	return appended, j.plan.replaced
}

// AppendGaps returns the first few gaps, and the number of all, that an append of labels would make behind the stored labels of a regular
// coordinate. [DB.Append] finds the same. values are the labels in C order, in the memory layout of the array's data type, and are not
// kept; a [Gap] names from as their file. Without a regular coordinate of numbers there are no gaps. The error is kv.ErrNotFound if
// there is no such array. Safe for concurrent use.
func (s *Session) AppendGaps(ctx context.Context, array string, values []byte, from string) ([]Gap, int, error) {
	a, err := s.Array(ctx, array)
	if err != nil {
		return nil, 0, err
	}
	b := &appendBase{path: a.Path(), meta: a.Meta(), stored: a.Meta(), chunk: 1}
	o := newCoordinateOrder(path.Base(a.Path()), b)
	if o == nil || o.pace == nil || len(values)%a.Type().Size() != 0 {
		return nil, 0, nil
	}
	there, err := b.existing(a)
	if err == nil {
		err = o.begin(ctx, there, "")
	}
	if err != nil {
		return nil, 0, err
	}
	for v := range slices.Chunk(values, a.Type().Size()) {
		o.pace.value(v, from)
	}
	gaps, all := o.pace.found()
	return gaps, all, nil
}

// newPace returns the pace of a coordinate of numbers or times.
func newPace(o *coordinateOrder) *pace {
	if o.difference == nil {
		return nil
	}
	return &pace{path: o.base.path, describe: o.text, differences: o.difference}
}
