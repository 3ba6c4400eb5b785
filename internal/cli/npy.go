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
	v, err := r.a.ReadVar(ctx, r.sel)
	if err != nil {
		return err
	}
	width := 1
	for i := range v.Len() {
		width = max(width, utf8.RuneCount(v.At(i)))
	}
	return r.npyFixed(w, v, 4*width, dtype.NewFixedUTF32, width, func(dst, elem []byte) ([]byte, error) {
		for _, c := range string(elem) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(c))
		}
		return dst, nil
	})
}

// npyBytes is npyText for byte strings; numpy strips their trailing zeros.
func (r *reading) npyBytes(ctx context.Context, w io.Writer) error {
	v, err := r.a.ReadVar(ctx, r.sel)
	if err != nil {
		return err
	}
	width := 1
	for i := range v.Len() {
		width = max(width, len(v.At(i)))
	}
	return r.npyFixed(w, v, width, dtype.NewFixedBytes, width, func(dst, elem []byte) ([]byte, error) {
		if bytes.HasSuffix(elem, []byte{0}) {
			return dst, fmt.Errorf("read /%s: bytes that end in zeros have no .npy form: use .jsonl", r.a.Path())
		}
		return append(dst, elem...), nil
	})
}

// npyFixed writes elements of varying length, each converted and padded to size
// bytes.
func (r *reading) npyFixed(w io.Writer, v dtype.Variable, size int, typ func(int) (dtype.Type, error), width int, convert func(dst, elem []byte) ([]byte, error)) error {
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
