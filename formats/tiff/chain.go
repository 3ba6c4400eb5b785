package tiff

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/formats"
)

// Refused compressions, by the names in their specifications.
var refused = map[int]string{
	2: "CCITT modified Huffman RLE", 3: "CCITT Group 3", 4: "CCITT Group 4", 6: "JPEG of TIFF 6.0, which its notes withdrew", 9: "JBIG", 10: "JBIG",
	32766: "NeXT RLE", 32771: "CCITT RLE/W", 32809: "ThunderScan", 32908: "Pixar film log", 32909: "Pixar log", 33007: "JPEG", 34661: "JBIG",
	34676: "SGI log luminance", 34677: "SGI log luminance", 34713: "NEF", 34887: "LERC", 34892: "lossy DNG",
	65000: "EER", 65001: "EER", 65002: "EER",
}

// elsewhere are compressions that other implementations of Zarr have codecs for. Arrays
// are listed, linked and exported; reading them fails with the name of the codec.
var elsewhere = map[int]string{
	22610: "imagecodecs_jpegxr", 33003: "imagecodecs_jpeg2k", 33004: "imagecodecs_jpeg2k", 33005: "imagecodecs_jpeg2k", 34712: "imagecodecs_jpeg2k",
	50002: "imagecodecs_jpegxl", 52546: "imagecodecs_jpegxl",
}

// checkCompression refuses compressions without a codec.
func (p *page) checkCompression(r *fields) error {
	images := false
	switch p.compression {
	case 1, 5, 8, 32773, 32946, 34925, 50000:
	case 7, 34933, 50001:
		images = true
	default:
		if elsewhere[p.compression] != "" {
			p.predictor = 1
			return nil
		}
		name := refused[p.compression]
		if name == "" {
			name = "unknown"
		}
		return formats.Unsupported("tiff: compression %d (%s)", p.compression, name)
	}
	if images && (p.format != 1 || p.bits != 8 && (p.bits != 16 || p.compression != 34933)) {
		return formats.Unsupported("tiff: compression %d with samples of %d bits in format %d", p.compression, p.bits, p.format)
	}
	if p.photometric == 6 && !images {
		if sub := r.f.subsampling(r); sub != [2]uint64{1, 1} {
			return formats.Unsupported("tiff: colour with fewer samples (YCbCrSubSampling %d, %d) that JPEG does not compress", sub[0], sub[1])
		}
	}
	switch {
	case images:
		p.predictor = 1 // has no meaning here
	case p.predictor < 1 || p.predictor > 3:
		return formats.Unsupported("tiff: predictor %d", p.predictor)
	case p.predictor != 1 && (p.packed() || p.format == 6):
		return formats.Unsupported("tiff: a predictor of samples of %d bits in format %d", p.bits, p.format)
	case p.predictor == 3 && p.format != 3:
		return formats.Unsupported("tiff: predictor 3 of samples that are no floats")
	case p.compression == 1 || p.compression == 32773:
		p.predictor = 1 // only LZW and later compressions have it
	}
	return nil
}

// subsampling is the pixels of a colour sample.
func (f *file) subsampling(r *fields) [2]uint64 {
	t, ok := r.d.find(ycbcrSubsampling)
	if !ok || t.count < 2 {
		return [2]uint64{2, 2}
	}
	list, err := f.numbers(r.ctx, t, 2)
	if err != nil {
		r.err = err
		return [2]uint64{}
	}
	return [2]uint64(list)
}

type object = map[string]any

func named(name string, configuration object) object {
	if configuration == nil {
		return object{"name": name}
	}
	return object{"name": name, "configuration": configuration}
}

// codecs returns the codecs of a tile, whose last three dimensions are y, x and channel,
// in the order of encoding.
func (p *form) codecs(order binary.ByteOrder, rank int) []object {
	if name := elsewhere[p.compression]; name != "" {
		return []object{named(name, nil)}
	}
	switch p.compression {
	case 7:
		return []object{named("imagecodecs_jpeg", p.jpeg())}
	case 34933:
		return []object{named("imagecodecs_png", nil)}
	}
	var list []object
	x := object{"axis": p.axisX(rank), "dist": 1}
	if p.predictor == 2 {
		list = append(list, named("imagecodecs_delta", x))
	}
	switch {
	case p.compression == 50001:
		list = append(list, named("imagecodecs_webp", object{"hasalpha": p.tileSamples() == 4}))
	case p.predictor == 3:
		list = append(list, named("imagecodecs_floatpred", x))
	case p.packed():
		list = append(list, named("imagecodecs_packints", object{"bitspersample": p.bits, "runlen": p.tileWidth * p.tileSamples()}))
	case p.bits == 8:
		list = append(list, named("bytes", nil))
	case order == binary.BigEndian:
		list = append(list, named("bytes", object{"endian": "big"}))
	default:
		list = append(list, named("bytes", object{"endian": "little"}))
	}
	switch p.compression {
	case 5:
		list = append(list, named("imagecodecs_lzw", nil))
	case 8, 32946:
		list = append(list, named("numcodecs.zlib", object{"level": 6}))
	case 32773:
		list = append(list, named("imagecodecs_packbits", nil))
	case 34925:
		list = append(list, named("numcodecs.lzma", object{}))
	case 50000:
		list = append(list, named("zstd", object{"level": 9, "checksum": false}))
	}
	if p.reversed { // libtiff reverses compressed bytes too, except JPEG
		list = append(list, named("imagecodecs_bitorder", nil))
	}
	return list
}

// axisX is the dimension x, along which predictors run.
func (p *form) axisX(rank int) int {
	if p.hasChannel(rank) {
		return rank - 2
	}
	return rank - 1
}

// hasChannel reports whether an array of so many dimensions has a dimension of samples:
// all but arrays of five, t, c, z, y, x.
func (p *form) hasChannel(rank int) bool { return rank != 5 }

// jpeg returns the configuration of the codec of JPEG tiles, whose markers do
// not have the colour space (TIFF Technical Note 2).
func (p *form) jpeg() object {
	c := object{}
	if p.tables != "" {
		c["tables"] = []byte(p.tables) // printed as base64
	}
	switch {
	case p.tileSamples() == 1:
		c["colorspace_data"] = "GRAYSCALE"
	case p.alpha:
	case p.photometric == 2:
		c["colorspace_jpeg"], c["colorspace_data"] = "RGB", "RGB"
	case p.photometric == 6:
		c["colorspace_data"] = "RGB"
	case p.photometric == 5:
		c["colorspace_data"] = "CMYK"
	}
	return c
}
