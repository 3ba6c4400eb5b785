package tiff

import (
	"context"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// omeXML has the fields read from the description of an OME-TIFF (OME model
// 2016-06).
type omeXML struct {
	XMLName xml.Name `xml:"OME"`
	UUID    string   `xml:"UUID,attr"`
	Images  []struct {
		Name   string    `xml:"Name,attr"`
		Pixels omePixels `xml:"Pixels"`
	} `xml:"Image"`
}

type omePixels struct {
	Order    string    `xml:"DimensionOrder,attr"`
	SizeX    int64     `xml:"SizeX,attr"`
	SizeY    int64     `xml:"SizeY,attr"`
	SizeZ    int64     `xml:"SizeZ,attr"`
	SizeC    int64     `xml:"SizeC,attr"`
	SizeT    int64     `xml:"SizeT,attr"`
	X        float64   `xml:"PhysicalSizeX,attr"`
	Y        float64   `xml:"PhysicalSizeY,attr"`
	Z        float64   `xml:"PhysicalSizeZ,attr"`
	T        float64   `xml:"TimeIncrement,attr"`
	UnitX    string    `xml:"PhysicalSizeXUnit,attr"`
	UnitY    string    `xml:"PhysicalSizeYUnit,attr"`
	UnitZ    string    `xml:"PhysicalSizeZUnit,attr"`
	UnitT    string    `xml:"TimeIncrementUnit,attr"`
	NoPixels *struct{} `xml:"MetadataOnly"`
	Channels []struct {
		Name string `xml:"Name,attr"`
	} `xml:"Channel"`
	TiffData []omeTiffData `xml:"TiffData"`
}

// omeTiffData maps planes to directories: Planes of them from IFD on.
type omeTiffData struct {
	IFD    *int64 `xml:"IFD,attr"`
	FirstZ int64  `xml:"FirstZ,attr"`
	FirstC int64  `xml:"FirstC,attr"`
	FirstT int64  `xml:"FirstT,attr"`
	Planes *int64 `xml:"PlaneCount,attr"`
	UUID   *struct {
		File string `xml:"FileName,attr"`
		Text string `xml:",chardata"`
	} `xml:"UUID"`
}

// maxPlanes bounds the planes that a description has or names, all images
// together, including planes without a page in the file.
const maxPlanes = 4 * maxPages

// omeImages makes images of an OME-TIFF. It returns nil for another TIFF, and
// for one that does not describe its own pages: then the pages are read as a
// plain TIFF.
func (f *file) omeImages(ctx context.Context, pages []*page, name string) ([]*image, error) {
	t, ok := pages[0].dir.find(imageDescription)
	if !ok || t.typ != 2 || t.count > maxText || !f.inside(t) {
		return nil, nil
	}
	// The first bytes exclude most descriptions that are no XML.
	head, err := f.text(ctx, tag{id: t.id, typ: t.typ, at: t.at, count: min(t.count, 1024)}, 1024)
	if err != nil || !strings.Contains(head, "<OME") && !strings.Contains(head, "<?xml") {
		return nil, err
	}
	text, err := f.text(ctx, t, maxText)
	if err != nil {
		return nil, err
	}
	var doc omeXML
	if xml.Unmarshal([]byte(text), &doc) != nil {
		return nil, nil
	}
	var list []*image
	planes := 0
	for i := range doc.Images {
		im, err := f.omeImage(ctx, &doc, i, pages, name)
		if im == nil || err != nil {
			return nil, err
		}
		if planes += len(im.levels[0].pages); planes > maxPlanes {
			return nil, nil
		}
		list = append(list, im)
	}
	return list, nil
}

// omeImage makes the array of one image, and of its levels.
func (f *file) omeImage(ctx context.Context, doc *omeXML, i int, pages []*page, name string) (*image, error) {
	px := &doc.Images[i].Pixels
	planes := omePlanes(doc, i, pages, name)
	if planes == nil {
		return nil, nil
	}
	first := planes[slices.IndexFunc(planes, func(p *page) bool { return p != nil })]
	if first.width != px.SizeX || first.height != px.SizeY {
		return nil, nil
	}
	base := &array{form: first.form, pages: planes, lead: []int64{px.SizeT, int64(len(planes)) / px.SizeT / px.SizeZ, px.SizeZ}}
	im := &image{levels: []*array{base}}
	for range first.dir.subs {
		im.levels = append(im.levels, &array{lead: base.lead, pages: make([]*page, len(planes))})
	}
	for k, p := range planes {
		if p == nil {
			continue
		}
		if p.form != first.form || len(p.dir.subs) != len(first.dir.subs) {
			return nil, nil // not uniform
		}
		subs, err := f.subPages(ctx, p)
		if err != nil {
			return nil, err
		}
		for j, sub := range subs {
			level := im.levels[j+1]
			if level.width == 0 {
				level.form = sub.form
			}
			if level.form != sub.form {
				return nil, nil
			}
			level.pages[k] = sub
		}
	}
	return im, f.describeOME(ctx, im, doc, i, first)
}

// omePlanes returns the pages of an image in the order t, c, z; nil if they are not all
// pages of this file that exist, or there are none.
func omePlanes(doc *omeXML, i int, pages []*page, name string) []*page {
	px := &doc.Images[i].Pixels
	if px.NoPixels != nil || px.SizeZ < 1 || px.SizeC < 1 || px.SizeT < 1 || px.SizeC > maxPages*math.MaxUint16 ||
		len(px.Order) != 5 || px.Order[:2] != "XY" {
		return nil
	}
	// Samples of a pixel count as channels.
	samples := int64(1)
	if len(px.TiffData) > 0 && px.TiffData[0].IFD != nil {
		if k := *px.TiffData[0].IFD; k >= 0 && k < int64(len(pages)) {
			samples = pages[k].samples
		}
	} else {
		samples = pages[0].samples
	}
	if px.SizeC%samples != 0 {
		return nil
	}
	c := px.SizeC / samples
	if c > maxPages || px.SizeZ > maxPages || px.SizeT > maxPages || c*px.SizeZ > maxPages/px.SizeT {
		return nil
	}
	n := c * px.SizeZ * px.SizeT
	planes, found := make([]*page, n), false
	size := map[byte]int64{'Z': px.SizeZ, 'C': c, 'T': px.SizeT}
	a, b := size[px.Order[2]], size[px.Order[3]] // how fast they run
	if a*b*size[px.Order[4]] != n {
		return nil
	}
	// put puts a page at a step of the order of the file.
	put := func(step int64, p *page) {
		var at [256]int64 // by the letter of the dimension
		at[px.Order[2]], at[px.Order[3]], at[px.Order[4]] = step%a, step/a%b, step/a/b
		planes[(at['T']*c+at['C'])*px.SizeZ+at['Z']] = p
		found = true
	}
	data := px.TiffData
	if len(data) == 0 {
		data = make([]omeTiffData, 1)
	}
	named := int64(0)
	for _, d := range data {
		if d.UUID != nil && strings.TrimSpace(d.UUID.Text) != doc.UUID && d.UUID.File != name {
			return nil // a page of another file
		}
		from, count := int64(0), n
		if d.IFD != nil {
			from, count = *d.IFD, 1
		}
		if d.Planes != nil {
			count = *d.Planes
		}
		firsts := map[byte]int64{'Z': d.FirstZ, 'C': d.FirstC / samples, 'T': d.FirstT}
		for axis, v := range firsts {
			if v < 0 || v >= size[axis] {
				return nil
			}
		}
		step := firsts[px.Order[2]] + a*(firsts[px.Order[3]]+b*firsts[px.Order[4]])
		if from < 0 || count < 0 || count > n-step || from > int64(len(pages)) || count > int64(len(pages))-from {
			return nil
		}
		if named += count; named > maxPlanes {
			return nil
		}
		for k := range count {
			put(step+k, pages[from+k])
		}
	}
	if !found {
		return nil
	}
	return planes
}

// omeUnits are the names that CF and OME-Zarr have for units of OME.
var omeUnits = map[string]string{
	"µm": "micrometer", "μm": "micrometer", "nm": "nanometer", "mm": "millimeter", "cm": "centimeter", "m": "meter", "Å": "angstrom",
	"pm": "picometer", "km": "kilometer", "in": "inch", "ft": "foot",
	"s": "second", "ms": "millisecond", "µs": "microsecond", "μs": "microsecond", "ns": "nanosecond", "min": "minute", "h": "hour", "d": "day",
}

// describeOME sets attributes: axes with units and the scale of each level, as OME-Zarr
// has them. A group of levels without a dimension of samples is OME-Zarr 0.5.
func (f *file) describeOME(ctx context.Context, im *image, doc *omeXML, i int, first *page) error {
	px := &doc.Images[i].Pixels
	name := doc.Images[i].Name
	unit := func(size float64, unit, def string) string {
		if size <= 0 {
			return ""
		}
		if unit == "" {
			unit = def
		}
		return omeUnits[unit]
	}
	axis := func(name, kind, unit string) object {
		a := object{"name": name, "type": kind}
		if unit != "" {
			a["unit"] = unit
		}
		return a
	}
	axes := []object{
		axis("t", "time", unit(px.T, px.UnitT, "s")), axis("c", "channel", ""), axis("z", "space", unit(px.Z, px.UnitZ, "µm")),
		axis("y", "space", unit(px.Y, px.UnitY, "µm")), axis("x", "space", unit(px.X, px.UnitX, "µm")),
	}
	base := im.levels[0]
	if base.rank() == 6 {
		axes = append(axes, axis("channel", "channel", ""))
	}
	known := func(v float64) float64 {
		if v > 0 && !math.IsInf(v, 0) {
			return v
		}
		return 1
	}
	var channels []string
	for _, c := range px.Channels {
		channels = append(channels, c.Name)
	}
	var datasets []object
	for k, a := range im.levels {
		p := first
		if k > 0 {
			p = a.pages[slices.Index(base.pages, first)]
		}
		var err error
		if a.attrs, err = f.attributes(ctx, p); err != nil {
			return err
		}
		scale := []float64{known(px.T), 1, known(px.Z), known(px.Y) * float64(base.height) / float64(a.height), known(px.X) * float64(base.width) / float64(a.width), 1}[:a.rank()]
		a.attrs["axes"], a.attrs["scale"] = axes, scale
		if channels != nil && strings.Join(channels, "") != "" {
			a.attrs["channels"] = channels
		}
		if name != "" {
			a.attrs["name"] = name
		}
		datasets = append(datasets, object{
			"path":                      fmt.Sprint(k),
			"coordinateTransformations": []object{{"type": "scale", "scale": scale}},
		})
	}
	if len(im.levels) > 1 && base.rank() == 5 {
		multiscale := object{"axes": axes, "datasets": datasets}
		if name != "" {
			multiscale["name"] = name
		}
		im.attrs = object{"ome": object{"version": "0.5", "multiscales": []object{multiscale}}}
	}
	return nil
}
