package cf

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrLabel means that a text is no label of a coordinate: not a number, or not a
// time of its calendar.
var ErrLabel = errors.New("cf: bad label")

// maxLabels bounds the length of a coordinate that is read.
const maxLabels = 16 << 20

// Labels are the values of a coordinate, which is an array of one dimension with the
// name of the dimension. They are numbers, times, spans of time or texts. Safe for
// concurrent use.
type Labels struct {
	name string
	n    int
	// Of texts, ints and floats one is set. Times and spans are ints.
	texts  []string
	ints   []int64
	floats []float64
	dec    *Decoder // of ints and floats
	// order is 1 if no label is less than the one before it, -1 if none is
	// greater, else 0. One label is in ascending order.
	order int
	// grain is, for times, the longest of a day, hour, minute or second that
	// divides all of them, in nanoseconds; 1 if no such unit does.
	grain int64
	// slack is the largest difference of two floats that are treated as equal.
	slack float64
}

// ReadLabels reads the labels that a node holds, decoded by its attributes. The
// error is an error of reading, or errors.ErrUnsupported for a node that is no
// coordinate or whose type has no labels.
func ReadLabels(ctx context.Context, n *zarr.Node) (*Labels, error) {
	a, ok := n.Array()
	if !ok || len(a.Shape()) != 1 {
		return nil, fmt.Errorf("/%s holds no labels, it is not an array of one dimension: %w", n.Path(), errors.ErrUnsupported)
	}
	if a.Shape()[0] > maxLabels {
		return nil, fmt.Errorf("/%s: %d labels, the most is %d: %w", n.Path(), a.Shape()[0], maxLabels, zarr.ErrTooLarge)
	}
	l := &Labels{name: n.Name(), n: int(a.Shape()[0])}
	var err error
	switch a.Type().Kind() {
	case dtype.String, dtype.FixedUTF32, dtype.FixedBytes:
		l.texts, _, err = zarr.Read[string](ctx, a, zarr.Sel())
	default:
		err = l.readNumbers(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	l.setOrder()
	return l, nil
}

func (l *Labels) readNumbers(ctx context.Context, a *zarr.Array) (err error) {
	if l.dec, err = NewDecoder(a.Meta()); err != nil {
		return fmt.Errorf("/%s: %w", a.Path(), err)
	}
	t := l.dec.Type()
	switch t.Kind() {
	case dtype.Int, dtype.Uint, dtype.Float, dtype.Datetime, dtype.Timedelta:
	default:
		return fmt.Errorf("/%s: labels of type %v: %w", a.Path(), t, errors.ErrUnsupported)
	}
	raw := make([]byte, l.n*a.Type().Size())
	if err := a.ReadBytes(ctx, zarr.Sel(), raw); err != nil {
		return err
	}
	b, err := l.dec.Append(nil, raw)
	if err != nil {
		return fmt.Errorf("/%s: %w", a.Path(), err)
	}
	if t.Kind() == dtype.Float {
		l.floats = make([]float64, 0, l.n)
	} else {
		l.ints = make([]int64, 0, l.n)
	}
	size := t.Size()
	for ; len(b) >= size; b = b[size:] {
		var word [8]byte
		copy(word[:], b[:size])
		bits := binary.LittleEndian.Uint64(word[:])
		switch {
		case t.Kind() == dtype.Float:
			l.floats = append(l.floats, t.FloatValue(bits))
		case t.Kind() == dtype.Int:
			shift := 64 - 8*size
			l.ints = append(l.ints, int64(bits<<shift)>>shift)
		default:
			l.ints = append(l.ints, int64(bits))
		}
	}
	if l.dec.scaled && l.dec.in.Kind() != dtype.Float {
		// Neighbours are a scale factor apart. 3 × 0.1 is the label 0.3.
		l.slack = math.Abs(l.dec.scale) * 1e-6
	}
	if t.Kind() == dtype.Datetime {
		l.setGrain()
	}
	return nil
}

func (l *Labels) setGrain() {
	res := l.dec.resolution()
	for _, l.grain = range []int64{day, 3600e9, 60e9, 1e9, 1} {
		per, fits := max(l.grain/max(res, 1), 1), true
		for _, v := range l.ints {
			if v%per != 0 && v != NaT {
				fits = false
				break
			}
		}
		if fits {
			return
		}
	}
}

func (l *Labels) setOrder() {
	up, down := true, true
	for i := range l.n - 1 {
		var up1, down1 bool
		switch {
		case l.dec == nil:
			up1, down1 = l.texts[i] <= l.texts[i+1], l.texts[i] >= l.texts[i+1]
		case l.floats != nil: // a NaN is in no order
			up1, down1 = l.floats[i] <= l.floats[i+1], l.floats[i] >= l.floats[i+1]
		default:
			c := l.compareInts(l.ints[i], l.ints[i+1])
			ok := !l.isNaT(i) && !l.isNaT(i+1)
			up1, down1 = c <= 0 && ok, c >= 0 && ok
		}
		up, down = up && up1, down && down1
	}
	switch {
	case up:
		l.order = 1
	case down:
		l.order = -1
	}
}

// compareInts compares labels, unsigned if their type is.
func (l *Labels) compareInts(a, b int64) int {
	if l.dec.Type().Kind() == dtype.Uint {
		return cmp.Compare(uint64(a), uint64(b))
	}
	return cmp.Compare(a, b)
}

func (l *Labels) isNaT(i int) bool {
	k := l.dec.Type().Kind()
	return (k == dtype.Datetime || k == dtype.Timedelta) && l.ints[i] == NaT
}

// Order is 1 if labels ascend, -1 if they descend, and 0 if they do neither. Equal
// neighbours are allowed; one label ascends.
func (l *Labels) Order() int { return l.order }

// Len is the number of labels.
func (l *Labels) Len() int64 { return int64(l.n) }

// Times reports whether labels are times.
func (l *Labels) Times() bool { return l.dec != nil && l.dec.Type().Kind() == dtype.Datetime }

// Number is the i-th label as a number, the count of a time or span; NaN for texts and for
// missing labels.
func (l *Labels) Number(i int64) float64 {
	switch {
	case l.dec == nil || l.floats == nil && l.isNaT(int(i)):
		return math.NaN()
	case l.floats != nil:
		return l.floats[i]
	case l.dec.Type().Kind() == dtype.Uint:
		return float64(uint64(l.ints[i]))
	}
	return float64(l.ints[i])
}

// Text is the i-th label for people.
func (l *Labels) Text(i int64) string {
	switch {
	case l.dec == nil:
		return l.texts[i]
	case l.floats != nil:
		form := byte('f')
		if size := math.Abs(l.floats[i]); size != 0 && size < 1e-6 || size >= 1e21 {
			form = 'e'
		}
		return strconv.FormatFloat(l.floats[i], form, -1, max(l.dec.Type().Bits(), 32))
	case l.dec.HasText():
		text, _ := l.dec.AppendText(nil, binary.LittleEndian.AppendUint64(nil, uint64(l.ints[i])))
		return string(text) // times and spans have a text
	case l.dec.Type().Kind() == dtype.Datetime:
		return string(AppendDatetime(nil, l.dec.Type(), l.ints[i]))
	case l.dec.Type().Kind() == dtype.Timedelta:
		return string(AppendTimedelta(nil, l.dec.Type(), l.ints[i]))
	case l.dec.Type().Kind() == dtype.Uint:
		return strconv.FormatUint(uint64(l.ints[i]), 10)
	}
	return strconv.FormatInt(l.ints[i], 10)
}

// Find returns the elements [lo, hi) that have the label. A time such as 2020-02
// is the label of every element in that month; a span such as 6h or '1 day 06:00' is
// the label of the elements of that length. one means that the label names one
// element and not a range, as "2020-02" does among days even if it contains one day:
// xarray's sel drops the dimension by this rule. The error for a missing label is
// [zarr.ErrNotFound].
func (l *Labels) Find(label string) (lo, hi int64, one bool, err error) {
	q, err := l.parse(label, true)
	if err != nil {
		return 0, 0, false, err
	}
	from, to, err := l.run(q, label)
	return int64(from), int64(to), to-from == 1 && q.span <= max(l.grain, 1), err
}

// From returns the first element of the range that begins with a label: the number of labels if none is in it.
func (l *Labels) From(label string) (int64, error) {
	lo, _, err := l.findRange(&label, nil)
	return lo, err
}

// Nearest returns the element whose label is nearest to a number, time or span, the greater one of two that are
// as near, as xarray's sel(method="nearest") does. Texts have no nearest: [ErrLabel].
func (l *Labels) Nearest(label string) (int64, error) {
	if l.dec == nil {
		return 0, fmt.Errorf("%w: %q: the labels of %s are texts, and none is nearest", ErrLabel, label, l.name)
	}
	var far func(i int) float64
	if k := l.dec.Type().Kind(); k == dtype.Datetime || k == dtype.Timedelta {
		parse := l.dec.parseTime
		if k == dtype.Timedelta {
			parse = func(text string) (first, end, span int64, err error) {
				first, end, _, err = l.dec.parseSpan(text)
				return first, end, 0, err
			}
		}
		first, _, _, err := parse(label)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrLabel, err)
		}
		far = func(i int) float64 { return float64(l.ints[i] - first) }
	} else {
		f, err := strconv.ParseFloat(label, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
			return 0, fmt.Errorf("%w: %q is not a number, as the labels of %s are", ErrLabel, label, l.name)
		}
		far = func(i int) float64 { return l.Number(int64(i)) - f }
	}
	best, least := int64(-1), math.Inf(1)
	for i := range l.n {
		if math.IsNaN(l.Number(int64(i))) {
			continue
		}
		d := far(i)
		if math.Abs(d) < math.Abs(least) || d == -least && d > 0 {
			best, least = int64(i), d
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("%s has no label near %q; %s: %w", l.name, label, l.describe(), zarr.ErrNotFound)
	}
	return best, nil
}

// findRange returns the elements [lo, hi) from the label first to the label
// last, both included, as xarray's sel(slice(first, last)) does: first comes
// first in the coordinate: where labels descend, first is greater than last. In
// the wrong order, or between two neighbours, the range is empty and lo equals
// hi. nil is an open end. With labels in no order the error is
// [zarr.ErrNotFound] unless first and last are among them, once each.
//
// Descending times are selected in the same way; pandas refuses most of these
// ranges.
func (l *Labels) findRange(first, last *string) (lo, hi int64, err error) {
	from, to := 0, l.n
	if first != nil {
		if from, _, err = l.bounds(*first); err != nil {
			return 0, 0, err
		}
	}
	if last != nil {
		if _, to, err = l.bounds(*last); err != nil {
			return 0, 0, err
		}
	}
	return int64(from), int64(max(from, to)), nil
}

// bounds returns where a range begins, and where one ends, that has the label at
// that end.
func (l *Labels) bounds(label string) (begin, end int, err error) {
	q, err := l.parse(label, false)
	if err != nil {
		return 0, 0, err
	}
	if l.order != 0 {
		begin = sort.Search(l.n, func(i int) bool { return q.side(i)*l.order >= 0 })
		end = sort.Search(l.n, func(i int) bool { return q.side(i)*l.order > 0 })
		return begin, end, nil
	}
	if begin, end, err = l.run(q, label); errors.Is(err, zarr.ErrNotFound) {
		err = fmt.Errorf("%w: the labels are in no order, so that both ends of a range must be among them", err)
	}
	return begin, end, err
}

// run returns the elements with a label, which must follow each other.
func (l *Labels) run(q query, label string) (lo, hi int, err error) {
	n := 0
	for i := range l.n {
		if q.side(i) == 0 {
			if n++; n == 1 {
				lo = i
			}
			hi = i + 1
		}
	}
	switch {
	case n == 0:
		return 0, 0, fmt.Errorf("%s has no label %q; %s: %w", l.name, label, l.describe(), zarr.ErrNotFound)
	case hi-lo != n:
		return 0, 0, fmt.Errorf("%s has the label %q %d times, with others between them: %w", l.name, label, n, errors.ErrUnsupported)
	}
	return lo, hi, nil
}

// describe returns a text with the range of the labels.
func (l *Labels) describe() string {
	if l.n == 0 {
		return l.name + " has no labels"
	}
	return fmt.Sprintf("%s goes %s from %s to %s", l.name,
		map[int]string{1: "up", 0: "up and down", -1: "down"}[l.order], l.Text(0), l.Text(l.Len()-1))
}

// query is a label to find.
type query struct {
	// side compares the i-th label with the query: -1 below, 0 equal, 1 above.
	// A missing label gives missingSide.
	side func(i int) int
	// span is the length of a time in nanoseconds, 0 of anything else.
	span int64
}

// missingSide is the side of NaN and NaT.
const missingSide = 2

// parse reads a label; exact says that a span is not the whole hour or day that a range
// up to it includes, as in pandas.
func (l *Labels) parse(label string, exact bool) (query, error) {
	switch {
	case l.dec == nil:
		return query{side: func(i int) int { return cmp.Compare(l.texts[i], label) }}, nil
	case l.dec.Type().Kind() == dtype.Datetime:
		first, end, span, err := l.dec.parseTime(label)
		if err != nil {
			return query{}, fmt.Errorf("%w: %w", ErrLabel, err)
		}
		return query{span: span, side: l.sideOfTime(first, end)}, nil
	case l.dec.Type().Kind() == dtype.Timedelta:
		first, end, whole, err := l.dec.parseSpan(label)
		if err != nil {
			return query{}, fmt.Errorf("%w: %w", ErrLabel, err)
		}
		switch {
		case exact && whole:
			end = first + 1
		case exact: // no count is equal to the span
			end = first
		}
		return query{side: l.sideOfTime(first, end)}, nil
	}
	f, err := strconv.ParseFloat(label, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
		return query{}, fmt.Errorf("%w: %q is not a number, as the labels of %s are", ErrLabel, label, l.name)
	}
	if l.floats == nil {
		return query{side: l.sideOfInt(label, f)}, nil
	}
	if t := l.dec.Type(); t.Bits() < 64 {
		if bits, ok := t.RoundFloat(f); ok { // the label 0.1 of a float32
			f = t.FloatValue(bits)
		}
	}
	return query{side: func(i int) int {
		switch v := l.floats[i]; {
		case v == f || math.Abs(v-f) <= l.slack:
			return 0
		case v < f:
			return -1
		case v > f:
			return 1
		}
		return missingSide
	}}, nil
}

// sideOfTime compares times or spans with the range from first up to, but not including, end.
func (l *Labels) sideOfTime(first, end int64) func(i int) int {
	return func(i int) int {
		switch v := l.ints[i]; {
		case v == NaT:
			return missingSide
		case v < first:
			return -1
		case v >= end:
			return 1
		}
		return 0
	}
}

// sideOfInt compares integers without making them floats, if the label is one.
func (l *Labels) sideOfInt(label string, f float64) func(i int) int {
	unsigned := l.dec.Type().Kind() == dtype.Uint
	if n, err := strconv.ParseInt(label, 10, 64); err == nil && (n >= 0 || !unsigned) {
		return func(i int) int { return l.compareInts(l.ints[i], n) }
	}
	if n, err := strconv.ParseUint(label, 10, 64); err == nil && unsigned {
		return func(i int) int { return cmp.Compare(uint64(l.ints[i]), n) }
	}
	return func(i int) int {
		v := float64(l.ints[i])
		if unsigned {
			v = float64(uint64(l.ints[i]))
		}
		return cmp.Compare(v, f)
	}
}
