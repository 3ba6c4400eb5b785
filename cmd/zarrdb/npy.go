package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The .npy format, version 1.0: magic, version, header length, a Python
// dictionary padded so that the data begins at a multiple of 64, the data.
var npyMagic = []byte("\x93NUMPY\x01\x00")

var errNpy = errors.New("not a .npy file that can be read")

// npyHeader is what comes before C-order, little-endian elements.
func npyHeader(t dtype.Type, shape []int64) ([]byte, error) {
	descr, ok := t.NumPy()
	if !ok {
		return nil, fmt.Errorf("data type %v has no .npy form", t)
	}
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d, ", n)
	}
	tuple := "(" + strings.TrimSuffix(dims.String(), " ") + ")"
	if len(shape) > 1 {
		tuple = "(" + strings.TrimSuffix(dims.String(), ", ") + ")"
	}
	h := fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': %s, }", descr, tuple)
	pad := 63 - (len(npyMagic)+2+len(h))%64
	h += strings.Repeat(" ", pad) + "\n"
	b := append([]byte(nil), npyMagic...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h)))
	return append(b, h...), nil
}

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
	if int64(width)*4 > maxBytes/int64(max(v.Len(), 1)) {
		return fmt.Errorf("read /%s: %d texts of %d characters are too large for .npy: use .csv", r.a.Path(), v.Len(), width)
	}
	t, err := dtype.NewFixedUTF32(width)
	if err != nil {
		return err
	}
	h, err := npyHeader(t, r.shape)
	if err != nil {
		return err
	}
	if _, err := w.Write(h); err != nil {
		return err
	}
	elem := make([]byte, 0, 4*width)
	for i := range v.Len() {
		elem = elem[:0]
		for _, c := range string(v.At(i)) {
			elem = binary.LittleEndian.AppendUint32(elem, uint32(c))
		}
		if _, err := w.Write(append(elem, make([]byte, 4*width-len(elem))...)); err != nil {
			return err
		}
	}
	return nil
}

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([^']*)'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([^)]*)\)`)
)

// npyFile is a parsed .npy file.
type npyFile struct {
	typ   dtype.Type
	shape []int64
	data  []byte // C order, as stored
}

const maxNpyHeader = 1 << 20

// readNpy reads a file with a simple data type. Fortran order becomes C order,
// and big-endian elements are swapped.
func readNpy(r io.Reader) (*npyFile, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil || !bytes.Equal(head[:6], npyMagic[:6]) {
		return nil, fmt.Errorf("%w: it does not begin like one", errNpy)
	}
	size := make([]byte, 4)
	if head[6] == 1 {
		size = size[:2]
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return nil, errNpy
	}
	n := binary.LittleEndian.Uint32(append(size, 0, 0)[:4])
	if n > maxNpyHeader {
		return nil, fmt.Errorf("%w: header of %d bytes", errNpy, n)
	}
	h := make([]byte, n)
	if _, err := io.ReadFull(r, h); err != nil {
		return nil, errNpy
	}
	descr, fortran, shape := npyDescr.FindSubmatch(h), npyFortran.FindSubmatch(h), npyShape.FindSubmatch(h)
	if descr == nil || fortran == nil || shape == nil {
		return nil, fmt.Errorf("%w: structured or unusual header %.80q", errNpy, h)
	}
	f := &npyFile{}
	var err error
	if f.typ, err = dtype.ParseV2([]byte(strconv.Quote(string(descr[1]))), dtype.Type{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errNpy, err)
	}
	for _, s := range strings.Split(string(shape[1]), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: shape (%s)", errNpy, shape[1])
		}
		if f.shape = append(f.shape, n); len(f.shape) > zarr.MaxRank {
			return nil, fmt.Errorf("%w: more than %d dimensions", errNpy, zarr.MaxRank)
		}
	}
	if f.data, err = io.ReadAll(r); err != nil {
		return nil, err
	}
	if n := product(append([]int64{int64(f.typ.Size())}, f.shape...)); n != int64(len(f.data)) {
		return nil, fmt.Errorf("%w: %d bytes do not fit shape %v", errNpy, len(f.data), f.shape)
	}
	if f.typ.Order() == dtype.Big {
		for p := f.data; len(p) > 0; p = p[f.typ.Size():] {
			f.typ.Swap(p[:f.typ.Size()])
		}
	}
	if string(fortran[1]) == "True" {
		f.data = fromFortran(f.data, f.shape, f.typ.Size())
	}
	return f, nil
}

// fromFortran puts elements whose first index runs fastest into C order.
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
