package namespace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

func TestCoordEncoding(t *testing.T) {
	edge := []uint64{0, 1, maxCoord - 1, maxCoord}
	for s := range 63 {
		edge = append(edge, 1<<s, 1<<s-1, 1<<s+1)
	}
	slices.Sort(edge)
	var prev []byte
	for i, n := range slices.Compact(edge) {
		b := appendCoord(nil, n)
		got, rest, ok := splitCoord(append(slices.Clone(b), 7))
		if !ok || got != n || !bytes.Equal(rest, []byte{7}) {
			t.Fatalf("%d: %x decodes to %d, rest %x, %v", n, b, got, rest, ok)
		}
		if len(b) != coordSize(n) {
			t.Fatalf("%d: %d bytes, coordSize says %d", n, len(b), coordSize(n))
		}
		if i > 0 && bytes.Compare(prev, b) >= 0 {
			t.Fatalf("%d: %x not above %x", n, b, prev)
		}
		prev = b
	}
	for n, want := range map[uint64]int{127: 1, 128: 2, 1<<14 - 1: 2, 1 << 14: 3, 1<<56 - 1: 8, 1 << 56: 9, maxCoord: 9} {
		if got := len(appendCoord(nil, n)); got != want {
			t.Errorf("%d takes %d bytes, want %d", n, got, want)
		}
	}
	for _, bad := range []string{"", "\x80", "\x80\x05", "\xc0\x00\x01", "\xc0\x01", "\xfe\x00\x00\x00\x00\x00\x00\x01",
		"\xff\x00\x00\x00\x00\x00\x00\x00\x01", "\xff\x80\x00\x00\x00\x00\x00\x00\x00"} {
		if n, _, ok := splitCoord([]byte(bad)); ok {
			t.Errorf("%x is taken for %d", bad, n)
		}
	}
}

func TestFormNormal(t *testing.T) {
	for _, c := range []struct {
		in   Form
		want Form
		ok   bool
	}{
		{Form{"c/", '/', 3}, Form{"c/", '/', 3}, true},
		{Form{"", '.', 1}, Form{"", '/', 1}, true},
		{Form{"", 'x', 1}, Form{"", '/', 1}, true},
		{Form{"c", '.', 0}, Form{"c", '/', 0}, true},
		{Form{"0", '.', 0}, Form{"0", '/', 0}, true},
		{Form{"", '.', 0}, Form{}, false},
		{Form{"a/b", '.', 0}, Form{}, false},
		{Form{"c1/", '/', 3}, Form{}, false},
		{Form{"", '-', 2}, Form{}, false},
		{Form{"", '5', 2}, Form{}, false},
		{Form{"", '.', -1}, Form{}, false},
		{Form{"", '.', 33}, Form{}, false},
		{Form{strings.Repeat("x", 65), '.', 3}, Form{}, false},
	} {
		got, ok := c.in.normal()
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%+v: %+v, %v", c.in, got, ok)
		}
	}
}

func TestFormParse(t *testing.T) {
	for _, c := range []struct {
		f    Form
		key  string
		want []int64 // nil: no chunk
	}{
		{Form{"c/", '/', 3}, "c/0/1/2", []int64{0, 1, 2}},
		{Form{"c/", '/', 3}, "c/0/1", nil},
		{Form{"c/", '/', 3}, "c/0/1/2/3", nil},
		{Form{"c/", '/', 3}, "c/0/1/", nil},
		{Form{"c/", '/', 3}, "c/00/1/2", nil},
		{Form{"c/", '/', 3}, "c/+0/1/2", nil},
		{Form{"c/", '/', 3}, "c/0/1/-2", nil},
		{Form{"c/", '/', 3}, "c/0.1.2", nil},
		{Form{"c/", '/', 3}, "d/0/1/2", nil},
		{Form{"c/", '/', 3}, "", nil},
		{Form{"", '.', 2}, "10.0", []int64{10, 0}},
		{Form{"", '.', 2}, ".0", nil},
		{Form{"", '.', 2}, "0.", nil},
		{Form{"", '.', 2}, "0. 1", nil},
		{Form{"", '.', 2}, "١.٢", nil},
		{Form{"", '/', 1}, "9223372036854775807", []int64{maxCoord}},
		{Form{"", '/', 1}, "9223372036854775808", nil},
		{Form{"", '/', 1}, "18446744073709551616", nil},
		{Form{"", '/', 1}, "10000000000000000000", nil},
		{Form{"", '/', 1}, "99999999999999999999999999", nil},
		{Form{"c", '/', 0}, "c", nil},
	} {
		coords, ok := c.f.parse(nil, c.key)
		if ok != (c.want != nil) || ok && !slices.Equal(c.f.numbers(coords), c.want) {
			t.Errorf("%+v: %q: %v %v", c.f, c.key, c.f.numbers(coords), ok)
		}
	}
}

// fuzzForms are the forms that Zarr has and some that it has not.
var fuzzForms = []Form{
	{"", '.', 1}, {"", '.', 2}, {"", '/', 2}, {"", '.', 4}, {"c/", '/', 1}, {"c/", '/', 3}, {"c.", '.', 2}, {"c", '/', 3},
	{"a/b/c", '.', 2}, {"/", '/', 2}, {"", '/', maxRank},
}

// FuzzForm: parse and print are exact inverses, order of coordinates is order
// of numbers, and what cut says of a key's prefixes holds.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"0", "c/0/1/2", "0.0", "00.1", "c/9223372036854775807", "c.1.2", "c10/2/3", "a/b/c1.2", "//", "1/2"} {
		f.Add(s, "7.7")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, form := range fuzzForms {
			form, ok := form.normal()
			if !ok {
				t.Fatal("form left aside")
			}
			ca, oka := form.parse(nil, a)
			checkParse(t, form, a, ca, oka)
			cb, okb := form.parse(nil, b)
			if oka && okb {
				if got, want := bytes.Compare(ca, cb), slices.Compare(form.numbers(ca), form.numbers(cb)); got != want {
					t.Fatalf("%+v: %q and %q order %d as bytes, %d as numbers", form, a, b, got, want)
				}
				checkCut(t, form, a, b, cb)
			}
			// Any bytes: print refuses them or parse gives them back.
			if key, ok := form.print(nil, []byte(a)); ok {
				if back, ok := form.parse(nil, string(key)); !ok || string(back) != a {
					t.Fatalf("%+v: %x prints as %q, which parses as %x %v", form, a, key, back, ok)
				}
			}
		}
	})
}

func checkParse(t *testing.T, form Form, key string, coords []byte, ok bool) {
	t.Helper()
	nums := form.numbers(coords)
	if !ok {
		return
	}
	back, printed := form.print(nil, coords)
	if !printed || string(back) != key || len(nums) != form.Rank {
		t.Fatalf("%+v: %q parses as %v, which prints as %q %v", form, key, nums, back, printed)
	}
	for i := range key {
		if _, ok := form.cut(key[:i]); !ok {
			t.Fatalf("%+v: %q has no prefix %q", form, key, key[:i])
		}
	}
}

// checkCut compares the spans of each prefix of a with plain strings.
func checkCut(t *testing.T, form Form, a, b string, cb []byte) {
	t.Helper()
	for i := range len(a) + 1 {
		c, ok := form.cut(a[:i])
		if !ok {
			t.Fatalf("%+v: cut %q", form, a[:i])
		}
		in := false
		for from, to := range c.spans {
			if bytes.Compare(from, cb) <= 0 && (to == nil || bytes.Compare(cb, to) < 0) {
				in = true
			}
		}
		if in != strings.HasPrefix(b, a[:i]) {
			t.Fatalf("%+v: %q begins with %q: spans say %v", form, b, a[:i], in)
		}
	}
}

func TestFormCut(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	number := func() string {
		n := rnd.Uint64() >> (1 + rnd.IntN(63))
		return fmt.Sprint(n)
	}
	for range 3000 {
		form := fuzzForms[rnd.IntN(len(fuzzForms)-1)]
		form, _ = form.normal()
		key := func() string {
			nums := make([]string, form.Rank)
			for i := range nums {
				nums[i] = number()
			}
			return form.Prefix + strings.Join(nums, string(form.Sep))
		}
		a, b := key(), key()
		if rnd.IntN(2) == 0 { // a longer number with the same beginning
			b = a[:rnd.IntN(len(a)+1)] + b[min(len(b), rnd.IntN(6)):]
		}
		cb, ok := form.parse(nil, b)
		checkParse(t, form, b, cb, ok)
		if ok {
			checkCut(t, form, a, b, cb)
		}
	}
	for _, bad := range []string{"d", "c/00", "c/1//", "c/1/2/3/", "c/x", "c/9223372036854775808", "c/+"} {
		f := Form{"c/", '/', 3}
		if _, ok := f.cut(bad); ok {
			t.Errorf("cut %q", bad)
		}
	}
}

func TestKeyAfter(t *testing.T) {
	for in, want := range map[string]string{"a": "b", "a\xff": "b", "a\xff\xff": "b", "": "", "\xff": ""} {
		if got := keyAfter([]byte(in)); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%q: %q", in, got)
		}
	}
}
