package object

import (
	"bytes"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// objects are the elements that "json" and "msgpack" encode as one list, which ends
// with the data type and, unless the codec is of the older form, the shape.
type objects struct {
	typ   dtype.Type
	name  string // of the numpy type, at the end of the list
	n     int
	dims  []int
	max   int64
	shape bool // the list ends with it
}

// tail is the number of items behind the elements.
func (o *objects) tail() int {
	if o.shape {
		return 2
	}
	return 1
}

// open returns the elements to encode.
func (o *objects) open(src []byte) (dtype.Variable, error) {
	v, err := dtype.OpenVariable(src, o.n)
	if err == nil {
		err = v.Validate(o.typ)
	}
	return v, err
}

// nesting returns the shape in which a list of items holds the elements: stored is the
// one at its end, if there is one.
func (o *objects) nesting(stored []int, items int) (shape []int, ok bool) {
	switch {
	case o.shape:
		shape = stored
	case items == o.n:
		return []int{o.n}, true
	default:
		shape = o.dims
	}
	return shape, value.Elements(shape) == int64(o.n)
}

// bindObjects binds a codec of objects, of which an element takes up to factor times
// its bytes: to objects, or to numbers, truth values and texts, which numcodecs handles
// as Python objects.
func bindObjects(in codecs.Rep, shape bool, factor int64, stage func(objects) codecs.Stage) (codecs.Stage, codecs.Rep, error) {
	bind := func(in codecs.Rep, name string) (codecs.Stage, codecs.Rep) {
		n := in.Count()
		return stage(objects{in.Type, name, n, in.Shape, in.Max, shape}), codecs.ItemsRep(n, factor*in.Max)
	}
	switch in.Type.Kind() {
	case dtype.JSON:
		s, out := bind(in, "|O")
		return s, out, nil
	case dtype.Bool, dtype.Int, dtype.Uint, dtype.Float, dtype.Datetime, dtype.Timedelta, dtype.FixedUTF32:
	default:
		return nil, codecs.Rep{}, codecs.BadField("", "does not encode the data type %v", in.Type)
	}
	if !in.Array || in.Type.Format() != "" || in.Type.Bits()%8 != 0 {
		return nil, codecs.Rep{}, codecs.BadField("", "does not encode the data type %v", in.Type)
	}
	name, err := in.Type.PrintV2()
	if err != nil {
		return nil, codecs.Rep{}, codecs.BadField("", "does not encode the data type %v", in.Type)
	}
	values, err := codecs.ArrayRep(dtype.NewJSON(), in.Shape, nil)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	n, each := int64(in.Count()), int64(32+6*in.Type.Size())
	if n < values.Max/each {
		values.Max = n * each
	}
	s, out := bind(values, string(name[1:len(name)-1]))
	return &elementObjects{s, in.Type, int(n)}, out, nil
}

// elementObjects encodes elements as objects.
type elementObjects struct {
	objects codecs.Stage
	typ     dtype.Type
	n       int
}

func (s *elementObjects) Encode(dst, src []byte) ([]byte, error) {
	w, err := dtype.NewBuilder(nil, s.n)
	if err != nil {
		return dst, err
	}
	size := s.typ.Size()
	var text []byte
	for i := range s.n {
		if text, err = s.typ.AppendJSON(text[:0], src[i*size:(i+1)*size]); err != nil {
			return dst, err
		}
		switch s.typ.Kind() {
		case dtype.Float: // NaN and infinity are numbers in Python
			text = bytes.Trim(text, `"`)
		case dtype.Datetime, dtype.Timedelta:
			if string(text) == "-9223372036854775808" {
				text = append(text[:0], "null"...)
			}
		}
		if err := w.Append(text); err != nil {
			return dst, err
		}
	}
	objects, err := w.Finish()
	if err != nil {
		return dst, err
	}
	return s.objects.Encode(dst, objects)
}

func (s *elementObjects) Decode(dst, src []byte) ([]byte, error) {
	objects, err := s.objects.Decode(nil, src)
	if err != nil {
		return dst, err
	}
	v, err := dtype.OpenVariable(objects, s.n)
	if err != nil {
		return dst, err
	}
	dst = scratch.Grow(dst, int64(s.n)*int64(s.typ.Size()))
	for i := range s.n {
		elem, null, err := s.typ.ParseFillV2(v.At(i))
		if null && s.typ.Kind() != dtype.Datetime && s.typ.Kind() != dtype.Timedelta {
			return dst, codecs.Corruptf("objects", "element %d is None, not %v", i, s.typ)
		}
		if err != nil {
			return dst, codecs.Corruptf("objects", "element %d: %w", i, err)
		}
		dst = append(dst, elem...)
	}
	return dst, nil
}
