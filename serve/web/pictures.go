package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/pace"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// mostLabels is the length of axes whose labels are sent whole.
const mostLabels = 4096

// maxLabels is the most labels of a request for some.
const maxLabels = 1 << 16

// axesJSON are the axes of an array.
type axesJSON struct {
	Axes    []axisJSON `json:"axes"`
	Parts   []string   `json:"parts"` // of elements
	Colours bool       `json:"colours"`
	// Classes are those of values, in the order of their bytes in a window.
	Classes []classJSON `json:"classes,omitempty"`
}

type classJSON struct {
	Value  string `json:"value"`
	Stored string `json:"stored,omitempty"` // if the stored value is another one
	Text   string `json:"text"`
	Colour string `json:"colour"` // in hexadecimal digits
}

type axisJSON struct {
	Name   string    `json:"name"`
	Title  string    `json:"title"`
	Length int64     `json:"length"`
	Up     bool      `json:"up"`
	Labels []string  `json:"labels,omitempty"` // with units
	Edges  []float64 `json:"edges,omitempty"`
	Globe  string    `json:"globe,omitempty"` // lat or lon
	Kind   string    `json:"kind,omitempty"`  // see [picture.Axis.Kind]
	// Labelled says that there are labels, also where they are too many to be here.
	Labelled bool `json:"labelled,omitempty"`
	// Size of an element, and its unit, in an image of a microscope.
	Size float64 `json:"size,omitempty"`
	Unit string  `json:"unit,omitempty"`
	// Round says that longitudes go around the globe. Of a centre, Roll is the first element.
	Round bool  `json:"round,omitempty"`
	Roll  int64 `json:"roll,omitempty"`
}

// axes answers with the axes of an array:
//
//	/-/api/axes?db=w&rev=main&path=temp[&centre=180]
func (h *handler) axes(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	roll, err := rollOf(r.Context(), o, o)
	if err != nil {
		return err
	}
	answer := axesOf(r.Context(), o)
	if roll.By != 0 {
		answer.Axes[roll.Dim].Roll = roll.By
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, answer)
}

// rollOf is how the parameter centre, a longitude, moves the elements of an array; of is the finest of
// its pyramid.
func rollOf(ctx context.Context, o, of *opened) (picture.Roll, error) {
	centre, ok, err := limit(o.q, "centre")
	if err != nil || !ok {
		return picture.Roll{}, err
	}
	r, _ := picture.RollTo(ctx, of.a, of.beside, centre)
	if n, m := of.a.Shape(), o.a.Shape(); r.By != 0 && n[r.Dim] != m[r.Dim] {
		r.By = int64(math.Round(float64(r.By)/float64(n[r.Dim])*float64(m[r.Dim]))) % max(m[r.Dim], 1)
	}
	return r, nil
}

func axesOf(ctx context.Context, o *opened) axesJSON {
	answer := axesJSON{Axes: []axisJSON{}, Parts: picture.Parts(o.a.Type()), Colours: picture.HasColours(o.a, false)}
	level, err := o.a.Image(ctx)
	if err != nil {
		level = nil // of an unknown version
	}
	for d := range o.a.Shape() {
		x := picture.NewRows(ctx, o.a, d, o.beside)
		a := axisJSON{Name: x.Name, Title: x.Title(), Length: x.Len, Up: x.Up, Edges: x.Edges(), Globe: x.Globe, Kind: x.Kind(), Labelled: x.Labels != nil, Round: x.Round()}
		for i := int64(0); x.Labels != nil && x.Len <= mostLabels && i < x.Len; i++ {
			a.Labels = append(a.Labels, x.Measure(i))
		}
		if level != nil && d < len(level.Axes) && d < len(level.Scale) && level.Axes[d].Type == "space" {
			if size := level.Scale[d]; size-size == 0 { // JSON has no endless numbers
				a.Size, a.Unit = size, level.Axes[d].Unit
			}
		}
		answer.Axes = append(answer.Axes, a)
	}
	if stored := picture.Classes(o.a, nil); stored != nil {
		all := stored
		if dec, err := cf.NewDecoderBeside(ctx, o.a, o.beside); err == nil {
			all = picture.Classes(o.a, dec)
		}
		for i, c := range all {
			j := classJSON{picture.Number(c.Value, 0, 64), "", c.Text, fmt.Sprintf("%02x%02x%02x", c.Colour.R, c.Colour.G, c.Colour.B)}
			if v := stored[i].Value; v != c.Value {
				j.Stored = picture.Number(v, 0, 64)
			}
			answer.Classes = append(answer.Classes, j)
		}
	}
	return answer
}

// coast answers with the lines of coasts on a plane of an array; see [picture.Coast]:
//
//	/-/api/coast?db=w&rev=main&path=temp&y=1&x=2[&centre=180]
func (h *handler) coast(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	if len(o.a.Shape()) < 2 {
		describe(w, o.v, o.q.Get("rev"))
		return writeJSON(w, r, []int{})
	}
	roll, err := rollOf(r.Context(), o, o)
	if err != nil {
		return err
	}
	var axes []*picture.Axis
	for _, name := range []string{"y", "x"} {
		d, err := number(o.q.Get(name), name, int64(len(o.a.Shape()))-1, 0)
		if err != nil && o.q.Get(name) != "0" {
			return err
		}
		x := picture.NewAxis(r.Context(), o.a, int(d), o.beside)
		if int(d) == roll.Dim {
			x = x.Rolled(roll.By)
		}
		axes = append(axes, x)
	}
	lines := picture.Coast(axes[0], axes[1])
	if lines == nil {
		lines = [][]float64{}
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, lines)
}

// index answers with the index that a text means along an axis; see [picture.Axis.Find]:
//
//	/-/api/index?db=w&rev=main&path=temp&axis=0&text=2020-02
func (h *handler) index(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	x, err := axisOf(r.Context(), o)
	if err != nil {
		return err
	}
	i, ok := x.Find(strings.TrimSpace(o.q.Get("text")))
	if !ok {
		return httpError{http.StatusNotFound, fmt.Errorf("%s has no element %s", serve.Clip(x.Name), serve.Clip(o.q.Get("text")))}
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, i)
}

// axisOf is the axis that a parameter names.
func axisOf(ctx context.Context, o *opened) (*picture.Axis, error) {
	d, err := strconv.Atoi(o.q.Get("axis"))
	if err != nil || d < 0 || d >= len(o.a.Shape()) {
		return nil, httpError{http.StatusBadRequest, fmt.Errorf("axis=%s: want a number below %d", serve.Clip(o.q.Get("axis")), len(o.a.Shape()))}
	}
	return picture.NewAxis(ctx, o.a, d, o.beside), nil
}

// labels answers with the labels of elements along an axis:
//
//	/-/api/labels?db=w&rev=main&path=temp&axis=0&first=5000&count=100
func (h *handler) labels(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	x, err := axisOf(r.Context(), o)
	if err != nil {
		return err
	}
	first, errFirst := strconv.ParseInt(cmp.Or(o.q.Get("first"), "0"), 10, 64)
	count, err := number(o.q.Get("count"), "count", maxLabels, 1)
	if err != nil {
		return err
	}
	if errFirst != nil || first < 0 || first > x.Len-count {
		return httpError{http.StatusBadRequest, fmt.Errorf("first=%s: want the first of %d elements of %d", serve.Clip(o.q.Get("first")), count, x.Len)}
	}
	var out []string
	for i := range count {
		out = append(out, x.Measure(first+i))
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, out)
}

// point answers with the exact text of one element, of its labels, and of further coordinates
// there, such as latitudes of a curvilinear grid:
//
//	/-/api/point?db=w&rev=main&path=temp&select=3,45,120&decode=cf
func (h *handler) point(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	sel, err := selectionOf(ctx, o.q.Get("select"), o.a, o.beside)
	if err != nil {
		return err
	}
	answer := struct {
		Value string   `json:"value"`
		Units string   `json:"units"`
		At    []string `json:"at"`
		More  []string `json:"more"`
	}{At: []string{}, More: []string{}}
	if answer.Value, err = elementText(ctx, o, sel); err != nil {
		return err
	}
	for _, c := range picture.Classes(o.a, o.dec) {
		if picture.Number(c.Value, 0, 64) == answer.Value {
			answer.Value += " " + c.Text
			break
		}
	}
	t := o.a.Type()
	if o.dec != nil {
		t = o.dec.Type()
	}
	if !isTime(t) && answer.Value != "missing" {
		answer.Units = picture.Attribute(o.a, "units")
	}
	_, at, err := o.a.Axes(sel)
	if err != nil {
		return err
	}
	names, index := o.a.DimensionNames(), make([]int64, len(at))
	for d, x := range at {
		index[d], _ = strconv.ParseInt(zarr.Sel(x).String(), 10, 64)
		answer.At = append(answer.At, picture.NewAxis(ctx, o.a, d, o.beside).Full(index[d]))
	}
	for _, name := range picture.Coordinates(o.a) {
		n, err := o.beside(ctx, name)
		if err != nil || slices.Contains(names, name) {
			continue
		}
		c, ok := n.Array()
		if !ok {
			continue
		}
		var where []zarr.Index
		for _, dim := range c.DimensionNames() {
			if d := slices.Index(names, dim); d >= 0 && dim != "" {
				where = append(where, zarr.At(index[d]))
			}
		}
		of, err := h.openIn(r, o.v, n.Path())
		if err != nil || len(where) != len(c.Shape()) {
			continue
		}
		if text, err := elementText(ctx, of, zarr.Sel(where...)); err == nil {
			answer.More = append(answer.More, name+" "+text)
		}
	}
	describe(w, o.v, o.q.Get("rev"))
	return writeJSON(w, r, answer)
}

// elementText prints selected elements, exactly as they are.
func elementText(ctx context.Context, o *opened, sel zarr.Selection) (string, error) {
	var texts []string
	p := &part{a: o.a, dec: o.dec, sel: sel, count: 1, limit: 1 << 20}
	shape, err := o.a.Resolve(sel)
	if err != nil {
		return "", err
	}
	for _, n := range shape {
		p.count *= n
	}
	if p.count > 16 {
		return "", httpError{http.StatusBadRequest, errors.New("select: want one element")}
	}
	t := p.typ()
	add := func(elem []byte) error {
		var b []byte
		var err error
		if isTime(t) {
			b, err = p.appendTime(b, elem)
			b = []byte(picture.TimeText(string(b)))
		} else {
			b, err = t.AppendJSON(b, elem)
		}
		text := strings.Trim(string(b), `"`)
		if v, err := strconv.ParseFloat(text, 64); err == nil && t.Kind() == dtype.Float && !math.IsNaN(v) {
			text = picture.Number(v, 0, 64)
		}
		if text == "NaN" || text == "NaT" || text == "null" {
			text = "missing"
		}
		texts = append(texts, text)
		return err
	}
	if t.Variable() {
		v, err := p.a.ReadVarAtMost(ctx, p.sel, p.limit)
		for i := 0; err == nil && i < v.Len(); i++ {
			err = add(v.At(i))
		}
		return strings.Join(texts, ", "), err
	}
	b, err := p.bytes(ctx)
	for size := t.Size(); err == nil && len(b) >= size && size > 0; b = b[size:] {
		err = add(b[:size])
	}
	return strings.Join(texts, ", "), err
}

// figure answers with a picture of a selection as "zarrdb plot" draws it:
//
//	/-/api/figure?db=w&rev=main&path=temp&select=3&width=900[&decode=cf][&transposed][&flip][&map=sea][&lo=0&hi=1][&log][&coast][&part=real][&numbers][&centre=180][&animate=0][&channels=0:00ff00:100:4000&caxis=1&note=GFP]
//
// Channels are as for a window, and note names them. With animate, a number of an axis, it is a GIF of all its elements that are selected; see [picture.Plot.Animate].
func (h *handler) figure(w http.ResponseWriter, r *http.Request) error {
	o, err := h.open(r, "path")
	if err != nil {
		return err
	}
	defer o.v.Release()
	p := picture.Plot{Array: o.a, Beside: o.beside, Flip: o.q.Has("flip"), Coast: o.q.Has("coast"), LongName: true, Request: picture.Request{
		Decoder: o.dec, Transposed: o.q.Has("transposed"), Part: o.q.Get("part"), Numbers: o.q.Has("numbers"), Colours: o.q.Has("guess"), Log: o.q.Has("log")}}
	if p.Width, _, p.Chunks, err = sizes(o.q); err != nil {
		return err
	}
	p.Height = 2 * p.Width
	ok := false
	if p.Map, ok = picture.MapByName(o.q.Get("map")); !ok {
		return httpError{http.StatusBadRequest, errors.New("map: no such map of colours")}
	}
	lo, hasLo, errLo := limit(o.q, "lo")
	hi, hasHi, errHi := limit(o.q, "hi")
	if err := cmp.Or(errLo, errHi); err != nil {
		return err
	}
	if hasLo && hasHi && lo <= hi {
		l := picture.Limits{Lo: lo, Hi: hi}
		if p.Log {
			l = l.Logarithmic()
		}
		p.Limits = &l
	}
	if p.Select, err = selectionOf(r.Context(), o.q.Get("select"), o.a, o.beside); err != nil {
		return err
	}
	if p.Roll, err = rollOf(r.Context(), o, o); err != nil {
		return err
	}
	if o.q.Get("channels") != "" {
		p.Note, p.Limits = o.q.Get("note"), &picture.Limits{Lo: 0, Hi: 1}
		p.Across, _ = strconv.Atoi(o.q.Get("caxis")) // composed says what is wrong
		p.Compose = func(ctx context.Context, req picture.Request) (*picture.Window, error) {
			return h.composed(r, o, o, req)
		}
	}
	if o.q.Has("animate") {
		return h.film(w, r, o, p)
	}
	end, err := h.slot(r, figureSize(o, p))
	if err != nil {
		return err
	}
	defer end()
	width := p.Width
	f, err := p.Figure(r.Context())
	switch {
	case errors.Is(err, picture.ErrOneElement), errors.Is(err, errors.ErrUnsupported):
		return httpError{http.StatusNotAcceptable, err}
	case err != nil:
		return err
	}
	var b bytes.Buffer
	if err := f.PNG(&b, width); err != nil {
		return err
	}
	describe(w, o.v, o.q.Get("rev"))
	return sendParts(w, r, "image/png", b.Bytes())
}

func figureSize(o *opened, p picture.Plot) int64 {
	size := windowSize(o.a, p.Request)
	if p.Compose != nil {
		size *= 2
	}
	return size
}

// film answers with an animation. It waits for its turn to make each frame.
func (h *handler) film(w http.ResponseWriter, r *http.Request, o *opened, p picture.Plot) error {
	dim, err := strconv.Atoi(o.q.Get("animate"))
	if err != nil || dim < 0 || dim >= len(o.a.Shape()) {
		return httpError{http.StatusBadRequest, fmt.Errorf("animate=%s: want the number of an axis", serve.Clip(o.q.Get("animate")))}
	}
	size := figureSize(o, p)
	if !h.memory.reserve(size) {
		return errMemory
	}
	defer h.memory.left.Add(size)
	describe(w, o.v, o.q.Get("rev"))
	w.Header().Set("Content-Type", "image/gif")
	if r.Method == http.MethodHead {
		return nil
	}
	out := bufio.NewWriterSize(w, tableBegin)
	err = p.Animate(r.Context(), out, dim, p.Width, func(draw func() error) error {
		if err := h.turn(r.Context()); err != nil {
			return err
		}
		defer func() { <-h.windows }()
		return draw()
	})
	if err == nil {
		err = out.Flush()
	}
	if sent, ok := w.(*pace.Writer); err != nil && ok && sent.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	return err
}
