package raster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Info is the header of an image.
type Info struct {
	// Width and Height are in pixels, and not 0.
	Width, Height int
	// Channels are the elements of a pixel, 1 to 4.
	Channels int
	// Bits of an element, 8 or 16.
	Bits int
	// MaxBytes bounds the decoded bytes of a file of this length; 0 means 1100
	// times its length.
	MaxBytes int64
}

// Kind is one format of images.
type Kind struct {
	// Scheme is the scheme of the URL adapter, Codec the name of the codec in v2 and v3.
	Scheme, Codec string

	// Members are unused members of the codec's configuration: parameters of
	// encoding.
	Members []string

	// Header reads the header of an image of size bytes. Errors are formats.ErrFormat,
	// formats.ErrUnsupported or errors of reading.
	Header func(r io.ReaderAt, size int64) (Info, error)

	// Decode appends the elements of an image of which Header gave info, in C order. Any
	// error means that the image is damaged.
	Decode func(dst, src []byte, info Info) ([]byte, error)
}

// HeadBytes of a file are read at once ([formats.Format.Head]); few headers are longer.
const HeadBytes = 64 << 10

// Open reads the header of an image and returns its set: an array of one chunk.
func (k Kind) Open(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
	head, err := kv.ReadValue(ctx, base.File, kv.Span(0, min(HeadBytes, base.File.Size())))
	if err != nil {
		return nil, err
	}
	file := kv.Held(base.File, 0, head)
	info, err := k.header(kv.ReaderAt(ctx, file), file.Size())
	if err != nil {
		return nil, err
	}
	shape := []int{info.Height, info.Width, info.Channels}
	document, err := json.Marshal(map[string]any{
		"zarr_format":        3,
		"node_type":          "array",
		"shape":              shape,
		"data_type":          fmt.Sprintf("uint%d", info.Bits),
		"chunk_grid":         named("regular", map[string]any{"chunk_shape": shape}),
		"chunk_key_encoding": named("default", map[string]any{"separator": "/"}),
		"fill_value":         0,
		"codecs":             []any{map[string]any{"name": k.Codec}},
		"dimension_names":    []string{"y", "x", "channel"},
		"attributes":         map[string]any{},
	})
	if err != nil {
		return nil, err
	}
	t := formats.NewTree()
	t.Put("zarr.json", document)
	whole := refs.Reference{URL: base.Name, Length: refs.WholeFile}
	t.Add(formats.Array{
		Prefix: "c/", Separator: '/', Counts: []int64{1, 1, 1},
		Chunk: func(context.Context, []int64) (refs.Reference, error) { return whole, nil },
	})
	return t, nil
}

func named(name string, configuration any) map[string]any {
	return map[string]any{"name": name, "configuration": configuration}
}

// header reads the header, and checks that the file can hold such an image.
func (k Kind) header(r io.ReaderAt, size int64) (Info, error) {
	info, err := k.Header(r, size)
	if err != nil {
		return info, err
	}
	if info.Width <= 0 || info.Height <= 0 || info.Channels < 1 || info.Channels > 4 || info.Bits != 8 && info.Bits != 16 {
		return info, formats.Invalid("%s: an image of %d by %d pixels with %d channels", k.Scheme, info.Width, info.Height, info.Channels)
	}
	most := info.MaxBytes
	if most == 0 {
		most = max(64<<20, 1100*size)
	}
	pixel := int64(info.Channels * info.Bits / 8)
	if int64(info.Width) > most/pixel/int64(info.Height) {
		return info, formats.Invalid("%s: %d bytes cannot hold an image of %d by %d pixels", k.Scheme, size, info.Width, info.Height)
	}
	return info, nil
}

// Cut converts the end of a file inside its header to formats.ErrFormat. It
// returns other errors unchanged.
func Cut(err error, scheme string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return formats.Invalid("%s: the file ends inside its header", scheme)
	}
	return err
}
