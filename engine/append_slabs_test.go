package engine

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// small makes what is read at a time small.
func small(t testing.TB, slab int64) {
	must.Set(t, &slabBytes, slab)
}

// What takes several reads is compared, watched and written anew as what takes
// one.
func TestAppendSlabs(t *testing.T) {
	set := func(time, x string) smallSet {
		n, m := len(time), len(x)
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		s.array("time", "|i1", []int{n}, []int{n}, []string{"time"}, map[string]string{"0": time})
		s.array("x", "|i1", []int{m}, []int{m}, []string{"x"}, map[string]string{"0": x})
		return s
	}
	for _, c := range []struct {
		sets []smallSet
		want string // "" if it fits
	}{
		{[]smallSet{set("abc", "abcdefg"), set("defgh", "abcdefg"), set("ij", "abcdefg")}, ""},
		{[]smallSet{set("abc", "abcdefg"), set("degfh", "abcdefg")}, "/time: 102 in f1.json does not follow 103 in f1.json"},
		{[]smallSet{set("abc", "abcdefg"), set("defgg", "abcdefg")}, "/time: 103 in f1.json is there already, in f1.json"},
		{[]smallSet{set("abdc", "abcdefg")}, "/time: 99 in f0.json does not follow 100 in f0.json"},
		{[]smallSet{set("abc", "abcdefg"), set("def", "abcdefg"), set("ghi", "abcdefG")}, "/x: values is one set of elements in"},
		{[]smallSet{set("abc", "abcdefg"), set("def", "Abcdefg")}, "/x: values is one set of elements in"},
	} {
		for _, slab := range []int64{1, 3} {
			small(t, slab)
			joins(t, c.sets, true, func(mode string, db *DB, err error) {
				if c.want != "" {
					misfit(t, err, c.want)
				} else if err != nil {
					t.Errorf("%s: %v", mode, err)
				} else if got := textOf(t, array(t, at(t, db, ""), "time")); got != "abcdefghij" {
					t.Errorf("%s, %d bytes at a time: %q", mode, slab, got)
				}
			})
		}
	}
}

// Only a coordinate variable is watched: one dimension, of its own name, in
// whatever group; times are numbers.
func TestAppendWatches(t *testing.T) {
	same := func(path, dtype string, shape []int, dims []string, chunk map[string]string) func(smallSet) {
		return func(s smallSet) { s.array(path, dtype, shape, shape, dims, chunk) }
	}
	date := func(days ...int64) string {
		var b []byte
		for _, d := range days {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		return string(b)
	}
	for _, c := range []struct {
		name          string
		first, second func(smallSet)
		want          string // "" if it fits
	}{
		{"in a group", same("g/time", "|i1", []int{1}, []string{"time"}, map[string]string{"0": "b"}), same("g/time", "|i1", []int{1}, []string{"time"}, map[string]string{"0": "b"}), "/g/time: 98 in f1.json is there already, in "},
		{"in a group, back", same("g/time", "|i1", []int{2}, []string{"time"}, map[string]string{"0": "bc"}), same("g/time", "|i1", []int{1}, []string{"time"}, map[string]string{"0": "a"}), "/g/time: 97 in f1.json does not follow 99 in "},
		{"of another dimension", same("h/time", "|i1", []int{2}, []string{"n"}, map[string]string{"0": "ba"}), same("h/time", "|i1", []int{2}, []string{"n"}, map[string]string{"0": "ba"}), ""},
		{"of two dimensions", same("h/time", "|i1", []int{2, 1}, []string{"time", "n"}, map[string]string{"0.0": "ba"}), same("h/time", "|i1", []int{2, 1}, []string{"time", "n"}, map[string]string{"0.0": "ba"}), ""},
		{"of another name", same("h/date", "|i1", []int{2}, []string{"time"}, map[string]string{"0": "ba"}), same("h/date", "|i1", []int{2}, []string{"time"}, map[string]string{"0": "ba"}), ""},
		{"dates", same("time", "<M8[D]", []int{2}, []string{"time"}, map[string]string{"0": date(-1, 1)}), same("time", "<M8[D]", []int{2}, []string{"time"}, map[string]string{"0": date(300, 301)}), ""},
		{"dates that go back", same("time", "<M8[D]", []int{2}, []string{"time"}, map[string]string{"0": date(1, 2)}), same("time", "<M8[D]", []int{2}, []string{"time"}, map[string]string{"0": date(-1, 3)}), " in f1.json does not follow "},
		{"spans that go back", same("time", "<m8[s]", []int{2}, []string{"time"}, map[string]string{"0": date(1, 2)}), same("time", "<m8[s]", []int{2}, []string{"time"}, map[string]string{"0": date(-1, 3)}), " in f1.json does not follow "},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := dailySet(0), dailySet(1)
			c.first(first)
			c.second(second)
			joins(t, []smallSet{first, second}, true, func(mode string, _ *DB, err error) {
				if c.want == "" && err != nil {
					t.Errorf("%s: %v", mode, err)
				}
				if c.want != "" {
					misfit(t, err, c.want)
					if strings.Contains(err.Error(), "cannot be found out") {
						t.Errorf("%s: %v", mode, err)
					}
				}
			})
		})
	}
}

// What cannot be read to be compared is an error and not taken for equal or in
// order.
func TestAppendUnreadable(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	text := "\x02\x00\x00\x00\x01\x00\x00\x00a\x01\x00\x00\x00b"
	set := func(day int, lost string) smallSet {
		s := dailySet(day)
		s.array("notes", "|O", []int{2}, []int{2}, []string{"n"}, map[string]string{"0": text})
		s.doc("notes")["filters"], s.doc("notes")["fill_value"] = []any{map[string]any{"id": "vlen-utf8"}}, ""
		if lost != "" {
			s[lost] = []any{"gone", 0, 2}
		}
		return s
	}
	for lost, want := range map[string]string{
		"x/0": "/x has not the dimension time and must be the same in every source, but cannot be compared", "notes/0": "/notes has not the dimension time",
		"time/0": "/time: whether its values are in order cannot be found out",
	} {
		for _, first := range []bool{true, false} {
			list := pieces(t, set(0, ""), set(1, lost))
			o := ImportOptions{Validate: ValidateNone}
			db := openDB(t, linkOptions(t, t.TempDir()))
			if first { // it is there, and was read when it was appended to nothing
				url := set(0, lost).write(t, "f0.json")
				gone := filepath.Join(filepath.Dir(url), "gone")
				must.Do(t, os.WriteFile(gone, []byte("\x00\x01"), 0o666))
				must.Get(appendAll(db, "time", true, o, pieceOf(url, Follow{})))(t)
				must.Do(t, os.Remove(gone))
				db, list = reopened(t, db), pieces(t, set(1, ""))
			}
			before := head(t, db, "")
			_, err := appendAll(db, "time", true, o, list...)
			if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, there %v: %v", lost, first, err)
			}
			unchanged(t, db, before)
		}
	}
}

// An array may be the root of what is joined.
func TestAppendRoot(t *testing.T) {
	set := func(values string) smallSet {
		s := smallSet{}
		s.array("r", "|i1", []int{len(values)}, []int{2}, []string{"time"}, map[string]string{"0": values})
		for _, key := range []string{".zarray", ".zattrs", "0"} {
			s[key] = s["r/"+key]
			delete(s, "r/"+key)
		}
		return s
	}
	joins(t, []smallSet{set("ab"), set("cd"), set("ef")}, true, func(mode string, db *DB, err error) {
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if got := textOf(t, array(t, at(t, db, ""), "")); got != "abcdef" {
			t.Errorf("%s: %q", mode, got)
		}
	})
}

// Sizes beyond what can be counted are large.
func TestAppendArraySize(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		want  int64
	}{
		{[]int64{}, 2}, {[]int64{3, 4}, 24}, {[]int64{0, 1 << 62}, 0}, {[]int64{1 << 61}, 1 << 62}, {[]int64{1 << 62}, 1<<63 - 1}, {[]int64{1 << 62, 4}, 1<<63 - 1}, {[]int64{1 << 62, 8, 3}, 1<<63 - 1},
	} {
		s := smallSet{".zgroup": map[string]any{"zarr_format": 2}}
		dims := []string{"time", "y", "x"}
		s.array("a", "<i2", []int{}, []int{}, dims[:len(c.shape)], nil)
		chunks := []int{1, 1, 1}
		s.doc("a")["shape"], s.doc("a")["chunks"] = c.shape, chunks[:len(c.shape)]
		found, _, err := surveyPiece(bg, pieces(t, s)[0], true, &keptRefs{})
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
		if got := metaSize(found[1].meta); got != c.want {
			t.Errorf("%v: %d bytes, want %d", c.shape, got, c.want)
		}
	}
}
