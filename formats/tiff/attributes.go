package tiff

import (
	"context"
	"math"
)

// described are the tags that become attributes, under their names.
var described = map[uint16]string{
	254: "NewSubfileType", 262: "PhotometricInterpretation", 269: "DocumentName", 270: "ImageDescription", 271: "Make", 272: "Model",
	274: "Orientation", 282: "XResolution", 283: "YResolution", 285: "PageName", 286: "XPosition", 287: "YPosition", 296: "ResolutionUnit",
	297: "PageNumber", 305: "Software", 306: "DateTime", 315: "Artist", 316: "HostComputer", 318: "WhitePoint", 319: "PrimaryChromaticities",
	320: "ColorMap", 338: "ExtraSamples", 532: "ReferenceBlackWhite", 33432: "Copyright", 42112: "GDAL_METADATA", 42113: "GDAL_NODATA",
}

// photometrics are the names of PhotometricInterpretation.
var photometrics = map[int]string{
	0: "WhiteIsZero", 1: "BlackIsZero", 2: "RGB", 3: "Palette", 4: "TransparencyMask", 5: "CMYK", 6: "YCbCr", 8: "CIELab", 9: "ICCLab",
	10: "ITULab", 32803: "CFA", 32844: "LogL", 32845: "LogLUV", 34892: "LinearRaw",
}

const (
	// maxAttribute bounds the length of a text, maxList of a list of numbers,
	// that becomes an attribute. Longer ones are left out.
	maxAttribute = 1 << 20
	maxList      = 1 << 10
)

// attributes are the attributes of a page.
func (f *file) attributes(ctx context.Context, p *page) (object, error) {
	attrs := object{}
	for _, t := range p.dir.tags {
		name, ok := described[t.id]
		switch {
		case !ok || !f.inside(t):
		case t.typ == 2:
			if t.count > maxAttribute {
				continue
			}
			s, err := f.text(ctx, t, maxAttribute)
			if err != nil {
				return nil, err
			}
			attrs[name] = s
		case t.count <= maxList:
			list, err := f.floats(ctx, t)
			if err != nil {
				return nil, err
			}
			if v := numeric(list); v != nil {
				attrs[name] = v
			}
		}
	}
	if attrs["NewSubfileType"] == 0.0 {
		delete(attrs, "NewSubfileType")
	}
	if name, ok := photometrics[p.photometric]; ok {
		attrs["PhotometricInterpretation"] = name
		if p.compression == 7 && p.photometric == 6 {
			attrs["PhotometricInterpretation"] = "RGB" // as the codec gives it
		}
	}
	return attrs, nil
}

// numeric returns a list as JSON has it: one number by itself, and nil if JSON does
// not have one of them.
func numeric(list []float64) any {
	for _, v := range list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}
