package hdf5

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// filter is one filter of a pipeline.
type filter struct {
	id   int
	name string
	cd   []uint32
}

// pipeline is the filters of a dataset, in the order of encoding. Bit i of a mask of a
// chunk says that it skips filter i.
type pipeline struct{ filters []filter }

// maxFilters is the largest number of filters in HDF5.
const maxFilters = 32

func readPipeline(d *dec) (*pipeline, error) {
	version, n := d.u8(), int(d.u8())
	switch {
	case d.err != nil:
		return nil, d.err
	case version != 1 && version != 2:
		return nil, formats.Unsupported("hdf5: filter pipelines of version %d", version)
	case n > maxFilters:
		return nil, formats.Invalid("hdf5: %d filters", n)
	}
	if version == 1 {
		d.skip(6)
	}
	p := &pipeline{}
	for range n {
		x := filter{id: d.u16()}
		nameBytes := 0
		if version == 1 || x.id >= 256 {
			nameBytes = d.u16()
		}
		d.skip(2)
		values := d.u16()
		if version == 1 {
			nameBytes = (nameBytes + 7) &^ 7
		}
		name, _, _ := bytes.Cut(d.take(nameBytes), []byte{0})
		x.name = formats.Text(name)
		if 4*values > d.left() {
			d.fail("has a filter with %d values", values)
		}
		for range values {
			if d.err != nil {
				return nil, d.err
			}
			x.cd = append(x.cd, d.u32())
		}
		if version == 1 && values%2 == 1 {
			d.skip(4)
		}
		p.filters = append(p.filters, x)
	}
	return p, d.err
}

// Numbers of filters (HDF5 and its registry).
const (
	filterDeflate     = 1
	filterShuffle     = 2
	filterFletcher    = 3
	filterSzip        = 4
	filterNbit        = 5
	filterScaleOffset = 6
	filterBzip2       = 307
	filterLzf         = 32000
	filterBlosc       = 32001
	filterLz4         = 32004
	filterBitshuffle  = 32008
	filterZstd        = 32015
)

// filterNames are those that files do not always say.
var filterNames = map[int]string{
	filterSzip: "szip", filterNbit: "n-bit", filterScaleOffset: "scale-offset", 305: "LZO", 32013: "zfp", 32014: "FPZip", 32016: "B3D", 32017: "SZ", 32018: "FCIDECOMP",
	32019: "JPEG", 32024: "SZ3", 32026: "blosc2", 32028: "granular bitround", 32030: "SPERR",
}

// value is a value of the client data, or def.
func (x *filter) value(i int, def uint32) uint32 {
	if i < len(x.cd) {
		return x.cd[i]
	}
	return def
}

// codec returns the codec of a filter of elements of some bytes, nil if it does nothing.
func (x *filter) codec(size int) (json.RawMessage, error) {
	switch x.id {
	case filterDeflate:
		return formats.Named("numcodecs.zlib", codecs.Object("level", min(x.value(0, 6), 9))), nil
	case filterShuffle:
		if n := x.value(0, uint32(size)); n != 1 {
			return formats.Named("numcodecs.shuffle", codecs.Object("elementsize", n)), nil
		}
		return nil, nil
	case filterFletcher:
		return formats.Named("numcodecs.fletcher32", codecs.Object()), nil
	case filterSzip:
		return formats.Named("imagecodecs_szip", codecs.Object("options_mask", x.value(0, 0), "pixels_per_block", x.value(1, 0),
			"bits_per_pixel", x.value(2, 0), "pixels_per_scanline", x.value(3, 0), "header", true)), nil
	case filterBzip2:
		return formats.Named("numcodecs.bz2", codecs.Object("level", max(1, min(x.value(0, 9), 9)))), nil
	case filterLzf:
		return formats.Named("imagecodecs_lzf", codecs.Object("header", false)), nil
	case filterBlosc:
		names := []string{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}
		shuffles := []string{"noshuffle", "shuffle", "bitshuffle"}
		name, shuffle := int(x.value(6, 0)), int(x.value(5, 1))
		if name >= len(names) || shuffle >= len(shuffles) {
			break
		}
		return formats.Named("blosc", codecs.Object("cname", names[name], "clevel", min(x.value(4, 5), 9), "shuffle", shuffles[shuffle],
			"typesize", max(1, min(x.value(2, uint32(size)), 255)), "blocksize", 0)), nil
	case filterLz4:
		if n := x.value(0, 0); n > 0 {
			return formats.Named("imagecodecs_lz4h5", codecs.Object("blocksize", n)), nil
		}
		return formats.Named("imagecodecs_lz4h5", codecs.Object()), nil
	case filterBitshuffle:
		item, block := x.value(2, uint32(size)), x.value(3, 0)
		switch x.value(4, 0) {
		case 0:
			return formats.Named("imagecodecs_bitshuffle", codecs.Object("itemsize", item, "blocksize", block)), nil
		case 2:
			return formats.Named("numcodecs.bshuf", codecs.Object("itemsize", item, "blocksize", block, "cname", "lz4", "clevel", 0)), nil
		case 3:
			return formats.Named("numcodecs.bshuf", codecs.Object("itemsize", item, "blocksize", block, "cname", "zstd", "clevel", int32(x.value(5, 3)))), nil
		}
	case filterZstd:
		return formats.Named("zstd", codecs.Object("level", int32(x.value(0, 3)), "checksum", false)), nil
	}
	name := filterNames[x.id]
	if x.name != "" && !strings.EqualFold(x.name, name) {
		name = strings.TrimSpace(name + " (" + x.name + ")")
	}
	if name == "" {
		name = "unknown"
	}
	return nil, formats.Unsupported("hdf5: the filter %d, %s, is not supported", x.id, name)
}

// chain returns the codecs of the filters that a mask does not skip, behind the codec
// bytes.
func (p *pipeline) chain(first json.RawMessage, size int, mask uint32) ([]json.RawMessage, error) {
	list := []json.RawMessage{first}
	if p == nil {
		return list, nil
	}
	for i := range p.filters {
		if mask>>i&1 != 0 {
			continue
		}
		c, err := p.filters[i].codec(size)
		if err != nil {
			return nil, err
		}
		if c != nil {
			list = append(list, c)
		}
	}
	return list, nil
}

// builtins are the codecs that filters are.
var builtins = sync.OnceValue(builtin.Registry)

// bound returns the codecs of a pipeline for n bytes.
func (p *pipeline) bound(mask uint32, n int64) (*codecs.Bound, error) {
	if n < 0 || n > maxChunk {
		return nil, formats.Unsupported("hdf5: a chunk of %d bytes", n)
	}
	c, err := p.parsed(mask)
	if err != nil {
		return nil, err
	}
	return c.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{int(n)}})
}

// parsed returns the codecs of the filters that a mask does not skip. A filter that
// cannot be undone here is formats.ErrUnsupported.
func (p *pipeline) parsed(mask uint32) (c codecs.Chain, err error) {
	list, err := p.chain(codecs.Object("name", "bytes"), 1, mask)
	if err != nil {
		return c, err
	}
	b, err := json.Marshal(list)
	if err != nil {
		return c, err
	}
	if c, err = builtins().ParseV3(b); errors.Is(err, codecs.ErrUnknown) {
		return c, formats.Unsupported("hdf5: %v", err)
	} else if err != nil {
		return c, fmt.Errorf("hdf5: %w", err)
	}
	return c, nil
}

// maxChunk bounds a chunk that is decoded here.
const maxChunk = maxInline

// decode returns the n bytes that filters made b of.
func (p *pipeline) decode(b []byte, mask uint32, n int64) ([]byte, error) {
	if p == nil {
		return b, nil
	}
	c, err := p.bound(mask, n)
	if err != nil {
		return nil, err
	}
	return c.Decode(nil, b)
}

// encode is the inverse of decode.
func (p *pipeline) encode(b []byte, mask uint32) ([]byte, error) {
	if p == nil {
		return b, nil
	}
	c, err := p.bound(mask, int64(len(b)))
	if err != nil {
		return nil, err
	}
	return c.Encode(nil, b)
}

// all is the mask that skips all filters.
func (p *pipeline) all() uint32 {
	if p == nil {
		return 0
	}
	return uint32(1<<len(p.filters) - 1)
}
