package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// omeGroup is what pictures need of the attributes of a group of OME-Zarr, also where they are not
// within "ome". A member of another kind of value is left out.
type omeGroup struct {
	Well struct {
		Images []struct{ Path string }
	}
	Omero struct {
		Channels []struct {
			Color  string
			Active *bool
			Window struct{ Start, End *float64 }
		}
	}
	Label struct {
		Colors []struct {
			Value json.Number `json:"label-value"`
			RGBA  []uint8     `json:"rgba"`
		}
	} `json:"image-label"`
	levels []string
}

func omeOf(ctx context.Context, v *serve.View, path string) (g omeGroup, err error) {
	n, err := v.Node(ctx, path)
	if err != nil {
		return g, err
	}
	if members, err := json.Marshal(n.Meta().Attributes); err == nil {
		_ = json.Unmarshal(members, &g)
	}
	if inside, ok := n.Meta().Attributes.Get(ome.Attribute); ok {
		_ = json.Unmarshal(inside, &g)
	}
	g.levels, _ = ome.Pyramid(n.Meta().Attributes)
	return g, nil
}

// thumb answers with a small picture of an image of OME-Zarr, from its last level, or of the first
// image of a well: its active channels in their colours, in the middle of other axes of space:
//
//	/-/api/thumb?db=w&rev=main&path=plate/A/1&width=64
func (h *handler) thumb(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	v, err := h.t.View(ctx, principal(r), q.Get("db"), q.Get("rev"))
	if err != nil {
		return err
	}
	defer v.Release()
	at := strings.Trim(q.Get("path"), "/")
	g, err := omeOf(ctx, v, at)
	if err == nil && len(g.Well.Images) > 0 {
		at = path.Join(at, g.Well.Images[0].Path)
		g, err = omeOf(ctx, v, at)
	}
	if err != nil {
		return err
	}
	if len(g.levels) == 0 {
		return httpError{http.StatusNotFound, fmt.Errorf("/%s: it has no image of OME-Zarr", serve.Clip(at))}
	}
	o, err := h.openIn(r, v, path.Join(at, g.levels[len(g.levels)-1]))
	if err != nil {
		return err
	}
	width, err := number(q.Get("width"), "width", 256, 64)
	if err != nil {
		return err
	}
	req := picture.Request{Numbers: true, Width: int(width), Height: int(width), Chunks: 64}
	shape, names := o.a.Shape(), o.a.DimensionNames()
	if err := picture.Numeric(o.a.Type()); err != nil || len(shape) < 2 || slices.Contains(shape, 0) {
		return httpError{http.StatusNotAcceptable, cmp.Or(err, errors.New("want an image of two axes"))}
	}
	parts := slices.Repeat([]string{":"}, len(shape))
	for d := range len(shape) - 2 {
		parts[d] = "0"
		if d < len(names) && names[d] == "z" {
			parts[d] = strconv.FormatInt(shape[d]/2, 10)
		}
	}
	o.q.Set("select", strings.Join(parts, ","))
	if req.Select, err = selectionOf(ctx, o.q.Get("select"), o.a, o.beside); err != nil {
		return err
	}
	end, err := h.slot(r, windowSize(o.a, req)+2*picture.PieceElements*windowBytes)
	if err != nil {
		return err
	}
	defer end()
	var win *picture.Window
	if axis := slices.Index(names, "c"); axis >= 0 && len(g.Omero.Channels) > 0 {
		var channels []string
		for i, c := range g.Omero.Channels[:min(len(g.Omero.Channels), maxSeries, int(shape[axis]))] {
			if c.Active != nil && !*c.Active {
				continue
			}
			if _, err := strconv.ParseUint(c.Color, 16, 24); err != nil {
				c.Color = "ffffff"
			}
			lo, hi := "", ""
			if c.Window.Start != nil && c.Window.End != nil {
				lo, hi = fmt.Sprint(*c.Window.Start), fmt.Sprint(*c.Window.End)
			}
			channels = append(channels, fmt.Sprintf("%d:%s:%s:%s", i, c.Color, lo, hi))
		}
		o.q.Set("channels", strings.Join(channels, ","))
		o.q.Set("caxis", strconv.Itoa(axis))
	}
	grey, _ := picture.MapByName("grey")
	limits := picture.Limits{Lo: 0, Hi: 1}
	if o.q.Get("channels") != "" {
		win, err = h.composed(r, o, o, req)
	} else if win, err = picture.Read(ctx, o.a, req); err == nil {
		limits, _, err = picture.Range(ctx, o.a, req)
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, win.Image(grey, limits)); err != nil {
		return err
	}
	describe(w, v, q.Get("rev"))
	return sendParts(w, r, "image/png", b.Bytes())
}

// labelled are the colours of a window of labels, by the metadata of the group above it.
func labelled(ctx context.Context, o *opened, win *picture.Window) ([]byte, error) {
	g, err := omeOf(ctx, o.v, strings.TrimPrefix(path.Dir("/"+o.path), "/"))
	if err != nil {
		return nil, err
	}
	colours := map[string][4]uint8{}
	for _, c := range g.Label.Colors {
		if len(c.RGBA) == 4 {
			colours[strings.TrimSuffix(c.Value.String(), ".0")] = [4]uint8(c.RGBA)
		}
	}
	return win.Labels(colours), nil
}
