package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrFormat means that the input is no .npy file, or one of objects.
var ErrFormat = errors.New("not a .npy file that can be read")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
}

const (
	maxHeader = 1 << 20
	maxRank   = 64
)

// File is a .npy file in memory.
type File struct {
	// Type is the data type of the elements, without padding between fields.
	Type dtype.Type
	// Shape is the length of each dimension in elements.
	Shape []int64
	// Data holds the elements in memory layout and C order. The caller owns it.
	Data []byte
}

// Read reads a file up to its last element. The data may have up to limit bytes;
// memory grows with the bytes read, not with the header. Errors are ErrFormat,
// or errors of r.
func Read(r io.Reader, limit int64) (*File, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	size, ok := h.layout.size, true
	if slices.Contains(h.shape, 0) {
		size = 0
	} else {
		for _, n := range h.shape {
			size, ok = multiply(size, n, ok)
		}
	}
	if !ok || size > limit || size > math.MaxInt {
		return nil, bad("elements of shape %v have more than %d bytes", h.shape, limit)
	}
	data, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) < size {
		return nil, bad("%d bytes do not fit shape %v", len(data), h.shape)
	}
	f := &File{Type: h.layout.typ.WithOrder(dtype.None), Shape: h.shape, Data: h.layout.pack(data)}
	littleEndian(h.layout.typ, f.Data)
	if h.fortran {
		f.Data = fromFortran(f.Data, f.Shape, f.Type.Size())
	}
	return f, nil
}

// multiply returns a·b, and false if the product or an earlier product overflows.
func multiply(a, b int64, ok bool) (int64, bool) {
	if !ok || b != 0 && a > math.MaxInt64/b {
		return 0, false
	}
	return a * b, true
}

type header struct {
	layout  layout
	fortran bool
	shape   []int64
}

func readHeader(r io.Reader) (*header, error) {
	head := make([]byte, len(magic)+2)
	if err := readFull(r, head); err != nil {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, bad("it does not begin like one")
	}
	version := head[len(magic)]
	if version < 1 || version > 3 {
		return nil, bad("version %d", version)
	}
	size := make([]byte, 4)
	if version == 1 {
		size = size[:2]
	}
	if err := readFull(r, size); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(append(size, 0, 0)[:4])
	if n > maxHeader {
		return nil, bad("a header of %d bytes", n)
	}
	text := make([]byte, n)
	if err := readFull(r, text); err != nil {
		return nil, err
	}
	return parseHeader(string(text), version)
}

func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("it does not begin like one")
	}
	return err
}

func parseHeader(text string, version byte) (*header, error) {
	if version < 3 { // Latin-1
		runes := make([]rune, len(text))
		for i := range len(text) {
			runes[i] = rune(text[i])
		}
		text = string(runes)
	} else if !utf8.ValidString(text) {
		return nil, bad("a header that is not UTF-8")
	}
	v, err := literal(text)
	if err != nil {
		return nil, bad("header: %w", err)
	}
	d, _ := v.(dict)
	fortran, ok1 := d["fortran_order"].(bool)
	shape, ok2 := d["shape"].(tuple)
	descr, ok3 := d["descr"]
	if !ok1 || !ok2 || !ok3 || len(d) != 3 {
		return nil, bad("header %.80q", text)
	}
	h := &header{fortran: fortran}
	if len(shape) > maxRank {
		return nil, bad("%d dimensions", len(shape))
	}
	for _, v := range shape {
		n, ok := v.(int64)
		if !ok || n < 0 {
			return nil, bad("shape %v", shape)
		}
		h.shape = append(h.shape, n)
	}
	if h.layout, err = parseDescr(descr); err != nil {
		return nil, bad("descr: %w", err)
	}
	return h, nil
}

// littleEndian converts stored elements to memory layout.
func littleEndian(t dtype.Type, data []byte) {
	words := slices.DeleteFunc(t.Words(), func(w dtype.Word) bool { return w.Order != dtype.Big })
	if len(words) == 0 {
		return
	}
	for ; len(data) > 0; data = data[t.Size():] {
		for _, w := range words {
			for p := data[w.Offset : w.Offset+w.Size*w.Count]; len(p) > 0; p = p[w.Size:] {
				slices.Reverse(p[:w.Size])
			}
		}
	}
}

// fromFortran converts elements from Fortran order to C order.
func fromFortran(src []byte, shape []int64, size int) []byte {
	if len(src) == 0 {
		return src
	}
	dst := make([]byte, 0, len(src))
	var walk func(d int, at, step int64)
	walk = func(d int, at, step int64) {
		if d == len(shape) {
			dst = append(dst, src[at*int64(size):][:size]...)
			return
		}
		for i := range shape[d] {
			walk(d+1, at+i*step, step*shape[d])
		}
	}
	walk(0, 0, 1)
	return dst
}
