package picture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Request is the part of an array to read for a picture. The zero Request is the whole array.
type Request struct {
	// Select are the elements. The last two axes of its result are y and x; a result of one
	// axis is a row. Axes before them are read at their first index. Behind y and x may be
	// the whole of an axis of 3 or 4 uint8, which are a colour. [zarr.Points] have no axes
	// and are refused.
	Select zarr.Selection
	// Transposed makes the first of the two axes x, and the second y.
	Transposed bool
	// Up puts the last row on top.
	Up bool
	// Decoder decodes elements and says which are missing; nil shows them as they are stored.
	Decoder *cf.Decoder
	// Part is "real", "imag" or "" for the magnitude of complex numbers, and a field of structs.
	Part string
	// Numbers shows elements of colours as numbers, and Colours those that no name says to be some.
	Numbers, Colours bool
	// Roll moves elements along a dimension before Select selects. [ReadRow] does not.
	Roll Roll
	// Log takes limits of positive values only, at equal distances for equal ratios.
	Log bool
	// Width and Height are the most columns and rows of the result; 0 is 1024.
	Width, Height int
	// Elements is the most elements of a row that are read, 0 is 1<<28; of a longer row it is an
	// eighth of them. A row of any number of chunks has any number of elements.
	Elements int64
	// Chunks is the most chunks (inner chunks of shards) that are read; 0 is 1024, and a
	// negative number is no limit. Chunks that the other axes of the array cut through count
	// once. To refine a picture, ask again with more.
	Chunks int64
}

// Line is how rows or columns of a [Window] lie along an axis of the array: the k-th has
// index Start + k·Step in dimension Dim.
type Line struct {
	// Dim is the dimension of the array, -1 where the result has no such axis.
	Dim int
	// Start and Step are in elements. Step is negative where the axis was turned around.
	// Of a list of indices Step is 0, and only Index knows them.
	Start, Step int64
	// Len is the number of rows or columns.
	Len int
	// Skip is the number of selected elements for each row or column: 1 if all are there.
	Skip int64
	// Every is more than 1 if a row has the least and greatest only of every n-th element.
	Every int64

	list []int64
}

// Index is the index of the k-th row or column in the dimension.
func (l Line) Index(k int) int64 {
	if l.list != nil {
		return l.list[k]
	}
	return l.Start + int64(k)*l.Step
}

// Window is a part of an array, read for display.
type Window struct {
	// Values are the elements in rows from the top, columns from the left: Y.Len × X.Len.
	// Missing elements are NaN, complex numbers their magnitude, bool 0 and 1, times and
	// spans their count, colours their brightness. The caller owns the slice.
	Values []float64
	// words are the elements of an integer type with values that a float64 may not have, in the
	// order of Values; nil for other types.
	words []uint64
	// Pixels are red, green, blue and opacity of each element of an array of colours; nil
	// for other arrays.
	Pixels []uint8
	// Type is the type of the elements: decoded, if the request has a decoder.
	Type dtype.Type
	// Y and X say where rows and columns lie.
	Y, X Line
	// Select are the elements that were read, in the order of the array.
	Select zarr.Selection
	// At is the index of the element at the top left.
	At []int64
	// Chunks is the number of chunks with elements in the window, stored or not.
	Chunks int64
}

// Numeric returns an error, errors.ErrUnsupported, if elements of a type are no numbers,
// such as text and structs.
func Numeric(t dtype.Type) error {
	switch t.Kind() {
	case dtype.Bool, dtype.Int, dtype.Uint, dtype.Float, dtype.Complex, dtype.Datetime, dtype.Timedelta:
		return nil
	}
	return fmt.Errorf("elements of type %v are no numbers and have no picture: %w", t, errors.ErrUnsupported)
}

// Read reads a window. A selection that is larger than the window, or lies in more chunks than
// allowed, is read at every n-th element of each axis: memory is bounded by the window and the
// chunks in work, and chunks without a wanted element are not read. Errors are as for [Numeric],
// errors of reading, [zarr.ErrSelection], and the error of ctx.
func Read(ctx context.Context, a *zarr.Array, r Request) (*Window, error) {
	t := a.Type()
	if r.Decoder != nil {
		t = r.Decoder.Type()
	}
	fail := func(err error) (*Window, error) { return nil, fmt.Errorf("picture of /%s: %w", a.Path(), err) }
	shownType, _, err := partOf(t, nil, r.Part)
	if err != nil {
		return fail(err)
	}
	axes, at, err := a.Axes(r.Select)
	if err != nil {
		return nil, err
	}
	for _, x := range axes {
		if x.Len == 0 {
			return fail(fmt.Errorf("%w: nothing is selected", zarr.ErrSelection))
		}
	}
	axes = slices.DeleteFunc(axes, func(x zarr.Axis) bool { return x.Dim < 0 })
	depth := r.depth(a, t, axes)
	if depth > 1 {
		axes = axes[:len(axes)-1]
	}
	axes = shown(axes, at)
	none := zarr.Axis{Dim: -1, Len: 1}
	y, x := line{Axis: none}, line{Axis: none}
	if len(axes) > 0 {
		x.Axis = axes[len(axes)-1]
	}
	if len(axes) > 1 {
		y.Axis = axes[0]
	}
	if r.Transposed {
		r.Width, r.Height = r.Height, r.Width
	}
	y.limit(chunkLength(a, y.Dim), r.Height)
	x.limit(chunkLength(a, x.Dim), r.Width)
	for _, l := range []*line{&y, &x} {
		if l.Dim >= 0 && l.Dim == r.Roll.Dim {
			l.roll, l.size = r.Roll.By, a.Shape()[l.Dim]
		}
	}
	most := r.Chunks
	if most == 0 {
		most = 1024
	}
	for most > 0 && y.chunks() > most/x.chunks() && y.chunks()*x.chunks() > 1 {
		if x.chunks() > y.chunks() {
			x.coarser()
		} else {
			y.coarser()
		}
	}
	for size := int64(a.Type().Size()); size > wideElement && y.count()*x.count() > max(WideBytes/size, 1); {
		if x.count() > y.count() {
			x.fewer()
		} else {
			y.fewer()
		}
	}
	w := &Window{Type: shownType, Y: y.line(at), X: x.line(at), Select: zarr.Orthogonal(at...), Chunks: y.chunks() * x.chunks()}
	n := w.Y.Len * w.X.Len * depth
	b := make([]byte, n*a.Type().Size())
	if err := a.ReadBytes(ctx, w.Select, b); err != nil {
		return nil, err
	}
	if r.Decoder != nil {
		if b, err = r.Decoder.Append(nil, b); err != nil {
			return fail(err)
		}
	}
	if depth > 1 {
		w.setPixels(b, depth)
	} else {
		_, b, _ = partOf(t, b, r.Part)
		w.Values = AppendFloats(make([]float64, 0, n), shownType, b)
		w.keepWords(integerWords(shownType, b))
	}
	if r.Transposed {
		w.transpose()
	}
	if r.Up {
		w.TurnUp()
	}
	return w, w.setAt(at)
}

// exactInts is where integers begin that a float64 may not have.
const exactInts = 1 << 53

// Elements of more bytes than a number are read in smaller parts.
const (
	wideElement = 16
	WideBytes   = 64 << 20 // of a window of such elements, which may be in memory twice
)

// pieceOf is how many elements of a size take the memory of n numbers.
func pieceOf(n int64, size int) int64 { return max(n*8/max(int64(size), 8), 1) }

// integerWords are elements of a 64-bit integer type, nil of other types.
func integerWords(t dtype.Type, b []byte) (words []uint64) {
	if k := t.Kind(); k != dtype.Int && k != dtype.Uint || t.Bits() != 64 {
		return nil
	}
	words = make([]uint64, 0, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		words = append(words, binary.LittleEndian.Uint64(b))
	}
	return words
}

// keepWords keeps the words of all values, if one needs it.
func (w *Window) keepWords(words []uint64) {
	if slices.ContainsFunc(w.Values, func(v float64) bool { return math.Abs(v) >= exactInts }) {
		w.words = words
	}
}

// IntegerAt returns all digits of the k-th value; ok is false if the float64 has them.
func (w *Window) IntegerAt(k int) (text string, ok bool) {
	switch {
	case w.words == nil:
		return "", false
	case w.Type.Kind() == dtype.Int:
		return strconv.FormatInt(int64(w.words[k]), 10), true
	}
	return strconv.FormatUint(w.words[k], 10), true
}

// Integer returns all digits of an element of an integer type whose value is v in Values; ok is
// false for values of other types, and for a place without an element. Of several elements with
// that value it is the greatest, or the least.
func (w *Window) Integer(v float64, greatest bool) (text string, ok bool) {
	signed := w.Type.Kind() == dtype.Int
	switch {
	case !signed && w.Type.Kind() != dtype.Uint || v != math.Trunc(v) || math.IsInf(v, 0):
		return "", false
	case math.Abs(v) < exactInts:
		return strconv.FormatInt(int64(v), 10), true
	}
	for _, word := range w.words {
		number, own := strconv.FormatUint(word, 10), float64(word)
		if signed {
			number, own = strconv.FormatInt(int64(word), 10), float64(int64(word))
		}
		// Numbers of one float64 have as many digits and one sign.
		if own == v && (!ok || (number > text) == (greatest == (v > 0))) {
			text, ok = number, true
		}
	}
	return text, ok
}

// setAt sets the index of the first element.
func (w *Window) setAt(at []zarr.Index) (err error) {
	w.At = make([]int64, len(at))
	for d, x := range at {
		switch d {
		case w.Y.Dim:
			w.At[d] = w.Y.Index(0)
		case w.X.Dim:
			w.At[d] = w.X.Index(0)
		default: // one index, or all of a colour
			if text := zarr.Sel(x).String(); !strings.Contains(text, ":") {
				if w.At[d], err = strconv.ParseInt(text, 10, 64); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// depth is the number of uint8 in a colour, and 1 for elements that are values.
func (r Request) depth(a *zarr.Array, t dtype.Type, axes []zarr.Axis) int {
	if len(axes) < 3 || r.Numbers || !HasColours(a, r.Colours) || t.Bits() != 8 {
		return 1
	}
	last := axes[len(axes)-1]
	if d := len(a.Shape()) - 1; last.Dim != d || last.Step() != 1 || last.Len != a.Shape()[d] {
		return 1
	}
	return int(last.Len)
}

// colourNames are names of an axis of colours.
var colourNames = []string{"c", "rgb", "rgba", "channel", "channels", "color", "colour", "colors", "colours", "band", "bands", "sample", "samples", "s"}

// HasColours reports whether the last axis of an array is the colours of pixels: 3 or 4 uint8,
// whose axis has a name of colours, or if an attribute says so. 3 without names of axes are
// taken for colours too, and any with a true guess.
func HasColours(a *zarr.Array, guess bool) bool {
	shape, t := a.Shape(), a.Type()
	d := len(shape) - 1
	if d < 2 || t.Kind() != dtype.Uint || t.Bits() != 8 || shape[d] != 3 && shape[d] != 4 {
		return false
	}
	for _, name := range []string{"photometric", "photometric_interpretation", "PhotometricInterpretation", "color_space", "colorspace", "color_mode", "mode"} {
		guess = guess || strings.Contains(strings.ToLower(attribute(a.Meta(), name)), "rgb")
	}
	named := func(name string) bool { return name != "" }
	switch names := a.DimensionNames(); {
	case guess:
		return true
	case slices.ContainsFunc(names, named):
		return d < len(names) && slices.Contains(colourNames, strings.ToLower(names[d]))
	}
	return shape[d] == 3
}

// partOf returns the type of a part of elements and, of elements in memory layout, their parts;
// see [Request.Part]. An error is as for [Numeric].
func partOf(t dtype.Type, b []byte, part string) (dtype.Type, []byte, error) {
	sub, off := t, 0
	switch {
	case t.Kind() == dtype.Complex && (part == "real" || part == "imag"):
		if sub = dtype.NewFloat(t.Bits() / 2); t.Format() != "" {
			sub, _ = dtype.NewNarrowFloat(t.Format()) // the type has it
		}
		if part == "imag" {
			off = t.Size() / 2
		}
	case t.Kind() == dtype.Struct && !t.Variable():
		i := slices.IndexFunc(t.Fields(), func(f dtype.Field) bool {
			return f.Name == part || part == "" && Numeric(f.Type) == nil
		})
		if i >= 0 {
			sub, off = t.Fields()[i].Type, t.Fields()[i].Offset
		}
	}
	if err := Numeric(sub); err != nil || sub.Equal(t) {
		return sub, b, err
	}
	var out []byte
	for size := t.Size(); len(b) >= size; b = b[size:] {
		out = append(out, b[off:off+sub.Size()]...)
	}
	return sub, out, nil
}

// Parts are the names of the parts of elements that have more than one number; see [Request.Part].
func Parts(t dtype.Type) (names []string) {
	switch t.Kind() {
	case dtype.Complex:
		return []string{"magnitude", "real", "imag"}
	case dtype.Struct:
		for _, f := range t.Fields() {
			if Numeric(f.Type) == nil {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// setPixels sets colours of so many bytes each, and their brightness.
func (w *Window) setPixels(b []byte, depth int) {
	for c := range slices.Chunk(b, depth) {
		p := [4]uint8{c[0], c[1], c[2], 255}
		if depth == 4 {
			p[3] = c[3]
		}
		w.Pixels = append(w.Pixels, p[:]...)
		w.Values = append(w.Values, 0.299*float64(c[0])+0.587*float64(c[1])+0.114*float64(c[2]))
	}
}

// shown returns the last two axes through the array, or fewer, and sets the indices of the
// other axes. Axes of one element are passed over where there are two without them.
func shown(axes []zarr.Axis, at []zarr.Index) []zarr.Axis {
	for len(axes) > 2 {
		i := max(0, slices.IndexFunc(axes, func(x zarr.Axis) bool { return x.Len == 1 }))
		at[axes[i].Dim] = zarr.At(axes[i].Index(0))
		axes = slices.Delete(axes, i, i+1)
	}
	return axes
}

// transpose makes rows of columns.
func (w *Window) transpose() {
	cols := w.X.Len
	w.Y, w.X = w.X, w.Y
	w.arrange(func(y, x int) int { return x*cols + y })
}

// TurnUp puts the last row on top.
func (w *Window) TurnUp() {
	w.Y.Start, w.Y.Step = w.Y.Index(w.Y.Len-1), -w.Y.Step
	slices.Reverse(w.Y.list)
	w.arrange(func(y, x int) int { return (w.Y.Len-1-y)*w.X.Len + x })
}

// arrange takes the element for each row and column from another place.
func (w *Window) arrange(from func(y, x int) int) {
	values, pixels := make([]float64, 0, len(w.Values)), make([]uint8, 0, len(w.Pixels))
	words := make([]uint64, 0, len(w.words))
	for y := range w.Y.Len {
		for x := range w.X.Len {
			i := from(y, x)
			values = append(values, w.Values[i])
			if w.words != nil {
				words = append(words, w.words[i])
			}
			if w.Pixels != nil {
				pixels = append(pixels, w.Pixels[4*i:4*i+4]...)
			}
		}
	}
	if w.words != nil {
		w.words = words
	}
	if w.Values = values; w.Pixels != nil {
		w.Pixels = pixels
	}
}

// line is an axis of a selection that is read at every skip-th element.
type line struct {
	zarr.Axis
	skip  int64
	chunk int64 // length of chunks along the axis
	// Index i of a rolled axis is the element (i+roll) mod size.
	roll, size int64
}

// chunkLength is the length of chunks along a dimension: of inner ones in shards, and on
// average where it varies.
func chunkLength(a *zarr.Array, dim int) int64 {
	m := a.Meta()
	switch inner := a.InnerChunks(); {
	case dim < 0:
		return 1
	case inner != nil:
		return int64(inner[dim])
	case m.Grid.Regular() != nil:
		return int64(m.Grid.Regular()[dim])
	}
	return max(m.Shape[dim]/max(m.Grid.Count(dim, m.Shape[dim]), 1), 1)
}

func (l *line) limit(chunk int64, most int) {
	if most <= 0 {
		most = 1024
	}
	l.chunk, l.skip = chunk, (l.Len-1)/int64(most)+1
}

// count is the number of elements that are read.
func (l *line) count() int64 { return (l.Len-1)/l.skip + 1 }

// chunks is the number of chunks that hold them, or one more.
func (l *line) chunks() int64 {
	n := l.count()
	if l.Step() == 0 {
		return n
	}
	first, last := l.Index(0)/l.chunk, l.Index((n-1)*l.skip)/l.chunk
	if l.roll != 0 { // it may begin and end in one
		last++
	}
	return min(n, max(first-last, last-first)+1)
}

// coarser takes fewer elements, so that fewer chunks are read.
func (l *line) coarser() {
	n := l.chunks()
	l.skip = max(l.skip+1, (l.Len-1)/max(n-1-n/16, 1)+1)
}

// fewer takes fewer elements.
func (l *line) fewer() { l.skip = l.skip*5/4 + 1 }

// part is the index of the elements lo to hi, less one, of those that are read of an axis of a step.
func (l *line) part(lo, hi int64) zarr.Index {
	end := l.Index((hi-1)*l.skip) + 1
	if l.Step() < 0 {
		if end -= 2; end < 0 {
			end = zarr.None
		}
	}
	return zarr.Slice(l.Index(lo*l.skip), end, l.Step()*l.skip)
}

// line sets the index of the axis, and describes it.
func (l *line) line(at []zarr.Index) Line {
	n := l.count()
	out := Line{Dim: l.Dim, Start: l.Index(0), Step: l.Step() * l.skip, Len: int(n), Skip: l.skip}
	switch {
	case l.Dim < 0:
		out.Step = 0
	case l.Step() != 0 && l.roll == 0:
		at[l.Dim] = l.part(0, n)
	default:
		var list, from []int64
		for k := range n {
			i := l.Index(k * l.skip)
			list = append(list, i)
			if l.roll != 0 {
				i = (i + l.roll) % l.size
			}
			from = append(from, i)
		}
		if l.Step() == 0 {
			out.list = list
		}
		at[l.Dim] = zarr.List(from...)
	}
	return out
}

// AppendFloats appends packed elements in memory layout of a type that [Numeric] accepts,
// as [Window.Values] has them.
func AppendFloats(dst []float64, t dtype.Type, b []byte) []float64 {
	size := t.Size()
	part := t
	if t.Kind() == dtype.Float && t.Format() == "" && size == 4 { // of most arrays
		for ; len(b) >= 4; b = b[4:] {
			dst = append(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
		return dst
	}
	if t.Kind() == dtype.Complex {
		part = dtype.NewFloat(64)
		if t.Format() != "" {
			part, _ = dtype.NewNarrowFloat(t.Format()) // the type has it
		} else {
			part = dtype.NewFloat(t.Bits() / 2)
		}
		size /= 2
	}
	number := func(b []byte) float64 {
		var word [8]byte
		copy(word[:], b)
		bits := binary.LittleEndian.Uint64(word[:])
		switch t.Kind() {
		case dtype.Float, dtype.Complex:
			return part.FloatValue(bits)
		case dtype.Uint, dtype.Bool:
			return float64(bits)
		}
		shift := 64 - 8*size
		n := int64(bits<<shift) >> shift
		if n == math.MinInt64 && t.Kind() != dtype.Int {
			return math.NaN() // NaT
		}
		return float64(n)
	}
	for ; len(b) >= t.Size(); b = b[t.Size():] {
		v := number(b[:size])
		if t.Kind() == dtype.Complex {
			v = math.Hypot(v, number(b[size:2*size]))
		}
		dst = append(dst, v)
	}
	return dst
}
