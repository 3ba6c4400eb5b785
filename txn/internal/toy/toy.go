// Package toy is a small language of metadata documents for tests.
package toy

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Policy reads documents of fields separated by spaces: "array",
// "f=prefix:sep:rank" names a chunk key form, as do "sep=…" and "rank=…" together,
// "k=…" is the structure, "g=4,5" the grid, and any other field is an attribute.
//
// Its parameters are the types of the package that asks: the form of chunk keys, the
// structure of an array and the conflict of a field.
type Policy[F ~form, S ~structure, C ~conflict] struct{}

type (
	form = struct {
		Prefix string
		Sep    byte
		Rank   int
	}
	structure = struct {
		Key  []byte
		Grid []int64
	}
	conflict = struct {
		Field              string
		Base, Ours, Theirs string
		Same               bool
	}
)

func (Policy[F, S, C]) Node(name string) bool {
	return name == ".zarray" || name == ".zgroup" || name == "zarr.json"
}

func (p Policy[F, S, C]) Forms(name string, doc []byte) (forms []F) {
	var parts form
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
			forms = append(forms, F(form{parts[0], parts[1][0], rank}))
		}
	}
	if parts.Rank > 0 && p.Node(name) {
		forms = append(forms, F(parts))
	}
	return forms
}

func (p Policy[F, S, C]) Array(name string, doc []byte) bool {
	return p.Node(name) && slices.Contains(strings.Fields(string(doc)), "array")
}

func (p Policy[F, S, C]) Structure(name string, doc []byte) (S, bool) {
	var s structure
	ok := false
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
	return S(s), ok
}

func (p Policy[F, S, C]) WithAttributes(_ string, doc, attributes []byte) []byte {
	isAttribute := func(field string) bool {
		key, _, _ := strings.Cut(field, "=")
		return !slices.Contains([]string{"array", "group", "f", "sep", "rank", "k", "g"}, key)
	}
	out := slices.DeleteFunc(strings.Fields(string(doc)), isAttribute)
	for _, field := range strings.Fields(string(attributes)) {
		if isAttribute(field) {
			out = append(out, field)
		}
	}
	return []byte(strings.Join(out, " "))
}

// MergeDocument merges fields; g by axis. What makes a group is a field without
// a value.
func (p Policy[F, S, C]) MergeDocument(name string, base, ours, theirs []byte, strict bool) ([]byte, []C, error) {
	array := slices.Contains(strings.Fields(string(ours)), "array")
	if !p.Node(name) && name != ".zattrs" && !p.Derived(name) || strict && base == nil && p.Node(name) && array {
		return nil, []C{C(conflict{})}, nil
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
	var conflicts []C
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v := o[key]
		switch {
		case b[key] == o[key]:
			v = t[key]
		case b[key] != t[key] && o[key] != t[key]:
			conflicts = append(conflicts, C(conflict{Field: key, Base: b[key], Ours: o[key], Theirs: t[key]}))
		case strict && b[key] != t[key] && v != "" && (base != nil || v != " "):
			conflicts = append(conflicts, C(conflict{Field: key, Base: b[key], Ours: v, Theirs: v, Same: true}))
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

func (p Policy[F, S, C]) Metadata(name string) bool {
	return p.Node(name) || p.Derived(name) || name == ".zattrs"
}

func (Policy[F, S, C]) Copies(_ string, doc []byte) (copies, rest []byte) { return nil, doc }

func (Policy[F, S, C]) Derived(name string) bool { return name == ".zmetadata" }

// Rand returns a generator with a printed seed.
func Rand(t testing.TB) (*rand.Rand, uint64) {
	seed := must.Seed(t)
	return rand.New(rand.NewPCG(seed, 1)), seed
}
