package n5

import (
	"encoding/json"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// compressorOf returns the Zarr codec of a "compression" member, nil for none.
//
//	raw                     –
//	gzip, zlib              gzip, numcodecs.zlib
//	bzip2                   numcodecs.bz2
//	xz                      numcodecs.lzma
//	lz4                     zarrdb.lz4block
//	blosc, zstd             blosc, zstd
//
// Errors are ErrUnsupported with the name of the compression, or ErrFormat.
func compressorOf(c attributes, dataType string) (json.RawMessage, error) {
	var kind string
	if json.Unmarshal(c.get("type"), &kind) != nil {
		return nil, formats.Invalid("compression: type: not a string")
	}
	p := parameters{list: c}
	var out json.RawMessage
	switch kind {
	case "raw":
	case "gzip":
		name := "gzip"
		if p.bool("useZlib") {
			name = "numcodecs.zlib"
		}
		level := p.int("level", -1)
		if level < 0 || level > 9 { // -1 is the default of zlib
			level = 6
		}
		out = formats.Named(name, codecs.Object("level", level))
	case "bzip2":
		out = formats.Named("numcodecs.bz2", codecs.Object("level", p.within("blockSize", 9, 1, 9)))
	case "xz":
		out = formats.Named("numcodecs.lzma", codecs.Object("format", 1, "check", -1, "preset", p.within("preset", 6, 0, 9)))
	case "lz4":
		if c.get("acceleration") != nil { // zarr-python's N5Store stores the codec of numcodecs
			out = formats.Named("numcodecs.lz4", codecs.Object("acceleration", p.within("acceleration", 1, math.MinInt32, math.MaxInt32)))
			break
		}
		out = formats.Named(lz4Codec, codecs.Object("block_size", p.within("blockSize", 1<<16, lz4MinBlock, lz4MaxBlock)))
	case "zstd":
		out = formats.Named("zstd", codecs.Object("level", p.within("level", 3, -131072, 22), "checksum", false))
	case "blosc":
		out = p.blosc(dataType)
	default:
		return nil, formats.Unsupported("compression %q", kind)
	}
	return out, p.err
}

// blosc returns the codec of n5-blosc and of zarr-python's N5Store.
func (p *parameters) blosc(dataType string) json.RawMessage {
	cname := p.string("cname", "blosclz")
	shuffles := []string{"noshuffle", "shuffle", "bitshuffle"}
	size := elementSize(dataType)
	shuffle := p.within("shuffle", 0, -1, 2)
	if shuffle < 0 { // numcodecs: bits of bytes, bytes of larger elements
		if shuffle = 1; size == 1 {
			shuffle = 2
		}
	}
	return formats.Named("blosc", codecs.Object("cname", cname, "clevel", p.within("clevel", 6, 0, 9),
		"shuffle", shuffles[shuffle], "typesize", size, "blocksize", p.within("blocksize", 0, 0, math.MaxInt32)))
}

// elementSize is the size of an element in bytes; 1 for strings.
func elementSize(dataType string) int {
	switch dataType {
	case "uint16", "int16":
		return 2
	case "uint32", "int32", "float32":
		return 4
	case "uint64", "int64", "float64":
		return 8
	}
	return 1
}

// parameters reads members of a compression. They say how to compress and are not
// needed to read; one of another type is an error all the same.
type parameters struct {
	list attributes
	err  error
}

func (p *parameters) decode(name string, v any) bool {
	raw := p.list.get(name)
	if raw == nil || string(raw) == "null" || p.err != nil {
		return false
	}
	if json.Unmarshal(raw, v) != nil {
		p.err = formats.Invalid("compression: %s: of another type", name)
		return false
	}
	return true
}

func (p *parameters) int(name string, def int64) int64 {
	var n int64
	if !p.decode(name, &n) {
		return def
	}
	return n
}

// within returns a number that is moved into its limits, as every writer has its own.
func (p *parameters) within(name string, def, lo, hi int64) int64 {
	return min(max(p.int(name, def), lo), hi)
}

func (p *parameters) bool(name string) bool {
	var b bool
	return p.decode(name, &b) && b
}

func (p *parameters) string(name, def string) string {
	var s string
	if !p.decode(name, &s) {
		return def
	}
	return s
}
