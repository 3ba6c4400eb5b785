package tiff_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/tiff"
	"github.com/zarrdb/zarrdb/internal/must"
)

// stack makes a big-endian TIFF as ImageJ does: pages of 2 by 3 bytes, of which each has a directory, or
// the first alone.
func stack(images, directories int, text string) []byte {
	be := binary.BigEndian
	out := append([]byte("MM\x00*"), 0, 0, 0, 0)
	at := len(out)
	for i := range images * 6 {
		out = append(out, byte(i))
	}
	textAt := len(out)
	out = append(out, text+"\x00"...)
	if len(out)%2 != 0 {
		out = append(out, 0)
	}
	ratioAt := len(out)
	out = be.AppendUint32(be.AppendUint32(out, 4), 1) // pixels in a unit
	for i := range directories {
		link := 4
		if i > 0 {
			link = len(out) - 4
		}
		be.PutUint32(out[link:], uint32(len(out)))
		tags := [][4]int{{256, 4, 1, 3}, {257, 4, 1, 2}, {258, 3, 1, 8 << 16}, {259, 3, 1, 1 << 16}, {262, 3, 1, 1 << 16}, {270, 2, len(text) + 1, textAt}, {273, 4, 1, at + 6*i}, {277, 3, 1, 1 << 16}, {278, 4, 1, 2}, {279, 4, 1, 6}, {282, 5, 1, ratioAt}, {283, 5, 1, ratioAt}}
		if i > 0 {
			tags = slices.DeleteFunc(tags, func(t [4]int) bool { return t[0] == 270 })
		}
		out = be.AppendUint16(out, uint16(len(tags)))
		for _, t := range tags {
			out = be.AppendUint16(be.AppendUint16(out, uint16(t[0])), uint16(t[1]))
			out = be.AppendUint32(be.AppendUint32(out, uint32(t[2])), uint32(t[3]))
		}
		out = append(out, 0, 0, 0, 0)
	}
	return out
}

// A hyperstack of ImageJ is one array, also if its pages follow without directories.
func TestImageJ(t *testing.T) {
	text := "ImageJ=1.53t\nimages=12\nchannels=2\nslices=3\nframes=2\nunit=micron\nspacing=-0.5\nfinterval=2.5\n"
	for _, c := range []struct {
		images, directories int
		text                string
		shape               []int64 // nil if the pages are no stack
		scale               string
	}{
		{12, 12, text, []int64{2, 2, 3, 2, 3}, "[2.5,1,0.5,0.25,0.25]"},
		{12, 1, text, []int64{2, 2, 3, 2, 3}, "[2.5,1,0.5,0.25,0.25]"},
		{5, 5, "ImageJ=1.53t\nimages=5\nslices=5\n", []int64{1, 1, 5, 2, 3}, "[1,1,1,1,1]"},
		{12, 3, text, nil, ""},
		{12, 1, "ImageJ=1.53t\nimages=400\nslices=400\n", nil, ""}, // a file that was cut
		{1, 1, "ImageJ=1.53t\n", nil, ""},
	} {
		files := formattest.Files(stack(c.images, c.directories, c.text))
		view := must.Get(formattest.Open(t.Context(), tiff.Format(), files, formattest.Name))(t)
		a, got, err := formattest.Read(t.Context(), view, registry(), "")
		if c.shape == nil {
			if err == nil && len(a.Shape()) == 5 {
				t.Errorf("%d pages of %d are a stack of %v", c.directories, c.images, a.Shape())
			}
			continue
		}
		if err != nil || !slices.Equal(a.Shape(), c.shape) {
			t.Fatalf("%d directories: %v, %v", c.directories, a, err)
		}
		channels, slices := c.shape[1], c.shape[2]
		for i, b := range got {
			plane := int64(i / 6)
			z, ch, frame := plane%slices, plane/slices%channels, plane/slices/channels
			if want := ((frame*slices+z)*channels+ch)*6 + int64(i%6); int64(b) != want {
				t.Fatalf("%d directories: element %d is %d, want %d", c.directories, i, b, want)
			}
		}
		if scale, _ := a.Meta().Attributes.Get("scale"); string(scale) != c.scale {
			t.Errorf("scale %s, want %s", scale, c.scale)
		}
		l, err := a.Image(t.Context())
		if err != nil || fmt.Sprint(l.Names()) != "[t c z y x]" {
			t.Errorf("image %v, %v", l, err)
		}
	}
}
