package namespace

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

type toyPolicy = toy.Policy[Form, Structure, FieldConflict]

// toyPacks keeps native documents.
type toyPacks struct {
	mu   sync.Mutex
	docs map[digest.Sum][]byte
}

func (p *toyPacks) load(_ context.Context, v tree.Value) ([]byte, error) {
	if v.Kind == tree.KindInline {
		return v.Inline, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	doc, ok := p.docs[v.Sum]
	if !ok || v.Kind != tree.KindNative {
		return nil, fmt.Errorf("no payload %v", v.Sum)
	}
	return doc, nil
}

// native makes a native value of a document, at an address that depends on n.
func (p *toyPacks) native(doc string, n uint64) tree.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := tree.Value{Kind: tree.KindNative, Sum: digest.Of([]byte(doc)), Offset: n, Length: uint64(len(doc))}
	p.docs[v.Sum] = []byte(doc)
	return v
}

func inline(s string) tree.Value { return tree.Value{Kind: tree.KindInline, Inline: []byte(s)} }

// memPages is a page store in memory.
type memPages struct {
	mu    sync.RWMutex
	pages map[tree.Name][]byte
}

func newMemPages() *memPages { return &memPages{pages: map[tree.Name][]byte{}} }

// GetPage implements [tree.Pages].
func (m *memPages) GetPage(_ context.Context, name tree.Name) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p, ok := m.pages[name]; ok {
		return p, nil
	}
	return nil, tree.ErrMissing
}

// PutPage implements [tree.Pages].
func (m *memPages) PutPage(_ context.Context, name tree.Name, page []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pages[name] = page
	return nil
}

// toySpace is a space in memory.
type toySpace struct {
	*Space
	pages *memPages
	packs *toyPacks
}

func newToySpace(seed uint64) toySpace {
	packs := &toyPacks{docs: map[digest.Sum][]byte{}}
	pages := newMemPages()
	s := New(tree.New(pages, nil), toyPolicy{}, packs.load)
	var n uint64
	s.NewID = func() (id [16]byte) {
		n++
		binary.BigEndian.PutUint64(id[:], seed)
		binary.BigEndian.PutUint64(id[8:], n)
		return id
	}
	if seed%2 == 0 {
		s.Limits = Limits{SmallDir: 3, Edits: 4, Refs: 5, Moved: 3, Group: 3, Read: 2}
	}
	s.Store = func(_ context.Context, _ string, doc []byte) (tree.Value, error) {
		return packs.native(string(doc), 0), nil
	}
	return toySpace{s, pages, packs}
}

// toyModel is the plain map that a root stands for.
type toyModel map[string]tree.Value

func (m toyModel) keys(prefix string) []string {
	var keys []string
	for k := range m {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// put makes sorted edits out of a map; empty strings delete.
func puts(kv map[string]string) []Edit {
	var edits []Edit
	for _, key := range slices.Sorted(maps.Keys(kv)) {
		edits = append(edits, Edit{Key: key, Value: inline(kv[key]), Delete: kv[key] == ""})
	}
	return edits
}

func (s toySpace) mustApply(t testing.TB, root tree.Root, edits []Edit) tree.Root {
	t.Helper()
	root = must.Get(s.Apply(context.Background(), root, edits))(t)
	return root
}

// model reads a root with scan.
func (s toySpace) model(t testing.TB, root tree.Root) toyModel {
	t.Helper()
	m := toyModel{}
	for it, err := range s.Scan(context.Background(), root, "") {
		must.Do(t, err)
		if _, ok := m[it.Key]; ok {
			t.Fatalf("scan yields %q twice", it.Key)
		}
		m[strings.Clone(it.Key)] = it.Value
	}
	return m
}
