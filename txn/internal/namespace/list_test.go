package namespace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// listForms are the documents that FuzzList chooses from.
var listForms = []string{
	"array f=:.:1", "array f=:.:2", "array f=:/:2", "array f=c/:/:2", "array f=c/:/:3 f=:.:2", "array f=:/:1 f=c.:.:4", "group",
}

// fuzzRoot makes a root of an array directory "a" with keys that bytes choose,
// some of which are chunks and some documents.
func fuzzRoot(t testing.TB, doc string, data []byte, small bool) (toySpace, tree.Root, []string) {
	seed := uint64(1)
	if small {
		seed = 2
	}
	s := newToySpace(seed)
	set := map[string]string{"a/zarr.json": doc}
	digits := []string{"0", "1", "2", "9", "10", "11", "19", "99", "100", "101", "110", "999", "1000", "00", "9223372036854775807", "9223372036854775808"}
	for len(data) >= 2 {
		n := int(data[0])
		key := "a/" + []string{"", "", "c/", "c.", "c", "1/", "b/"}[n%7]
		sep := []string{".", "/"}[n/7%2]
		var parts []string
		for _, b := range data[1:min(len(data), 2+n/14%4)] {
			parts = append(parts, digits[int(b)%len(digits)])
		}
		data = data[min(len(data), 2+n/14%4):]
		set[key+strings.Join(parts, sep)] = "x"
	}
	root := s.mustApply(t, tree.Root{}, puts(set))
	return s, root, toyKeys(set)
}

func toyKeys(set map[string]string) []string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// FuzzList compares listings with sorting, for any prefix and any key to begin
// after.
func FuzzList(f *testing.F) {
	f.Add(uint8(1), []byte("0123456789abcdefghijklmnopqrstuvwxyz"), "a/", "a/1", true)
	f.Add(uint8(3), []byte("\x0f\x01\x02\x0f\x04\x05\x0f\x06\x07"), "a/c/1", "a/c/10/", true)
	f.Add(uint8(2), []byte("\x07\x01\x02\x07\x04\x05\x07\x0e\x07\x05\x05\x05"), "a/1", "a/1/", false)
	f.Add(uint8(5), []byte(strings.Repeat("\x00\x01\x02\x03\x05", 9)), "a/c.", "a/c.1:", true)
	f.Fuzz(func(t *testing.T, doc uint8, data []byte, prefix, after string, small bool) {
		if len(data) > 400 {
			return
		}
		s, root, keys := fuzzRoot(t, listForms[int(doc)%len(listForms)], data, small)
		var want []string
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && (after == "" || k > after) {
				want = append(want, k)
			}
		}
		var got []string
		for key, err := range s.List(context.Background(), root, prefix, after) {
			must.Do(t, err)
			got = append(got, key)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("list %q after %q:\n got %q\nwant %q", prefix, after, got, want)
		}
	})
}

// TestListLargeMap lists grids that are too large for any buffer, from
// everywhere.
func TestListLargeMap(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	rnd, seed := toy.Rand(t)
	for _, c := range []struct {
		doc   string
		form  Form
		shape []int
	}{
		{"array f=:.:1", Form{"", '.', 1}, []int{3000}},
		{"array f=c/:/:2", Form{"c/", '/', 2}, []int{120, 30}},
		{"array f=c/:/:2", Form{"c/", '/', 2}, []int{3, 1500}},
		{"array f=:.:3", Form{"", '.', 3}, []int{11, 12, 25}},
		{"array f=:/:3", Form{"", '/', 3}, []int{1500, 1, 2}},
	} {
		s := newToySpace(seed)
		set := map[string]string{"a/zarr.json": c.doc}
		coords := make([]uint64, len(c.shape))
		for {
			if rnd.IntN(10) > 0 {
				set["a/"+spell(c.form, coords...)] = "x"
			}
			i := len(coords) - 1
			for ; i >= 0; i-- {
				if coords[i]++; coords[i] < uint64(c.shape[i]) {
					break
				}
				coords[i] = 0
			}
			if i < 0 {
				break
			}
		}
		root := s.mustApply(t, tree.Root{}, puts(set))
		h := &history{toySpace: s, t: t, rnd: rnd, root: root, want: toyModel{}}
		for k, v := range set {
			h.want[k] = inline(v)
		}
		keys := toyKeys(set)
		h.checkList("", "")
		for range 10 {
			prefix, after := h.pick(keys), h.pick(keys)
			prefix = prefix[:rnd.IntN(len(prefix)+1)]
			after = after[:rnd.IntN(len(after)+1)]
			h.checkList(prefix, after)
			h.checkList("", after)
			dir, _ := SplitKey(prefix)
			h.checkListDir(dir)
		}
	}
}

func spell(f Form, coords ...uint64) string {
	var b []byte
	for _, n := range coords {
		b = appendCoord(b, n)
	}
	f, _ = f.normal()
	key, ok := f.print(nil, b)
	if !ok {
		panic("spell")
	}
	return string(key)
}

// TestNumberRange compares the ranges of numbers with plain strings.
func TestNumberRange(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	rnd, _ := toy.Rand(t)
	piece := func() string {
		b := make([]byte, rnd.IntN(4))
		for i := range b {
			b[i] = "0123456789./:a"[rnd.IntN(14)]
		}
		return string(b)
	}
	for range 1000 {
		digits := ""
		if rnd.IntN(2) == 0 {
			digits = fmt.Sprint(rnd.IntN(120))
		}
		low := piece()
		for k := max(1, len(digits)); k <= 3; k++ {
			lo, hi, ok := numberRange(digits, low, k)
			for n := range uint64(1000) {
				text := fmt.Sprint(n)
				if len(text) != k {
					continue
				}
				// A key goes on with a separator or ends.
				in := strings.HasPrefix(text, digits) && (text >= low || text+"/\xff" >= low)
				if got := ok && lo <= n && n <= hi; in && !got {
					t.Fatalf("%d is not among %d…%d: digits %q, low %q, %d digits", n, lo, hi, digits, low, k)
				} else if got && !strings.HasPrefix(text, digits) {
					t.Fatalf("%d among %d…%d: digits %q", n, lo, hi, digits)
				}
			}
		}
	}
}

// TestListStops: a consumer may stop, and a cancelled context ends a listing.
func TestListStops(t *testing.T) {
	s, root, keys := fuzzRoot(t, listForms[3], bytes.Repeat([]byte{2 + 7, 1, 2, 2 + 7, 3, 4, 14, 6}, 9), true)
	n := 0
	for range s.List(context.Background(), root, "", "") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 || len(keys) < 3 {
		t.Fatalf("%d of %d keys", n, len(keys))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var err error
	for _, err = range s.List(ctx, root, "", "") {
	}
	if err != context.Canceled {
		t.Fatalf("cancelled: %v", err)
	}
}
