package filter

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/kernels"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func mustReal(t *testing.T, typ dtype.Type) realType {
	t.Helper()
	r := must.Get(realOf(typ))(t)
	return r
}

func narrowFloat(t *testing.T, name string) dtype.Type {
	t.Helper()
	typ := must.Get(dtype.NewNarrowFloat(name))(t)
	return typ
}

// narrowFloats are the floats of the registry that are not IEEE 754's.
func narrowFloats(t *testing.T) []dtype.Type {
	t.Helper()
	var list []dtype.Type
	for _, name := range []string{
		"bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
		"float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
	} {
		list = append(list, narrowFloat(t, name))
	}
	return list
}

// randomFloat returns floats of all magnitudes, many of them whole or half.
func randomFloat(r *rand.Rand) float64 {
	switch r.IntN(4) {
	case 0:
		return float64(r.IntN(2000)-1000) / 4
	case 1:
		return math.Float64frombits(r.Uint64())
	case 2:
		return math.Ldexp(r.Float64()-0.5, r.IntN(300)-150)
	}
	return math.Ldexp(float64(r.IntN(4096)-2048), r.IntN(60)-40)
}

// TestHalf compares float16 with the general rounding, for every number and for
// what lies between.
func TestHalf(t *testing.T) {
	f16 := mustReal(t, dtype.NewFloat(16))
	for h := range 1 << 16 {
		v := kernels.HalfValue(uint16(h))
		if w := f16.typ.FloatValue(uint64(h)); w != v && !(math.IsNaN(w) && math.IsNaN(v)) {
			t.Fatalf("%#04x is %v and %v", h, v, w)
		}
		if math.IsNaN(v) {
			continue
		}
		if got := kernels.HalfOf(v); got != uint16(h) {
			t.Fatalf("%#04x comes back as %#04x", h, got)
		}
		if got := f16.typ.FloatBits(v); got != uint64(h) {
			t.Fatalf("%#04x comes back as %#04x", h, got)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		v := randomFloat(r)
		if math.IsNaN(v) {
			continue
		}
		want := f16.round(v, math.RoundToEven)
		if !f16.inRange(want) {
			want = math.Inf(int(math.Copysign(1, v)))
		}
		if got := kernels.HalfValue(kernels.HalfOf(v)); got != want || math.Signbit(got) != math.Signbit(v) {
			t.Fatalf("%v rounds to %v, want %v", v, got, want)
		}
	}
}

// TestRound compares with the hardware and with what each rule means.
func TestRound(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	f32 := mustReal(t, dtype.NewFloat(32))
	for range 200_000 {
		v := randomFloat(r)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		got := f32.round(v, math.RoundToEven)
		if want := float64(float32(v)); f32.inRange(got) && got != want || !f32.inRange(got) && !math.IsInf(want, 0) {
			t.Fatalf("%v rounds to %v, want %v", v, got, want)
		}
	}
	for _, typ := range append(narrowFloats(t), dtype.NewFloat(16), dtype.NewFloat(32)) {
		k := mustReal(t, typ)
		for range 20_000 {
			v := randomFloat(r)
			if math.IsNaN(v) || math.Abs(v) > 1e300 || k.info.Min > 0 && v < k.info.Min {
				continue
			}
			down, up := k.round(v, math.Floor), k.round(v, math.Ceil)
			zero, even, away := k.round(v, math.Trunc), k.round(v, math.RoundToEven), k.round(v, math.Round)
			ok := down <= v && v <= up && (even == down || even == up) && (away == down || away == up)
			ok = ok && (v >= 0 && zero == down || v <= 0 && zero == up)
			ok = ok && math.Abs(v-even) <= math.Abs(v-down) && math.Abs(v-even) <= math.Abs(v-up)
			if !ok {
				t.Fatalf("%v: %v rounds to %v, %v, %v, %v, %v", typ, v, down, up, zero, even, away)
			}
			if k.inRange(even) && k.typ.FloatValue(k.typ.FloatBits(even)) != even {
				t.Fatalf("%v: %v comes back as %v", typ, even, k.typ.FloatValue(k.typ.FloatBits(even)))
			}
			if down != up && k.inRange(up) && k.inRange(down) {
				// Nothing of the type lies between the two.
				if mid := down + (up-down)/2; k.round(mid, math.Floor) != down || k.round(mid, math.Ceil) != up {
					t.Fatalf("%v: %v lies between %v and %v", typ, mid, down, up)
				}
			}
		}
	}
}

// TestRoundWhole compares with exact arithmetic.
func TestRoundWhole(t *testing.T) {
	modes := map[string]big.RoundingMode{
		"nearest-even": big.ToNearestEven, "nearest-away": big.ToNearestAway, "towards-zero": big.ToZero,
		"towards-positive": big.ToPositiveInf, "towards-negative": big.ToNegativeInf,
	}
	r := rand.New(rand.NewPCG(3, 1))
	for _, typ := range []dtype.Type{dtype.NewFloat(16), dtype.NewFloat(32), dtype.NewFloat(64), narrowFloat(t, "float8_e5m2")} {
		k := mustReal(t, typ)
		for range 20_000 {
			v := real{mag: r.Uint64() >> r.IntN(64), negative: r.IntN(2) == 0}
			if r.IntN(3) == 0 {
				// Ties.
				v.mag = uint64(r.IntN(1<<12)) << r.IntN(50)
			}
			for name, mode := range modes {
				x := new(big.Float).SetPrec(uint(k.info.Mantissa + 1)).SetMode(mode)
				exact := new(big.Float).SetPrec(64).SetUint64(v.mag)
				if v.negative {
					exact.Neg(exact)
				}
				want, _ := x.Set(exact).Float64()
				if got := k.roundWhole(v, roundings[name]); got != want && v.mag != 0 {
					t.Fatalf("%v, %s: %+v rounds to %v, want %v", typ, name, v, got, want)
				}
			}
		}
	}
}

func castOne(t *testing.T, from, to dtype.Type, rounding, outOfRange string, v real) (real, error) {
	t.Helper()
	c := caster{from: mustReal(t, from), to: mustReal(t, to), rule: roundings[rounding], outOfRange: outOfRange}
	return c.one(v)
}

// TestCastValue is the table of the specification's sentences.
func TestCastValue(t *testing.T) {
	i8, i16, i64, u8, u64 := dtype.NewInt(8), dtype.NewInt(16), dtype.NewInt(64), dtype.NewUint(8), dtype.NewUint(64)
	f16, f32, f64 := dtype.NewFloat(16), dtype.NewFloat(32), dtype.NewFloat(64)
	inf := math.Inf(1)
	f := func(v float64) real { return real{f: v} }
	n := func(v int64) real {
		if v < 0 {
			return real{mag: uint64(-v), negative: true}
		}
		return real{mag: uint64(v)}
	}
	for _, c := range []struct {
		from, to     dtype.Type
		rule, beyond string
		v, want      real
		fails        bool
		comment      string
	}{
		{f64, i8, "", "", f(128), real{}, true, "out_of_range is not set"},
		{f64, i8, "", "clamp", f(128), n(127), false, ""},
		{f64, i8, "", "wrap", f(128), n(-128), false, ""},
		{i64, i16, "", "wrap", n(32768), n(-32768), false, ""},
		{i64, i16, "", "wrap", n(32769), n(-32767), false, ""},
		{i64, i16, "", "wrap", n(-32769), n(32767), false, ""},
		{i64, i16, "", "clamp", n(-32769), n(-32768), false, ""},
		{i64, u8, "", "clamp", n(-1), n(0), false, ""},
		{i64, u8, "", "wrap", n(-1), n(255), false, ""},
		{i64, u8, "", "", n(-1), real{}, true, ""},
		{u64, i64, "", "wrap", real{mag: 1 << 63}, real{mag: 1 << 63, negative: true}, false, ""},
		{i64, u64, "", "wrap", n(-1), real{mag: math.MaxUint64}, false, ""},
		{f64, u8, "", "wrap", f(-1.5), n(254), false, "rounded to -2, then wrapped"},
		{f64, u8, "", "wrap", f(math.Ldexp(1, 70) + math.Ldexp(1, 68)), n(0), false, "a multiple of 256"},
		{f64, i64, "", "wrap", f(-math.Ldexp(3, 64)), n(0), false, ""},
		{f64, i64, "", "clamp", f(1e300), n(math.MaxInt64), false, ""},
		{f64, i64, "", "clamp", f(-1e300), n(math.MinInt64), false, ""},
		{f64, u64, "", "", f(math.Ldexp(1, 63)), real{mag: 1 << 63}, false, ""},
		{f64, u8, "", "clamp", f(255.4), n(255), false, "rounding comes first"},
		{f64, u8, "", "", f(255.4), n(255), false, "rounding comes first"},
		{f64, u8, "", "", f(255.5), real{}, true, "to even: 256"},
		{f64, u8, "towards-zero", "", f(255.9), n(255), false, ""},
		{f64, i8, "nearest-even", "", f(2.5), n(2), false, ""},
		{f64, i8, "nearest-away", "", f(2.5), n(3), false, ""},
		{f64, i8, "nearest-away", "", f(-2.5), n(-3), false, ""},
		{f64, i8, "towards-positive", "", f(-2.5), n(-2), false, ""},
		{f64, i8, "towards-negative", "", f(-2.5), n(-3), false, ""},
		{f64, i8, "", "clamp", f(inf), real{}, true, "only a map can say what infinity becomes"},
		{f64, i8, "", "wrap", f(math.NaN()), real{}, true, "only a map can say what NaN becomes"},
		{f64, f32, "", "", f(1e300), real{}, true, ""},
		{f64, f32, "", "clamp", f(1e300), f(inf), false, ""},
		{f64, f32, "", "", f(math.MaxFloat64), real{}, true, "rounds beyond float64 too"},
		{f64, f32, "", "", f(-inf), f(-inf), false, ""},
		{f64, f16, "", "", f(65519.99), f(65504), false, "rounds down to the largest"},
		{f64, f16, "", "", f(65520), real{}, true, "rounds up beyond it"},
		{f64, f16, "towards-zero", "", f(65530), f(65504), false, ""},
		{i64, f32, "", "", n(1<<24 + 1), f(1 << 24), false, ""},
		{i64, f32, "towards-positive", "", n(1<<24 + 1), f(1<<24 + 2), false, ""},
		{u64, f64, "", "", real{mag: math.MaxUint64}, f(math.Ldexp(1, 64)), false, ""},
		{u64, f16, "", "", real{mag: math.MaxUint64}, real{}, true, ""},
		{u64, f16, "", "clamp", real{mag: math.MaxUint64}, f(inf), false, ""},
	} {
		if c.rule == "" {
			c.rule = "nearest-even"
		}
		got, err := castOne(t, c.from, c.to, c.rule, c.beyond, c.v)
		if (err != nil) != c.fails || err == nil && got != c.want {
			t.Errorf("%v to %v, %s, %q: %+v becomes %+v (%v), want %+v; %s", c.from, c.to, c.rule, c.beyond, c.v, got, err, c.want, c.comment)
		}
	}
	for _, typ := range narrowFloats(t) {
		k := mustReal(t, typ)
		// Every number of the type is itself as float64, and back.
		for b := range uint64(1) << min(k.bits, 16) {
			v, err := castOne(t, typ, f64, "", "", real{f: typ.FloatValue(b)})
			if err == nil {
				v, err = castOne(t, f64, typ, "nearest-even", "", v)
			}
			if err != nil || !math.IsNaN(v.f) && typ.FloatBits(v.f) != b || math.IsNaN(v.f) != math.IsNaN(typ.FloatValue(b)) {
				t.Fatalf("%v: %#x becomes %v (%v)", typ, b, v.f, err)
			}
		}
		// What is beyond it is clamped, or becomes infinite where there is that.
		want := k.info.Max
		if k.info.Infinity {
			want = inf
		}
		if v, err := castOne(t, f64, typ, "nearest-even", "clamp", f(1e300)); err != nil || v.f != want {
			t.Errorf("%v: 1e300 becomes %v (%v)", typ, v.f, err)
		}
		if _, err := castOne(t, f64, typ, "nearest-even", "", f(1e300)); err == nil {
			t.Errorf("%v: takes 1e300", typ)
		}
		if _, err := castOne(t, f64, typ, "nearest-even", "clamp", f(-inf)); (err == nil) != k.info.Infinity {
			t.Errorf("%v: -Infinity: %v", typ, err)
		}
		if _, err := castOne(t, f64, typ, "nearest-even", "clamp", f(math.NaN())); (err == nil) != k.info.NaN {
			t.Errorf("%v: NaN: %v", typ, err)
		}
	}
	e8m0 := narrowFloat(t, "float8_e8m0fnu")
	if v, err := castOne(t, f64, e8m0, "nearest-even", "clamp", f(-3)); err != nil || v.f != math.Ldexp(1, -127) {
		t.Errorf("-3 becomes %v (%v) in a type without sign", v.f, err)
	}
	if _, err := castOne(t, i64, e8m0, "nearest-even", "", n(0)); err == nil {
		t.Error("0 is in a type without zero")
	}
	if v, err := castOne(t, f64, f16, "nearest-even", "", f(math.Copysign(0, -1))); err != nil || !math.Signbit(v.f) {
		t.Errorf("-0 becomes %v (%v)", v, err)
	}
	if v, err := castOne(t, f64, f16, "nearest-even", "", f(math.NaN())); err != nil || !math.IsNaN(v.f) {
		t.Errorf("NaN becomes %v (%v)", v, err)
	}
}

// TestScaleOffset: results that the type cannot represent are errors.
func TestScaleOffset(t *testing.T) {
	i8 := mustReal(t, dtype.NewInt(8))
	f16 := mustReal(t, dtype.NewFloat(16))
	whole := func(v int8) real { return i8.load([]byte{byte(v)}) }
	for _, c := range []struct {
		t             realType
		offset, scale real
		v             real
		encode        real
		ok            bool
	}{
		{i8, whole(5), whole(2), whole(10), whole(10), true},
		{i8, whole(-100), whole(1), whole(27), whole(127), true},
		{i8, whole(-100), whole(1), whole(28), real{}, false},
		{i8, whole(1), whole(1), whole(-128), real{}, false},
		{i8, whole(0), whole(-128), whole(1), whole(-128), true},
		{i8, whole(0), whole(-128), whole(-1), real{}, false},
		{i8, whole(-128), whole(1), whole(-1), whole(127), true},
		{f16, real{f: 1}, real{f: 2}, real{f: 1.5}, real{f: 1}, true},
		{f16, real{f: 0}, real{f: 2}, real{f: 60000}, real{}, false},
		{f16, real{f: 0}, real{f: 2}, real{f: math.Inf(1)}, real{f: math.Inf(1)}, true},
	} {
		op := &scaleOp{t: c.t, offset: c.offset, scale: c.scale}
		in, out := make([]byte, c.t.size), make([]byte, c.t.size)
		c.t.store(in, c.v)
		err := op.encode(out, in)
		if (err == nil) != c.ok || c.ok && c.t.load(out) != c.encode {
			t.Errorf("%v: (%+v - %+v) · %+v = %+v (%v), want %+v", c.t.typ, c.v, c.offset, c.scale, c.t.load(out), err, c.encode)
		}
		if !c.ok {
			continue
		}
		if err := op.decode(in, out); err != nil || c.t.load(in) != c.v {
			t.Errorf("%v: %+v / %+v + %+v = %+v (%v), want %+v", c.t.typ, c.encode, c.scale, c.offset, c.t.load(in), err, c.v)
		}
	}
	op := &scaleOp{t: i8, scale: whole(3)}
	if err := op.decode(make([]byte, 1), []byte{4}); err == nil {
		t.Error("4 / 3 is a whole number")
	}
}

// TestBlocks compares what is done a block at a time with what is done one by
// one, for all types, rules and errors.
func TestBlocks(t *testing.T) {
	types := []dtype.Type{
		dtype.NewInt(8), dtype.NewInt(16), dtype.NewInt(32), dtype.NewInt(64), dtype.NewInt(4), dtype.NewUint(8), dtype.NewUint(16), dtype.NewUint(32), dtype.NewUint(64),
		dtype.NewFloat(16), dtype.NewFloat(32), dtype.NewFloat(64), narrowFloat(t, "bfloat16"),
		narrowFloat(t, "float8_e4m3fnuz"), narrowFloat(t, "float8_e8m0fnu"), narrowFloat(t, "float4_e2m1fn"),
	}
	r := rand.New(rand.NewPCG(4, 1))
	// elements returns n numbers that tend to fit other types.
	elements := func(k *realType, n int) []byte {
		b := make([]byte, n*k.size)
		for i := range n {
			v := real{mag: uint64(r.IntN(130)), negative: k.signed && r.IntN(2) == 0}
			if r.IntN(40) == 0 {
				v = k.wrap(real{mag: r.Uint64()})
			}
			if !k.whole {
				v = real{f: k.round(float64(r.IntN(500)-250)/4, math.RoundToEven)}
				if r.IntN(100) == 0 {
					v.f = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e30, 300}[r.IntN(6)]
				}
				if !k.inRange(v.f) && !(k.info.Infinity && math.IsInf(v.f, 0)) && !(k.info.NaN && math.IsNaN(v.f)) {
					v.f = 1
				}
			}
			k.store(b[i*k.size:], v)
		}
		return b
	}
	names := []string{"nearest-even", "nearest-away", "towards-zero", "towards-positive", "towards-negative"}
	for range 6000 {
		from, to := mustReal(t, types[r.IntN(len(types))]), mustReal(t, types[r.IntN(len(types))])
		rounding := names[r.IntN(len(names))]
		c := caster{from: from, to: to, rounding: rounding, rule: roundings[rounding], outOfRange: []string{"", "clamp", "wrap"}[r.IntN(3)], scalars: map[real]real{}}
		if !to.whole && c.outOfRange == "wrap" {
			c.outOfRange = ""
		}
		for range r.IntN(3) {
			k, v := from.load(elements(&from, 1)), to.load(elements(&to, 1))
			if math.IsNaN(k.f) {
				c.nan = &v
			} else {
				c.scalars[k] = v
			}
		}
		src := elements(&from, 1+r.IntN(3*numberBlock))
		want, got := make([]byte, len(src)/from.size*to.size), make([]byte, len(src)/from.size*to.size)
		wantErr := c.cast(want, src)
		c.blocks = newBlockCast(&c)
		gotErr := c.cast(got, src)
		if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() || wantErr == nil && !bytes.Equal(want, got) {
			t.Fatalf("%v to %v, %s, %q, %v: % x becomes % x (%v), want % x (%v)", from.typ, to.typ, rounding, c.outOfRange, c.scalars, src, got, gotErr, want, wantErr)
		}

		o := &scaleOp{t: from, offset: from.load(elements(&from, 1)), scale: from.load(elements(&from, 1))}
		odd := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
		if from.whole && o.scale.mag == 0 || !from.whole && o.scale.f == 0 || odd(o.scale.f) || odd(o.offset.f) {
			continue // refused before
		}
		want, got = make([]byte, len(src)), make([]byte, len(src))
		for _, run := range []func(dst, src []byte) error{o.encode, o.decode} {
			o.blocks = nil
			wantErr := run(want, src)
			o.blocks = newBlockScale(o)
			gotErr := run(got, src)
			if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !bytes.Equal(want, got) {
				t.Fatalf("%v, offset %+v, scale %+v: % x becomes % x (%v), want % x (%v)", from.typ, o.offset, o.scale, src, got, gotErr, want, wantErr)
			}
		}
	}
}
