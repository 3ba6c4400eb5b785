package picture

import (
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
	if x.Labels == nil {
		x.Up = latitudesAscend(ctx, a, dim, beside)
	}
	return x
}

func (x *Axis) setLabels(ctx context.Context, beside cf.Opener) {
	n, err := beside(ctx, x.Name)
	if err != nil {
		return
	}
	l, err := cf.ReadLabels(ctx, n)
	if err != nil || l.Len() != x.Len {
		return
	}
	x.Labels = l
	if x.Units = attribute(n.Meta(), "units"); l.Times() || strings.Contains(x.Units, " since ") {
		x.Units = ""
	}
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

// latitudeNames are the names that models give to latitudes of their grids, which arrays use
// without an attribute that names them.
var latitudeNames = []string{"lat", "latitude", "nav_lat", "XLAT", "XLAT_M", "XLAT_U", "XLAT_V", "lat_rho", "lat_u", "lat_v", "lat_psi", "TLAT", "ULAT", "gphit", "geolat"}

// latitudesAscend reports whether latitudes of two or more axes ascend along a dimension.
func latitudesAscend(ctx context.Context, a *zarr.Array, dim int, beside cf.Opener) bool {
	names := a.DimensionNames()
	if dim >= len(names) || names[dim] == "" || len(names) < 2 || a.Shape()[dim] < 2 {
		return false
	}
	for _, name := range append(strings.Fields(attribute(a.Meta(), "coordinates")), latitudeNames...) {
		known := slices.Contains(latitudeNames, name)
		n, err := beside(ctx, name)
		if err != nil {
			continue
		}
		lat, ok := n.Array()
		if !ok || !isLatitude(lat.Meta(), known) || Numeric(lat.Type()) != nil {
			continue
		}
		d := slices.Index(lat.DimensionNames(), names[dim])
		if d < 0 || len(lat.Shape()) < 2 || lat.Shape()[d] != a.Shape()[dim] {
			continue
		}
		rise, err := riseAlong(ctx, lat, d)
		return err == nil && rise > 0
	}
	return false
}

// isLatitude reports whether a node holds latitudes; known is whether its name says so.
func isLatitude(m *zarr.Meta, known bool) bool {
	if name := attribute(m, "standard_name"); name != "" {
		return name == "latitude"
	}
	units := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(attribute(m, "units")))
	if north, ok := strings.CutPrefix(strings.Replace(units, "degrees", "degree", 1), "degree"); ok && north != "" {
		return strings.HasPrefix(north, "n")
	}
	return known && (units == "" || strings.HasPrefix(units, "degree"))
}

// riseAlong is the sum of differences between the last and the first row along a dimension.
func riseAlong(ctx context.Context, a *zarr.Array, d int) (float64, error) {
	dec, err := cf.NewDecoder(a.Meta())
	if err != nil {
		return 0, err
	}
	at := make([]zarr.Index, len(a.Shape()))
	for k, n := range a.Shape() {
		at[k] = zarr.At(0)
		if k >= len(at)-2 && k != d {
			at[k] = zarr.Slice(0, n, max(n/64, 1))
		}
	}
	var rows [2][]float64
	for i, k := range []int64{0, a.Shape()[d] - 1} {
		at[d] = zarr.At(k)
		s := side{a, dec, dec.Type()}
		b, err := s.read(ctx, zarr.Orthogonal(at...))
		if err != nil {
			return 0, err
		}
		rows[i] = AppendFloats(nil, s.t, b)
	}
	sum := 0.0
	for i, v := range rows[1] {
		if by := v - rows[0][i]; by == by {
			sum += by
		}
	}
	return sum, nil
}

// Label is the text of an element: its label, or its index.
func (x *Axis) Label(i int64) string {
	if x.Labels == nil || i < 0 || i >= x.Len {
		return strconv.FormatInt(i, 10)
	}
	return TimeText(x.Labels.Text(i))
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
func (x *Axis) Full(i int64) string {
	text := x.Name + " " + x.Label(i)
	switch {
	case x.Labels == nil || x.Units == "" || x.Units == "1":
		return text
	case x.degrees():
		return text + "°"
	}
	return text + " " + x.Units
}

func (x *Axis) degrees() bool { return strings.HasPrefix(x.Units, "degree") }

// Title is the name with the units of its labels.
func (x *Axis) Title() string {
	if x.Labels == nil || x.Units == "" || x.Units == "1" || x.degrees() {
		return x.Name
	}
	return x.Name + " (" + x.Units + ")"
}

// Tick is a label at a place along an axis.
type Tick struct {
	// At is the place in elements, from the edge of the first: 0.5 is the middle of it.
	At float64 `json:"at"`
	// Value is the number of the label there, the index without numbers.
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

// numbers reports whether labels are numbers that only ascend or descend.
func (x *Axis) numbers() bool {
	if x.Labels == nil || x.Labels.Order() == 0 || x.Len < 1 {
		return false
	}
	a, b := x.Labels.Number(0), x.Labels.Number(x.Len-1)
	return a == a && b == b
}

// Ticks are at most so many labels of the elements first to last, less one: at round values of
// numbers, at the beginnings of years, months, days or hours of times, and else at round indices.
func (x *Axis) Ticks(first, last int64, most int) (out []Tick) {
	first, last = max(first, 0), min(last, x.Len)-1
	if most < 1 || last < first {
		return nil
	}
	switch {
	case last == first:
	case x.Labels != nil && x.Labels.Times() && x.Labels.Order() != 0:
		out = x.timeTicks(first, last, most)
	case x.numbers():
		a, b := x.Labels.Number(first), x.Labels.Number(last)
		values := rounds(min(a, b), max(a, b), 0, most)
		for i, text := range tickTexts(values) {
			if x.degrees() {
				text += "°"
			}
			out = append(out, Tick{x.place(values[i]), values[i], text})
		}
	}
	if len(out) > 1 || len(out) == 1 && most < 3 {
		return out
	}
	out = nil
	for _, v := range append(rounds(float64(first), float64(last), 1, most), float64(first)) {
		if i := int64(v); len(out) == 0 || i > int64(out[len(out)-1].At) {
			value := float64(i)
			if x.numbers() {
				value = x.Labels.Number(i)
			}
			out = append(out, Tick{float64(i) + 0.5, value, x.Label(i)})
		}
	}
	return out
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
	if !x.numbers() || x.Len < 3 || x.Len > mostEdges {
		return nil
	}
	n, least, most := float64(x.Len), math.Inf(1), 0.0
	for i := int64(1); i < x.Len; i++ {
		by := math.Abs(x.Labels.Number(i) - x.Labels.Number(i-1))
		least, most = min(least, by), max(most, by)
	}
	total := math.Abs(x.edge(x.Len) - x.edge(0))
	if !(least > 0) || most <= 1.25*least || math.IsInf(total, 0) {
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

// timeParts are the ends of the parts of a time in its text, behind the year: 01-31T23:59:59.
var timeParts = []struct {
	end   int // of the part, from the end of the year
	every []int
}{
	{0, []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000}},
	{3, []int{1, 2, 3, 6}},
	{6, []int{1, 2, 5, 10, 15}},
	{9, []int{1, 2, 3, 6, 12}},
	{12, []int{1, 2, 5, 10, 30}},
	{15, []int{1, 2, 5, 10, 30}},
}

var months = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// timeTicks are at the first elements of years, months, days or parts of days. They read the
// texts of labels, which are right in every calendar, and only some of them.
func (x *Axis) timeTicks(first, last int64, most int) []Tick {
	text := func(i int64) (year, whole string) {
		t := x.Labels.Text(i)
		end := strings.IndexByte(t[min(1, len(t)):], '-') + 1
		if end == 0 || len(t) < end+6 {
			return "", "" // missing, or beyond what the calendar counts
		}
		return t[:end], t
	}
	if a, _ := text(first); a == "" {
		return nil
	}
	if b, _ := text(last); b == "" {
		return nil
	}
	var few []Tick
	for level, part := range timeParts {
		prefix := func(i int64) string {
			year, whole := text(i)
			return whole[:min(len(year)+part.end, len(whole))]
		}
		bound := 60 * most
		if level == 0 {
			bound = 100_000
		}
		var at []int64 // the first element of each part
		var split func(lo, hi int64, a, b string) bool
		split = func(lo, hi int64, a, b string) bool {
			switch {
			case a == b:
				return true
			case hi-lo == 1:
				at = append(at, hi)
				return len(at) <= bound
			}
			mid := lo + (hi-lo)/2
			m := prefix(mid)
			return split(lo, mid, a, m) && split(mid, hi, m, b)
		}
		if first == 0 || prefix(first-1) != prefix(first) {
			at = append(at, first)
		}
		if !split(first, last, prefix(first), prefix(last)) {
			continue
		}
		for _, every := range part.every {
			var out []Tick
			for _, i := range at {
				p := prefix(i)
				n, _ := strconv.Atoi(strings.TrimPrefix(p[max(len(p)-2, 0):], "-"))
				if level == 0 {
					n, _ = strconv.Atoi(p)
				}
				if level == 1 || level == 2 { // they count from 1; the last days of a month are near the next
					n--
				}
				if n%every != 0 || level == 2 && every > 1 && n > 30-every {
					continue
				}
				out = append(out, Tick{float64(i) + 0.5, x.Labels.Number(i), timeTick(p, level)})
			}
			if len(out) > most {
				continue
			}
			if len(out) > 2 {
				return out
			}
			if len(out) > len(few) {
				few = out
			}
			break
		}
	}
	return few
}

// timeTick is the text of a tick at a part of a time.
func timeTick(prefix string, level int) string {
	switch level {
	case 0:
		return trimYear(prefix)
	case 1:
		i := strings.LastIndexByte(prefix, '-')
		if m, _ := strconv.Atoi(prefix[i+1:]); m >= 1 && m <= 12 {
			return months[m-1] + " " + trimYear(prefix[:i])
		}
		return prefix
	case 2:
		return prefix
	case 3:
		prefix += ":00"
	}
	return TimeText(strings.TrimSuffix(prefix, "T00:00"))
}

// trimYear is a year without zeros before it.
func trimYear(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(n)
	}
	return text
}

// Scale names the rows or columns of a window along the axis.
func (x *Axis) Scale(l Line) Scale {
	if l.Dim < 0 || l.Len == 0 {
		return Scale{}
	}
	s := Scale{Name: x.Name, Label: func(k int) string { return x.Label(l.Index(k)) }}
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
		slices.SortFunc(out, func(a, b tick) int { return int(math.Copysign(1, a.at-b.at)) })
		return out
	}
	return s
}

// isTime reports whether elements are times or spans.
func isTime(t dtype.Type) bool { return t.Kind() == dtype.Datetime || t.Kind() == dtype.Timedelta }
