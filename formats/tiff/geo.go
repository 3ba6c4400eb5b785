package tiff

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
)

// Tags of GeoTIFF (OGC 19-008r4, 7.1 and 7.2).
const (
	modelPixelScale     = 33550
	modelTiepoint       = 33922
	modelTransformation = 34264
	geoKeyDirectory     = 34735
	geoDoubleParams     = 34736
	geoASCIIParams      = 34737
)

// geoKeys are names of keys (OGC 19-008r4, 7.4); other keys are called GeoKey and
// their number.
var geoKeys = map[uint64]string{
	1024: "GTModelType", 1025: "GTRasterType", 1026: "GTCitation",
	2048: "GeodeticCRS", 2049: "GeodeticCitation", 2050: "GeodeticDatum", 2051: "PrimeMeridian", 2052: "GeogLinearUnits",
	2053: "GeogLinearUnitSize", 2054: "GeogAngularUnits", 2055: "GeogAngularUnitSize", 2056: "Ellipsoid", 2057: "EllipsoidSemiMajorAxis",
	2058: "EllipsoidSemiMinorAxis", 2059: "EllipsoidInvFlattening", 2060: "GeogAzimuthUnits", 2061: "PrimeMeridianLongitude",
	3072: "ProjectedCRS", 3073: "ProjectedCitation", 3074: "Projection", 3075: "ProjMethod", 3076: "ProjLinearUnits", 3077: "ProjLinearUnitSize",
	3078: "ProjStdParallel1", 3079: "ProjStdParallel2", 3080: "ProjNatOriginLong", 3081: "ProjNatOriginLat", 3082: "ProjFalseEasting",
	3083: "ProjFalseNorthing", 3084: "ProjFalseOriginLong", 3085: "ProjFalseOriginLat", 3086: "ProjFalseOriginEasting",
	3087: "ProjFalseOriginNorthing", 3088: "ProjCenterLong", 3089: "ProjCenterLat", 3090: "ProjCenterEasting", 3091: "ProjCenterNorthing",
	3092: "ProjScaleAtNatOrigin", 3093: "ProjScaleAtCenter", 3094: "ProjAzimuthAngle", 3095: "ProjStraightVertPoleLong",
	4096: "Vertical", 4097: "VerticalCitation", 4098: "VerticalDatum", 4099: "VerticalUnits",
}

// locate gives the levels of an image the attributes of where it lies on Earth:
//
//	spatial_ref   "EPSG:n" of the projected, else the geodetic system
//	GeoTransform  "x0 dx rx y0 ry dy", as GDAL has it: of the outer corner of pixels
//	GeoKeys       all keys of GeoTIFF by name
//
// Levels without tags have the position of the first one.
func (f *file) locate(ctx context.Context, im *image) error {
	if im.refused != nil {
		return nil
	}
	first := im.levels[0]
	d := first.pages[0].dir
	keys, err := f.readGeoKeys(ctx, d)
	if err != nil || keys == nil {
		return err
	}
	transform, err := f.transform(ctx, d, keys)
	if err != nil {
		return err
	}
	for _, a := range im.levels {
		maps.Copy(a.attrs, geoAttributes(keys, transform, float64(first.width)/float64(a.width), float64(first.height)/float64(a.height)))
		if len(im.levels) > 1 {
			a.attrs["grid_mapping"] = "spatial_ref"
		}
	}
	return nil
}

// putReference puts the variable spatial_ref into the group of levels, which their
// attribute grid_mapping names (CF, 5.6).
func (im *image) putReference(t *formats.Tree, path string) error {
	attrs := im.levels[0].attrs
	if attrs["grid_mapping"] == nil {
		return nil
	}
	own := object{}
	for _, name := range []string{"spatial_ref", "GeoTransform", "GeoKeys"} {
		if v := attrs[name]; v != nil {
			own[name] = v
		}
	}
	return put(t, formats.Join(path, "spatial_ref/zarr.json"), object{
		"zarr_format":        3,
		"node_type":          "array",
		"shape":              []int{},
		"data_type":          "int32",
		"chunk_grid":         named("regular", object{"chunk_shape": []int{}}),
		"chunk_key_encoding": named("default", object{"separator": "/"}),
		"fill_value":         0,
		"codecs":             []object{named("bytes", object{"endian": "little"})},
		"dimension_names":    []string{},
		"attributes":         own,
	})
}

// geoAttributes returns the attributes of a level, given the size of its pixels
// in pixels of the first level.
func geoAttributes(keys object, transform []float64, across, down float64) object {
	attrs := object{"GeoKeys": keys}
	for _, name := range []string{"ProjectedCRS", "GeodeticCRS"} {
		if n, ok := keys[name].(uint64); ok && n > 0 && n < 32767 {
			attrs["spatial_ref"] = fmt.Sprintf("EPSG:%d", n)
			break
		}
	}
	if transform != nil {
		text := make([]string, 6)
		for i, v := range transform {
			v *= [6]float64{1, across, down, 1, across, down}[i]
			text[i] = strconv.FormatFloat(v, 'f', -1, 64)
		}
		attrs["GeoTransform"] = strings.Join(text, " ")
	}
	return attrs
}

// readGeoKeys reads the keys (OGC 19-008r4, 7.1.1), nil if there are none.
//
//	version 2 │ revision 2 │ minor 2 │ count 2 │ (key 2, tag or 0 2, count 2, value or index 2) …
func (f *file) readGeoKeys(ctx context.Context, d *ifd) (object, error) {
	t, ok := d.find(geoKeyDirectory)
	if !ok {
		return nil, nil
	}
	list, err := f.numbers(ctx, t, maxValues)
	if err != nil || len(list) < 4 {
		return nil, err
	}
	var doubles []float64
	if t, ok := d.find(geoDoubleParams); ok {
		if doubles, err = f.floats(ctx, t); err != nil {
			return nil, err
		}
	}
	var text []byte
	if t, ok := d.find(geoASCIIParams); ok {
		if text, err = f.bytes(ctx, t, maxAttribute); err != nil {
			return nil, err
		}
	}
	keys := object{}
	for rest := list[4:]; len(rest) >= 4 && uint64(len(keys)) < list[3]; rest = rest[4:] {
		id, from, count, value := rest[0], rest[1], rest[2], rest[3]
		name, ok := geoKeys[id]
		if !ok {
			name = fmt.Sprintf("GeoKey%d", id)
		}
		switch {
		case from == 0:
			keys[name] = value
		case from == geoDoubleParams && count > 0 && within(value, count, len(doubles)):
			if v := numeric(doubles[value : value+count]); v != nil {
				keys[name] = v
			}
		case from == geoASCIIParams && within(value, count, len(text)):
			keys[name] = strings.ToValidUTF8(strings.TrimRight(string(text[value:value+count]), "|\x00"), "\ufffd")
		}
	}
	return keys, nil
}

// within reports whether count elements from at on are among n.
func within(at, count uint64, n int) bool { return at <= uint64(n) && count <= uint64(n)-at }

// transform returns the six numbers of GDAL's geotransform, nil if the tags do
// not define it.
func (f *file) transform(ctx context.Context, d *ifd, keys object) ([]float64, error) {
	var tr []float64
	if t, ok := d.find(modelTransformation); ok && t.count >= 16 {
		m, err := f.floats(ctx, t)
		if err != nil {
			return nil, err
		}
		tr = []float64{m[3], m[0], m[1], m[7], m[4], m[5]}
	} else if s, ok := d.find(modelPixelScale); ok && s.count >= 2 {
		t, ok := d.find(modelTiepoint)
		if !ok || t.count < 6 {
			return nil, nil
		}
		scale, err := f.floats(ctx, s)
		if err != nil {
			return nil, err
		}
		tie, err := f.floats(ctx, t)
		if err != nil {
			return nil, err
		}
		dx, dy := scale[0], -scale[1]
		tr = []float64{tie[3] - tie[0]*dx, dx, 0, tie[4] - tie[1]*dy, 0, dy}
	}
	if numeric(tr) == nil {
		return nil, nil
	}
	if keys["GTRasterType"] == uint64(2) { // coordinates are of the centre of pixels
		tr[0] -= (tr[1] + tr[2]) / 2
		tr[3] -= (tr[4] + tr[5]) / 2
	}
	return tr, nil
}
