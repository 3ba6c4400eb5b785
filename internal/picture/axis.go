package picture

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Labels name the elements along an axis; [cf.Labels] are some.
type Labels interface {
	Len() int64
	Order() int
	Text(i int64) string
	Number(i int64) float64
	Times() bool
}

// Axis is an axis of an array as people read it.
type Axis struct {
	Name string
	Len  int64
	// Units are those of labels, "" of times and of those that have none.
	Units string
	// Labels are nil where there is no coordinate.
	Labels Labels
	// Up puts the last element on top.
	Up bool
	// Globe is "lat" or "lon" if labels are latitudes or longitudes in degrees.
	Globe string
}

// DimensionName is the name of a dimension, dim_N without one.
func DimensionName(a *zarr.Array, dim int) string {
	if names := a.DimensionNames(); dim >= 0 && dim < len(names) && names[dim] != "" && !slices.Contains(names[:dim], names[dim]) {
		return names[dim]
	}
	if dim < 0 {
		return "newaxis"
	}
	return "dim_" + strconv.Itoa(dim)
}

// attribute is an attribute that is a text.
func attribute(m *zarr.Meta, name string) string {
	raw, _ := m.Attributes.Get(name)
	var text string
	_ = json.Unmarshal(raw, &text) // another kind of value is no text
	return strings.TrimSpace(text)
}

// NewAxis describes a dimension of an array by its coordinate, which beside opens. A missing or
// damaged coordinate is no reason not to show the values. An array is not its own coordinate.
// Up is that of the coordinate; see [NewRows].
func NewAxis(ctx context.Context, a *zarr.Array, dim int, beside cf.Opener) *Axis {
	x := &Axis{Name: DimensionName(a, dim), Len: 1}
	if dim < 0 {
		return x
	}
	x.Len = a.Shape()[dim]
	if beside == nil {
		return x
	}
	if name := a.Path()[strings.LastIndexByte(a.Path(), '/')+1:]; x.Name != name {
		x.setLabels(ctx, beside)
	}
	return x
}

// NewRows is [NewAxis] of rows: without a coordinate, latitudes of two axes say whether they go up.
func NewRows(ctx context.Context, a *zarr.Array, dim int, beside cf.Opener) *Axis {
	x := NewAxis(ctx, a, dim, beside)
	if x.Labels == nil && beside != nil {
		x.Up = latitudesAscend(ctx, a, dim, beside)
	}
	return x
}

func (x *Axis) setLabels(ctx context.Context, beside cf.Opener) {
	n, err := beside(ctx, x.Name)
	if err != nil {
		return
	}
	if a, ok := n.Array(); !ok || len(a.Shape()) != 1 || a.Shape()[0] != x.Len {
		return
	}
	l, err := cf.ReadLabels(ctx, n)
	if err != nil {
		return
	}
	x.Labels = l
	if units := attribute(n.Meta(), "units"); !l.Times() && !strings.Contains(units, " since ") {
		x.Units = clip(units, mostText)
	}
	x.Globe = globe(n.Meta(), x.Name)
	x.Up = x.Len > 1 && l.Order() != 0 && (l.Order() > 0) != downward(n.Meta())
}

// downward reports whether the least value of a coordinate is the highest place: by the
// attribute positive or, as CF has it, because the coordinate is a pressure or a depth.
func downward(m *zarr.Meta) bool {
	switch strings.ToLower(attribute(m, "positive")) {
	case "down":
		return true
	case "up":
		return false
	}
	switch strings.ToLower(attribute(m, "units")) {
	case "pa", "hpa", "kpa", "mpa", "pascal", "bar", "mbar", "mb", "millibar", "millibars", "dbar", "decibar", "decibars", "atm", "atmosphere":
		return true
	}
	name := attribute(m, "standard_name")
	return name == "depth" || strings.HasPrefix(name, "depth_below") || name == "air_pressure"
}

// Coordinates are the names that the attribute coordinates of an array has, the first few.
func Coordinates(a *zarr.Array) []string {
	names := strings.Fields(attribute(a.Meta(), "coordinates"))
	return slices.Clip(names[:min(len(names), 6)])
}

// Texts of a store may have any length. Those of a picture have at most so many characters.
const (
	mostText  = 40
	mostTitle = 200
)

// clip shortens a text to so many characters.
func clip(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}

// Label is the text of an element: its label, or its index.
func (x *Axis) Label(i int64) string {
	if x.Labels == nil || i < 0 || i >= x.Len {
		return strconv.FormatInt(i, 10)
	}
	return clip(TimeText(x.Labels.Text(i)), mostText)
}

// TimeText shortens the text of a time: without midnight, and with a space before hours.
func TimeText(text string) string {
	text = strings.TrimSuffix(text, "T00:00:00")
	if i := strings.IndexByte(text, 'T'); i > 3 && text[i-3] == '-' {
		return text[:i] + " " + text[i+1:]
	}
	return text
}

// Full is the name with the label and its units.
func (x *Axis) Full(i int64) string { return clip(x.Name, mostText) + " " + x.Measure(i) }

// Measure is the label with its units.
func (x *Axis) Measure(i int64) string {
	text := x.Label(i)
	switch {
	case x.Labels == nil || x.Units == "" || x.Units == "1":
		return text
	case x.degrees():
		return text + "°"
	}
	return text + " " + x.Units
}

func (x *Axis) degrees() bool { return strings.HasPrefix(x.Units, "degree") }

// Kind is a text that axes have in common whose distances are of one kind: of degrees, of a unit, of times,
// or of elements.
func (x *Axis) Kind() string {
	switch {
	case x.Labels != nil && x.Labels.Times():
		return "time"
	case x.Labels == nil || !x.Numbers():
		return ""
	case x.degrees():
		return "degree"
	}
	return x.Units
}

// Title is the name with the units of its labels.
func (x *Axis) Title() string {
	if x.Labels == nil || x.Units == "" || x.Units == "1" || x.degrees() {
		return clip(x.Name, mostText)
	}
	return clip(x.Name, mostText) + " (" + x.Units + ")"
}

// Find is the element that a person means with a text: the first one with the label, such as 2020-02, or
// the nearest one if labels are numbers, and without labels or behind # the one with the index.
func (x *Axis) Find(text string) (i int64, ok bool) {
	index, isIndex := strings.CutPrefix(text, "#")
	if l, ok := x.Labels.(interface {
		Find(label string) (lo, hi int64, one bool, err error)
	}); ok && !isIndex {
		if lo, hi, _, err := l.Find(text); err == nil && lo < hi {
			return lo, true
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil && v-v == 0 && x.Numbers() && !x.Labels.Times() {
			return min(max(int64(x.place(v)), 0), x.Len-1), true
		}
	}
	i, err := strconv.ParseInt(index, 10, 64)
	return i, err == nil && i >= 0 && i < x.Len
}

// edge is the value between the elements i-1 and i, and beyond the first and the last one.
func (x *Axis) edge(i int64) float64 {
	switch v := x.Labels.Number; {
	case x.Len < 2:
		return v(0) + float64(i) - 0.5
	case i <= 0:
		return v(0) - (v(1)-v(0))/2
	case i >= x.Len:
		return v(x.Len-1) + (v(x.Len-1)-v(x.Len-2))/2
	default:
		return v(i-1) + (v(i)-v(i-1))/2
	}
}

// place is where a value lies, in elements.
func (x *Axis) place(v float64) float64 {
	rise := float64(x.Labels.Order())
	i := int64(sort.Search(int(x.Len)-1, func(i int) bool { return (x.edge(int64(i)+1)-v)*rise > 0 }))
	a, b := x.edge(i), x.edge(i+1)
	if f := (v - a) / (b - a); f >= 0 && f <= 1 {
		return float64(i) + f
	}
	return float64(i) + 0.5
}

// mostEdges is the length of axes whose elements may have sizes of their own.
const mostEdges = 4096

// Edges are the places of the edges of all elements where distances between labels differ, in
// mean elements from 0 to Len; nil where they are about equal. No element is narrower than a
// quarter, so that each can be seen and pointed at.
func (x *Axis) Edges() []float64 {
	if !x.Numbers() || x.Len < 3 || x.Len > mostEdges {
		return nil
	}
	n, least, most := float64(x.Len), math.Inf(1), 0.0
	for i := int64(1); i < x.Len; i++ {
		by := math.Abs(x.Labels.Number(i) - x.Labels.Number(i-1))
		least, most = min(least, by), max(most, by)
	}
	total := math.Abs(x.edge(x.Len) - x.edge(0))
	if !(least > 0) || most <= 1.25*least || !(total < math.Inf(1)) {
		return nil
	}
	out := []float64{0}
	for i := range x.Len {
		size := math.Abs(x.edge(i+1)-x.edge(i)) / total * n
		out = append(out, out[i]+max(size, 0.25))
	}
	scale := n / out[x.Len]
	for i := range out {
		out[i] *= scale
	}
	return out
}

// Scale names the rows or columns of a window along the axis.
func (x *Axis) Scale(l Line) Scale {
	if l.Dim < 0 || l.Len == 0 {
		return Scale{}
	}
	s := Scale{Name: x.Name, Title: x.Title(), Label: func(k int) string { return x.Label(l.Index(k)) }}
	if l.list != nil || l.Step == 0 {
		return s
	}
	lo, hi := min(l.Index(0), l.Index(l.Len-1)), max(l.Index(0), l.Index(l.Len-1))
	by := max(l.Step, -l.Step)
	if edges := x.Edges(); edges != nil {
		k := lo
		for range l.Len {
			s.Edges = append(s.Edges, edges[min(k, x.Len)])
			k += by
		}
		s.Edges = append(s.Edges, edges[min(k, x.Len)])
		size := s.Edges[l.Len] - s.Edges[0]
		for i, e := range s.Edges {
			s.Edges[i] = (e - edges[lo]) / size
		}
		if l.Step < 0 {
			slices.Reverse(s.Edges)
			for i, e := range s.Edges {
				s.Edges[i] = 1 - e
			}
		}
	}
	s.Ticks = func(most int) (out []tick) {
		for _, t := range x.Ticks(lo, hi+1, most) {
			at := (t.At-0.5-float64(lo))/float64(by) + 0.5
			if l.Step < 0 {
				at = float64(l.Len) - at
			}
			out = append(out, tick{s.part(at, l.Len), t.Text})
		}
		slices.SortFunc(out, func(a, b tick) int { return cmp.Compare(a.at, b.at) })
		return out
	}
	return s
}

// isTime reports whether elements are times or spans.
func isTime(t dtype.Type) bool { return t.Kind() == dtype.Datetime || t.Kind() == dtype.Timedelta }
