package txn

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// toyPolicy reads documents of fields separated by spaces: "array",
// "f=prefix:sep:rank" names a form, as do "sep=…" and "rank=…" together, "k=…" is the structure, "g=4,5" the grid,
// and any other field is an attribute.
type toyPolicy struct{}

func (toyPolicy) Node(name string) bool {
	return name == ".zarray" || name == ".zgroup" || name == "zarr.json"
}

func (p toyPolicy) Forms(name string, doc []byte) (forms []Form) {
	var parts Form
	for _, field := range strings.Fields(string(doc)) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "sep":
			parts.Sep = value[0]
		case "rank":
			parts.Rank, _ = strconv.Atoi(value)
		}
		spec, ok := strings.CutPrefix(field, "f=")
		if !ok || !p.Node(name) {
			continue
		}
		parts := strings.Split(spec, ":")
		rank, err := strconv.Atoi(parts[len(parts)-1])
		if len(parts) == 3 && len(parts[1]) == 1 && err == nil {
			forms = append(forms, Form{parts[0], parts[1][0], rank})
		}
	}
	if parts.Rank > 0 && p.Node(name) {
		forms = append(forms, parts)
	}
	return forms
}

func (p toyPolicy) Structure(name string, doc []byte) (s Structure, ok bool) {
	for _, field := range strings.Fields(string(doc)) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "array":
			ok = p.Node(name)
		case "k":
			s.Key = []byte(value)
		case "g":
			for _, n := range strings.Split(value, ",") {
				i, _ := strconv.ParseInt(n, 10, 64)
				s.Grid = append(s.Grid, i)
			}
		}
	}
	return s, ok
}

// MergeDocument merges fields; g by axis. What makes a group is a field without
// a value.
func (p toyPolicy) MergeDocument(name string, base, ours, theirs []byte, strict bool) ([]byte, []FieldConflict, error) {
	array := slices.Contains(strings.Fields(string(ours)), "array")
	if !p.Node(name) && name != ".zattrs" && !p.Derived(name) || strict && base == nil && p.Node(name) && array {
		return nil, []FieldConflict{{}}, nil
	}
	parse := func(doc []byte) map[string]string {
		m := map[string]string{}
		for _, field := range strings.Fields(string(doc)) {
			key, value, _ := strings.Cut(field, "=")
			if key == "f" {
				key, value = field, ""
			}
			if key == "g" {
				for i, n := range strings.Split(value, ",") {
					m["g"+strconv.Itoa(i)] = n
				}
				continue
			}
			m[key] = value + " "
		}
		return m
	}
	b, o, t := parse(base), parse(ours), parse(theirs)
	all := maps.Clone(b)
	maps.Copy(all, o)
	maps.Copy(all, t)
	var out, grid []string
	var conflicts []FieldConflict
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v := o[key]
		switch {
		case b[key] == o[key]:
			v = t[key]
		case b[key] != t[key] && o[key] != t[key]:
			conflicts = append(conflicts, FieldConflict{Field: key, Base: b[key], Ours: o[key], Theirs: t[key]})
		case strict && b[key] != t[key] && v != "" && (base != nil || v != " "):
			conflicts = append(conflicts, FieldConflict{Field: key, Base: b[key], Ours: v, Theirs: v, Same: true})
		}
		switch {
		case v == "":
		case len(key) == 2 && key[0] == 'g':
			grid = append(grid, v)
		case v == " ":
			out = append(out, key)
		default:
			out = append(out, key+"="+strings.TrimSpace(v))
		}
	}
	if len(grid) > 0 {
		out = append(out, "g="+strings.Join(grid, ","))
	}
	return []byte(strings.Join(out, " ")), conflicts, nil
}

func (p toyPolicy) Metadata(name string) bool {
	return p.Node(name) || p.Derived(name) || name == ".zattrs"
}

func (toyPolicy) Copies(_ string, doc []byte) (copies, rest []byte) { return nil, doc }

func (toyPolicy) Derived(name string) bool { return name == ".zmetadata" }

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

// toySpace is a space in memory.
type toySpace struct {
	*space
	pages *tree.MemPages
	packs *toyPacks
}

func newToySpace(seed uint64) toySpace {
	packs := &toyPacks{docs: map[digest.Sum][]byte{}}
	pages := tree.NewMemPages()
	s := newSpace(tree.New(pages, nil), toyPolicy{}, packs.load)
	var n uint64
	s.newID = func() (id [16]byte) {
		n++
		binary.BigEndian.PutUint64(id[:], seed)
		binary.BigEndian.PutUint64(id[8:], n)
		return id
	}
	if seed%2 == 0 {
		s.lim = limits{smallDir: 3, edits: 4, refs: 5, moved: 3, group: 3, read: 2}
	}
	s.store = func(_ context.Context, _ string, doc []byte) (tree.Value, error) {
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
func puts(kv map[string]string) []edit {
	var edits []edit
	for _, key := range slices.Sorted(maps.Keys(kv)) {
		edits = append(edits, edit{key: key, value: inline(kv[key]), del: kv[key] == ""})
	}
	return edits
}

func (s toySpace) mustApply(t testing.TB, root tree.Root, edits []edit) tree.Root {
	t.Helper()
	root, err := s.apply(context.Background(), root, edits)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// model reads a root with scan.
func (s toySpace) model(t testing.TB, root tree.Root) toyModel {
	t.Helper()
	m := toyModel{}
	for it, err := range s.scan(context.Background(), root, "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m[it.key]; ok {
			t.Fatalf("scan yields %q twice", it.key)
		}
		m[strings.Clone(it.key)] = it.value
	}
	return m
}

// newRand returns a generator with a printed seed.
func newRand(t testing.TB) (*rand.Rand, uint64) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1)), seed
}
