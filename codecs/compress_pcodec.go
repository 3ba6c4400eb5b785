package codecs

import (
	"encoding/json"
	"errors"

	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/codecs/pco"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// noOp is pcodec's own name of the delta_spec that numcodecs calls "none".
const noOp = "no_op"

// parsePcodec parses numcodecs' "pcodec": a chunk's numbers as a pco file. Looking back
// further than to the numbers just before is decoded but not encoded: that is
// only to be tried, and differences are tried then.
func parsePcodec(c Config) (Codec, error) {
	f := c.Fields()
	params := pco.Params{
		Level:    int(f.Int("level", 8, 0, 12)),
		Classic:  f.Enum("mode_spec", "auto", "auto", "classic") == "classic",
		Delta:    pco.Auto,
		PageSize: int(f.Int("equal_pages_up_to", 1<<18, 1, 1<<24)),
	}
	delta := f.Enum("delta_spec", "auto", "auto", "none", noOp, "try_consecutive", "try_lookback")
	if delta == noOp {
		delta = "none"
		f.members["delta_spec"] = json.RawMessage(`"none"`)
	}
	f.Enum("paging_spec", "equal_pages_up_to", "equal_pages_up_to")
	if raw := f.Raw("delta_encoding_order"); !value.Absent(raw) {
		params.Delta = int(f.Int("delta_encoding_order", 0, 0, 7))
		if delta == "none" || delta == "try_lookback" {
			f.Fail("delta_encoding_order", "given with the delta_spec %q", delta)
		}
	} else if delta == "none" {
		params.Delta = 0
	}
	config := f.Given("level", "mode_spec", "delta_spec", "paging_spec", "delta_encoding_order", "equal_pages_up_to")
	return NewCodec(config, func(in Rep) (Stage, Rep, error) {
		t, ok := pcodecType(in.Type)
		if !ok {
			return nil, Rep{}, BadField("", "does not encode the data type %v", in.Type)
		}
		out := in.Grown()
		out.Max = max(out.Max, pco.MaxSize(in.Size, t, params)) // of tiny pages
		return &pcodecStage{params: params, typ: t, max: in.Size}, out, nil
	}), f.Err()
}

// pcodecType returns the type of numbers that elements of t are stored as. The
// numbers have no byte order; big-endian v2 arrays and floats that are not
// IEEE 754 are refused.
func pcodecType(t dtype.Type) (pco.Type, bool) {
	if t.Order() == dtype.Big || t.Format() != "" {
		return 0, false
	}
	n, ok := map[dtype.Kind]map[int]pco.Type{
		dtype.Int:       {8: pco.Int8, 16: pco.Int16, 32: pco.Int32, 64: pco.Int64},
		dtype.Uint:      {8: pco.Uint8, 16: pco.Uint16, 32: pco.Uint32, 64: pco.Uint64},
		dtype.Float:     {16: pco.Float16, 32: pco.Float32, 64: pco.Float64},
		dtype.Datetime:  {64: pco.Int64},
		dtype.Timedelta: {64: pco.Int64},
	}[t.Kind()][t.Bits()]
	return n, ok
}

type pcodecStage struct {
	params pco.Params
	typ    pco.Type
	max    int64
}

func (s *pcodecStage) Encode(dst, src []byte) ([]byte, error) {
	return pco.Encode(dst, src, s.typ, s.params)
}

func (s *pcodecStage) Decode(dst, src []byte) ([]byte, error) {
	out, err := pco.Decode(dst, src, s.typ, s.max)
	switch {
	case errors.Is(err, pco.ErrTooLarge):
		return dst, Corruptf("pcodec", "more than %d bytes of numbers", s.max)
	case err != nil:
		return dst, Corruptf("pcodec", "%w", err)
	}
	return out, nil
}
