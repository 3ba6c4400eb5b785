package object

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// hdfStrings is kerchunk's "fill_hdf_strings": chunks of an HDF5 file that hold identifiers
// of texts, of a fixed size and padded with zeros. The configuration has the texts: one for
// each identifier, one for all elements, or none, so that all elements are empty texts. Only
// texts of the configuration can be written.
type hdfStrings struct {
	dtype  dtype.Type
	idMap  json.RawMessage // as it was parsed, nil for null
	byID   map[string]string
	common string // without byID
}

func parseHDFStrings(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("dtype")
	h := hdfStrings{idMap: f.Raw("id_map")}
	if raw := f.Raw("dtype"); raw != nil {
		var err error
		if h.dtype, err = dtype.ParseNumPy(raw); err != nil {
			f.Fail("dtype", "%w", err)
		} else if h.dtype.Kind() != dtype.FixedBytes || h.dtype.Size() == 0 {
			f.Fail("dtype", "%v is not an identifier of a fixed size", h.dtype)
		}
	}
	switch {
	case h.idMap == nil || string(h.idMap) == "null":
		h.idMap = nil
	case json.Unmarshal(h.idMap, &h.byID) == nil:
	case json.Unmarshal(h.idMap, &h.common) != nil:
		f.Fail("id_map", "it is neither texts by identifier nor a text")
	}
	return h, f.Err()
}

func (h hdfStrings) Config() json.RawMessage {
	raw, err := h.dtype.PrintV2()
	if err != nil {
		panic(err) // it was parsed from such text
	}
	return codecs.Object("dtype", raw, "id_map", h.idMap)
}

func (h hdfStrings) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if in.Type.Kind() != dtype.String {
		return nil, codecs.Rep{}, codecs.BadField("", "does not decode to the data type %v", in.Type)
	}
	n := int64(in.Count()) * int64(h.dtype.Size())
	return &hdfStringsStage{h, in.Count(), in.Max}, codecs.BytesRep(n, n), nil
}

type hdfStringsStage struct {
	hdfStrings
	n   int
	max int64
}

// Encode writes identifiers of texts that have one; of several, the first in byte order.
func (s *hdfStringsStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := dtype.OpenVariable(src, s.n)
	if err != nil {
		return dst, err
	}
	ids := map[string]string{s.common: ""}
	if s.byID != nil {
		clear(ids)
		for _, id := range slices.Sorted(maps.Keys(s.byID)) {
			if _, ok := ids[s.byID[id]]; !ok && len(id) <= s.dtype.Size() {
				ids[s.byID[id]] = id
			}
		}
	}
	for i := range s.n {
		id, ok := ids[string(v.At(i))]
		if !ok {
			return dst, codecs.BadField("id_map", "it has no identifier for the text of element %d", i)
		}
		dst = append(append(dst, id...), make([]byte, s.dtype.Size()-len(id))...)
	}
	return dst, nil
}

func (s *hdfStringsStage) Decode(dst, src []byte) ([]byte, error) {
	const name = "fill_hdf_strings"
	size := s.dtype.Size()
	if len(src) != s.n*size {
		return dst, codecs.Corruptf(name, "%d bytes are not %d identifiers of %d", len(src), s.n, size)
	}
	text := func(i int) (string, bool) {
		if s.byID == nil {
			return s.common, true
		}
		text, ok := s.byID[string(bytes.TrimRight(src[i*size:(i+1)*size], "\x00"))]
		return text, ok
	}
	total := int64(0)
	for i := range s.n {
		t, ok := text(i)
		if !ok {
			return dst, codecs.Corruptf(name, "id_map has no text for the identifier of element %d", i)
		}
		if total += int64(len(t)); total > s.max {
			return dst, codecs.Corruptf(name, "more than the %d bytes that a chunk may have", s.max)
		}
	}
	w, err := dtype.NewBuilder(scratch.Grow(dst, total+4*int64(s.n)), s.n)
	if err != nil {
		return dst, err
	}
	for i := range s.n {
		t, _ := text(i)
		if err := w.Append([]byte(t)); err != nil {
			return dst, err
		}
	}
	return w.Finish()
}
