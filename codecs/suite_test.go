package codecs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The suite that every codec passes: Run(t, Case{...}).
//
// It checks that a chain prints as it was parsed, and its codecs print
// equivalent configurations; that random chunks decode to the same elements, in
// whole and in boxes, into any layout, and updated in part; that results are
// appended; that sources are read inside their bounds; that concurrent calls
// work; and that damaged bytes give an error, or wrong elements, but never a
// panic or more bytes than a chunk has.

// Case is a chain for chunks of one data type and shape.
type Case struct {
	// Registry parses the chain; nil means builtin.Registry.
	Registry *codecs.Registry
	// V3 is the "codecs" member of v3 metadata. Without it V2 has the members of
	// v2 metadata; Type and Rank are filled in.
	V3 string
	V2 *codecs.V2

	Type  dtype.Type
	Shape []int
	Fill  []byte

	// Elems appends n elements in memory layout to dst, if not all bits are
	// allowed. Nil means any bits, and for variable-length types short texts.
	Elems func(r *rand.Rand, dst []byte, n int) []byte
	// Lossy means that decoding may not return the encoded elements; encoding
	// its result again must then change nothing.
	Lossy bool
	// Unchecked means that damaged bytes may decode to any bytes of any length;
	// then only a panic is a failure.
	Unchecked bool
}

// suite is a bound Case.
type suite struct {
	Case
	r     *rand.Rand
	chain codecs.Chain
	b     *codecs.Bound
	n     int // elements
}

// Run runs the suite.
func Run(t *testing.T, c Case) {
	t.Helper()
	seed := must.Seed(t)
	s := must.Get(newSuite(c, seed))(t)
	for _, p := range s.parts() {
		t.Run(p.name, func(t *testing.T) { p.test(t) })
	}
}

// newSuite parses and binds the chain.
func newSuite(c Case, seed uint64) (*suite, error) {
	if c.Registry == nil {
		c.Registry = builtin.Registry()
	}
	s := &suite{Case: c, r: rand.New(rand.NewPCG(seed, 0)), n: 1}
	for _, n := range c.Shape {
		s.n *= n
	}
	var err error
	if s.chain, err = s.parse(); err != nil {
		return nil, err
	}
	s.b, err = s.chain.Bind(codecs.Rep{Type: c.Type, Shape: c.Shape, Fill: c.Fill})
	return s, err
}

// part is one test of the suite.
type part struct {
	name string
	test func(testing.TB)
}

// parts are the tests that fit the data type.
func (s *suite) parts() []part {
	if s.Type.Variable() {
		return []part{
			{"Print", s.testPrint}, {"RoundTrip", s.testRoundTrip}, {"Box", s.testVariableBox},
			{"Concurrent", s.testConcurrent}, {"Damage", s.testDamage},
		}
	}
	return []part{
		{"Print", s.testPrint}, {"RoundTrip", s.testRoundTrip}, {"Box", s.testBox}, {"Partial", s.testPartial},
		{"Concurrent", s.testConcurrent}, {"Damage", s.testDamage},
	}
}

func (s *suite) parse() (codecs.Chain, error) {
	if s.V2 == nil {
		return s.Registry.ParseV3(json.RawMessage(s.V3))
	}
	v := *s.V2
	v.Type, v.Rank = s.Type, len(s.Shape)
	if v.Order == "" {
		v.Order = "C"
	}
	return s.Registry.ParseV2(v)
}

// testPrint: a printed chain parses to a chain that prints the same.
func (s *suite) testPrint(t testing.TB) {
	var print func(c codecs.Chain) (string, error)
	if s.V2 == nil {
		print = func(c codecs.Chain) (string, error) {
			raw, err := c.PrintV3()
			return string(raw), err
		}
	} else {
		print = func(c codecs.Chain) (string, error) {
			v, err := c.V2()
			return string(v.Filters) + string(v.Compressor) + v.Order, err
		}
	}
	first := must.Get(print(s.chain))(t)
	again := must.Get(s.parse())(t)
	second, err := print(again)
	if err != nil || first != second {
		t.Errorf("printed %s, then %s (%v)", first, second, err)
	}
	// Every codec prints a configuration that is an object, or no configuration.
	for _, c := range s.chain.Codecs() {
		if raw := c.Config(); raw != nil && (raw[0] != '{' || !json.Valid(raw)) {
			t.Fatalf("%T prints the configuration %s", c, raw)
		}
	}
	if s.V2 == nil {
		s.testConfigs(t)
	}
}

// testConfigs: a v3 chain whose codecs print their configurations themselves is
// the same chain.
func (s *suite) testConfigs(t testing.TB) {
	t.Helper()
	var list []json.RawMessage
	must.Do(t, json.Unmarshal([]byte(s.V3), &list))
	for i, c := range s.chain.Codecs() {
		var named struct{ Name string }
		if json.Unmarshal(list[i], &named.Name) != nil {
			must.Do(t, json.Unmarshal(list[i], &named))
		}
		if list[i] = codecs.Object("name", named.Name); c.Config() != nil {
			list[i] = codecs.Object("name", named.Name, "configuration", c.Config())
		}
	}
	own := must.Get(json.Marshal(list))(t)
	again, err := s.Registry.ParseV3(own)
	if err != nil {
		t.Fatalf("the codecs print %s: %v", own, err)
	}
	for i, c := range again.Codecs() {
		if first := s.chain.Codecs()[i].Config(); !bytes.Equal(first, c.Config()) {
			t.Errorf("%T prints %s, and after it was parsed %s", c, first, c.Config())
		}
	}
	b, err := again.Bind(codecs.Rep{Type: s.Type, Shape: s.Shape, Fill: s.Fill})
	if err != nil {
		t.Fatalf("the codecs print %s: %v", own, err)
	}
	elems := s.elems(t, s.n)
	if stored, err := b.Encode(nil, elems); err != nil || !bytes.Equal(stored, s.encode(t, elems)) {
		t.Errorf("the codecs print %s, which encodes to other bytes (%v)", own, err)
	}
}

// chunks returns the elements of chunks of several kinds, in memory layout.
func (s *suite) chunks(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"random": s.elems(t, s.n)}
	one := s.elems(t, 1)
	if s.Type.Variable() {
		all["constant"] = repeat(t, one[8:], s.n)
		all["fill"] = repeat(t, s.b.Rep().Fill, s.n)
		return all
	}
	all["constant"] = bytes.Repeat(one, s.n)
	fill := s.fill()
	all["fill"] = bytes.Repeat(fill, s.n)
	// Runs of the fill value and of other values.
	mixed := bytes.Clone(all["random"])
	for i := 0; i < s.n; {
		run := 1 + s.r.IntN(s.n)
		if s.r.IntN(2) == 0 {
			copy(mixed[i*len(fill):], bytes.Repeat(fill, min(run, s.n-i)))
		}
		i += run
	}
	all["mixed"] = mixed
	return all
}

// fill returns one element of a fixed size.
func (s *suite) fill() []byte {
	if len(s.Fill) == 0 {
		return make([]byte, s.Type.Size())
	}
	return s.Fill
}

// elems returns n random elements.
func (s *suite) elems(t testing.TB, n int) []byte {
	t.Helper()
	if s.Elems != nil {
		return s.Elems(s.r, nil, n)
	}
	if !s.Type.Variable() {
		b := make([]byte, n*s.Type.Size())
		for i := range b {
			b[i] = byte(s.r.Uint32())
			if s.Type.Kind() == dtype.Bool {
				b[i] &= 1
			}
		}
		for _, r := range s.Type.Narrow() {
			// The bits above a narrow scalar are those of its sign, or 0.
			for at := r.Offset; at < len(b); at += s.Type.Size() {
				for i := at; i < at+r.Count; i++ {
					if b[i] <<= 8 - r.Bits; r.Signed {
						b[i] = byte(int8(b[i]) >> (8 - r.Bits))
					} else {
						b[i] >>= 8 - r.Bits
					}
				}
			}
		}
		return b
	}
	return variable(t, n, func() []byte {
		return []byte("añ漢😀bcdefghij"[:[]int{0, 1, 3, 6, 10, 15}[s.r.IntN(6)]])
	})
}

// repeat returns a chunk of n times the same element of variable length.
func repeat(t testing.TB, item []byte, n int) []byte {
	t.Helper()
	return variable(t, n, func() []byte { return item })
}

// variable returns a chunk of n elements of variable length.
func variable(t testing.TB, n int, next func() []byte) []byte {
	t.Helper()
	w, err := dtype.NewBuilder(nil, n)
	for i := 0; err == nil && i < n; i++ {
		err = w.Append(next())
	}
	must.Do(t, err)
	b := must.Get(w.Finish())(t)
	return b
}

// encode encodes a chunk and checks what holds for every encoding.
func (s *suite) encode(t testing.TB, elems []byte) []byte {
	t.Helper()
	src := bytes.Clone(elems)
	stored := must.Get(s.b.Encode(nil, src))(t)
	if !bytes.Equal(src, elems) {
		t.Fatal("Encode changed its source")
	}
	if n := int64(len(stored)); n > s.b.MaxEncodedSize() || s.b.EncodedSize() >= 0 && n != s.b.EncodedSize() {
		t.Fatalf("encoded to %d bytes, EncodedSize %d, MaxEncodedSize %d", n, s.b.EncodedSize(), s.b.MaxEncodedSize())
	}
	// Appended, and the same again.
	head := []byte("head")
	again, err := s.b.Encode(head, src)
	if err != nil || !bytes.HasPrefix(again, head) || !bytes.Equal(again[4:], stored) {
		t.Fatalf("encoding again gave other bytes (%v)", err)
	}
	return stored
}

// expected returns what a chunk must decode to.
func (s *suite) expected(t testing.TB, elems, stored []byte) []byte {
	t.Helper()
	if !s.Lossy {
		return elems
	}
	once := must.Get(s.b.Decode(nil, stored))(t)
	twice, err := s.b.Decode(nil, s.encode(t, once))
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("a second round changes the elements again (%v)", err)
	}
	return once
}

func (s *suite) testRoundTrip(t testing.TB) {
	chunks := s.chunks(t)
	for name, elems := range chunks {
		stored := s.encode(t, elems)
		want := s.expected(t, elems, stored)
		src := bytes.Clone(stored)
		got, err := s.b.Decode([]byte("head"), src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(src, stored) {
			t.Fatalf("%s: Decode changed its source", name)
		}
		if !bytes.HasPrefix(got, []byte("head")) || !bytes.Equal(got[4:], want) {
			t.Fatalf("%s: decoded to other elements", name)
		}
		if is := s.b.IsFill(elems); is != bytes.Equal(elems, chunks["fill"]) {
			t.Fatalf("%s: IsFill is %v", name, is)
		}
	}
}

func (s *suite) testConcurrent(t testing.TB) {
	type chunk struct{ elems, stored []byte }
	var chunks []chunk
	for _, elems := range s.chunks(t) {
		stored := s.encode(t, elems)
		chunks = append(chunks, chunk{s.expected(t, elems, stored), stored})
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var buf []byte
			for i := range 8 {
				c := chunks[(g+i)%len(chunks)]
				var err error
				if buf, err = s.b.Decode(buf[:0], c.stored); err != nil || !bytes.Equal(buf, c.elems) {
					t.Errorf("decoded to other elements (%v)", err)
					return
				}
				if buf, err = s.b.Encode(buf[:0], c.elems); err != nil || !s.Lossy && !bytes.Equal(buf, c.stored) {
					t.Errorf("encoded to other bytes (%v)", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// testDamage cuts off and flips bytes.
func (s *suite) testDamage(t testing.TB) {
	elems := s.elems(t, s.n)
	stored := s.encode(t, elems)
	try := func(what string, at int, damaged []byte) {
		got, err := s.b.Decode(nil, damaged)
		switch {
		case err != nil:
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Errorf("%s %d: not ErrCorrupt: %v", what, at, err)
			}
		case s.Unchecked:
		case s.Type.Variable():
			if _, err := dtype.OpenVariable(got, s.n); err != nil {
				t.Errorf("%s %d: decoded to an invalid chunk", what, at)
			}
		case len(got) != len(elems):
			t.Errorf("%s %d: decoded to %d bytes", what, at, len(got))
		}
		if s.Type.Variable() {
			return
		}
		// Whatever it is, it stays inside the layout.
		box := s.box()
		dst := s.layout(box.Count)
		guard := dst.guard()
		_ = s.b.DecodeBox(context.Background(), codecs.Bytes(damaged), box, dst.Dst)
		guard.check(t, what)
	}
	step := max(1, len(stored)/200)
	for n := 0; n < len(stored); n += step {
		try("cut at", n, stored[:n:n])
	}
	for range 200 {
		damaged := bytes.Clone(stored)
		if len(damaged) == 0 {
			break
		}
		at := s.r.IntN(len(damaged))
		damaged[at] ^= 1 << s.r.IntN(8)
		try("flipped", at, damaged)
	}
	try("longer than", len(stored), append(bytes.Clone(stored), 1))
}
