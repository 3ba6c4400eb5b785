package tiff_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/tiff"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// field is a tag of a file that is made here; v is its value or the offset of its values.
type field struct {
	id, typ  uint16
	count, v uint32
}

// file makes a classic TIFF file of directories that follow each other, and of data at
// byte 8.
func file(data string, dirs ...[]field) []byte {
	le := binary.LittleEndian
	b := append(le.AppendUint32([]byte("II*\x00"), uint32(8+len(data))), data...)
	for i, d := range dirs {
		b = le.AppendUint16(b, uint16(len(d)))
		for _, f := range d {
			b = le.AppendUint16(le.AppendUint16(b, f.id), f.typ)
			b = le.AppendUint32(le.AppendUint32(b, f.count), f.v)
		}
		next := uint32(len(b) + 4)
		if i == len(dirs)-1 {
			next = 0
		}
		b = le.AppendUint32(b, next)
	}
	return b
}

// plain is a page of 4 by 2 pixels of 8 bits, at byte 8.
func plain(more ...field) []field {
	d := []field{{256, 4, 1, 4}, {257, 4, 1, 2}, {258, 3, 1, 8}, {273, 4, 1, 8}, {279, 4, 1, 8}}
	for _, m := range more {
		if i := slices.IndexFunc(d, func(f field) bool { return f.id == m.id }); i >= 0 {
			d[i] = m
		} else {
			d = append(d, m)
		}
	}
	return d
}

const pixels = "\x01\x02\x03\x04\x05\x06\x07\x08"

func TestMade(t *testing.T) {
	view := must.Get(formattest.Open(t.Context(), tiff.Format(), formattest.Files(file(pixels, plain())), formattest.Name))(t)
	if _, b, err := formattest.Read(t.Context(), view, registry(), ""); err != nil || string(b) != pixels {
		t.Errorf("read %v, %v", b, err)
	}
}

// What contradicts itself or the file is refused when it is opened.
func TestInvalid(t *testing.T) {
	for name, data := range map[string][]byte{
		"no directory":       []byte("II*\x00\x00\x00\x00\x00"),
		"offset outside":     []byte("II*\x00\xff\xff\xff\x7f"),
		"big, offset of -1":  []byte("II+\x00\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"),
		"big, many tags":     []byte("II+\x00\x08\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f"),
		"without a width":    file(pixels, plain(field{256, 4, 1, 0})),
		"without pixels":     file(pixels, plain()[:3]),
		"more tiles":         file(pixels, plain(field{278, 4, 1, 1})),
		"a huge image":       file(pixels, plain(field{256, 4, 1, 1 << 31}, field{257, 4, 1, 1 << 31}, field{322, 4, 1, 1}, field{323, 4, 1, 1})),
		"no samples":         file(pixels, plain(field{277, 3, 1, 0})),
		"planes":             file(pixels, plain(field{284, 3, 1, 3})),
		"no tile width":      file(pixels, plain(field{322, 4, 1, 0}, field{323, 4, 1, 16})),
		"a negative width":   file(pixels, plain(field{256, 9, 1, 1 << 31})),
		"circle of pages":    circle(),
		"sub-directory loop": file(pixels, plain(field{330, 4, 1, 16})),
	} {
		t.Run(name, func(t *testing.T) { formattest.Refused(t, tiff.Format(), data, formats.ErrFormat) })
	}
}

// circle is a file whose second directory is followed by the first.
func circle() []byte {
	b := file(pixels, plain(), plain())
	binary.LittleEndian.PutUint32(b[len(b)-4:], 16)
	return b
}

// What is not read is refused by name; beside pages that are read it is an attribute.
func TestUnsupported(t *testing.T) {
	for name, f := range map[string]field{
		"CCITT": {259, 3, 1, 4}, "old JPEG": {259, 3, 1, 6}, "LERC": {259, 3, 1, 34887}, "unknown": {259, 3, 1, 999},
		"24 bits": {258, 3, 1, 24}, "several sizes": {258, 3, 2, 8 | 16<<16}, "complex integers": {339, 3, 1, 5}, "predictor": {317, 3, 1, 4},
		"slices": {32997, 4, 1, 2}, "large strips": {257, 4, 1, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			formattest.Refused(t, tiff.Format(), file(pixels, plain(f)), formats.ErrUnsupported)
		})
	}
	view := must.Get(formattest.Open(t.Context(), tiff.Format(), formattest.Files(file(pixels, plain(field{259, 3, 1, 6}), plain())), formattest.Name))(t)
	reasons, _ := attributes(t, view, "")["unsupported"].(map[string]any)
	if s, _ := reasons["0"].(string); s == "" {
		t.Errorf("attributes of the group: %v", reasons)
	}
	if _, b, err := formattest.Read(t.Context(), view, registry(), "1"); err != nil || string(b) != pixels {
		t.Errorf("the other page: %v, %v", b, err)
	}
	// A codec that others have is named in the document.
	view = must.Get(formattest.Open(t.Context(), tiff.Format(), formattest.Files(file(pixels, plain(field{259, 3, 1, 34712}))), formattest.Name))(t)
	if _, _, err := formattest.Read(t.Context(), view, registry(), ""); !errors.Is(err, codecs.ErrUnknown) {
		t.Errorf("JPEG 2000: %v", err)
	}
}

// A file that ends too early is refused or gives an error when its tiles are read.
func TestCut(t *testing.T) {
	formattest.Cut(t, tiff.Format(), registry(), read(t, "pillow_rgb8.tiff"), 0)
	// Pixels are missing alone.
	data := file(pixels, plain(field{273, 4, 1, 200}))
	view := must.Get(formattest.Open(t.Context(), tiff.Format(), formattest.Files(data), formattest.Name))(t)
	if _, _, err := formattest.Read(t.Context(), view, registry(), ""); err == nil {
		t.Error("pixels behind the end of the file are read")
	}
}

// A tile without bytes is missing.
func TestSparse(t *testing.T) {
	view := open(t, "sparse")
	n := 0
	for key, err := range view.(kv.Lister).List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		if n++; key != "zarr.json" && key != "c/0/1/0" {
			t.Errorf("key %s", key)
		}
	}
	if n != 2 {
		t.Errorf("%d keys", n)
	}
}

// Packed integers are what imagecodecs makes of them, in both directions.
func TestPackints(t *testing.T) {
	for _, c := range []struct {
		codec  string
		typ    dtype.Type
		shape  []int
		values string
		stored string
	}{
		{`{"bitspersample":3,"runlen":3}`, dtype.NewUint(8), []int{2, 3}, "\x01\x02\x03\x04\x05\x07", "\x29\x80\x97\x80"},
		{`{"bitspersample":12,"runlen":3}`, dtype.NewUint(16), []int{1, 3}, "\xbc\x0a\xef\x0d\x23\x01", "\xab\xcd\xef\x12\x30"},
		{`{"bitspersample":1}`, dtype.NewBool(), []int{3, 3}, "\x01\x00\x01\x00\x00\x01\x01\x01\x00", "\xa7\x00"},
	} {
		chain := must.Get(registry().ParseV3([]byte(`[{"name":"imagecodecs_packints","configuration":` + c.codec + `}]`)))(t)
		b := must.Get(chain.Bind(codecs.Rep{Type: c.typ, Shape: c.shape}))(t)
		if got, err := b.Decode(nil, []byte(c.stored)); err != nil || string(got) != c.values {
			t.Errorf("%s: decoded %x, %v", c.codec, got, err)
		}
		if got, err := b.Encode(nil, []byte(c.values)); err != nil || string(got) != c.stored {
			t.Errorf("%s: encoded %x, %v", c.codec, got, err)
		}
		if _, err := b.Decode(nil, []byte(c.stored[1:])); !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%s: cut off: %v", c.codec, err)
		}
	}
	for _, bad := range []string{`{"bitspersample":9}`, `{"bitspersample":17}`, `{"bitorder":"<"}`, `{"runlen":-1}`} {
		chain, err := registry().ParseV3([]byte(`[{"name":"imagecodecs_packints","configuration":` + bad + `}]`))
		if err == nil {
			_, err = chain.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{4}})
		}
		if !errors.Is(err, codecs.ErrConfig) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	format, r := tiff.Format(), registry()
	formattest.Seed(f, "tiff")
	f.Add(file(pixels, plain(), plain(field{330, 4, 1, 16})))
	f.Fuzz(func(t *testing.T, data []byte) {
		formattest.Fuzz(t, format, r, data, "", "0", "1", "0/0", "1/0", "spatial_ref")
	})
}
