package tiff

import (
	"context"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/formats"
)

// Tags for the positions and the meaning of pixels (TIFF 6.0; TIFF Technical
// Notes 1 and 2; BigTIFF).
const (
	newSubfileType   = 254
	imageWidth       = 256
	imageLength      = 257
	bitsPerSample    = 258
	compressionTag   = 259
	photometricTag   = 262
	fillOrder        = 266
	imageDescription = 270
	stripOffsets     = 273
	samplesPerPixel  = 277
	rowsPerStrip     = 278
	stripByteCounts  = 279
	planarConfig     = 284
	predictorTag     = 317
	tileWidth        = 322
	tileLength       = 323
	tileOffsets      = 324
	tileByteCounts   = 325
	subIFDs          = 330
	extraSamples     = 338
	sampleFormat     = 339
	jpegTables       = 347
	ycbcrSubsampling = 530
	imageDepth       = 32997
	gdalNoData       = 42113
)

// Bits of NewSubfileType.
const (
	reduced = 1
	mask    = 4
)

// maxSide bounds width and height, so that areas fit an int64.
const maxSide = 1 << 31

// form is the common properties of the pages of an array. It is comparable.
type form struct {
	width, height int64
	// tileWidth and tileHeight are the size of a tile, or of a whole strip.
	tileWidth, tileHeight int64
	tiled                 bool
	samples               int64
	planar                bool // each sample in tiles of its own
	reversed              bool // the lowest bit of each byte first (FillOrder 2)
	bits                  int  // of a sample
	format                int  // 1 unsigned, 2 signed, 3 float, 6 complex
	compression           int
	predictor             int
	photometric           int
	alpha                 bool   // there are extra samples
	tables                string // of JPEG
	nodata                string
}

// page is a directory that was understood.
type page struct {
	form
	dir             *ifd
	subfile         uint64
	offsets, counts tag   // counts has no values if they follow from the form
	shift           int64 // of all offsets
}

// readPage understands a directory.
func (f *file) readPage(ctx context.Context, d *ifd) (*page, error) {
	p := &page{dir: d}
	r := fields{f: f, ctx: ctx, d: d}
	p.subfile = r.number(newSubfileType, 0)
	p.width, p.height = r.side(imageWidth), r.side(imageLength)
	p.samples = int64(min(r.number(samplesPerPixel, 1), math.MaxInt32))
	p.bits = int(r.same(bitsPerSample, 1))
	p.format = int(r.same(sampleFormat, 1))
	p.compression = int(r.number(compressionTag, 1))
	p.predictor = int(r.number(predictorTag, 1))
	p.photometric = int(r.number(photometricTag, 1))
	planar, order := r.number(planarConfig, 1), r.number(fillOrder, 1)
	p.planar = planar == 2 && p.samples > 1
	p.reversed = order == 2
	if r.err != nil {
		return nil, r.err
	}
	switch {
	case p.samples < 1 || p.samples > math.MaxUint16:
		return nil, formats.Invalid("tiff: %d samples in a pixel", p.samples)
	case planar != 1 && planar != 2:
		return nil, formats.Invalid("tiff: PlanarConfiguration is %d", planar)
	case r.number(imageDepth, 1) > 1:
		return nil, formats.Unsupported("tiff: pages of several slices (ImageDepth)")
	case order != 1 && order != 2:
		return nil, formats.Invalid("tiff: FillOrder is %d", order)
	}
	if t, ok := d.find(extraSamples); ok {
		p.alpha = t.count > 0
	}
	if p.format == 4 { // undefined
		p.format = 1
	}
	if _, ok := p.dataType(); !ok {
		return nil, formats.Unsupported("tiff: samples of %d bits in format %d", p.bits, p.format)
	}
	if t, ok := d.find(jpegTables); ok && p.compression == 7 {
		b, err := f.bytes(ctx, t, maxValues)
		if err != nil {
			return nil, err
		}
		p.tables = string(b)
	}
	if t, ok := d.find(gdalNoData); ok {
		var err error
		if p.nodata, err = f.text(ctx, t, 256); err != nil {
			return nil, err
		}
	}
	if err := p.checkCompression(&r); err != nil {
		return nil, err
	}
	if err := p.place(&r); err != nil {
		return nil, err
	}
	return p, r.err
}

// place finds the tiles or strips.
func (p *page) place(r *fields) error {
	var ok, counted bool
	if _, p.tiled = r.d.find(tileWidth); p.tiled {
		p.tileWidth, p.tileHeight = r.side(tileWidth), r.side(tileLength)
		p.offsets, ok = r.d.find(tileOffsets)
		p.counts, counted = r.d.find(tileByteCounts)
	} else {
		p.tileWidth = p.width
		p.tileHeight = min(p.height, max(1, int64(min(r.number(rowsPerStrip, math.MaxUint32), math.MaxUint32))))
		p.counts, counted = r.d.find(stripByteCounts)
	}
	if !ok { // some writers use the tags of strips for tiles
		p.offsets, ok = r.d.find(stripOffsets)
		if !counted {
			p.counts, counted = r.d.find(stripByteCounts)
		}
	}
	if r.err != nil {
		return r.err
	}
	if !ok {
		return formats.Invalid("tiff: a page without pixels: there are neither strips nor tiles")
	}
	for _, t := range []tag{p.offsets, p.counts} {
		if t.count > 0 && !r.f.inside(t) {
			return formats.Invalid("tiff: the %d values of tag %d lie outside the file", t.count, t.id)
		}
	}
	if n := p.tiles(); uint64(n) > p.offsets.count || counted && uint64(n) > p.counts.count {
		return formats.Invalid("tiff: %d tiles or strips, and %d offsets and %d lengths of them", n, p.offsets.count, p.counts.count)
	}
	if !counted && p.compression != 1 {
		return formats.Invalid("tiff: tiles without their lengths")
	}
	const most = 1 << 31 // reading a chunk has a lower bound of its own
	if p.tileWidth > most/p.tileHeight || p.tileWidth*p.tileHeight > most/p.tileSamples()/int64(max(1, p.bits/8)) {
		return formats.Unsupported("tiff: tiles of %d by %d pixels with %d samples of %d bits", p.tileWidth, p.tileHeight, p.samples, p.bits)
	}
	return nil
}

// across and down are the numbers of tiles along x and y, tiles the number in a
// page. tileSamples is the number of samples of a pixel in one tile.
func (p *form) across() int64 { return (p.width + p.tileWidth - 1) / p.tileWidth }
func (p *form) down() int64   { return (p.height + p.tileHeight - 1) / p.tileHeight }

func (p *form) tileSamples() int64 {
	if p.planar {
		return 1
	}
	return p.samples
}

func (p *form) tiles() int64 { return p.across() * p.down() * (p.samples / p.tileSamples()) }

// short reports whether the last strip has fewer rows than other strips.
func (p *form) short() bool { return !p.tiled && p.height%p.tileHeight != 0 }

// dataType returns the name of the Zarr data type of a sample.
func (p *form) dataType() (string, bool) {
	switch b := p.bits; {
	case p.format == 1 && b == 1:
		return "bool", true
	case p.format == 1 && b > 1 && b < 8:
		return "uint8", true
	case p.format == 1 && b > 8 && b < 16:
		return "uint16", true
	case p.format == 1 && (b == 8 || b == 16 || b == 32 || b == 64):
		return fmt.Sprintf("uint%d", b), true
	case p.format == 2 && (b == 8 || b == 16 || b == 32 || b == 64):
		return fmt.Sprintf("int%d", b), true
	case p.format == 3 && (b == 16 || b == 32 || b == 64):
		return fmt.Sprintf("float%d", b), true
	case p.format == 6 && (b == 64 || b == 128):
		return fmt.Sprintf("complex%d", b), true
	}
	return "", false
}

// packed reports whether samples are no whole bytes.
func (p *form) packed() bool { return p.bits%8 != 0 }

// rowBytes returns the bytes of an uncompressed row of a tile.
func (p *form) rowBytes() int64 { return (p.tileWidth*p.tileSamples()*int64(p.bits) + 7) / 8 }

// fields reads tags of one directory, and keeps the first error.
type fields struct {
	f   *file
	ctx context.Context
	d   *ifd
	err error
}

// number reads the first value of a tag, or returns def without the tag.
func (r *fields) number(id uint16, def uint64) uint64 {
	t, ok := r.d.find(id)
	if !ok || r.err != nil {
		return def
	}
	n, err := r.f.number(r.ctx, t, 0)
	r.err = err
	return n
}

// side reads a width or height.
func (r *fields) side(id uint16) int64 {
	n := r.number(id, 0)
	if r.err == nil && (n == 0 || n > maxSide) {
		r.err = formats.Invalid("tiff: tag %d, a width or height, is %d", id, n)
		return 1
	}
	return int64(n)
}

// same reads a tag with a value for each sample, which must be equal.
func (r *fields) same(id uint16, def uint64) uint64 {
	t, ok := r.d.find(id)
	if !ok || r.err != nil {
		return def
	}
	list, err := r.f.numbers(r.ctx, t, maxValues)
	if err != nil {
		r.err = err
		return def
	}
	for _, n := range list {
		if n != list[0] {
			r.err = formats.Unsupported("tiff: samples of several sizes or formats (tag %d)", id)
		}
	}
	return min(list[0], math.MaxInt32)
}
