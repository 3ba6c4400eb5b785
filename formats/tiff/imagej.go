package tiff

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// ImageJ writes a hyperstack as pages, channels fastest, then slices, then frames, or, if it is larger
// than 4 GiB, as one page that further pages follow without a directory. The description of the
// first page has the counts:
//
//	ImageJ=1.53t
//	images=12
//	channels=2
//	slices=3
//	frames=2
//	unit=micron
//	spacing=0.5

// imageJ makes the image of a stack of ImageJ, [t, c, z, y, x] as one of OME-TIFF. It returns nil for
// another TIFF, and for one that does not describe its own pages.
func (f *file) imageJ(ctx context.Context, pages []*page) (*image, error) {
	t, ok := pages[0].dir.find(imageDescription)
	if !ok || t.typ != 2 || t.count > maxText || !f.inside(t) {
		return nil, nil
	}
	text, err := f.text(ctx, t, maxText)
	if err != nil || !strings.HasPrefix(text, "ImageJ=") {
		return nil, err
	}
	says := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		says[name] = value
	}
	count := func(name string) int64 {
		n, err := strconv.ParseInt(says[name], 10, 32)
		if err != nil || n < 1 || n > maxPlanes {
			return 1
		}
		return n
	}
	images, channels, slices, frames := count("images"), count("channels"), count("slices"), count("frames")
	if channels*slices > maxPlanes || channels*slices*frames != images {
		channels, slices, frames = 1, images, 1
	}
	if images < 2 {
		return nil, nil
	}
	if len(pages) == 1 {
		if pages, err = f.following(ctx, pages[0], images); err != nil {
			return nil, err
		}
	}
	if int64(len(pages)) != images {
		return nil, nil
	}
	base := &array{form: pages[0].form, lead: []int64{frames, channels, slices}, pages: make([]*page, images)}
	for i, p := range pages {
		if p.form != base.form || len(p.dir.subs) > 0 {
			return nil, nil // not uniform
		}
		c, z, t := int64(i)%channels, int64(i)/channels%slices, int64(i)/channels/slices
		base.pages[(t*channels+c)*slices+z] = p
	}
	if base.attrs, err = f.attributes(ctx, pages[0]); err != nil {
		return nil, err
	}
	base.describeImageJ(says)
	return &image{levels: []*array{base}}, nil
}

// following returns the pages that a single page stands for, whose rows follow the rows of the
// page; nil if the file does not hold them.
func (f *file) following(ctx context.Context, p *page, images int64) ([]*page, error) {
	strips := p.down() * p.across()
	size, strip := p.height*p.rowBytes(), p.tileHeight*p.rowBytes()
	if p.compression != 1 || p.tiled || p.planar || p.offsets.count == 0 || size > math.MaxInt64/maxPlanes {
		return nil, nil
	}
	first, err := f.number(ctx, p.offsets, 0)
	if err != nil {
		return nil, err
	}
	last, err := f.number(ctx, p.offsets, uint64(strips-1))
	if err != nil {
		return nil, err
	}
	if last-first != uint64((strips-1)*strip) || first > uint64(f.Size()) || images*size > f.Size()-int64(first) {
		return nil, nil
	}
	list := make([]*page, images)
	for i := range list {
		next := *p
		next.counts, next.shift = tag{}, int64(i)*size
		list[i] = &next
	}
	return list, nil
}

// describeImageJ sets attributes: axes with units and the scale, as an image of OME-TIFF has them.
func (a *array) describeImageJ(says map[string]string) {
	unit := omeUnits[says["unit"]]
	switch says["unit"] {
	case "micron", "um", `\u00B5m`, "\xb5m":
		unit = "micrometer"
	case "inch":
		unit = "inch"
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if v = math.Abs(v); err != nil || v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return 1
		}
		return v
	}
	pixel := func(attr string) float64 {
		if v, ok := a.attrs[attr].(float64); ok && v > 0 && unit != "" {
			return 1 / v
		}
		return 1
	}
	scale := []float64{number(says["finterval"]), 1, number(says["spacing"]), pixel("YResolution"), pixel("XResolution"), 1}[:a.rank()]
	var axes []object
	for i, name := range []string{"t", "c", "z", "y", "x", "channel"}[:a.rank()] {
		axis := object{"name": name, "type": []string{"time", "channel", "space", "space", "space", "channel"}[i]}
		switch {
		case i == 0 && says["finterval"] != "":
			axis["unit"] = "second"
		case axis["type"] == "space" && unit != "":
			axis["unit"] = unit
		}
		axes = append(axes, axis)
	}
	a.attrs["axes"], a.attrs["scale"] = axes, scale
}
