package icechunk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
)

// virtualFolder is where testdata/generate.py had the file of virtual chunks.
const virtualFolder = "file:///data/icechunk/virtual/"

type expected struct {
	Names    map[string]string
	Versions map[string]struct {
		Parent, Message, Author string
		Micros                  int64
		Keys                    map[string]string
	}
}

// golden opens a repository of testdata, and what it must hold.
func golden(t testing.TB, name string) (kv.ReadLister, *expected) {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/" + name + ".json"))(t)
	want := &expected{}
	must.Do(t, json.Unmarshal(b, want))
	return dir(t, "testdata/"+name), want
}

func dir(t testing.TB, name string) kv.ReadLister {
	t.Helper()
	store := must.Get(dirkv.Open(name, &dirkv.Options{ReadOnly: true}))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// memory copies a repository into memory, where tests may damage it.
func memory(t testing.TB, from kv.ReadLister) *kv.Mem {
	t.Helper()
	m := kv.NewMem()
	for key, err := range from.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		b, err := kv.Get(t.Context(), from, key)
		if err == nil {
			err = m.Set(t.Context(), key, b)
		}
		must.Do(t, err)
	}
	return m
}

func open(t testing.TB, files kv.Reader, version string) *Set {
	t.Helper()
	s := must.Get(Open(t.Context(), files, version))(t)
	return s
}

// digest reads what a reference leads to and hashes it.
func digest(t testing.TB, files kv.Reader, r refs.Reference) string {
	t.Helper()
	b := r.Data
	if !r.Inline() {
		if rest, ok := strings.CutPrefix(r.URL, virtualFolder); ok {
			files, r.URL = dir(t, "testdata/virtual"), rest
		}
		v, err := kv.Locate(t.Context(), files, r.URL)
		if err == nil {
			b, err = kv.ReadValue(t.Context(), v, kv.Span(r.Offset, r.Length))
		}
		if err != nil {
			t.Fatalf("%s: %v", r.URL, err)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func keys(t testing.TB, ctx context.Context, s *Set, o kv.ListOptions) []string {
	t.Helper()
	var out []string
	for key, err := range s.List(ctx, o) {
		must.Do(t, err)
		out = append(out, key)
	}
	return out
}
