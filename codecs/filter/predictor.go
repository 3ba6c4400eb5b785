package filter

import (
	"encoding/json"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// predictor is imagecodecs' "imagecodecs_delta" and "imagecodecs_floatpred", the
// predictors 2 and 3 of TIFF: delta stores the difference of each element to its
// predecessor along an axis, floats as integers; floatpred stores the
// differences of the bytes of floats, with the highest bytes of a row first. In
// v2 the configuration has the type of elements. In v3 it is the type of the
// array, and floatpred is the array-to-bytes codec.
type predictor struct {
	name  string
	v3    bool
	dtype dtype.Type
	shape []int // of the elements; nil is one dimension
	axis  int   // from the end if negative
}

func parsePredictor(name string) func(codecs.Config) (codecs.Codec, error) {
	return func(c codecs.Config) (codecs.Codec, error) {
		f := c.Fields()
		p := &predictor{name: name, v3: !c.V2, axis: int(f.Int("axis", -1, -codecs.MaxRank, codecs.MaxRank-1))}
		if p.v3 {
			f.Int("dist", 1, 1, 1)
			return p, f.Err()
		}
		p.shape = f.Ints("shape")
		kind := notANumber
		p.dtype, kind = numpyType(f, "dtype", dtype.NewUint(8))
		if name == "imagecodecs_floatpred" && !kind.isFloat() {
			f.Fail("dtype", "%v is not a float", p.dtype)
		}
		if dist := f.Int("dist", 1, 1, 1<<16); dist > 1 {
			return nil, fmt.Errorf("%w %q", codecs.ErrUnknown, fmt.Sprintf("%s with dist %d", name, dist))
		}
		if n := value.Elements(p.shape); n < 0 || len(p.shape) > codecs.MaxRank {
			f.Fail("shape", "%v is not a shape of a chunk", p.shape)
		}
		if rank := max(len(p.shape), 1); p.axis < -rank || p.axis >= rank {
			f.Fail("axis", "%d is not one of %d dimensions", p.axis, rank)
		}
		return p, f.Err()
	}
}

func (p *predictor) Config() json.RawMessage {
	if p.v3 {
		return codecs.Object("axis", p.axis, "dist", 1)
	}
	if p.shape == nil {
		return codecs.Object("dtype", printNumpy(p.dtype), "axis", p.axis, "dist", 1)
	}
	return codecs.Object("shape", p.shape, "dtype", printNumpy(p.dtype), "axis", p.axis, "dist", 1)
}

func (p *predictor) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if p.v3 {
		return p.bindV3(in)
	}
	n := in.Size / int64(p.dtype.Size())
	if p.shape != nil && in.Size >= 0 && value.Elements(p.shape) != n {
		return nil, codecs.Rep{}, codecs.BadField("shape", "%v where a chunk has %d elements", p.shape, n)
	}
	rows := predictorRows{outer: 1, length: int(n), inner: 1, size: p.dtype.Size()}
	if p.shape != nil {
		axis := p.axis
		if axis < 0 {
			axis += len(p.shape)
		}
		rows.outer, rows.length, rows.inner = int(value.Elements(p.shape[:axis])), p.shape[axis], int(value.Elements(p.shape[axis+1:]))
	}
	if p.name == "imagecodecs_delta" {
		return bindElements(p.name, in, p.dtype, p.dtype, deltaRows{rows})
	}
	// Stored bytes have no byte order.
	return bindElements(p.name, in, p.dtype, dtype.NewUint(8*p.dtype.Size()).WithOrder(dtype.Little), floatRows{rows})
}

// bindV3 binds to the elements of the array.
func (p *predictor) bindV3(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	floats := p.name == "imagecodecs_floatpred"
	switch k := in.Type.Kind(); {
	case floats && k != dtype.Float, k != dtype.Float && k != dtype.Int && k != dtype.Uint:
		return nil, codecs.Rep{}, codecs.BadField("", "%v has no differences", in.Type)
	case p.axis < -len(in.Shape) || p.axis >= len(in.Shape):
		return nil, codecs.Rep{}, codecs.BadField("axis", "%d is not one of %d dimensions", p.axis, len(in.Shape))
	}
	q := *p
	q.v3, q.dtype, q.shape = false, in.Type, in.Shape
	stage, out, err := q.Bind(in)
	if err == nil && floats { // planes of bytes are stored
		out = codecs.BytesRep(in.Size, in.Size)
	}
	return stage, out, err
}

// predictorRows are the elements as outer parts of length steps of inner elements.
type predictorRows struct{ outer, length, inner, size int }

// each calls fn for each part, copied to dst, in place. A single element, as fill
// values are encoded, stays as it is.
func (r predictorRows) each(dst, src []byte, fn func(part []byte)) {
	copy(dst, src)
	n := r.length * r.inner * r.size
	if len(src) != n*r.outer {
		return
	}
	for o := range r.outer {
		fn(dst[o*n : (o+1)*n])
	}
}

type deltaRows struct{ predictorRows }

func (r deltaRows) encode(dst, src []byte) error {
	step := r.inner * r.size
	r.each(dst, src, func(part []byte) {
		for i := len(part) - r.size; i >= step; i -= r.size {
			storeWord(part[i:], r.size, loadWord(part[i:], r.size)-loadWord(part[i-step:], r.size))
		}
	})
	return nil
}

func (r deltaRows) decode(dst, src []byte) error {
	step := r.inner * r.size
	r.each(dst, src, func(part []byte) {
		for i := step; i < len(part); i += r.size {
			storeWord(part[i:], r.size, loadWord(part[i:], r.size)+loadWord(part[i-step:], r.size))
		}
	})
	return nil
}

type floatRows struct{ predictorRows }

func (r floatRows) encode(dst, src []byte) error {
	n := r.length * r.inner
	planes := make([]byte, n*r.size)
	r.each(dst, src, func(part []byte) {
		for i := range n {
			for k := range r.size {
				planes[k*n+i] = part[(i+1)*r.size-1-k]
			}
		}
		for i := len(planes) - 1; i >= r.inner; i-- {
			planes[i] -= planes[i-r.inner]
		}
		copy(part, planes)
	})
	return nil
}

func (r floatRows) decode(dst, src []byte) error {
	n := r.length * r.inner
	planes := make([]byte, n*r.size)
	r.each(dst, src, func(part []byte) {
		copy(planes, part)
		for i := r.inner; i < len(planes); i++ {
			planes[i] += planes[i-r.inner]
		}
		for i := range n {
			for k := range r.size {
				part[(i+1)*r.size-1-k] = planes[k*n+i]
			}
		}
	})
	return nil
}
