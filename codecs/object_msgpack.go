package codecs

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// msgpackCodec is numcodecs' "msgpack2": any values as one MessagePack array,
// which ends with the data type and the shape of the array, and the older
// "msgpack" without the shape. Elements here are JSON; what JSON cannot say
// becomes text: bytes "base64:…", names that are no texts their JSON.
type msgpackCodec struct {
	config json.RawMessage
	shape  bool
	single bool // floats are written with 32 bits
}

func parseMsgpack2(c Config) (Codec, error) {
	f := c.Fields()
	f.Bool("raw", false)
	if !f.Bool("use_bin_type", true) && c.Name != "msgpack" {
		f.Fail("use_bin_type", "false does not tell texts from bytes")
	}
	single := f.Bool("use_single_float", false)
	config := f.given("raw", "use_single_float", "use_bin_type", "encoding")
	return &msgpackCodec{config: config, shape: c.Name != "msgpack", single: single}, f.Err()
}

func (c *msgpackCodec) Config() json.RawMessage { return c.config }

func (c *msgpackCodec) Bind(in Rep) (Stage, Rep, error) {
	if in.Type.Kind() != dtype.JSON {
		return nil, Rep{}, BadField("", "does not encode the data type %v", in.Type)
	}
	n := in.Count()
	out := BytesRep(-1, 9*in.Max)
	out.floor = 8 * int64(n)
	return &msgpackStage{msgpackCodec: c, typ: in.Type, n: n, dims: in.Shape, max: in.Max}, out, nil
}

type msgpackStage struct {
	*msgpackCodec
	typ  dtype.Type
	n    int
	dims []int
	max  int64
}

func (s *msgpackStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := dtype.OpenVariable(src, s.n)
	if err != nil {
		return dst, err
	}
	if err := v.Validate(s.typ); err != nil {
		return dst, err
	}
	e := packer{out: grow(dst, int64(len(src))), single: s.single}
	tail := 1
	if s.shape {
		tail = 2
	}
	e.head(0x90, 15, 0xdc, s.n+tail)
	for i := range s.n {
		p := jsonScanner{text: v.At(i)}
		if err := e.value(&p); err != nil {
			return dst, err
		}
	}
	e.text("|O")
	if s.shape {
		e.head(0x90, 15, 0xdc, 1)
		e.int(int64(s.n))
	}
	return e.out, nil
}

func (s *msgpackStage) Decode(dst, src []byte) ([]byte, error) {
	u := unpacker{src: src, limit: s.max}
	total, ok := u.arrayHead()
	tail := 1
	if s.shape {
		tail = 2
	}
	if !ok || total < tail {
		return dst, u.bad("no array of elements, data type and shape")
	}
	shape := s.dims
	if s.shape {
		// The shape is the last of the items; the elements before it are passed
		// over first, which checks them too.
		last := u
		for range total - 1 {
			if err := last.skip(0); err != nil {
				return dst, err
			}
		}
		if shape, ok = last.ints(); !ok {
			return dst, last.bad("no shape at the end")
		}
		if last.pos != len(src) {
			return dst, last.bad("bytes behind the array")
		}
	}
	if count(shape) != int64(s.n) {
		return dst, u.bad("the shape is not that of the chunk")
	}
	if !s.shape && total-tail == s.n {
		shape = []int{s.n}
	}
	if len(shape) > 0 && total-tail != shape[0] {
		return dst, u.bad("another number of elements than the shape says")
	}
	w, err := dtype.NewBuilder(dst, s.n)
	if err != nil {
		return dst, err
	}
	if err := u.elements(&w, shape, total-tail); err != nil {
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
				return u.bad("no array of the length that the shape says")
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

// packer writes MessagePack.
type packer struct {
	out    []byte
	single bool
}

// head writes the head of something of n parts: one byte up to small, else code
// and two bytes, or code+1 and four.
func (e *packer) head(fix byte, small int, code byte, n int) {
	switch {
	case n <= small:
		e.out = append(e.out, fix|byte(n))
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, code), uint16(n))
	default:
		e.out = binary.BigEndian.AppendUint32(append(e.out, code+1), uint32(n))
	}
}

func (e *packer) text(s string) {
	if len(s) > 31 && len(s) < 256 {
		e.out = append(e.out, 0xd9, byte(len(s)))
	} else {
		e.head(0xa0, 31, 0xda, len(s))
	}
	e.out = append(e.out, s...)
}

// int writes a whole number in the shortest form.
func (e *packer) int(v int64) {
	be := binary.BigEndian
	switch {
	case v >= 0:
		e.uint(uint64(v))
	case v >= -32:
		e.out = append(e.out, byte(v))
	case v >= math.MinInt8:
		e.out = append(e.out, 0xd0, byte(v))
	case v >= math.MinInt16:
		e.out = be.AppendUint16(append(e.out, 0xd1), uint16(v))
	case v >= math.MinInt32:
		e.out = be.AppendUint32(append(e.out, 0xd2), uint32(v))
	default:
		e.out = be.AppendUint64(append(e.out, 0xd3), uint64(v))
	}
}

func (e *packer) uint(v uint64) {
	be := binary.BigEndian
	switch {
	case v < 128:
		e.out = append(e.out, byte(v))
	case v <= math.MaxUint8:
		e.out = append(e.out, 0xcc, byte(v))
	case v <= math.MaxUint16:
		e.out = be.AppendUint16(append(e.out, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		e.out = be.AppendUint32(append(e.out, 0xce), uint32(v))
	default:
		e.out = be.AppendUint64(append(e.out, 0xcf), v)
	}
}

func (e *packer) float(v float64) {
	if e.single {
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xca), math.Float32bits(float32(v)))
		return
	}
	e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcb), math.Float64bits(v))
}

// value writes a JSON value, which is valid.
func (e *packer) value(p *jsonScanner) error {
	start := p.space()
	if start == len(p.text) {
		return p.bad("no value")
	}
	switch open := p.text[start]; open {
	case '[', '{':
		return e.members(p, open)
	case '"':
		return e.string(p)
	}
	if err := p.value(0); err != nil {
		return err
	}
	switch word := string(p.text[start:p.pos]); word {
	case "null":
		e.out = append(e.out, 0xc0)
	case "false":
		e.out = append(e.out, 0xc2)
	case "true":
		e.out = append(e.out, 0xc3)
	default:
		if v, err := strconv.ParseInt(word, 10, 64); err == nil {
			e.int(v)
		} else if v, err := strconv.ParseUint(word, 10, 64); err == nil {
			e.uint(v)
		} else {
			// NaN and Infinity too; what is out of range becomes infinite.
			v, _ := strconv.ParseFloat(word, 64)
			e.float(v)
		}
	}
	return nil
}

func (e *packer) string(p *jsonScanner) error {
	start := p.pos
	if err := p.string(); err != nil {
		return err
	}
	var s string
	if err := json.Unmarshal(p.text[start:p.pos], &s); err != nil {
		return err
	}
	e.text(s)
	return nil
}

// members writes a list or an object.
func (e *packer) members(p *jsonScanner, open byte) error {
	start, n := len(e.out), 0
	err := p.each(open, func() error {
		n++
		if open == '{' {
			if err := p.name(func() error { return e.string(p) }); err != nil {
				return err
			}
		}
		return e.value(p)
	})
	// The head says how many, so it comes last.
	h := packer{}
	if open == '{' {
		h.head(0x80, 15, 0xde, n)
	} else {
		h.head(0x90, 15, 0xdc, n)
	}
	e.out = slices.Insert(e.out, start, h.out...)
	return err
}

// unpacker reads MessagePack and writes JSON.
type unpacker struct {
	src   []byte
	pos   int
	out   []byte
	limit int64 // of out
}

func (u *unpacker) bad(what string) error {
	return Corruptf("msgpack2", "%s, at byte %d", what, u.pos)
}

// take returns the next n bytes, or nil if there are not so many.
func (u *unpacker) take(n uint64) []byte {
	if n > uint64(len(u.src)-u.pos) {
		return nil
	}
	b := u.src[u.pos : u.pos+int(n) : u.pos+int(n)]
	u.pos += int(n)
	return b
}

// number returns the next n bytes as a number.
func (u *unpacker) number(n int) (v uint64, ok bool) {
	b := u.take(uint64(n))
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, b != nil
}

// item is what the next bytes are, without what follows the head.
type item struct {
	kind itemKind
	n    uint64 // length of text, bytes and ext; members; an integer as it is
	f    float64
}

type itemKind uint8

const (
	itemBad itemKind = iota
	itemNil
	itemFalse
	itemTrue
	itemUint
	itemInt
	itemFloat
	itemText
	itemBytes
	itemList
	itemMap
)

// head reads the head of an item.
func (u *unpacker) head() item {
	b := u.take(1)
	if b == nil {
		return item{}
	}
	sized := func(k itemKind, n int) item {
		v, ok := u.number(n)
		if !ok {
			return item{}
		}
		return item{kind: k, n: v}
	}
	switch c := b[0]; {
	case c < 0x80:
		return item{kind: itemUint, n: uint64(c)}
	case c < 0x90:
		return item{kind: itemMap, n: uint64(c & 15)}
	case c < 0xa0:
		return item{kind: itemList, n: uint64(c & 15)}
	case c < 0xc0:
		return item{kind: itemText, n: uint64(c & 31)}
	case c >= 0xe0:
		return item{kind: itemInt, n: uint64(int64(int8(c)))}
	case c == 0xc0:
		return item{kind: itemNil}
	case c == 0xc2:
		return item{kind: itemFalse}
	case c == 0xc3:
		return item{kind: itemTrue}
	case c >= 0xc4 && c <= 0xc6:
		return sized(itemBytes, 1<<(c-0xc4))
	case c >= 0xc7 && c <= 0xc9: // ext: a type, which is read as bytes too
		it := sized(itemBytes, 1<<(c-0xc7))
		it.n++
		return it
	case c >= 0xd4 && c <= 0xd8:
		return item{kind: itemBytes, n: 1<<(c-0xd4) + 1}
	case c == 0xca:
		it := sized(itemFloat, 4)
		it.f = float64(math.Float32frombits(uint32(it.n)))
		return it
	case c == 0xcb:
		it := sized(itemFloat, 8)
		it.f = math.Float64frombits(it.n)
		return it
	case c >= 0xcc && c <= 0xcf:
		return sized(itemUint, 1<<(c-0xcc))
	case c >= 0xd0 && c <= 0xd3:
		n := 1 << (c - 0xd0)
		it := sized(itemInt, n)
		it.n = uint64(int64(it.n<<(64-8*n)) >> (64 - 8*n))
		return it
	case c >= 0xd9 && c <= 0xdb:
		return sized(itemText, 1<<(c-0xd9))
	case c == 0xdc || c == 0xdd:
		return sized(itemList, 2<<(c-0xdc))
	case c == 0xde || c == 0xdf:
		return sized(itemMap, 2<<(c-0xde))
	}
	return item{}
}

// arrayHead reads the head of an array and returns its length.
func (u *unpacker) arrayHead() (n int, ok bool) {
	it := u.head()
	// Every member takes a byte, so that a larger number is a lie.
	return int(min(it.n, math.MaxInt32)), it.kind == itemList && it.n <= uint64(len(u.src)-u.pos)
}

// ints reads an array of small numbers.
func (u *unpacker) ints() ([]int, bool) {
	n, ok := u.arrayHead()
	if !ok || n > MaxRank {
		return nil, false
	}
	list := make([]int, n)
	for i := range list {
		it := u.head()
		if it.kind != itemUint || it.n > math.MaxInt32 {
			return nil, false
		}
		list[i] = int(it.n)
	}
	return list, true
}

// skip passes over an item.
func (u *unpacker) skip(depth int) error {
	if depth > maxJSONDepth {
		return u.bad("nested too deep")
	}
	it := u.head()
	members := it.n
	switch it.kind {
	case itemBad:
		return u.bad("no item")
	case itemText, itemBytes:
		if u.take(it.n) == nil && it.n > 0 {
			return u.bad("cut off")
		}
		return nil
	case itemMap:
		members *= 2
	case itemList:
	default:
		return nil
	}
	for range members {
		if err := u.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// value reads an item and appends it to out.
func (u *unpacker) value(depth int) error {
	if depth > maxJSONDepth {
		return u.bad("nested too deep")
	}
	if int64(len(u.out)) > u.limit {
		return u.bad("more bytes than there may be")
	}
	switch it := u.head(); it.kind {
	case itemNil:
		u.out = append(u.out, "null"...)
	case itemFalse:
		u.out = append(u.out, "false"...)
	case itemTrue:
		u.out = append(u.out, "true"...)
	case itemUint:
		u.out = strconv.AppendUint(u.out, it.n, 10)
	case itemInt:
		u.out = strconv.AppendInt(u.out, int64(it.n), 10)
	case itemFloat:
		u.float(it.f)
	case itemText:
		b := u.take(it.n)
		if b == nil && it.n > 0 || !utf8.Valid(b) {
			return u.bad("text that is cut off or not UTF-8")
		}
		u.out = dtype.AppendString(u.out, string(b))
	case itemBytes:
		b := u.take(it.n)
		if b == nil && it.n > 0 {
			return u.bad("bytes that are cut off")
		}
		u.out = append(base64.StdEncoding.AppendEncode(append(u.out, `"base64:`...), b), '"')
	case itemList:
		return u.members('[', it.n, depth)
	case itemMap:
		return u.members('{', it.n, depth)
	default:
		return u.bad("no item")
	}
	return nil
}

// float appends a float as Python's json module does.
func (u *unpacker) float(v float64) {
	switch {
	case math.IsNaN(v):
		u.out = append(u.out, "NaN"...)
	case math.IsInf(v, 1):
		u.out = append(u.out, "Infinity"...)
	case math.IsInf(v, -1):
		u.out = append(u.out, "-Infinity"...)
	default:
		n := len(u.out)
		u.out = strconv.AppendFloat(u.out, v, 'g', -1, 64)
		// A whole number stays a float.
		if !bytes.ContainsAny(u.out[n:], ".e") {
			u.out = append(u.out, ".0"...)
		}
	}
}

// members appends the members of an array or a map.
func (u *unpacker) members(open byte, n uint64, depth int) error {
	if n > uint64(len(u.src)-u.pos) {
		return u.bad("more members than bytes")
	}
	u.out = append(u.out, open)
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		if open == '{' {
			// JSON knows texts only as names.
			start := len(u.out)
			if err := u.value(depth + 1); err != nil {
				return err
			}
			if u.out[start] != '"' {
				name := string(u.out[start:])
				u.out = dtype.AppendString(u.out[:start], name)
			}
			u.out = append(u.out, ':')
		}
		if err := u.value(depth + 1); err != nil {
			return err
		}
	}
	u.out = append(u.out, open+2)
	return nil
}
