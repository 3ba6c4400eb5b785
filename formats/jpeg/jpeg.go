// Package jpeg reads JPEG images of 8 bits, baseline and progressive, as uint8.
//
//	grey [y, x, 1]   RGB [y, x, 3]   CMYK [y, x, 4]
//
// YCbCr becomes RGB, and YCCK CMYK. CMYK is as the file stores it: of files with a
// marker of Adobe that is the complement, 255 is no ink. Colour is interpolated between
// samples as libjpeg does. An orientation of EXIF is not applied.
package jpeg

import (
	"bytes"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/raster"
)

// Format returns the line of the table of formats.
func Format() formats.Format {
	k := colours{}.kind()
	return formats.Format{
		Scheme: "jpeg",
		Open:   k.Open,
		Head:   raster.HeadBytes,
		Detect: func(e formats.Evidence) bool { return bytes.HasPrefix(e.Head, []byte{0xff, 0xd8, 0xff}) },
		Codecs: []codecs.Entry{{V2: name, V3: []string{name}, Kind: codecs.ArrayToBytes, Parse: parse}},
	}
}

const name = "imagecodecs_jpeg"

// colours has data that is not in the file: external tables, as in TIFF, and
// colour spaces.
type colours struct {
	tables []byte      // a JPEG stream of tables alone; nil if the file has its own
	stored colourSpace // of the file
	wanted colourSpace // of the elements
}

// colourSpace is a colour space; unknown means the one that the file's markers name.
type colourSpace uint8

const (
	unknown colourSpace = iota
	grey
	rgb
	ycbcr
	cmyk
	ycck
)

// spaces are the names that imagecodecs has for them, in upper case, and numbers
// from libjpeg.
var spaces = map[string]colourSpace{
	"": unknown, "0": unknown, "UNKNOWN": unknown, "NONE": unknown,
	"1": grey, "GRAYSCALE": grey, "GRAY": grey, "MINISBLACK": grey, "MINISWHITE": grey,
	"2": rgb, "RGB": rgb,
	"3": ycbcr, "YCBCR": ycbcr, "YCC": ycbcr,
	"4": cmyk, "CMYK": cmyk, "SEPARATED": cmyk,
	"5": ycck, "YCCK": ycck,
}

func (c colours) kind() raster.Kind {
	return raster.Kind{Scheme: "jpeg", Codec: name, Header: c.readHeader, Decode: c.decode}
}

// parse reads the configuration of the codec as imagecodecs writes it.
func parse(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	var o colours
	if raw := f.Raw("tables"); raw != nil {
		if err := json.Unmarshal(raw, &o.tables); err != nil || len(o.tables) > maxTables {
			f.Fail("tables", "not base64 of tables of JPEG")
		}
	}
	o.stored, o.wanted = parseSpace(f, "colorspace_jpeg"), parseSpace(f, "colorspace_data")
	if f.Raw("header") != nil {
		f.Fail("header", "a header outside the image is not supported")
	}
	config := raster.Members(f, "tables", "colorspace_jpeg", "colorspace_data", "level", "bitspersample",
		"subsampling", "optimize", "smoothing", "lossless", "predictor", "fancyupsampling", "squeeze")
	return raster.NewCodec(o.kind(), config), f.Err()
}

// maxTables bounds the tables of a configuration, which have at most 4 of each kind.
const maxTables = 64 << 10

// parseSpace reads the name or number of a colour space.
func parseSpace(f *codecs.Fields, member string) colourSpace {
	raw := f.Raw(member)
	if raw == nil || string(raw) == "null" {
		return unknown
	}
	s, ok := spaces[string(bytes.ToUpper(bytes.Trim(raw, `"`)))]
	if !ok {
		f.Fail(member, "%.40s is not a colour space that is supported", raw)
	}
	return s
}
