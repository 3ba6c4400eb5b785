package filter

import (
	"encoding/binary"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// categorize is numcodecs' "categorize": texts as the numbers of their labels,
// counted from 1; 0 is a text that is no label, and reads as the empty one.
type categorize struct {
	labels []string
	object bool       // of variable length
	dtype  dtype.Type // else FixedUTF32
	astype dtype.Type
	to     number
}

func parseCategorize(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("labels", "dtype")
	x := &categorize{labels: f.Strings("labels")}
	if name := string(f.Raw("dtype")); name == `"|O"` || name == `"object"` {
		x.object = true
	} else if raw := f.Raw("dtype"); raw != nil {
		var err error
		if x.dtype, err = dtype.ParseNumPy(raw); err != nil {
			f.Fail("dtype", "%w", err)
		} else if x.dtype.Kind() != dtype.FixedUTF32 {
			f.Fail("dtype", "%v is not text", x.dtype)
		}
	}
	x.astype, x.to = numpyType(f, "astype", dtype.NewUint(8))
	if x.to.isFloat() {
		f.Fail("astype", "%v is not a whole number", x.astype)
	}
	return x, f.Err()
}

func (c *categorize) Config() json.RawMessage {
	name := "|O"
	if !c.object {
		name = printNumpy(c.dtype)
	}
	return codecs.Object("labels", c.labels, "dtype", name, "astype", printNumpy(c.astype))
}

func (c *categorize) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if !in.Array {
		return nil, codecs.Rep{}, codecs.BadField("", "needs texts, not bytes")
	}
	s := &categorizeStage{categorize: c, n: in.Count(), max: in.Max, codes: make(map[string]int64)}
	for i, l := range c.labels {
		text := []byte(l)
		if !c.object {
			// As numpy assigns it: cut to the length of the type.
			text = utf32(l, c.dtype.Size())
			if len([]rune(l))*4 > c.dtype.Size() {
				s.texts = append(s.texts, text)
				continue // no text of that type equals it
			}
		}
		s.texts = append(s.texts, text)
		s.codes[string(text)] = int64(i + 1)
	}
	if c.object {
		if in.Type.Kind() != dtype.String {
			return nil, codecs.Rep{}, codecs.BadField("dtype", "the elements are %v, not text of any length", in.Type)
		}
		s.empty = []byte{}
	} else {
		if in.Type.Kind() != dtype.FixedUTF32 || in.Type.Size() != c.dtype.Size() {
			return nil, codecs.Rep{}, codecs.BadField("dtype", "the elements are %v", in.Type)
		}
		s.empty = make([]byte, c.dtype.Size())
	}
	out := codecs.Rep{Array: true, Type: c.astype, Shape: in.Shape}
	out.Fill = make([]byte, c.to.size())
	c.to.storeInts(out.Fill, []int64{s.codes[string(in.Fill)]})
	return s, out, nil
}

// utf32 returns s as UTF-32LE in size bytes, cut or padded with zeros.
func utf32(s string, size int) []byte {
	out := make([]byte, 0, size)
	for _, r := range s {
		if len(out) == size {
			break
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(r))
	}
	return append(out, make([]byte, size-len(out))...)
}

type categorizeStage struct {
	*categorize
	n     int
	max   int64
	codes map[string]int64 // by text in memory layout
	texts [][]byte         // by code - 1
	empty []byte
}

func (s *categorizeStage) Encode(dst, src []byte) ([]byte, error) {
	at := func(i int) []byte { return src[i*len(s.empty) : (i+1)*len(s.empty)] }
	if s.object {
		v, err := dtype.OpenVariable(src, s.n)
		if err != nil {
			return dst, err
		}
		at = v.At
	}
	start := len(dst)
	dst = scratch.Grow(dst, int64(s.n)*int64(s.to.size()))[:start+s.n*s.to.size()]
	var block intBlock
	for i := 0; i < s.n; i += numberBlock {
		n := min(numberBlock, s.n-i)
		for j := range n {
			block[j] = s.codes[string(at(i+j))]
		}
		s.to.storeInts(dst[start+i*s.to.size():], block[:n])
	}
	return dst, nil
}

func (s *categorizeStage) Decode(dst, src []byte) ([]byte, error) {
	if !s.object {
		dst = scratch.Grow(dst, int64(s.n)*int64(len(s.empty)))
		s.eachText(src, func(text []byte) error {
			dst = append(dst, text...)
			return nil
		})
		return dst, nil
	}
	w, err := dtype.NewBuilder(dst, s.n)
	if err != nil {
		return dst, err
	}
	err = s.eachText(src, func(text []byte) error {
		if int64(w.Size()+len(text)) > s.max {
			return codecs.Corruptf("categorize", "more than the %d bytes that there may be", s.max)
		}
		return w.Append(text)
	})
	if err != nil {
		return dst, err
	}
	return w.Finish()
}

// eachText calls fn with the text of every code.
func (s *categorizeStage) eachText(src []byte, fn func([]byte) error) error {
	var block intBlock
	for i := 0; i < s.n; i += numberBlock {
		n := min(numberBlock, s.n-i)
		s.to.loadInts(block[:n], src[i*s.to.size():])
		for _, code := range block[:n] {
			text := s.empty
			if code >= 1 && code <= int64(len(s.texts)) {
				text = s.texts[code-1]
			}
			if err := fn(text); err != nil {
				return err
			}
		}
	}
	return nil
}
