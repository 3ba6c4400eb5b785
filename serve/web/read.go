package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

// part is a part of an array that is read decoded.
type part struct {
	a     *zarr.Array
	sel   zarr.Selection
	shape []int64
	dec   *cf.Decoder // nil for raw values
	count int64       // elements
	size  int64       // about the bytes of the result
	limit int64       // of the bytes
}

// textBytes is the assumed size of an element of variable length, or of one as
// JSON.
const textBytes = 32

// read answers with decoded elements:
//
//	/-/api/read?db=w&rev=main&path=temp&select=0,::2&format=npy|json|png|raw[&decode=cf][&times=text]
//
// Options.Tables has further formats.
func (h *handler) read(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v, err := h.t.View(r.Context(), principal(r), q.Get("db"), q.Get("rev"))
	if err != nil {
		return err
	}
	defer v.Release()
	if form, ok := h.o.Tables[q.Get("format")]; ok {
		return h.table(w, r, v, form)
	}
	p, err := h.partOf(r, v)
	if err != nil {
		return err
	}
	if !h.memory.reserve(p.size) { // until the client has read it
		return errMemory
	}
	defer h.memory.left.Add(p.size)
	describe(w, v, q.Get("rev"))
	shape, _ := json.Marshal(p.shape)
	w.Header().Set("Zarrdb-Shape", string(shape))
	switch format := q.Get("format"); format {
	case "json", "":
		return p.json(w, r)
	case "npy":
		b, err := npy.AppendHeader(nil, p.typ(), p.shape)
		if err != nil {
			return httpError{http.StatusNotAcceptable, err}
		}
		return p.raw(w, r, "application/x-npy", b)
	case "raw":
		return p.raw(w, r, "application/octet-stream", nil)
	case "png":
		return p.png(w, r)
	default:
		known := slices.Concat([]string{"json", "npy", "png", "raw"}, slices.Sorted(maps.Keys(h.o.Tables)))
		return httpError{http.StatusBadRequest, fmt.Errorf("format=%s: want one of %s", serve.Clip(format), strings.Join(known, ", "))}
	}
}

// partOf opens the array and resolves the selection, within the bound.
func (h *handler) partOf(r *http.Request, v *serve.View) (*part, error) {
	q := r.URL.Query()
	path := strings.Trim(q.Get("path"), "/")
	a, dec, err := decodable(r, v, path)
	if err != nil {
		return nil, err
	}
	p := &part{a: a, dec: dec}
	if p.sel, err = selectionOf(r.Context(), q.Get("select"), a, engine.Beside(v, path)); err != nil {
		return nil, err
	}
	if p.shape, err = a.Resolve(p.sel); err != nil {
		return nil, err
	}
	size := int64(textBytes)
	if !a.Type().Variable() {
		size = max(int64(a.Type().Size()), int64(p.typ().Size()), 1)
		if f := q.Get("format"); f == "" || f == "json" {
			size = max(size, textBytes)
		}
	}
	p.shape = append([]int64{}, p.shape...) // not nil, so that JSON has an empty list
	p.count, p.limit = 1, h.o.ReadBytes
	fit := h.o.ReadBytes / size
	for _, n := range p.shape {
		if n > 0 {
			fit /= n
		}
		p.count *= n
	}
	if fit == 0 && !slices.Contains(p.shape, 0) {
		return nil, httpError{http.StatusRequestEntityTooLarge, fmt.Errorf("a result of shape %v is longer than %d bytes: select less", p.shape, h.o.ReadBytes)}
	}
	p.size = p.count * size
	return p, nil
}

// typ is the data type of the result.
func (p *part) typ() dtype.Type {
	if p.dec != nil {
		return p.dec.Type()
	}
	return p.a.Type()
}

// bytes reads elements of a fixed size.
func (p *part) bytes(ctx context.Context) ([]byte, error) {
	b := make([]byte, p.count*int64(p.a.Type().Size()))
	if err := p.a.ReadBytes(ctx, p.sel, b); err != nil || p.dec == nil {
		return b, err
	}
	return p.dec.Append(nil, b)
}

// raw answers with elements in C order, little-endian, behind a header.
func (p *part) raw(w http.ResponseWriter, r *http.Request, contentType string, header []byte) error {
	if p.a.Type().Variable() {
		return httpError{http.StatusNotAcceptable, fmt.Errorf("elements of %v have no fixed size: use format=json", p.a.Type())}
	}
	b, err := p.bytes(r.Context())
	if err == nil && p.dec != nil {
		if err := p.dec.InNumpy(b); err != nil {
			return httpError{http.StatusNotAcceptable, fmt.Errorf("%w: use format=json", err)}
		}
	}
	if err != nil {
		return err
	}
	return sendParts(w, r, contentType, header, b)
}

// sendParts answers with the bytes of parts, one after the other.
func sendParts(w http.ResponseWriter, r *http.Request, contentType string, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	head := w.Header()
	head.Set("Content-Type", contentType)
	head.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(http.StatusOK)
	for _, part := range parts {
		if r.Method != http.MethodHead {
			_, _ = w.Write(part) // the only error is a closed connection
		}
	}
	return nil
}

// json answers with shape, data type and a flat list of elements in C order.
func (p *part) json(w http.ResponseWriter, r *http.Request) error {
	t := p.typ()
	name, err := t.PrintV3()
	if err != nil {
		name, _ = json.Marshal(t.String())
	}
	shape, err := json.Marshal(p.shape)
	if err != nil {
		return err
	}
	text := r.URL.Query().Get("times") == "text" && isTime(t)
	b := fmt.Appendf(nil, `{"shape":%s,"data_type":%s,"data":[`, shape, name)
	add := func(i int, elem []byte) error {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if text {
			b, err = p.appendTime(append(b, '"'), elem)
			b = append(b, '"')
		} else {
			b, err = t.AppendJSON(b, elem)
		}
		return err
	}
	if t.Variable() {
		v, err := p.a.ReadVarAtMost(r.Context(), p.sel, p.limit)
		if err != nil {
			return err
		}
		for i := range v.Len() {
			if err := add(i, v.At(i)); err != nil {
				return err
			}
		}
	} else {
		elems, err := p.bytes(r.Context())
		if err != nil {
			return err
		}
		for i, size := 0, t.Size(); len(elems) > 0; i, elems = i+1, elems[size:] {
			if err := add(i, elems[:size]); err != nil {
				return err
			}
		}
	}
	return writeReport(w, r, "application/json", append(b, "]}\n"...))
}

func isTime(t dtype.Type) bool { return t.Kind() == dtype.Datetime || t.Kind() == dtype.Timedelta }

// appendTime appends a time or a span of time for people.
func (p *part) appendTime(b, elem []byte) ([]byte, error) {
	count := int64(binary.LittleEndian.Uint64(elem))
	switch {
	case p.dec != nil && p.dec.HasText():
		return p.dec.AppendText(b, elem)
	case p.typ().Kind() == dtype.Datetime:
		return cf.AppendDatetime(b, p.typ(), count), nil
	}
	return cf.AppendTimedelta(b, p.typ(), count), nil
}

// png answers with a picture; see [picture.Check].
func (p *part) png(w http.ResponseWriter, r *http.Request) error {
	if err := picture.Check(p.typ(), p.shape); err != nil {
		return httpError{http.StatusNotAcceptable, err}
	}
	b, err := p.bytes(r.Context())
	if err != nil {
		return err
	}
	img := picture.Of(p.typ(), p.shape, b)
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		return err
	}
	return sendParts(w, r, "image/png", out.Bytes())
}
