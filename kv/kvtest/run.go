package kvtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// Options describe the view under test. The zero value describes a view that
// holds every valid key ([kv.ValidKey]).
type Options struct {
	// Fill returns a view that holds exactly content. Views that are no
	// kv.Writer need it; other views are filled by open and Set.
	Fill func(t *testing.T, content map[string][]byte) kv.Reader

	// Tree means that keys are paths of files: a key cannot be below another
	// key, and the names "", "." and ".." are refused.
	Tree bool

	// Invalid lists further keys that the view refuses.
	Invalid []string

	// Holds reports whether the view can hold a valid key. Default: all.
	Holds func(key string) bool

	// Steps is the length of a random history. Default 500.
	Steps int
}

// Run runs the suite as subtests of t. open returns an empty view each time
// that it is called, and may be nil where Options.Fill is given. It may use
// t.Cleanup and t.TempDir.
func Run(t *testing.T, open func(t *testing.T) kv.Reader, opts Options) {
	s := suite{Options: opts, open: open}
	if s.Steps == 0 {
		s.Steps = 500
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Missing", s.testMissing},
		{"Ranges", s.testRanges},
		{"Batch", s.testBatch},
		{"Gather", s.testGather},
		{"OddKeys", s.testOddKeys},
		{"InvalidKeys", s.testInvalidKeys},
		{"OwnedSlices", s.testOwnedSlices},
		{"Canceled", s.testCanceled},
		{"List", s.testList},
		{"ListStops", s.testListStops},
		{"ListDir", s.testListDir},
		{"DeletePrefix", s.testDeletePrefix},
		{"Names", s.testNames},
		{"Replaced", s.testReplaced},
		{"ReadConcurrently", s.testReadConcurrently},
		{"WriteConcurrently", s.testWriteConcurrently},
		{"Conditional", s.testConditional},
		{"ConditionalRaces", s.testConditionalRaces},
		{"SetValue", s.testSetValue},
		{"History", s.testHistory},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct {
	Options
	open func(t *testing.T) kv.Reader
}

var bg = context.Background()

// filled returns a view filled with content, and the keys and values of content
// that it can hold.
func (s *suite) filled(t *testing.T, content map[string][]byte) (kv.Reader, model) {
	t.Helper()
	want := model{}
	for key, value := range content {
		if s.holds(key) {
			want[key] = value
		}
	}
	if s.Tree {
		for key := range maps.Clone(want) {
			if want.hasPrefix(key + "/") {
				delete(want, key)
			}
		}
	}
	if s.Fill != nil {
		return s.Fill(t, want), want
	}
	view := s.open(t)
	w, ok := view.(kv.Writer)
	if !ok {
		t.Fatalf("%T is not a kv.Writer and Options.Fill is nil", view)
	}
	for key, value := range want {
		if err := w.Set(bg, key, value); err != nil {
			t.Fatalf("set %q: %v", key, err)
		}
	}
	return view, want
}

// store returns an empty store, or skips the test.
func (s *suite) store(t *testing.T) kv.Store {
	t.Helper()
	if s.open == nil {
		t.Skip("nothing is written through this view")
	}
	view := s.open(t)
	st, ok := view.(kv.Store)
	if !ok {
		t.Skipf("%T is not a kv.Store", view)
	}
	return st
}

// lister returns a filled view that can be listed, or skips the test.
func (s *suite) lister(t *testing.T, content map[string][]byte) (kv.ReadLister, model) {
	t.Helper()
	view, want := s.filled(t, content)
	l, ok := view.(kv.ReadLister)
	if !ok {
		t.Skipf("%T is not a kv.Lister", view)
	}
	return l, want
}

func (s *suite) holds(key string) bool {
	if kv.ValidKey(key) != nil || slices.Contains(s.Invalid, key) {
		return false
	}
	if s.Tree {
		for name := range strings.SplitSeq(key, "/") {
			if name == "" || name == "." || name == ".." {
				return false
			}
		}
	}
	return s.Holds == nil || s.Holds(key)
}

// model is what a view must be like: a plain map.
type model map[string][]byte

func (m model) keys() []string { return slices.Sorted(maps.Keys(m)) }

func (m model) hasPrefix(prefix string) bool {
	for key := range m {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// list is kv.Lister.List by brute force.
func (m model) list(opts kv.ListOptions) []string {
	var out []string
	for _, key := range m.keys() {
		if strings.HasPrefix(key, opts.Prefix) && key > opts.After {
			out = append(out, key)
		}
	}
	return out
}

// listDir is kv.ListDir by brute force.
func (m model) listDir(prefix string) []kv.DirEntry {
	set := map[kv.DirEntry]bool{}
	for key := range m {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			name, _, isDir := strings.Cut(rest, "/")
			set[kv.DirEntry{Name: name, Prefix: isDir}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b kv.DirEntry) int {
		rank := map[bool]int{false: 0, true: 1}
		return cmp.Or(strings.Compare(a.Name, b.Name), rank[a.Prefix]-rank[b.Prefix])
	})
}

// pattern returns n bytes that depend on seed at every place.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ seed
	}
	return b
}

// trickyKeys are keys whose order and nesting go wrong easily: bytes around
// the slash, names that are prefixes of others, several levels, and runs of
// many keys below one name.
func trickyKeys(many int) map[string][]byte {
	content := map[string][]byte{}
	for i, key := range []string{
		"a", "a!", "a!/x", "a-b", "a-b/c", "a-b-c", "a.b", "a.b/c/d", "a/b", "a/b-c/d", "a/b/c", "a/b/c-d",
		"a/b/c/d", "a//b", "a//", "a0", "aa", "a~", "ab/a", "ab/b", "b", "c/0.0", "c/0.1", "c/1.0", "c/10.0", "c/2.0", "c/0/0", "c/0/1",
		"c/1/0", "c/10/0", "c/2/0", "e/zarr.json", "zarr.json", "é", "é/é", "漢/字", "\U0001F600", "z", "zz/zz", "-", "-/-", "!", "x/!/a", "x/!", "x/.../y",
	} {
		content[key] = fmt.Appendf(nil, "value %d", i)
	}
	for i := range many {
		content[fmt.Sprintf("many/%d", i)] = []byte{byte(i)}
		content[fmt.Sprintf("many-/%d/%d", i%3, i)] = []byte{byte(i)}
	}
	return content
}

// borders returns every key, everything that a key begins with, and the
// nearest strings before and after each.
func borders(keys []string) []string {
	set := map[string]bool{"": true, "\xff": true}
	for _, key := range keys {
		for i := range len(key) + 1 {
			set[key[:i]] = true
		}
		set[key+"\x00"] = true
		set[key+"\xff"] = true
		set[key[:len(key)-1]+string(rune(key[len(key)-1]-1))] = true
	}
	return slices.Sorted(maps.Keys(set))
}
