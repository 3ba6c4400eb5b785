package chunklist

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Keys come in byte order with their coordinates, as the listing wants them.
func TestWalk(t *testing.T) {
	for _, a := range []Array{
		{Prefix: "a/", Separator: '.', Counts: []int64{123}},
		{Prefix: "", Separator: '/', Counts: []int64{12, 101}},
		{Prefix: "x", Separator: '.', Counts: []int64{3, 0, 5}},
		{Prefix: "b/c/", Separator: '/', Counts: []int64{2, 11, 30}},
	} {
		all := map[string]string{}
		var fill func(key string, coords []int64)
		fill = func(key string, coords []int64) {
			d := len(coords)
			if d == len(a.Counts) {
				all[key] = fmt.Sprint(coords)
				return
			}
			if d > 0 {
				key += string(a.Separator)
			}
			for n := range a.Counts[d] {
				fill(key+fmt.Sprint(n), append(slices.Clip(coords), n))
			}
		}
		fill(a.Prefix, nil)
		for _, o := range []kv.ListOptions{{}, {Prefix: a.Prefix + "1"}, {After: a.Prefix + "10"}, {Prefix: a.Prefix + "1", After: a.Prefix + "1.7"}, {Prefix: "z"}, {After: "z"}} {
			for _, odd := range []bool{false, true} {
				a.Enter = nil
				if odd {
					a.Enter = func(coords []int64) bool { return len(coords) > 1 || coords[0] != 1 }
				}
				var want, got []string
				for key := range all {
					if o.Has(key) && !(odd && strings.HasPrefix(key, a.Prefix+"1")) {
						want = append(want, key)
					}
				}
				slices.Sort(want)
				err := a.Walk(t.Context(), o, func(key []byte, coords []int64) error {
					if all[string(key)] != fmt.Sprint(coords) {
						t.Errorf("%s: %v", key, coords)
					}
					got = append(got, string(key))
					return nil
				})
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%+v %+v: %v, %q, want %q", a, o, err, got, want)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	empty := Array{Separator: '.', Counts: []int64{1 << 40, 0}}
	must.Do(t, empty.Walk(t.Context(), kv.ListOptions{}, func([]byte, []int64) error { return errors.New("a key") }))
	large := Array{Separator: '.', Counts: []int64{1 << 40}}
	if err := large.Walk(ctx, kv.ListOptions{}, func([]byte, []int64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Documents and other arrays come between the keys of an array.
func TestMerge(t *testing.T) {
	arrays := map[string][]string{"a/": {"a/0", "a/1", "a/9"}, "a/5/": {"a/5/0", "a/5/1"}, "b": {"b0"}}
	keys := func(prefix *string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for _, key := range arrays[*prefix] {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
	docs, same := []string{".zgroup", "a/.zarray", "a/5/.zarray", "a/z", "c"}, func(s *string) string { return *s }
	for o, want := range map[kv.ListOptions]string{
		{}:                          ".zgroup a/.zarray a/0 a/1 a/5/.zarray a/5/0 a/5/1 a/9 a/z b0 c",
		{Prefix: "a/5", After: "a"}: "a/5/.zarray a/5/0 a/5/1",
	} {
		var got []string
		for key, err := range Merge(t.Context(), o, docs, same, []string{"a/", "a/5/", "b"}, same, keys) {
			must.Do(t, err)
			if o.Has(key) {
				got = append(got, key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %s", o, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("%04d", i)
	}
	n := 0
	for _, err := range Merge(ctx, kv.ListOptions{}, many, same, nil, same, keys) {
		if cancel(); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		n++
	}
	if n == len(many) {
		t.Error("the context is not looked at")
	}
}
