package pco

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// crafted is a file of one chunk, put together by hand.
type crafted struct {
	w     writer
	major byte
}

func craft(major byte, typ Type, n int) *crafted {
	c := &crafted{major: major}
	c.w.dst = append(c.w.dst, magic...)
	if major > 1 {
		c.w.dst = append(c.w.dst, 2, 0) // a hint of 0
	}
	c.w.dst = append(c.w.dst, major)
	if major >= 4 {
		c.w.dst = append(c.w.dst, 1)
	}
	c.w.put(uint64(typ), 8)
	c.w.put(uint64(n-1), 24)
	return c
}

// put adds pairs of a value and its bits.
func (c *crafted) put(pairs ...uint64) *crafted {
	for i := 0; i < len(pairs); i += 2 {
		c.w.put(pairs[i], uint(pairs[i+1]))
	}
	return c
}

// finish adds the bins and latents of variables, whose residuals are given, with
// what the page begins with for each.
func (c *crafted) finish(n int, begin [][]uint64, parts ...*part) []byte {
	for _, p := range parts {
		p.prepare(4)
		p.writeBins(&c.w)
	}
	c.w.align()
	for i, p := range parts {
		for _, l := range begin[i] {
			c.w.put(l, p.width)
		}
		for _, s := range p.coder.state {
			c.w.put(uint64(s), p.log)
		}
	}
	c.w.align()
	for from := 0; from < n; from += batchSize {
		for _, p := range parts {
			p.writeBatch(&c.w, from)
		}
	}
	c.w.align()
	return append(c.w.dst, 0)
}

// TestOldDelta: the versions before 3 have three bits for the order.
func TestOldDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for major := range byte(3) {
		for order := range 8 {
			src := pack(kinds["walk"](r, 700), Int32)
			p := &part{width: 32, latents: load(make([]uint64, 700), src, Int32)}
			moments := make([]uint64, order)
			p.latents = differences(p.latents, moments, 32)
			file := craft(major, Int32, 700).put(0, 4, uint64(order), 3).finish(700, [][]uint64{moments}, p)
			got, err := Decode(nil, file, Int32, 2800)
			if err != nil || !bytes.Equal(got, src) {
				t.Fatalf("version %d, order %d: %v", major, order, err)
			}
		}
	}
}

// TestLookback compares all sizes of windows and of what a page begins with,
// also of the secondary variable, with what they mean.
func TestLookback(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		n := 1 + r.IntN(1200)
		window := 1 + r.IntN(12)
		stored := r.IntN(min(window, 9) + 1)
		second := r.IntN(2)
		begin := 1 << stored
		if begin > n {
			continue
		}
		// The latents of both, with zeros in front.
		const zeros = 1 << 12
		var all, residuals [2][]uint64
		for v := range all {
			all[v] = make([]uint64, zeros+n)
			for i := range n {
				all[v][zeros+i] = uint64(r.IntN(50))
			}
		}
		var looks []uint64
		for i := begin; i < n; i++ {
			back := 1 + r.IntN(1<<window)
			looks = append(looks, uint64(back))
			for v := range all {
				residuals[v] = append(residuals[v], (all[v][zeros+i]-all[v][zeros+i-back]^1<<31)&low(32))
			}
		}
		begins := [][]uint64{nil, all[0][zeros : zeros+begin], all[1][zeros : zeros+begin]}
		if second == 0 {
			residuals[1], begins[2] = slices.Clone(all[1][zeros:]), nil
		}
		var want []byte
		for i := range n {
			v := uint32(all[0][zeros+i]*50 + all[1][zeros+i])
			want = append(want, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		file := craft(4, Uint32, n).put(uint64(intMult), 4, 50, 32, uint64(lookback), 4, uint64(window-1), 5, uint64(stored), 4, uint64(second), 1).
			finish(n, begins, &part{width: 32, latents: looks}, &part{width: 32, latents: residuals[0]}, &part{width: 32, latents: residuals[1]})
		got, err := Decode(nil, file, Uint32, int64(len(want)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d numbers, window 2^%d, 2^%d at first, secondary %d: %v", n, window, stored, second, err)
		}
	}
}

// TestSecondaryDelta: differences of the secondary variable too, which no
// writer makes so far.
func TestSecondaryDelta(t *testing.T) {
	const n = 777
	r := rand.New(rand.NewPCG(10, 10))
	src := pack(kinds["random"](r, n), Uint16)
	one := &part{width: 16, latents: load(make([]uint64, n), src, Uint16)}
	two := &part{width: 16}
	for i, l := range one.latents {
		one.latents[i], two.latents = l/7, append(two.latents, l%7)
	}
	begin := [][]uint64{make([]uint64, 3), make([]uint64, 3)}
	one.latents = differences(one.latents, begin[0], 16)
	two.latents = differences(two.latents, begin[1], 16)
	file := craft(4, Uint16, n).put(uint64(intMult), 4, 7, 16, uint64(consecutive), 4, 3, 3, 1, 1).finish(n, begin, one, two)
	got, err := Decode(nil, file, Uint16, 2*n)
	if err != nil || !bytes.Equal(got, src) {
		t.Fatal(err)
	}
}

// TestHostile: each of the files is refused, with a word about why.
func TestHostile(t *testing.T) {
	none := []uint64{0, 4, 0, 4} // classic, no delta
	chunk := func(typ Type, pairs ...uint64) []byte {
		c := craft(4, typ, 1000).put(pairs...)
		c.w.align()
		// Enough that no length is short of data by itself.
		return append(c.w.dst, make([]byte, 200)...)
	}
	bins := func(pairs ...uint64) []uint64 { return append(append([]uint64(nil), none...), pairs...) }
	valid := must.Get(Encode(nil, pack(kinds["walk"](rand.New(rand.NewPCG(1, 1)), 1000), Int32), Int32, Params{Level: 8, Delta: 1}))(t)
	for _, c := range []struct {
		file []byte
		typ  Type
		want string
	}{
		{nil, Int32, "pco!"},
		{[]byte("pco"), Int32, "pco!"},
		{[]byte("pco!"), Int32, "too early"},
		{[]byte("pco!\x04"), Int32, "file version 4"},
		{[]byte("pco!\x02\x00\x05"), Int32, "format version 5"},
		{[]byte("pco!\x02\x00\x03"), Int32, "too early"},
		{[]byte("pco!\x02\x80\x03\x00"), Int32, "padding"},
		{[]byte("pco!\x02\x00\x03\x00\x00"), Int32, "behind the end"},
		{[]byte("pco!\x03\x03\x00\x04\x01\x01\x00\x00\x00\x00\x00"), Uint32, "numbers of uint32"},
		{valid, Uint32, "numbers of int32, not uint32"},
		{chunk(Int32, 5, 4), Int32, "mode 5"},
		{chunk(Int32, uint64(floatMult), 4), Int32, "mode 2 of int32"},
		{chunk(Float32, uint64(intMult), 4), Float32, "mode 1 of float32"},
		{chunk(Int32, uint64(intMult), 4, 0, 32), Int32, "base of 0"},
		{craft(0, Int32, 9).put(uint64(intMult), 4, 0, 64).w.dst, Int32, "retired"},
		{chunk(Float64, uint64(floatMult), 4, 1<<63, 64), Float64, "base of 0"},
		{chunk(Float32, uint64(floatMult), 4, 0xffc00000, 32), Float32, "base of NaN"},
		{chunk(Float16, uint64(floatMult), 4, 0xfc00, 16), Float16, "base of +Inf"},
		{chunk(Float32, uint64(floatQuant), 4, 0, 8), Float32, "0 lower bits"},
		{chunk(Float32, uint64(floatQuant), 4, 24, 8), Float32, "24 lower bits"},
		{chunk(Int64, uint64(dictionary), 4, 1<<24, 25), Int64, "too early"},
		{chunk(Int64, uint64(dictionary), 4, 1, 25, 1, 1), Int64, "padding"},
		{chunk(Int64, 0, 4, 4, 4), Int64, "delta encoding 4"},
		{chunk(Int64, 0, 4, 1, 4, 0, 3), Int64, "order 0"},
		{chunk(Int64, 0, 4, 2, 4, 24, 5), Int64, "window of 2^25"},
		{chunk(Int64, 0, 4, 2, 4, 2, 5, 4, 4), Int64, "2^4 latents in a window of 2^3"},
		{chunk(Int64, 0, 4, 3, 4, 0, 5, 1<<63, 64, 0, 5, 1<<31, 32), Int64, "sums of 64 bits"},
		{chunk(Int8, 0, 4, 3, 4, 16, 5, 1<<63, 64, 0, 5, 1<<31, 32), Int8, "scaled by 2^16"},
		{chunk(Int8, 0, 4, 3, 4, 15, 5, 1<<63, 64, 0, 5, 1<<31+128, 32), Int8, "sums of up to"},
		{chunk(Int32, 0, 4, 3, 4, 15, 5, 0, 64, 0, 5, 1<<31, 32), Int32, "sums of up to"},
		{chunk(Int32, bins(15, 4, 2, 15)...), Int32, "2^15 states"},
		{chunk(Int32, bins(1, 4, 3, 15)...), Int32, "3 bins"},
		{chunk(Int32, bins(1, 4, 1, 15)...), Int32, "1 bins"},
		{chunk(Int32, bins(1, 4, 0, 15)...), Int32, "0 bins"},
		{chunk(Int32, bins(14, 4, 1<<14, 15)...), Int32, "too early"},
		{chunk(Int32, bins(0, 4, 1, 15, 7, 32, 33, 6)...), Int32, "offsets of 33 bits"},
		{chunk(Int32, bins(1, 4, 2, 15, 0, 1, 7, 32, 3, 6, 1, 1, 7, 32, 3, 6)...), Int32, "bins of weight 3"},
		{chunk(Int32, bins(0, 4, 0, 15)...), Int32, "without bins"},
		{chunk(Int32, bins(0, 4, 1, 15, 7, 32, 32, 6)...), Int32, "too early"},
		// A lookback of 0, and one past the window.
		{chunk(Int32, 0, 4, 2, 4, 3, 5, 0, 4, 0, 1, 0, 4, 1, 15, 0, 32, 0, 6, 0, 4, 1, 15, 0, 32, 0, 6), Int32, "lookback of 0"},
		{chunk(Int32, 0, 4, 2, 4, 3, 5, 0, 4, 0, 1, 0, 4, 1, 15, 17, 32, 0, 6, 0, 4, 1, 15, 0, 32, 0, 6), Int32, "lookback of 17"},
		{chunk(Int32, uint64(dictionary), 4, 1, 25, 0, 3, 0, 32, 0, 4, 0, 4, 1, 15, 1, 32, 0, 6), Int32, "number 1 of a dictionary of 1"},
	} {
		got, err := Decode([]byte("x"), c.file, c.typ, 8000)
		if !errors.Is(err, errCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
		if string(got) != "x" {
			t.Errorf("%q: returns %q", c.want, got)
		}
	}
	if _, err := Decode(nil, valid, Int32, 3999); !errors.Is(err, ErrTooLarge) {
		t.Errorf("4000 bytes where 3999 may be: %v", err)
	}
	for n := range valid {
		if _, err := Decode(nil, valid[:n], Int32, 4000); !errors.Is(err, errCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// FuzzDecode checks that Decode returns only documented errors, and that the encoder accepts all
// decoded numbers.
func FuzzDecode(f *testing.F) {
	for i, g := range readGolden(f) {
		if i%3 == 0 {
			f.Add(byte(typeNamed(f, g.Type)), g.Data)
		}
	}
	f.Fuzz(func(t *testing.T, typ byte, file []byte) {
		ty := Type(typ%11 + 1)
		const limit = 1 << 18
		out, err := Decode(nil, file, ty, limit)
		if err != nil {
			if !errors.Is(err, errCorrupt) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		if len(out) > limit {
			t.Fatalf("%d bytes", len(out))
		}
		p := Params{Level: int(typ) % 13, Delta: int(typ)%9 - 1}
		enc := must.Get(Encode(nil, out, ty, p))(t)
		if most := MaxSize(int64(len(out)), ty, p); int64(len(enc)) > most {
			t.Fatalf("%d bytes, more than %d", len(enc), most)
		}
		if again, err := Decode(nil, enc, ty, limit); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%v, %+v: comes back as other numbers: %v", ty, p, err)
		}
	})
}

// TestPython has pcodec read files of every kind, with the Python that
// ZARRDB_PYTHON names.
func TestPython(t *testing.T) {
	python := os.Getenv("ZARRDB_PYTHON")
	if python == "" {
		t.Skip("ZARRDB_PYTHON is not set")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(11, 11))
	files := 0
	save := func(typ Type, src []byte, p Params) {
		enc := must.Get(Encode(nil, src, typ, p))(t)
		base := filepath.Join(dir, fmt.Sprintf("%d-%v", files, typ))
		for suffix, b := range map[string][]byte{".raw": src, ".pco": enc} {
			must.Do(t, os.WriteFile(base+suffix, b, 0o644))
		}
		files++
	}
	for typ := Uint32; typ <= Int8; typ++ {
		for _, make := range kinds {
			for _, n := range []int{1, 9, 256, 2000} {
				save(typ, pack(make(r, n), typ), Params{Level: r.IntN(13), Delta: r.IntN(9) - 1, PageSize: 300 * r.IntN(3)})
			}
		}
	}
	for _, typ := range []Type{Float32, Float64} {
		for _, n := range []int{1, 700, 20000} {
			save(typ, waves(n, typ), Params{Level: 8, Delta: Auto})
		}
	}
	cmd := exec.Command(python, "-c", `
import glob, sys
import numpy as np
from pcodec import standalone
for f in glob.glob(sys.argv[1] + "/*.pco"):
    a = np.fromfile(f[:-4] + ".raw", f[:-4].split("-")[-1])
    if standalone.simple_decompress(open(f, "rb").read()).tobytes() != a.tobytes():
        sys.exit(f)
`, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d files", files)
}
