package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Bounds of a window.
const (
	maxWindow       = 2048    // rows, and columns
	maxWindowChunks = 1 << 20 // that are read
	windowBytes     = 28      // of memory for each element: read, decoded and sent
)

// windowSlots is the number of windows that are read at a time. More windows wait.
var windowSlots = max(2, runtime.GOMAXPROCS(0))

// lineJSON is how rows or columns lie along an axis; see [picture.Line].
type lineJSON struct {
	Dim   int   `json:"dim"`
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
	Len   int   `json:"len"`
	Skip  int64 `json:"skip"`
}

// windowJSON describes a window, in the header of its response.
type windowJSON struct {
	Y      lineJSON `json:"y"`
	X      lineJSON `json:"x"`
	Chunks int64    `json:"chunks"` // that hold its elements
	// Offset is to be added to the sent values: a float32 has few digits for values
	// that are large and differ little.
	Offset float64 `json:"offset"`
	// Wide says that the values are float64, because a float32 has no place for them: times, spans,
	// large integers, and floats beyond its range. Times says that they are times or spans.
	Wide  bool   `json:"wide,omitempty"`
	Times bool   `json:"times,omitempty"`
	Type  string `json:"data_type"`
	// Up says that rows belong from the bottom to the top; only if requested.
	Up *bool `json:"up,omitempty"`
	// More says that chunks which differ were left out of a difference.
	More bool `json:"more,omitempty"`
	*coloursJSON
}

// coloursJSON describes a window of colours.
type coloursJSON struct {
	// Pixels says that the elements are red, green, blue and opacity of their own.
	Pixels bool `json:"pixels,omitempty"`
	// Limits are the values of the first and the last colour, and Ends their texts.
	Limits picture.Limits `json:"limits"`
	Ends   [2]string      `json:"ends"`
	// All and Most are the limits of all values in sight, and of those from the 2nd to the 98th
	// percentile; null without any.
	All  *picture.Limits `json:"all"`
	Most *picture.Limits `json:"most"`
	// Bins count values in sight between the limits, and Missing those that are none.
	Bins    []int64 `json:"bins"`
	Missing int     `json:"missing"`
	// Under and Over count values in sight beyond the limits. Bar are labels of the bar, at places
	// from 0 to 1, and so many classes take its place: their elements are bytes from 1, others 255.
	Under   int           `json:"under"`
	Over    int           `json:"over"`
	Bar     []barTickJSON `json:"bar"`
	Classes int           `json:"classes,omitempty"`
	// At are the labels of all axes at the first element.
	At []string `json:"at"`
	// Ticks are labels along rows and columns.
	Ticks struct {
		Y []picture.Tick `json:"y"`
		X []picture.Tick `json:"x"`
	} `json:"ticks"`
}

type barTickJSON struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// window answers with a part of an array for a screen: float32 or float64, little-endian, in
// rows, NaN for missing values. The header Zarrdb-Window describes it as a windowJSON.
//
//	/-/api/window?db=w&rev=main&path=temp&select=3,:,0:100&width=1024&height=1024&chunks=64[&transposed][&decode=cf][&up][&from=v1.0]
//	             [&as=colours&lo=0&hi=1&log&of=temp&yticks=9&xticks=9&ysee=0,90&xsee=0,360&numbers][&centre=180]
//
// With as=colours an element is a byte, 0 where a value is missing and else 1 to 255 from the limit
// lo to hi, or the range of the array of, the finest of a pyramid; see [picture.Range]. Elements that
// are colours are sent as they are, unless numbers is set; see [picture.Classes] for those that are
// classes. With log equal ratios are at equal distances. ysee and xsee are the parts of the axes
// that ticks are for.
//
// With as=labels elements are identifiers, and sent as colours: those of the group's image-label.
//
// With channels=0:00ff00:100:4000,1:ff0000:: the indices of an axis, caxis=1, are channels of colours
// between two values, without these of most of their values; they are added.
//
// With centre, a longitude, select is about an axis that has it in the middle.
//
// The parameters are as in [picture.Request]; up asks whether rows go up. With from, a
// revision, the values are the difference of rev minus from; see [picture.Pair]. It is read
// from at most chunks chunks that differ.
func (h *handler) window(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	q, req := o.q, picture.Request{Transposed: o.q.Has("transposed"), Decoder: o.dec, Numbers: o.q.Has("numbers"), Colours: o.q.Has("guess")}
	if req.Width, req.Height, req.Chunks, err = sizes(q); err != nil {
		return err
	}
	if err := picture.Numeric(o.a.Type()); err != nil {
		return httpError{http.StatusNotAcceptable, err}
	}
	if req.Select, err = selectionOf(r.Context(), q.Get("select"), o.a, o.beside); err != nil {
		return err
	}
	of, err := h.finest(r, o)
	if err == nil {
		req.Roll, err = rollOf(r.Context(), o, of)
	}
	if err != nil {
		return err
	}
	size := windowSize(o.a, req)
	if q.Get("from") != "" || q.Get("channels") != "" {
		size += 2 * picture.PieceElements * windowBytes
	}
	end, err := h.slot(r, size)
	if err != nil {
		return err
	}
	defer end()
	var win *picture.Window
	more := false
	switch {
	case q.Get("from") != "":
		win, more, err = h.difference(r, o.v, o.path, req)
	case q.Get("channels") != "":
		win, err = h.composed(r, o, of, req)
	default:
		win, err = picture.Read(r.Context(), o.a, req)
	}
	if err != nil {
		return err
	}
	about := windowJSON{Y: lineOf(win.Y), X: lineOf(win.X), Chunks: win.Chunks, Type: win.Type.String(), More: more, Times: isTime(win.Type)}
	if q.Has("up") {
		up := picture.NewRows(r.Context(), o.a, win.Y.Dim, o.beside).Up
		about.Up = &up
	}
	var body []byte
	switch q.Get("as") {
	case "labels":
		about.coloursJSON = &coloursJSON{Pixels: true}
		body, err = labelled(r.Context(), o, win)
	case "colours":
		body, err = h.coloured(r, o, of, req, win, &about)
	default:
		body = numbered(win, &about)
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	describe(w, o.v, q.Get("rev"))
	w.Header().Set("Zarrdb-Window", ascii(text))
	return writeReport(w, r, "application/octet-stream", body)
}

// composed reads channels, and adds their colours.
func (h *handler) composed(r *http.Request, o, of *opened, req picture.Request) (win *picture.Window, err error) {
	ctx := r.Context()
	_, at, err := o.a.Axes(req.Select)
	if err != nil {
		return nil, err
	}
	axis, err := strconv.Atoi(o.q.Get("caxis"))
	channels := strings.Split(o.q.Get("channels"), ",")
	if err != nil || axis < 0 || axis >= len(at) || len(channels) > maxSeries {
		return nil, httpError{http.StatusBadRequest, fmt.Errorf("channels: want at most %d, and their axis", maxSeries)}
	}
	req.Numbers = true
	var sum []float32
	for _, text := range channels {
		fields := strings.Split(text, ":")
		colour, err := strconv.ParseUint(fields[min(1, len(fields)-1)], 16, 24)
		index, errIndex := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || errIndex != nil || index < 0 || index >= min(o.a.Shape()[axis], of.a.Shape()[axis]) || len(fields) != 4 {
			return nil, httpError{http.StatusBadRequest, fmt.Errorf("channels=%s: want INDEX:RRGGBB:LOW:HIGH", serve.Clip(text))}
		}
		whole := slices.Repeat([]zarr.Index{zarr.Slice(zarr.None, zarr.None, 1)}, len(at))
		at[axis], whole[axis] = zarr.At(index), zarr.At(index)
		req.Select = zarr.Orthogonal(at...)
		lo, errLo := strconv.ParseFloat(fields[2], 64)
		hi, errHi := strconv.ParseFloat(fields[3], 64)
		l := picture.Limits{Lo: lo, Hi: hi}
		if errLo != nil || errHi != nil || !(lo < hi) {
			if l, _, err = picture.Range(ctx, of.a, picture.Request{Decoder: of.dec, Select: zarr.Orthogonal(whole...)}); err != nil {
				return nil, err
			}
		}
		if win, err = picture.Read(ctx, o.a, req); err != nil {
			return nil, err
		}
		if sum == nil {
			sum = make([]float32, 3*len(win.Values))
		}
		if 3*len(win.Values) != len(sum) {
			return nil, httpError{http.StatusBadRequest, errors.New("channels: want a selection of one size in all")}
		}
		for i, v := range win.Values {
			f := float32(l.Place(v))
			if !(v > l.Lo) { // also where all values are one, and of a background
				f = 0
			}
			if f > 0 {
				for k := range 3 {
					sum[3*i+k] += f * float32(colour>>(16-8*k)&0xff)
				}
			}
		}
	}
	for i := 0; i < len(sum); i += 3 {
		for _, v := range sum[i : i+3] {
			win.Pixels = append(win.Pixels, uint8(min(v+0.5, 255)))
		}
		win.Pixels = append(win.Pixels, 255)
	}
	return win, nil
}

// ascii escapes what a header has no form for.
func ascii(text []byte) string {
	var b strings.Builder
	for _, c := range string(text) {
		switch {
		case c < 0x7f:
			b.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", hi, lo)
		}
	}
	return b.String()
}

// numbered are the values of a window.
func numbered(win *picture.Window, about *windowJSON) []byte {
	if about.Wide = about.Times || wide(win); !about.Wide {
		about.Offset = offsetOf(win.Values)
	}
	body := make([]byte, 0, 8*len(win.Values))
	for _, value := range win.Values {
		if about.Wide {
			body = binary.LittleEndian.AppendUint64(body, math.Float64bits(value))
			continue
		}
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(float32(value-about.Offset)))
	}
	return body
}

// finest opens the array that the parameter of names, the finest of a pyramid; it is o without one.
func (h *handler) finest(r *http.Request, o *opened) (of *opened, err error) {
	of = o
	if path := o.q.Get("of"); path != "" && path != o.path {
		if of, err = h.openIn(r, o.v, path); err != nil {
			return nil, err
		}
	}
	if n := len(o.a.Shape()); len(of.a.Shape()) != n {
		return nil, httpError{http.StatusBadRequest, fmt.Errorf("of=%s: want an array of %d axes", serve.Clip(of.path), n)}
	}
	return of, nil
}

// coloured are the colours of a window.
func (h *handler) coloured(r *http.Request, o, of *opened, req picture.Request, win *picture.Window, about *windowJSON) ([]byte, error) {
	ctx, c := r.Context(), &coloursJSON{Pixels: win.Pixels != nil}
	about.coloursJSON = c
	var err error
	roll := req.Roll
	if roll.By != 0 { // of a coarser level it may be another one
		if roll, err = rollOf(ctx, of, of); err != nil {
			return nil, err
		}
	}
	var axes []*picture.Axis
	for d, i := range win.At {
		axes = append(axes, picture.NewAxis(ctx, of.a, d, of.beside))
		if d == roll.Dim && (d == win.Y.Dim || d == win.X.Dim) {
			axes[d] = axes[d].Rolled(roll.By)
		}
		c.At = append(c.At, axes[d].Label(i))
	}
	ticks := func(l picture.Line, name string) []picture.Tick {
		n, err := strconv.Atoi(o.q.Get(name + "ticks"))
		if err != nil || l.Dim < 0 {
			return nil
		}
		lo, hi := min(l.Index(0), l.Index(l.Len-1)), max(l.Index(0), l.Index(l.Len-1))+1
		_, _ = fmt.Sscanf(o.q.Get(name+"see"), "%d,%d", &lo, &hi) // of a finer level
		return axes[l.Dim].Ticks(lo, hi, min(n, 100))
	}
	c.Ticks.Y, c.Ticks.X = ticks(win.Y, "y"), ticks(win.X, "x")
	if c.Pixels {
		return win.Pixels, nil
	}
	body, from := make([]byte, len(win.Values)), o.q.Get("from") != ""
	if classes := picture.Classes(of.a, of.dec); classes != nil && !from {
		c.Classes = len(classes)
		shade := picture.ClassShades(classes)
		for i, v := range win.Values {
			body[i] = shade(v)
		}
		c.Missing = count(body, 0)
		return body, nil
	}
	req.Log = o.q.Has("log") && !from && !about.Times
	values := win.Values
	if req.Log {
		values = picture.Positive(values)
	}
	limits := func(low, high float64) *picture.Limits {
		if l, ok := picture.Percentiles(values, low, high); ok {
			return &l
		}
		return nil
	}
	c.All, c.Most = limits(0, 100), limits(2, 98)
	lo, hasLo, errLo := limit(o.q, "lo")
	hi, hasHi, errHi := limit(o.q, "hi")
	if err := cmp.Or(errLo, errHi); err != nil {
		return nil, err
	}
	if !hasLo || !hasHi {
		auto, ok := picture.Limits{}, false
		var err error
		switch {
		case from:
			if c.All != nil {
				auto, ok = c.All.Symmetric(), true
			}
		default:
			req.Decoder, req.Select = of.dec, zarr.Selection{}
			if auto, ok, err = picture.Range(ctx, of.a, req); err != nil {
				return nil, err
			}
		}
		switch {
		case ok:
		case c.Most != nil:
			auto = *c.Most
		default:
			auto = picture.Limits{Lo: 0, Hi: 1}
		}
		if !hasLo {
			lo = auto.Lo
		}
		if !hasHi {
			hi = auto.Hi
		}
	}
	if c.Limits = (picture.Limits{Lo: min(lo, hi), Hi: max(lo, hi)}); req.Log {
		c.Limits = c.Limits.Logarithmic()
	}
	f := picture.Figure{Window: win, Limits: c.Limits, Text: picture.TextOf(win.Type, o.dec)}
	if from {
		f.Text = picture.TextOf(spanOf(win.Type), nil)
	}
	c.Ends[0], c.Ends[1] = f.Ends(c.Limits)
	c.Bins = picture.Histogram(win.Values, c.Limits, 64)
	for i, v := range win.Values {
		body[i] = c.Limits.Shade(v)
	}
	c.Missing = count(body, 0)
	c.Under, c.Over = c.Limits.Beyond(win.Values)
	for _, t := range c.Limits.Ticks(6, win.Type, f.Text) {
		c.Bar = append(c.Bar, barTickJSON{c.Limits.Place(t.Value), t.Text})
	}
	return body, nil
}

func count(body []byte, shade byte) int { return bytes.Count(body, []byte{shade}) }

// spanOf is the type of differences of values.
func spanOf(t dtype.Type) dtype.Type {
	if t.Kind() == dtype.Datetime {
		unit, scale := t.Unit()
		t, _ = dtype.NewTimedelta(unit, scale) // the type has them
	}
	return t
}

// opened is an array that a request names.
type opened struct {
	v      *serve.View
	path   string
	a      *zarr.Array
	dec    *cf.Decoder
	beside cf.Opener
	q      url.Values
}

// open opens the version and the array that parameters name; release the view of it.
func (h *handler) open(r *http.Request, name string) (*opened, error) {
	q := r.URL.Query()
	v, err := h.t.View(r.Context(), principal(r), q.Get("db"), q.Get("rev"))
	if err != nil {
		return nil, err
	}
	o, err := h.openIn(r, v, q.Get(name))
	if err != nil {
		v.Release()
	}
	return o, err
}

func (h *handler) openIn(r *http.Request, v *serve.View, path string) (*opened, error) {
	o := &opened{v: v, path: strings.Trim(path, "/"), q: r.URL.Query()}
	var err error
	o.a, o.dec, err = decodable(r, v, o.path)
	o.beside = engine.Beside(v, o.path)
	return o, err
}

// sizes are the parameters width, height and chunks.
func sizes(q url.Values) (width, height int, chunks int64, err error) {
	for _, p := range []struct {
		name string
		to   *int
	}{{"width", &width}, {"height", &height}} {
		n, err := number(q.Get(p.name), p.name, maxWindow, 1024)
		if err != nil {
			return 0, 0, 0, err
		}
		*p.to = int(n)
	}
	chunks, err = number(q.Get("chunks"), "chunks", maxWindowChunks, 1024)
	return width, height, chunks, err
}

// windowSize is the memory that a window takes.
func windowSize(a *zarr.Array, req picture.Request) int64 {
	n := int64(req.Width) * int64(req.Height)
	size := n * windowBytes
	if wide := int64(a.Type().Size()); wide > windowBytes {
		size += 2 * min(n*wide, picture.WideBytes)
	}
	return size
}

// slot reserves memory and waits for a slot to read. Call end when done.
func (h *handler) slot(r *http.Request, size int64) (end func(), err error) {
	if !h.memory.reserve(size) {
		return nil, errMemory
	}
	if err := h.turn(r.Context()); err != nil {
		h.memory.left.Add(size)
		return nil, err
	}
	return func() { <-h.windows; h.memory.left.Add(size) }, nil
}

// turn waits for a slot to read, which receiving from windows gives back.
func (h *handler) turn(ctx context.Context) error {
	select {
	case h.windows <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// difference reads the difference of an array from the version of the request's from.
func (h *handler) difference(r *http.Request, v *serve.View, path string, req picture.Request) (win *picture.Window, more bool, err error) {
	ctx, q := r.Context(), r.URL.Query()
	db, err := h.t.Database(r.Context(), q.Get("db"))
	if err != nil {
		return nil, false, err
	}
	if v.Commit == nil {
		return nil, false, httpError{http.StatusBadRequest, errors.New("from: a session is not a version")}
	}
	from, err := db.Resolve(ctx, q.Get("from"))
	if err != nil {
		return nil, false, err
	}
	changes, err := db.NodeChanges(ctx, from, v.Commit.ID, path)
	if err != nil {
		return nil, false, err
	}
	// Without a change the array is compared with itself.
	change := engine.NodeChange{Path: path, Kind: "changed"}
	if i := slices.IndexFunc(changes, func(c engine.NodeChange) bool { return c.Path == path }); i >= 0 {
		change = changes[i]
	}
	err = httpError{http.StatusBadRequest, fmt.Errorf("/%s: it is not an array in both versions", path)}
	failed := db.ChangedParts(ctx, from, v.Commit.ID, change, func(older, newer *zarr.Array, parts iter.Seq2[zarr.Chunk, error]) error {
		pair := picture.Pair{Older: older, Newer: newer, Parts: parts, Most: req.Chunks}
		if err = picture.Numeric(older.Type()); err == nil && req.Decoder != nil {
			pair.Was, err = cf.NewDecoderBeside(ctx, older, engine.Beside(v, path))
		}
		if err != nil {
			err = httpError{http.StatusUnprocessableEntity, err}
			return nil
		}
		win, more, err = pair.Read(ctx, req)
		return nil
	})
	return win, more, cmp.Or(failed, err)
}

// number reads a parameter between 1 and a bound.
func number(text, name string, most, normal int64) (int64, error) {
	if text == "" {
		return normal, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, httpError{http.StatusBadRequest, fmt.Errorf("%s=%s: want a number from 1 to %d", name, serve.Clip(text), most)}
	}
	return n, nil
}

// limit reads a parameter that is an end of the colours, and may be left out.
func limit(q url.Values, name string) (v float64, ok bool, err error) {
	text := q.Get(name)
	if text == "" {
		return 0, false, nil
	}
	v, err = strconv.ParseFloat(text, 64)
	if err != nil || v-v != 0 {
		return 0, false, httpError{http.StatusBadRequest, fmt.Errorf("%s=%s: want a finite number", name, serve.Clip(text))}
	}
	return v, true, nil
}

// decodable opens an array, with its decoder if the request has decode=cf.
func decodable(r *http.Request, v *serve.View, path string) (*zarr.Array, *cf.Decoder, error) {
	n, err := v.Node(r.Context(), path)
	if err != nil {
		return nil, nil, err
	}
	a, ok := n.Array()
	if !ok {
		return nil, nil, httpError{http.StatusBadRequest, fmt.Errorf("/%s: it is a group, not an array", path)}
	}
	switch decode := r.URL.Query().Get("decode"); decode {
	case "":
		return a, nil, nil
	case "cf":
		dec, err := cf.NewDecoderBeside(r.Context(), a, engine.Beside(v, path))
		if err != nil {
			return nil, nil, httpError{http.StatusUnprocessableEntity, err}
		}
		return a, dec, nil
	default:
		return nil, nil, httpError{http.StatusBadRequest, fmt.Errorf("decode=%s: want cf", serve.Clip(decode))}
	}
}

func lineOf(l picture.Line) lineJSON {
	return lineJSON{Dim: l.Dim, Start: l.Start, Step: l.Step, Len: l.Len, Skip: l.Skip}
}

// offsetOf returns the least value if the values differ by less than a thousandth of it,
// else 0.
func offsetOf(values []float64) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo <= hi && hi-lo < math.Abs(lo)/1000 {
		return lo
	}
	return 0
}

// wide reports whether a window has values that a float32 cannot represent: integers with many
// digits, and floats that are too large or too small.
func wide(w *picture.Window) bool {
	k := w.Type.Kind()
	whole := k == dtype.Int || k == dtype.Uint
	return slices.ContainsFunc(w.Values, func(v float64) bool {
		size := math.Abs(v)
		return whole && size > 1<<24 || !math.IsInf(v, 0) && size > math.MaxFloat32 || v != 0 && size < 0x1p-126
	})
}

// scaleJSON is a colour map: 256 colours, in hexadecimal digits.
type scaleJSON struct {
	Name      string `json:"name"`
	Diverging bool   `json:"diverging"`
	Cyclic    bool   `json:"cyclic"`
	Colours   string `json:"colours"`
}

// scales are the colour maps of pictures.
func scales() (all []scaleJSON) {
	for _, name := range picture.Maps() {
		m, _ := picture.MapByName(name)
		var hex strings.Builder
		for i := range 256 {
			c := m.At(float64(i) / 255)
			fmt.Fprintf(&hex, "%02x%02x%02x", c.R, c.G, c.B)
		}
		all = append(all, scaleJSON{name, m.Diverging, m.Cyclic, hex.String()})
	}
	return all
}
