package dtype

import (
	"bytes"
	"encoding/binary"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"math"
	"math/rand/v2"
	"testing"
)

func build(t testing.TB, prefix []byte, elems ...string) []byte {
	t.Helper()
	b, err := NewBuilder(prefix, len(elems))
	must.Do(t, err)
	for i, e := range elems {
		if i%2 == 0 {
			err = b.Append([]byte(e))
		} else {
			err = b.AppendString(e)
		}
		must.Do(t, err)
	}
	p := must.Get(b.Finish())(t)
	return p
}

func TestVariable(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 200 {
		elems := make([]string, r.IntN(20))
		size := 0
		for i := range elems {
			elems[i] = string(randomText(r))
			size += len(elems[i])
		}
		prefix := make([]byte, 3, 3+r.IntN(200))
		fillRandom(r, prefix[:cap(prefix)])
		p := build(t, prefix, elems...)
		if !bytes.Equal(p[:3], prefix) {
			t.Fatalf("seed %d: what was there is gone", seed)
		}
		p = p[3:]
		if len(p) != 4*(len(elems)+1)+size {
			t.Fatalf("seed %d: %d bytes for %d elements of %d bytes", seed, len(p), len(elems), size)
		}
		v, err := OpenVariable(p, len(elems))
		if err != nil || v.Len() != len(elems) {
			t.Fatalf("seed %d: %d elements, %v", seed, v.Len(), err)
		}
		for i, e := range elems {
			if string(v.At(i)) != e {
				t.Fatalf("seed %d: element %d is %q, not %q", seed, i, v.At(i), e)
			}
		}
		if err := v.Validate(NewString()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if n := (Variable{}).Len(); n != 0 {
		t.Errorf("zero Variable has %d elements", n)
	}
}

func TestVariableLayout(t *testing.T) {
	got := build(t, nil, "a", "", "bcd")
	want := []byte{0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 'a', 'b', 'c', 'd'}
	if !bytes.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestVariableHostile(t *testing.T) {
	u32 := func(v ...uint32) []byte {
		var p []byte
		for _, x := range v {
			p = binary.LittleEndian.AppendUint32(p, x)
		}
		return p
	}
	for name, c := range map[string]struct {
		buf []byte
		n   int
	}{
		"nothing":        {nil, 0},
		"cut":            {u32(0, 1), 2},
		"first not 0":    {append(u32(1, 1), 'a'), 1},
		"past the end":   {append(u32(0, 2), 'a'), 1},
		"short of end":   {append(u32(0, 1), 'a', 'b'), 1},
		"backwards":      {append(u32(0, 3, 2), 'a', 'b'), 2},
		"huge":           {append(u32(0, math.MaxUint32), 'a'), 1},
		"negative count": {u32(0), -1},
		"huge count":     {u32(0), math.MaxInt32},
		"largest count":  {u32(0), math.MaxInt},
	} {
		if _, err := OpenVariable(c.buf, c.n); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewBuilder(nil, math.MaxInt); !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge builder: %v", err)
	}
	b, _ := NewBuilder(nil, 2)
	if err := b.Append([]byte("a")); err != nil || b.Size() != 1 {
		t.Errorf("%v, %d", err, b.Size())
	}
	if _, err := b.Finish(); !errors.Is(err, ErrLayout) {
		t.Errorf("unfinished builder: %v", err)
	}
	// 4 GiB of data cannot be held here; the builder believes its position.
	b.data = len(b.buf) - math.MaxInt
	if math.MaxInt > math.MaxUint32 {
		if err := b.Append(nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("over 4 GiB: %v", err)
		}
	}
}

func TestVariableValidate(t *testing.T) {
	ragged := mustObject(t, `{"id":"vlen-array","dtype":"<i2"}`)
	for _, c := range []struct {
		typ   Type
		elems []string
		ok    bool
	}{
		{NewString(), []string{"a", "é"}, true},
		{NewString(), []string{"a", "\xff"}, false},
		{NewBytes(), []string{"a", "\xff"}, true},
		{ragged, []string{"", "ab"}, true},
		{ragged, []string{"abc"}, false},
		{NewJSON(), []string{`{"a":NaN}`, "1"}, true},
		{NewJSON(), []string{`{`}, false},
		{NewJSON(), []string{``}, false},
		{NewInt(8), []string{"a"}, false},
	} {
		v := must.Get(OpenVariable(build(t, nil, c.elems...), len(c.elems)))(t)
		if err := v.Validate(c.typ); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("%s %q: %v", c.typ, c.elems, err)
		}
	}
}

func FuzzVariable(f *testing.F) {
	f.Add(build(f, nil, "a", "", "bcd"), 3)
	f.Add([]byte{0, 0, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, buf []byte, n int) {
		v, err := OpenVariable(buf, n)
		if err != nil {
			return
		}
		b := must.Get(NewBuilder(nil, v.Len()))(t)
		for i := range v.Len() {
			must.Do(t, b.Append(v.At(i)))
		}
		if again, err := b.Finish(); err != nil || !bytes.Equal(again, buf) {
			t.Fatalf("%x came back as %x, %v", buf, again, err)
		}
	})
}
