package web

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

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
	// Wide says that the values are float64, because a float32 has too few digits for them: times, spans
	// and large integers. Times says that they are times or spans.
	Wide  bool   `json:"wide,omitempty"`
	Times bool   `json:"times,omitempty"`
	Type  string `json:"data_type"`
	// Up says that rows belong from the bottom to the top; only if requested.
	Up *bool `json:"up,omitempty"`
	// More says that chunks which differ were left out of a difference.
	More bool `json:"more,omitempty"`
}

// window answers with a part of an array for a screen: float32 or float64, little-endian, in
// rows, NaN for missing values. The header Zarrdb-Window describes it as a windowJSON.
//
//	/-/api/window?db=w&rev=main&path=temp&select=3,:,0:100&width=1024&height=1024&chunks=64[&transposed][&decode=cf][&up][&from=v1.0]
//
// The parameters are as in [picture.Request]; up asks whether rows go up. With from, a
// revision, the values are the difference of rev minus from; see [picture.Pair]. It is read
// from at most chunks chunks that differ.
func (h *handler) window(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	req := picture.Request{Transposed: q.Has("transposed")}
	for _, p := range []struct {
		name string
		to   *int
		most int
	}{{"width", &req.Width, maxWindow}, {"height", &req.Height, maxWindow}} {
		n, err := number(q.Get(p.name), p.name, int64(p.most), 1024)
		if err != nil {
			return err
		}
		*p.to = int(n)
	}
	var err error
	if req.Chunks, err = number(q.Get("chunks"), "chunks", maxWindowChunks, 1024); err != nil {
		return err
	}
	v, err := h.t.View(r.Context(), principal(r), q.Get("db"), q.Get("rev"))
	if err != nil {
		return err
	}
	defer v.Release()
	path := strings.Trim(q.Get("path"), "/")
	a, dec, err := decodable(r, v, path)
	if err != nil {
		return err
	}
	req.Decoder = dec
	if err := picture.Numeric(a.Type()); err != nil {
		return httpError{http.StatusNotAcceptable, err}
	}
	beside := engine.Beside(v, path)
	if req.Select, err = selectionOf(r.Context(), q.Get("select"), a, beside); err != nil {
		return err
	}
	size := int64(req.Width) * int64(req.Height) * windowBytes
	if q.Get("from") != "" {
		size += 2 * picture.PieceElements * windowBytes
	}
	if !h.memory.reserve(size) {
		return errMemory
	}
	defer h.memory.left.Add(size)
	select {
	case h.windows <- struct{}{}:
		defer func() { <-h.windows }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	var win *picture.Window
	more := false
	if q.Get("from") != "" {
		win, more, err = h.difference(r, v, path, req)
	} else {
		win, err = picture.Read(r.Context(), a, req)
	}
	if err != nil {
		return err
	}
	about := windowJSON{Y: lineOf(win.Y), X: lineOf(win.X), Chunks: win.Chunks, Type: win.Type.String(), More: more}
	about.Times = isTime(win.Type)
	if about.Wide = about.Times || manyDigits(win); !about.Wide {
		about.Offset = offsetOf(win.Values)
	}
	if q.Has("up") {
		up, err := picture.Up(r.Context(), a, win.Y.Dim, beside)
		if err != nil {
			return err
		}
		about.Up = &up
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	body := make([]byte, 0, 8*len(win.Values))
	for _, value := range win.Values {
		if about.Wide {
			body = binary.LittleEndian.AppendUint64(body, math.Float64bits(value))
			continue
		}
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(float32(value-about.Offset)))
	}
	describe(w, v, q.Get("rev"))
	w.Header().Set("Zarrdb-Window", string(text))
	return sendParts(w, r, "application/octet-stream", body)
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

// manyDigits reports whether a window has integers that a float32 cannot represent.
func manyDigits(w *picture.Window) bool {
	k := w.Type.Kind()
	return (k == dtype.Int || k == dtype.Uint) && slices.ContainsFunc(w.Values, func(v float64) bool { return math.Abs(v) > 1<<24 })
}

// colours answers with the colour maps of pictures: 256 colours each, in hexadecimal digits.
func (h *handler) colours(w http.ResponseWriter, r *http.Request) error {
	type scale struct {
		Name      string `json:"name"`
		Diverging bool   `json:"diverging"`
		Colours   string `json:"colours"`
	}
	var all []scale
	for _, name := range picture.Maps() {
		m, _ := picture.MapByName(name)
		var hex strings.Builder
		for i := range 256 {
			c := m.At(float64(i) / 255)
			fmt.Fprintf(&hex, "%02x%02x%02x", c.R, c.G, c.B)
		}
		all = append(all, scale{name, m.Diverging, hex.String()})
	}
	return writeJSON(w, r, all)
}
