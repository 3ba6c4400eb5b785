package tiff_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// attributes returns those of the array or group at path.
func attributes(t *testing.T, view kv.Reader, path string) map[string]any {
	t.Helper()
	if path != "" {
		path += "/"
	}
	b := must.Get(kv.Get(t.Context(), view, path+"zarr.json"))(t)
	var doc struct{ Attributes map[string]any }
	must.Do(t, json.Unmarshal(b, &doc))
	return doc.Attributes
}

// Tags are attributes, and in OME-TIFF the axes are those of its XML.
func TestAttributes(t *testing.T) {
	axis := func(name, kind, unit string) any {
		a := map[string]any{"name": name, "type": kind}
		if unit != "" {
			a["unit"] = unit
		}
		return a
	}
	for _, c := range []struct {
		file, path, name string
		want             any
	}{
		{"palette", "", "PhotometricInterpretation", "Palette"},
		{"pyramid_pages", "0/1", "NewSubfileType", 1.0},
		{"pyramid_pages", "0/0", "NewSubfileType", nil},
		{"geo", "", "spatial_ref", "EPSG:32633"},
		{"geo", "", "GeoTransform", "500000 30 0 4600000 0 -30"},
		{"geo", "", "GDAL_NODATA", "-9999"},
		{"cog", "0", "GeoTransform", "10 0.01 0 50 0 -0.02"},
		{"cog", "1", "GeoTransform", "10 0.02 0 50 0 -0.04"},
		{"cog", "1", "grid_mapping", "spatial_ref"},
		{"cog", "spatial_ref", "spatial_ref", "EPSG:4326"},
		{"ome", "", "axes", []any{axis("t", "time", "millisecond"), axis("c", "channel", ""), axis("z", "space", "micrometer"), axis("y", "space", "micrometer"), axis("x", "space", "micrometer")}},
		{"ome", "", "scale", []any{10.0, 1.0, 2.0, 0.25, 0.5}},
		{"ome", "", "channels", []any{"A", "B", "C"}},
		{"ome", "", "name", "cells"},
		{"ome_pyramid", "1", "scale", []any{1.0, 1.0, 1.0, 1.0, 1.0}},
		{"ome_rgb", "0", "axes", []any{axis("t", "time", ""), axis("c", "channel", ""), axis("z", "space", ""), axis("y", "space", ""), axis("x", "space", ""), axis("channel", "channel", "")}},
	} {
		if got := attributes(t, open(t, c.file), c.path)[c.name]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, %q: %s is %v, want %v", c.file, c.path, c.name, got, c.want)
		}
	}
	keys, _ := attributes(t, open(t, "geo"), "")["GeoKeys"].(map[string]any)
	if keys["GTCitation"] != "WGS 84 / UTM zone 33N" || keys["ProjectedCRS"] != 32633.0 {
		t.Errorf("keys of GeoTIFF: %v", keys)
	}
	if n, _ := attributes(t, open(t, "palette"), "")["ColorMap"].([]any); len(n) != 768 {
		t.Errorf("a palette of %d numbers", len(n))
	}
	ome, _ := attributes(t, open(t, "ome_pyramid"), "")["ome"].(map[string]any)
	if ome["version"] != "0.5" {
		t.Errorf("OME-Zarr attributes of a pyramid: %v", ome)
	}
}
