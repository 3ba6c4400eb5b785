package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

// npyText writes texts as numpy's fixed-width ones, as wide as the longest is.
func (r *reading) npyText(ctx context.Context, w io.Writer) error {
	return r.npyFixed(ctx, w, 4, utf8.RuneCount, dtype.NewFixedUTF32, func(dst, elem []byte) ([]byte, error) {
		for _, c := range string(elem) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(c))
		}
		return dst, nil
	})
}

// npyBytes is npyText for byte strings; numpy strips their trailing zeros.
func (r *reading) npyBytes(ctx context.Context, w io.Writer) error {
	length := func(elem []byte) int { return len(elem) }
	return r.npyFixed(ctx, w, 1, length, dtype.NewFixedBytes, func(dst, elem []byte) ([]byte, error) {
		if bytes.HasSuffix(elem, []byte{0}) {
			return dst, fmt.Errorf("read /%s: bytes that end in zeros have no .npy form: use .jsonl", r.a.Path())
		}
		return append(dst, elem...), nil
	})
}

// npyFixed writes elements of varying length, each converted and padded to the length of
// the longest one, in units of that many bytes.
func (r *reading) npyFixed(ctx context.Context, w io.Writer, unit int, length func(elem []byte) int, typ func(int) (dtype.Type, error), convert func(dst, elem []byte) ([]byte, error)) error {
	v, err := r.a.ReadVar(ctx, r.sel)
	if err != nil {
		return err
	}
	width := 1
	for i := range v.Len() {
		width = max(width, length(v.At(i)))
	}
	size := unit * width
	if int64(size) > maxBytes/int64(max(v.Len(), 1)) {
		return fmt.Errorf("read /%s: %d elements of length %d are too large for .npy: use .csv", r.a.Path(), v.Len(), width)
	}
	t, err := typ(width)
	if err != nil {
		return err
	}
	h, err := npy.AppendHeader(nil, t, r.shape)
	if err == nil {
		_, err = w.Write(h)
	}
	elem := make([]byte, 0, size)
	for i := 0; err == nil && i < v.Len(); i++ {
		if elem, err = convert(elem[:0], v.At(i)); err == nil {
			_, err = w.Write(append(elem, make([]byte, size-len(elem))...))
		}
	}
	return err
}
