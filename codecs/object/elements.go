package object

import (
	"bytes"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// objectStage is a stage that encodes n elements of the type JSON with the name of
// their numpy type.
type objectStage interface {
	codecs.Stage
	named(typ string) codecs.Stage
}

// bindObjects binds a filter that encodes objects: to objects, or to numbers,
// truth values and texts, which numcodecs handles as Python objects.
func bindObjects(in codecs.Rep, bind func(codecs.Rep) (objectStage, codecs.Rep)) (codecs.Stage, codecs.Rep, error) {
	switch in.Type.Kind() {
	case dtype.JSON:
		s, out := bind(in)
		return s.named("|O"), out, nil
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
	objects, err := codecs.ArrayRep(dtype.NewJSON(), in.Shape, nil)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	n, each := int64(in.Count()), int64(32+6*in.Type.Size())
	if n < objects.Max/each {
		objects.Max = n * each
	}
	s, out := bind(objects)
	return &elementObjects{s.named(string(name[1 : len(name)-1])), in.Type, int(n)}, out, nil
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
