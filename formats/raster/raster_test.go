package raster

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"io"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestAppend checks pixels of two rows with a gap between them, in the channels and
// the byte order of elements.
func TestAppend(t *testing.T) {
	grey := &image.Gray{Pix: []byte{1, 2, 99, 3, 4}, Stride: 3, Rect: image.Rect(0, 0, 2, 2)}
	deep := &image.Gray16{Pix: []byte{1, 2, 3, 4}, Stride: 4, Rect: image.Rect(0, 0, 2, 1)}
	rgba := &image.NRGBA{Pix: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Stride: 8, Rect: image.Rect(0, 0, 2, 1)}
	palette := &image.Paletted{Pix: []byte{1, 0}, Stride: 2, Rect: image.Rect(0, 0, 2, 1), Palette: color.Palette{color.Gray{7}, color.NRGBA{8, 9, 10, 128}}}
	for _, c := range []struct {
		img  image.Image
		info Info
		want []byte // nil: refused
	}{
		{grey, Info{Width: 2, Height: 2, Channels: 1, Bits: 8}, []byte{1, 2, 3, 4}},
		{grey, Info{Width: 2, Height: 1, Channels: 1, Bits: 8}, nil},
		{grey, Info{Width: 2, Height: 2, Channels: 3, Bits: 8}, nil},
		{grey, Info{Width: 2, Height: 2, Channels: 1, Bits: 16}, nil},
		{deep, Info{Width: 2, Height: 1, Channels: 1, Bits: 16}, []byte{2, 1, 4, 3}},
		{rgba, Info{Width: 2, Height: 1, Channels: 4, Bits: 8}, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{rgba, Info{Width: 2, Height: 1, Channels: 3, Bits: 8}, []byte{1, 2, 3, 5, 6, 7}},
		{rgba, Info{Width: 2, Height: 1, Channels: 2, Bits: 8}, []byte{1, 4, 5, 8}},
		{palette, Info{Width: 2, Height: 1, Channels: 4, Bits: 8}, []byte{8, 9, 10, 128, 7, 7, 7, 255}},
		{image.NewCMYK(image.Rect(0, 0, 2, 1)), Info{Width: 2, Height: 1, Channels: 4, Bits: 8}, nil},
	} {
		got, err := Append([]byte("x"), c.img, c.info)
		if (err == nil) != (c.want != nil) || err == nil && string(got) != "x"+string(c.want) {
			t.Errorf("%T as %+v: %v, %v, want %v", c.img, c.info, got, err, c.want)
		}
	}
}

// TestChroma interpolates two samples for the four pixels of a row, which is the
// first of two.
func TestChroma(t *testing.T) {
	plane := []byte{0, 100, 200, 40}
	for ratio, want := range map[image.YCbCrSubsampleRatio][]byte{
		image.YCbCrSubsampleRatio444: {0, 100, 200, 40},
		image.YCbCrSubsampleRatio422: {0, 25, 75, 100},
		image.YCbCrSubsampleRatio411: {0, 0, 0, 0},
	} {
		if got := Chroma(make([]byte, 4), plane, 4, ratio, 4, 1, 0); !bytes.Equal(got, want) {
			t.Errorf("%v: %v, want %v", ratio, got, want)
		}
	}
}

// TestStage decodes chunks of shapes that an image may have. A header that is not
// that of the chunk is refused before the decoder is called, and a decoder that
// panics gives an error.
func TestStage(t *testing.T) {
	info := Info{Width: 3, Height: 2, Channels: 1, Bits: 8}
	decode := func(dst, src []byte, _ Info) ([]byte, error) { return append(dst, src...), nil }
	k := Kind{Scheme: "test", Codec: "test", Header: func(io.ReaderAt, int64) (Info, error) { return info, nil }}
	bind := func(shape []int, bits int) (codecs.Stage, error) {
		s, _, err := NewCodec(k, nil).Bind(codecs.Rep{Array: true, Type: dtype.NewUint(bits), Shape: shape})
		return s, err
	}
	for _, c := range []struct {
		shape  []int
		decode func(dst, src []byte, info Info) ([]byte, error)
		ok     bool
	}{
		{[]int{2, 3, 1}, decode, true}, {[]int{2, 3}, decode, true},
		{[]int{3, 2, 1}, decode, false}, {[]int{2, 3, 3}, decode, false},
		{[]int{2, 3}, func([]byte, []byte, Info) ([]byte, error) { panic("boom") }, false},
	} {
		k.Decode = c.decode
		s := must.Get(bind(c.shape, 8))(t)
		got, err := s.Decode([]byte("x"), []byte("pixels"))
		if c.ok && (err != nil || string(got) != "xpixels") || !c.ok && (!errors.Is(err, codecs.ErrCorrupt) || string(got) != "x") {
			t.Errorf("%v: %q, %v", c.shape, got, err)
		}
	}
	if _, err := bind([]int{2, 3}, 32); err == nil {
		t.Error("an image has elements of 32 bits")
	}
	info.Width = 1 << 30
	if _, err := k.header(bytes.NewReader(nil), 100); !errors.Is(err, formats.ErrFormat) {
		t.Errorf("100 bytes for 2^31 pixels: %v", err)
	}
}
