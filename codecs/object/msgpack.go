package object

import (
	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/internal/msgpack"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func parseMsgpack2(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Bool("raw", false)
	if !f.Bool("use_bin_type", true) && c.Name != "msgpack" {
		f.Fail("use_bin_type", "false does not distinguish texts and bytes")
	}
	single := f.Bool("use_single_float", false)
	config := f.Given("raw", "use_single_float", "use_bin_type", "encoding")
	shape := c.Name != "msgpack"
	return codecs.NewCodec(config, func(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
		return bindObjects(in, shape, 9, func(o objects) codecs.Stage { return &msgpackStage{o, single} })
	}), f.Err()
}

// msgpackStage is numcodecs' "msgpack2": any values as one MessagePack array,
// which ends with the data type and the shape of the array, and the older
// "msgpack" without the shape. Elements here are JSON. Values that JSON does not
// have become text: bytes "base64:…", and names that are no texts their JSON.
type msgpackStage struct {
	objects
	single bool // floats are written with 32 bits
}

func (s *msgpackStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := s.open(src)
	if err != nil {
		return dst, err
	}
	e := packer{out: scratch.Grow(dst, int64(len(src))), single: s.single}
	e.out = msgpack.AppendList(e.out, s.n+s.tail())
	for i := range s.n {
		p := jsonScanner{text: v.At(i)}
		if err := e.value(&p); err != nil {
			return dst, err
		}
	}
	e.out = msgpack.AppendText(e.out, s.name)
	if s.shape {
		e.out = msgpack.AppendInt(msgpack.AppendList(e.out, 1), int64(s.n))
	}
	return e.out, nil
}

func (s *msgpackStage) Decode(dst, src []byte) ([]byte, error) {
	u := unpacker{Reader: msgpack.Reader{Src: src}, limit: s.max}
	total, ok := u.arrayHead()
	items := total - s.tail()
	if !ok || items < 0 {
		return dst, u.bad("no array of elements, data type and shape")
	}
	var stored []int
	if s.shape {
		// The shape is the last of the items; the elements before it are passed
		// over first, which checks them too.
		last := u
		for range total - 1 {
			if err := last.skip(0); err != nil {
				return dst, err
			}
		}
		if stored, ok = last.ints(); !ok {
			return dst, last.bad("no shape at the end")
		}
		if last.Pos != len(src) {
			return dst, last.bad("bytes behind the array")
		}
	}
	shape, ok := s.nesting(stored, items)
	if !ok {
		return dst, u.bad("the shape differs from the shape of the chunk")
	}
	if len(shape) > 0 && items != shape[0] {
		return dst, u.bad("the number of elements differs from the shape")
	}
	w, err := dtype.NewBuilder(dst, s.n)
	if err != nil {
		return dst, err
	}
	if err := u.elements(&w, shape, items); err != nil {
		return dst, err
	}
	return w.Finish()
}

// elements appends n items, which are arrays as long as the shape has further
// dimensions.
func (u *unpacker) elements(w *dtype.Builder, shape []int, n int) error {
	for range n {
		if len(shape) > 1 {
			m, ok := u.arrayHead()
			if !ok || m != shape[1] {
				return u.bad("no array of the length of the shape")
			}
			if err := u.elements(w, shape[1:], m); err != nil {
				return err
			}
			continue
		}
		u.out = u.out[:0]
		if err := u.value(0); err != nil {
			return err
		}
		if int64(w.Size()+len(u.out)) > u.limit {
			return u.bad("more bytes than there may be")
		}
		if err := w.Append(u.out); err != nil {
			return err
		}
	}
	return nil
}
