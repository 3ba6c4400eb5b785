package picture

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Plot makes a [Figure] of a part of an array, which Request selects: a line of one axis, or
// colours of the last two.
type Plot struct {
	Array *zarr.Array
	// Beside opens coordinates.
	Beside cf.Opener
	Request
	// Histogram counts values instead.
	Histogram bool
	// Limits are chosen if nil.
	Limits *Limits
	Map    Map
	// Centre is the longitude in the middle of a map, of which Select has all longitudes.
	Centre *float64
	// Flip turns the rows around, and Coast draws coasts over latitudes and longitudes.
	Flip, Coast bool
	missing     bool // a plane without values is a figure too
	// Compose reads colours of channels, elements along the axis Across, of which the title says Note.
	Compose func(ctx context.Context, r Request) (*Window, error)
	Across  int
	Note    string
	// Name is that of the array in the title, its path if it is "".
	Name string
	// LongName puts the attribute long_name into the title.
	LongName bool
}

// setRoll sets Roll from Centre.
func (p *Plot) setRoll(ctx context.Context, kind Kind) (err error) {
	ok := false
	if kind == Series {
		return fmt.Errorf("/%s: a centre needs a map, and a line is selected", p.Array.Path())
	}
	if p.Roll, ok = RollTo(ctx, p.Array, p.Beside, *p.Centre); !ok {
		return fmt.Errorf("/%s: a centre needs longitudes at equal distances around the globe", p.Array.Path())
	}
	axes, _, err := p.Array.Axes(p.Select)
	for _, x := range axes {
		if d := p.Roll.Dim; x.Dim == d && x.Step() == 1 && x.Len == p.Array.Shape()[d] {
			return err
		}
	}
	return cmp.Or(err, fmt.Errorf("/%s: a centre needs all longitudes; select others along other axes", p.Array.Path()))
}

// ErrOneElement means that a selection has no picture.
var ErrOneElement = errors.New("one element has no picture")

// Prepare returns the kind of the figure, and sets what is read to what it needs.
func (p *Plot) Prepare() (kind Kind, err error) {
	axes, at, err := p.Array.Axes(p.Select)
	if err != nil {
		return 0, err
	}
	long, total := 0, int64(1)
	for _, x := range axes {
		total *= min(x.Len, 2)
		switch {
		case x.Len > 1:
			long++
		case x.Len == 1 && x.Dim >= 0:
			at[x.Dim] = zarr.At(x.Index(0))
		}
	}
	switch {
	case p.Histogram:
		kind, p.Width, p.Height = Bars, 1024, 1024
		if long < 2 {
			p.Width *= p.Height
		}
	case long < 2:
		kind = Series
	}
	if total == 1 {
		return 0, fmt.Errorf("/%s: %w", p.Array.Path(), ErrOneElement)
	}
	if long < 2 {
		p.Select = zarr.Orthogonal(at...)
	}
	return kind, nil
}

// Figure reads what Request selects, and makes a figure of it.
func (p *Plot) Figure(ctx context.Context) (*Figure, error) {
	kind, err := p.Prepare()
	if err != nil {
		return nil, err
	}
	if p.Centre != nil {
		if err := p.setRoll(ctx, kind); err != nil {
			return nil, err
		}
	}
	var w *Window
	switch {
	case kind == Series:
		w, err = ReadRow(ctx, p.Array, p.Request)
	case p.Compose != nil:
		w, err = p.Compose(ctx, p.Request)
	default:
		w, err = Read(ctx, p.Array, p.Request)
	}
	if err != nil {
		return nil, err
	}
	if kind == Plane && w.Pixels == nil {
		p.Map.Classes = Classes(p.Array, p.Decoder)
	}
	return p.Of(ctx, w, kind)
}

// Of makes a figure of a window, whose rows it turns into their order.
func (p *Plot) Of(ctx context.Context, w *Window, kind Kind) (*Figure, error) {
	y, x := NewRows(ctx, p.Array, w.Y.Dim, p.Beside), NewAxis(ctx, p.Array, w.X.Dim, p.Beside)
	if kind == Plane {
		y, x = p.rolled(y, w.Y), p.rolled(x, w.X)
	}
	if kind == Plane && w.Y.Dim >= 0 && y.Up != p.Flip {
		w.TurnUp()
	}
	f := &Figure{Kind: kind, Window: w, Map: p.Map, Text: TextOf(w.Type, p.Decoder)}
	low, high := 0.0, 100.0
	if kind == Plane {
		low, high = 2, 98
	}
	all, ok := Percentiles(w.Values, 0, 100)
	if !ok && !(p.missing && kind == Plane) {
		return nil, fmt.Errorf("/%s: every element that was read is missing, nothing can be drawn", p.Array.Path())
	}
	values := w.Values
	if p.Log && kind == Plane {
		values = Positive(values)
	}
	switch f.Limits, _ = Percentiles(values, low, high); {
	case p.Limits != nil:
		f.Limits = *p.Limits
	case f.Map.Diverging:
		f.Limits = f.Limits.Symmetric()
	}
	if p.Log && kind == Plane && f.Text == nil {
		f.Limits = f.Limits.Logarithmic()
	}
	f.X, f.Y = x.Scale(w.X), y.Scale(w.Y)
	if level, err := p.Array.Image(ctx); err == nil && level != nil && kind == Plane && w.X.Dim >= 0 && w.X.Dim < min(len(level.Axes), len(level.Scale)) {
		f.Size, f.Unit = level.Scale[w.X.Dim]*math.Abs(float64(w.X.Step)), clip(level.Axes[w.X.Dim].Unit, mostText)
	}
	f.Free = y.Kind() != x.Kind() && w.Y.Dim >= 0
	if p.Coast && kind == Plane && w.Y.Step != 0 && w.X.Step != 0 {
		f.Coast = Coast(y, x)
	}
	units := attribute(p.Array.Meta(), "units")
	if f.Text != nil {
		units = "" // the units are those of the stored counts
	}
	if kind == Bars {
		f.X = Scale{Name: units}
	}
	if f.Title = clip(p.title(ctx, w, clip(units, mostText)), mostTitle); w.Pixels == nil && ok {
		lo, hi := f.Ends(all)
		f.Title += fmt.Sprintf("  %s to %s", lo, hi)
	}
	return f, ctx.Err()
}

// rolled is an axis as it was read.
func (p *Plot) rolled(x *Axis, l Line) *Axis {
	if l.Dim == p.Roll.Dim {
		return x.Rolled(p.Roll.By)
	}
	return x
}

// title is the line above a figure: the array, the indices that were taken, and the units.
func (p *Plot) title(ctx context.Context, w *Window, units string) string {
	title := cmp.Or(p.Name, "/"+p.Array.Path())
	if name := clip(attribute(p.Array.Meta(), "long_name"), 2*mostText); p.LongName && name != "" {
		title += "  " + name
	}
	if p.Part != "" {
		title += "  " + p.Part
	}
	for d, i := range w.At {
		if d == w.Y.Dim || d == w.X.Dim || w.Pixels != nil && p.Compose == nil && d == len(w.At)-1 {
			continue
		}
		if p.Compose != nil && d == p.Across {
			title += "  " + clip(p.Note, mostTitle/2)
			continue
		}
		x := NewAxis(ctx, p.Array, d, p.Beside)
		title += "  " + clip(x.Name, mostText) + " " + x.Label(i)
	}
	if units != "" {
		title += "  " + units
	}
	for _, l := range []Line{w.Y, w.X} {
		name := clip(DimensionName(p.Array, l.Dim), mostText)
		switch {
		case l.Every > 1:
			title += fmt.Sprintf("  1 of %d along %s", l.Every, name)
		case l.Every > 0 && l.Skip > 1:
			title += fmt.Sprintf("  least and greatest of each %d along %s", 2*l.Skip, name)
		case l.Skip > 1:
			title += fmt.Sprintf("  1 of %d along %s", l.Skip, name)
		}
	}
	return title
}

// TextOf prints times and spans of a type, as dec decodes them; it is nil for numbers.
func TextOf(t dtype.Type, dec *cf.Decoder) func(float64) string {
	switch k := t.Kind(); {
	case !isTime(t):
		return nil
	case dec != nil && dec.HasText() && k == dec.Type().Kind():
		return func(v float64) string {
			text, _ := dec.AppendText(nil, binary.LittleEndian.AppendUint64(nil, uint64(int64(v))))
			return TimeText(string(text))
		}
	case k == dtype.Datetime:
		return func(v float64) string { return TimeText(string(cf.AppendDatetime(nil, t, int64(v)))) }
	}
	return func(v float64) string { return string(cf.AppendTimedelta(nil, t, int64(v))) }
}

// Escaped returns the figure with texts of a store that escape has made harmless.
func (f *Figure) Escaped(escape func(string) string) *Figure {
	g := f.with(escape)
	g.Title = escape(g.Title)
	return g
}

// clipped returns the figure with texts that have room.
func (f *Figure) clipped() *Figure {
	g := f.with(func(text string) string { return clip(text, 2*mostText) })
	g.Title = clip(g.Title, 2*mostTitle)
	return g
}

// with returns the figure with other texts of axes and classes.
func (f *Figure) with(escape func(string) string) *Figure {
	g := *f
	g.Unit = escape(f.Unit)
	g.Map.Classes = slices.Clone(f.Map.Classes)
	for i, c := range g.Map.Classes {
		g.Map.Classes[i].Text = escape(c.Text)
	}
	for _, s := range []*Scale{&g.X, &g.Y} {
		s.Name, s.Title = escape(s.Name), escape(s.Title)
		if label := s.Label; label != nil {
			s.Label = func(k int) string { return escape(label(k)) }
		}
		if ticks := s.Ticks; ticks != nil {
			s.Ticks = func(most int) []tick {
				out := ticks(most)
				for i := range out {
					out[i].text = escape(out[i].text)
				}
				return out
			}
		}
	}
	return &g
}

// Attribute is an attribute of an array that is a text, "" without it.
func Attribute(a *zarr.Array, name string) string { return attribute(a.Meta(), name) }
