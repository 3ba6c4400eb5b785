package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/pace"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// seriesJSON are lines along an axis.
type seriesJSON struct {
	Title string `json:"title"` // of the axis
	N     int64  `json:"n"`     // elements that the lines stand for
	// Run is how many elements the least and the greatest are drawn of, 1 if all are, and Every
	// is more than 1 if only every n-th is read.
	Run   int64 `json:"run"`
	Every int64 `json:"every"`
	// X are places, which ascend, with the label and the index of each.
	X      []float64 `json:"x"`
	Labels []string  `json:"labels"`
	Index  []int64   `json:"index"`
	// Lines are values at the places: null is missing, and "" lies between two others.
	Lines  []jsonFloats   `json:"lines"`
	Texts  [][]string     `json:"texts,omitempty"` // of times, spans and large integers, null of other lines
	XTicks []picture.Tick `json:"xticks"`
	YTicks []picture.Tick `json:"yticks"`
	Limits picture.Limits `json:"limits"`
	// Of lines with two units, Right is the axis of those that are OnRight.
	Units   string     `json:"units"`
	Right   *rightJSON `json:"right,omitempty"`
	OnRight []bool     `json:"onright,omitempty"`
}

type rightJSON struct {
	Units  string         `json:"units"`
	YTicks []picture.Tick `json:"yticks"`
	Limits picture.Limits `json:"limits"`
}

// between marks a place where a line has no value of its own. Float64 has many NaN.
var between = math.Float64frombits(0x7ff8_0000_0000_0b37)

type jsonFloats []float64

func (v jsonFloats) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case math.Float64bits(f) == math.Float64bits(between):
			b = append(b, `""`...)
		case math.IsNaN(f) || math.IsInf(f, 0):
			b = append(b, "null"...)
		default:
			b = strconv.AppendFloat(b, f, 'g', -1, 64)
		}
	}
	return append(b, ']'), nil
}

// maxSeries is the most lines of a request, maxElements the most elements that are read for one,
// and seriesBytes the memory for them.
const (
	maxSeries   = 16
	maxElements = 1 << 26
	seriesBytes = 3 * picture.PieceElements * windowBytes
)

// series answers with lines through selections that have one axis, the same of all:
//
//	/-/api/series?db=w&rev=main&path=temp&select=:,3,5&select=:,4,5&width=800[&part=real][&decode=cf][&xticks=8][&yticks=6][&from=v1.0[&difference]][&with=wind][&format=csv]
//
// Where elements share a column of the width, the least and the greatest of them are in the line.
// With from there is a line of that version too, or only the difference. format=csv has every element.
// Lines of the arrays of with, which have the same axes, follow; of all there are at most two units.
func (h *handler) series(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	req := picture.Request{Decoder: o.dec, Part: o.q.Get("part"), Numbers: true, Height: 1, Elements: maxElements}
	if req.Width, _, req.Chunks, err = sizes(o.q); err != nil {
		return err
	}
	selects := o.q["select"]
	if len(selects) == 0 {
		selects = []string{""}
	}
	if len(selects) > maxSeries {
		return httpError{http.StatusBadRequest, fmt.Errorf("select: want at most %d", maxSeries)}
	}
	arrays := []*opened{o}
	for _, path := range o.q["with"] {
		a, err := h.openIn(r, o.v, path)
		if err != nil {
			return err
		}
		if !slices.Equal(a.a.Shape(), o.a.Shape()) || !slices.Equal(a.a.DimensionNames(), o.a.DimensionNames()) || o.q.Has("from") || len(arrays) == maxSeries {
			return httpError{http.StatusBadRequest, fmt.Errorf("with=%s: want at most %d arrays of the same axes, and one version", serve.Clip(path), maxSeries)}
		}
		arrays = append(arrays, a)
	}
	if len(selects)*len(arrays) > maxSeries {
		return httpError{http.StatusBadRequest, fmt.Errorf("series: want at most %d lines", maxSeries)}
	}
	var requests []drawn
	for _, a := range arrays {
		for _, text := range selects {
			if req.Select, err = selectionOf(ctx, text, a.a, a.beside); err != nil {
				return err
			}
			req.Decoder = a.dec
			requests = append(requests, drawn{of: a, Request: req})
		}
	}
	if o.q.Get("format") == "csv" {
		return h.csv(w, r, o, requests)
	}
	end, err := h.slot(r, seriesBytes)
	if err != nil {
		return err
	}
	defer end()
	var windows []drawn
	for _, req := range requests {
		win := (*picture.Window)(nil)
		if from := o.q.Get("from"); from != "" && o.q.Has("difference") {
			req.Width *= 2
			win, _, err = h.difference(r, o.v, o.path, req.Request)
		} else if win, err = picture.ReadRow(ctx, req.of.a, req.Request); err == nil && from != "" {
			windows = append(windows, drawn{req.of, req.Request, win})
			win, err = h.rowOf(r, o, req.Request)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			err = httpError{http.StatusNotAcceptable, err}
		}
		if err != nil {
			return err
		}
		windows = append(windows, drawn{req.of, req.Request, win})
	}
	if !o.q.Has("difference") {
		shorten(windows)
	}
	answer, err := lines(ctx, o, windows)
	if err != nil {
		return err
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, answer)
}

// drawn is a line of an array, and its values.
type drawn struct {
	of *opened
	picture.Request
	*picture.Window
}

// text prints values that are no numbers; it is nil for numbers.
func (d drawn) text() func(float64) string {
	if d.of.q.Has("difference") {
		return picture.TextOf(spanOf(d.Type), nil)
	}
	return picture.TextOf(d.Type, d.of.dec)
}

// units are those of values, a name of times and spans.
func (d drawn) units() string {
	switch d.Type.Kind() {
	case dtype.Datetime:
		return "times"
	case dtype.Timedelta:
		return "spans of time"
	}
	return picture.Attribute(d.of.a, "units")
}

// rowOf reads the row of the version of from, as far as that version has it.
func (h *handler) rowOf(r *http.Request, o *opened, req picture.Request) (*picture.Window, error) {
	v, err := h.t.View(r.Context(), principal(r), o.q.Get("db"), o.q.Get("from"))
	if err != nil {
		return nil, err
	}
	defer v.Release()
	path := o.q.Get("was")
	if path == "" {
		path = o.path
	}
	old, err := h.openIn(r, v, path)
	if err != nil {
		return nil, err
	}
	req.Decoder = old.dec
	if req.Select, err = selectionOf(r.Context(), o.q.Get("fromselect"), old.a, old.beside); err != nil {
		return nil, err
	}
	return picture.ReadRow(r.Context(), old.a, req)
}

// shorten makes values of small floats those with the fewest digits, 271.35 and not 271.3500061035156.
func shorten(windows []drawn) {
	for _, win := range windows {
		if win.Type.Kind() != dtype.Float || win.Type.Bits() > 32 {
			continue
		}
		for k, v := range win.Values {
			if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64); err == nil {
				win.Values[k] = short
			}
		}
	}
}

// lines puts the values of windows at common places.
func lines(ctx context.Context, o *opened, windows []drawn) (*seriesJSON, error) {
	dim := windows[0].X.Dim
	x := picture.NewAxis(ctx, o.a, dim, o.beside)
	s := &seriesJSON{Title: x.Title(), Run: 1, Every: 1, X: []float64{}, Labels: []string{}, Index: []int64{}, Lines: []jsonFloats{}}
	all := map[int64]bool{}
	for _, win := range windows {
		for k := range win.X.Len {
			all[win.X.Index(k)] = true
		}
		s.Every = max(s.Every, win.X.Every)
		s.N = max(s.N, int64(win.X.Len)*win.X.Skip)
		if win.X.Skip > 1 {
			s.Run = max(s.Run, 2*win.X.Skip)
		}
	}
	s.Index = slices.Sorted(maps.Keys(all))
	place := ascending(x, s.Index)
	at := map[int64]int{}
	for k, i := range s.Index {
		at[i] = k
		s.X, s.Labels = append(s.X, place(i)), append(s.Labels, x.Label(i))
	}
	var units []string
	none := picture.Limits{Lo: math.Inf(1), Hi: math.Inf(-1)}
	both, kinds := [2]picture.Limits{none, none}, [2]drawn{}
	integers := slices.ContainsFunc(windows, func(win drawn) bool { _, ok := win.IntegerAt(0); return ok })
	for _, win := range windows {
		axis := slices.Index(units, win.units())
		if axis < 0 {
			axis = len(units)
			if units = append(units, win.units()); axis > 1 {
				return nil, httpError{http.StatusBadRequest, fmt.Errorf("lines have the units %s: a chart has at most two axes for values", serve.Clip(strings.Join(units, ", ")))}
			}
			kinds[axis] = win
		}
		s.OnRight = append(s.OnRight, axis == 1)
		limits, text := &both[axis], win.text()
		line := make(jsonFloats, len(s.Index))
		for k := range line {
			line[k] = between
		}
		for k, v := range win.Values {
			line[at[win.X.Index(k)]] = v
			if !math.IsInf(v, 0) && v == v {
				limits.Lo, limits.Hi = min(limits.Lo, v), max(limits.Hi, v)
			}
		}
		s.Lines = append(s.Lines, line)
		switch {
		case text != nil:
			var texts []string
			for _, v := range line {
				t := ""
				if v == v && !math.IsInf(v, 0) {
					t = text(v)
				}
				texts = append(texts, t)
			}
			s.Texts = append(s.Texts, texts)
		case integers:
			texts := make([]string, len(line))
			for k, v := range win.Values {
				t, ok := win.IntegerAt(k)
				if !ok && v == v {
					t = picture.Number(v, 0, 64)
				}
				texts[at[win.X.Index(k)]] = t
			}
			s.Texts = append(s.Texts, texts)
		default:
			s.Texts = append(s.Texts, nil)
		}
	}
	if !slices.ContainsFunc(s.Texts, func(texts []string) bool { return texts != nil }) {
		s.Texts = nil
	}
	wanted := func(name string) int {
		n, _ := strconv.Atoi(o.q.Get(name))
		return min(max(n, 2), 100)
	}
	if len(s.Index) > 0 {
		lo, hi := min(s.Index[0], s.Index[len(s.Index)-1]), max(s.Index[0], s.Index[len(s.Index)-1])
		for _, t := range x.Ticks(lo, hi+1, wanted("xticks")) {
			t.At = placeOf(t.At, place, lo, hi)
			s.XTicks = append(s.XTicks, t)
		}
		slices.SortFunc(s.XTicks, func(a, b picture.Tick) int { return cmp.Compare(a.At, b.At) })
	}
	for i, name := range units {
		l := both[i]
		if l.Lo > l.Hi {
			l = picture.Limits{Lo: 0, Hi: 1}
		}
		ticks := l.Ticks(wanted("yticks"), kinds[i].Type, kinds[i].text())
		if i == 0 {
			s.Units, s.YTicks, s.Limits = name, ticks, l
		} else {
			s.Right = &rightJSON{name, ticks, l}
		}
	}
	if s.Right == nil {
		s.OnRight = nil
	}
	return s, nil
}

// ascending returns the places of elements of an axis, in the units of its labels if these only ascend or
// descend, and brings indices, which ascend, into the order of the places.
func ascending(x *picture.Axis, index []int64) (place func(i int64) float64) {
	place = func(i int64) float64 { return float64(i) }
	// Another version may have more elements than there are labels.
	if len(index) == 0 || index[len(index)-1] >= x.Len || !x.Numbers() {
		return place
	}
	number, rise := x.Labels.Number, float64(x.Labels.Order())
	first := number(index[0])
	labelled := func(i int64) float64 { return (number(i) - first) * rise }
	same := false // neighbours, or texts
	for k := 1; k < len(index); k++ {
		same = same || !(labelled(index[k]) > labelled(index[k-1]))
	}
	if !same {
		place = labelled
	}
	if rise > 0 {
		return place
	}
	slices.Reverse(index)
	from := place // the result is assigned by the return
	last := from(index[0])
	return func(i int64) float64 { return last - from(i) }
}

// placeOf is where a place in elements, 0.5 in the middle of the first, lies between places of
// elements.
func placeOf(at float64, place func(int64) float64, lo, hi int64) float64 {
	i := min(max(int64(math.Floor(at-0.5)), lo), max(hi-1, lo))
	f := at - 0.5 - float64(i)
	if hi == lo || f == 0 {
		return place(i)
	}
	return place(i)*(1-f) + place(i+1)*f
}

// csv answers with every element of rows, a column for each, behind labels.
func (h *handler) csv(w http.ResponseWriter, r *http.Request, o *opened, requests []drawn) error {
	ctx := r.Context()
	var rows []*picture.Row
	for _, req := range requests {
		req.Request.Chunks = -1
		row, err := picture.NewRow(req.of.a, req.Request)
		if err == nil && len(rows) > 0 && (row.Dim() != rows[0].Dim() || row.Len() != rows[0].Len()) {
			err = httpError{http.StatusBadRequest, errors.New("select: want the same axis in all")}
		}
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if !h.memory.reserve(seriesBytes) {
		return errMemory
	}
	defer h.memory.left.Add(seriesBytes)
	if err := h.turn(ctx); err != nil {
		return err
	}
	axis := func() *picture.Axis {
		defer func() { <-h.windows }()
		return picture.NewAxis(ctx, o.a, rows[0].Dim(), o.beside)
	}()
	describe(w, o.v, o.q.Get("rev"))
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	if r.Method == http.MethodHead {
		return nil
	}
	out := bufio.NewWriterSize(w, tableBegin)
	err := h.writeRows(ctx, out, rows, axis, o.q["name"])
	if err == nil {
		err = out.Flush()
	}
	if sent, ok := w.(*pace.Writer); err != nil && ok && sent.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	return err
}

// writeRows waits for its turn to read each piece, so that a client that takes long to receive one
// keeps no other waiting.
func (h *handler) writeRows(ctx context.Context, w io.Writer, rows []*picture.Row, axis *picture.Axis, names []string) error {
	safe := func(text string) string { // a spreadsheet must not take a text for a formula
		if text != "" && strings.ContainsRune("=+@\t\r", rune(text[0])) {
			return "'" + text
		}
		return text
	}
	label, head := func(i int64) string { return strconv.FormatInt(i, 10) }, "index"
	if rows[0].Dim() >= 0 {
		head = axis.Name
		if axis.Labels != nil {
			label = axis.Labels.Text
		}
	}
	line := []string{safe(head)}
	for i := range rows {
		name := "value"
		if i < len(names) {
			name = names[i]
		}
		line = append(line, safe(name))
	}
	c := csv.NewWriter(w)
	if err := c.Write(line); err != nil {
		return err
	}
	read := func(lo, hi int64) ([][]string, error) {
		if err := h.turn(ctx); err != nil {
			return nil, err
		}
		defer func() { <-h.windows }()
		cells := make([][]string, hi-lo)
		for i := range cells {
			cells[i] = []string{safe(label(rows[0].Index(lo + int64(i))))}
		}
		for _, row := range rows {
			err := row.Texts(ctx, lo, hi, func(i int64, text []byte) {
				t := strings.TrimSuffix(string(bytes.Trim(text, `"`)), ".0")
				if t == "NaN" || t == "NaT" {
					t = ""
				}
				cells[i-lo] = append(cells[i-lo], safe(t))
			})
			if err != nil {
				return nil, err
			}
		}
		return cells, nil
	}
	piece := rows[0].Piece(1 << 16)
	for lo := int64(0); lo < rows[0].Len(); lo += piece {
		cells, err := read(lo, min(lo+piece, rows[0].Len()))
		if err != nil {
			return err
		}
		if err := c.WriteAll(cells); err != nil {
			return err
		}
	}
	return c.Error()
}
