package refs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// identified is a value with an identity.
type identified struct {
	kv.Value
	id kv.ID
}

func (v identified) ID() kv.ID { return v.id }

// TestViewParts is about the parts of one file: their identities, and ranges that
// lie in the file and not in them.
func TestViewParts(t *testing.T) {
	set := `{"whole":["f"],"all":["f",0,6],"head":["f",0,3],"tail":["f",3,3],"one":["f",3,1],"other":["g",0,3],"none":["f",6,0],"far":["f",7,0],"long":["f",5,2],"beyond":["f",9,1]}`
	open := func(_ context.Context, _, path string) (kv.Value, error) {
		return identified{kv.Bytes("abcdef"), kv.ID{path[0]}}, nil
	}
	view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(set), &refs.Options{Open: open, Rules: refs.Rules{Base: "/d"}}))(t)
	ids := map[kv.ID]string{}
	for key, want := range map[string]string{"whole": "abcdef", "head": "abc", "tail": "def", "one": "d", "other": "abc", "none": ""} {
		v := must.Get(view.Locate(t.Context(), key))(t)
		if other, ok := ids[v.ID()]; ok || v.ID() == (kv.ID{}) {
			t.Errorf("%s has the identity of %s", key, other)
		}
		ids[v.ID()] = key
		if b, err := kv.ReadValue(t.Context(), v, kv.All()); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", key, b, err)
		}
	}
	all, err := view.Locate(t.Context(), "all")
	if err != nil || ids[all.ID()] != "whole" {
		t.Errorf("all of a file is another value than the file, %v", err)
	}
	for _, key := range []string{"far", "long", "beyond"} {
		if _, err := view.Locate(t.Context(), key); !errors.Is(err, refs.ErrUnreachable) || errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	head := must.Get(view.Locate(t.Context(), "tail"))(t)
	got := ""
	err = kv.ViewRanges(t.Context(), head, []kv.Range{kv.Span(2, 1), kv.Span(0, 2)}, func(i int, b []byte) error {
		got += fmt.Sprintf("%d%s ", i, b)
		return nil
	})
	if err != nil || got != "0f 1de " && got != "1de 0f " {
		t.Errorf("ranges of the tail: %q, %v", got, err)
	}
	for _, rng := range []kv.Range{kv.Span(3, 1), kv.Span(2, 2), kv.From(4)} {
		if err := kv.ViewRanges(t.Context(), head, []kv.Range{rng}, func(int, []byte) error { return nil }); !errors.Is(err, kv.ErrRange) {
			t.Errorf("%v: %v", rng, err)
		}
		if b, err := kv.ReadValue(t.Context(), head, rng); !errors.Is(err, kv.ErrRange) {
			t.Errorf("%v: %q, %v", rng, b, err)
		}
	}
}

// vanished is a file that is missed when it is read.
type vanished struct{ kv.Value }

func (vanished) View(context.Context, kv.Range, func([]byte) error) error { return kv.ErrNotFound }

// TestViewVanished does not take a file that went for a key that is not there.
func TestViewVanished(t *testing.T) {
	open := func(context.Context, string, string) (kv.Value, error) { return vanished{kv.Bytes("abcdef")}, nil }
	view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(`{"a":["f",1,2]}`), &refs.Options{Open: open, Rules: refs.Rules{Base: "/d"}}))(t)
	if _, err := kv.Get(t.Context(), view, "a"); !errors.Is(err, refs.ErrUnreachable) || errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
}
