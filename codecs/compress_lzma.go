package codecs

import (
	"encoding/json"
	"math"

	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/codecs/lzma"
)

// lzmaCodec is numcodecs' "lzma": the formats of Python's module lzma, with its
// numeric parameters.
type lzmaCodec struct {
	format  int
	options lzma.Options
	lzma1   bool // raw: not LZMA2
}

// The formats, as Python numbers them.
const (
	lzmaAuto = iota // to decode: .xz or .lzma
	lzmaXZ
	lzmaAlone
	lzmaRaw
)

// The filters.
const (
	lzmaDelta   = 0x03
	lzmaFilter2 = 0x21
	lzmaFilter1 = 0x4000000000000001
)

// lzmaDicts are the dictionary sizes of the presets.
var lzmaDicts = [...]int64{256 << 10, 1 << 20, 2 << 20, 4 << 20, 4 << 20, 8 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20}

func parseLZMA(c Config) (Codec, error) {
	f := c.Fields()
	x := &lzmaCodec{format: int(f.Int("format", lzmaXZ, lzmaAuto, lzmaRaw))}
	check := f.Int("check", -1, -1, 15)
	x.options = lzma.Options{Props: lzma.DefaultProps, Check: byte(check)}
	if check == -1 {
		x.options.Check = lzma.CheckCRC64
	}
	var preset *int64
	if raw := f.Raw("preset"); !value.Absent(raw) {
		n := f.Int("preset", 6, 0, math.MaxUint32)
		preset = &n
	}
	x.setPreset(f, "preset", preset)
	filters := f.Raw("filters")
	if !value.Absent(filters) {
		if preset != nil {
			f.Fail("preset", "cannot be combined with filters")
		}
		x.parseFilters(f, filters)
	} else if x.format == lzmaRaw {
		f.Fail("filters", "missing; raw data do not record them")
	}
	members := []any{"format", x.format, "check", check}
	if preset != nil {
		members = append(members, "preset", *preset)
	}
	if !value.Absent(filters) {
		members = append(members, "filters", filters)
	}
	return NewCodec(Object(members...), func(in Rep) (Stage, Rep, error) {
		return &lzmaStage{lzmaCodec: x, in: in}, in.Grown(), nil
	}), f.Err()
}

// setPreset sets the size of the dictionary; the lower five bits are the level.
func (x *lzmaCodec) setPreset(f *Fields, field string, preset *int64) {
	level := int64(6)
	if preset != nil {
		level = *preset & 31
	}
	if level >= int64(len(lzmaDicts)) {
		f.Fail(field, "preset %d is not in 0 to 9", level)
		level = 6
	}
	x.options.Dict = lzmaDicts[level]
}

// lzmaFilterJSON is one filter of a chain.
type lzmaFilterJSON struct {
	ID     *uint64 `json:"id"`
	Preset *int64  `json:"preset"`
	Dict   *int64  `json:"dict_size"`
	LC     *int    `json:"lc"`
	LP     *int    `json:"lp"`
	PB     *int    `json:"pb"`
	Dist   *int    `json:"dist"`
}

// parseFilters reads a chain: delta filters, then LZMA2 or, not in .xz, LZMA.
func (x *lzmaCodec) parseFilters(f *Fields, raw json.RawMessage) {
	var list []lzmaFilterJSON
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > 4 {
		f.Fail("filters", "not a list of one to four filters")
		return
	}
	for i, item := range list {
		last := i == len(list)-1
		switch {
		case item.ID == nil:
			f.Fail("filters", "filter %d has no id", i)
		case *item.ID == lzmaDelta && !last:
			dist := 1
			if item.Dist != nil {
				dist = *item.Dist
			}
			if dist < 1 || dist > 256 {
				f.Fail("filters", "dist %d is not in 1 to 256", dist)
			}
			x.options.Deltas = append(x.options.Deltas, dist)
		case *item.ID == lzmaFilter2 && last && x.format != lzmaAlone:
			x.parseLast(f, item)
		case *item.ID == lzmaFilter1 && last && x.format != lzmaXZ:
			x.lzma1 = true
			if len(x.options.Deltas) > 0 && x.format == lzmaAlone {
				f.Fail("filters", "a delta filter, which .lzma data cannot have")
			}
			x.parseLast(f, item)
		default:
			f.Fail("filters", "filter %d has the id %#x, which is not supported there", i, *item.ID)
		}
	}
}

// parseLast reads the properties of the last filter.
func (x *lzmaCodec) parseLast(f *Fields, item lzmaFilterJSON) {
	x.setPreset(f, "filters", item.Preset)
	if item.Dict != nil {
		if x.options.Dict = *item.Dict; *item.Dict < 4<<10 || *item.Dict > math.MaxUint32 {
			f.Fail("filters", "dict_size %d is not in 4096 to 4294967295", *item.Dict)
		}
	}
	p := &x.options.Props
	for _, set := range []struct{ to, from *int }{{&p.LC, item.LC}, {&p.LP, item.LP}, {&p.PB, item.PB}} {
		if set.from != nil {
			*set.to = *set.from
		}
	}
	if !p.Valid() || p.LC+p.LP > 4 {
		f.Fail("filters", "lc %d, lp %d, pb %d are not allowed", p.LC, p.LP, p.PB)
	}
}

type lzmaStage struct {
	*lzmaCodec
	in Rep
}

func (s *lzmaStage) Encode(dst, src []byte) ([]byte, error) {
	switch {
	case s.format == lzmaAuto:
		return dst, BadField("format", "0 selects no format to write")
	case s.format == lzmaXZ:
		return lzma.EncodeXZ(dst, src, s.options)
	case s.format == lzmaAlone:
		return lzma.EncodeAlone(dst, src, s.options)
	case s.lzma1:
		return lzma.EncodeRaw(dst, lzma.Delta(src, s.options.Deltas), s.options)
	default:
		return lzma.EncodeLZMA2(dst, src, s.options)
	}
}

func (s *lzmaStage) Decode(dst, src []byte) ([]byte, error) {
	limit := s.in.Limit(len(src))
	var out []byte
	var err error
	switch {
	case s.format == lzmaXZ || s.format == lzmaAuto && lzma.IsXZ(src):
		out, err = lzma.DecodeXZ(dst, src, limit)
	case s.format == lzmaAlone || s.format == lzmaAuto:
		out, err = lzma.DecodeAlone(dst, src, limit)
	case s.lzma1:
		out, err = lzma.DecodeRaw(dst, src, s.options, limit)
		lzma.Undelta(out[len(dst):], s.options.Deltas)
	default:
		out, err = lzma.DecodeLZMA2(dst, src, s.options, limit)
		lzma.Undelta(out[len(dst):], s.options.Deltas)
	}
	if err != nil {
		return dst, Corruptf("lzma", "%w", err)
	}
	return out, nil
}
